/* Rotary positions on Vulkan, and the way of heads into place for those who merge it with a norm
 * before and a copy after. */
#pragma once

#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/norm.h"
#include "backend/vulkan/rt/encoder.h"

/* Strides in elements. */
struct vk_head_strides {
    int64_t batch, head, position, element;
};

/* One tensor of heads: rows of `size` elements, one for each (batch, head, position). Each row is
 * normed (RMSNorm, rounded as the op rounds it), rotated by its position, both or neither, and
 * written to its place. A row may be written over itself, not over another. */
struct vk_rope_part {
    const struct arr *src, *dst; /* dst NULL: only for vk_rope_is_held */
    struct vk_head_strides from, to;
    int64_t src_offset, dst_offset; /* elements from the arrays' first */
    const struct nest *head_nest;   /* of src instead of from.head; NULL: one axis */
    uint32_t heads;
    bool is_normed, is_rotated;
    const struct arr *weight; /* of the norm; may be NULL */
    float eps;
};

/* One dispatch over tensors of the same dtype, batch, positions and row size. */
struct vk_rope {
    const struct rope_params *p;
    const struct arr *offset, *freqs; /* as p says they are there */
    uint32_t batch, positions, size;
    int n_parts; /* at most ROPE_PARTS */
    struct vk_rope_part part[ROPE_PARTS];
};
MUST_CHECK enum err vk_rope_encode(struct vk_enc *e, const struct vk_rope *r);

/* ---- for kernels that norm and turn rows themselves (kernels/rope_rows.glsl) ---- */

/* True if a lane of a row's team holds a block of each half of it, all of them aligned. */
bool vk_rope_is_held(const struct vk_rope *r, struct norm_team *t);
/* ROPE_*, but for how rows are read. */
uint32_t vk_rope_flags(const struct vk_rope *r);
/* The table that the flags tell of, and the elements between its frequencies. */
struct vk_rope_table {
    uint64_t addr;
    int64_t stride;
};
MUST_CHECK enum err vk_rope_table(struct vk_enc *e, struct vk_rope_table *out,
                                  const struct vk_rope *r);
/* True if it is a table of these positions, made here. */
bool vk_rope_has_turns(const struct vk_rope *r);
