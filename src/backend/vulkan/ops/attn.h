/* Attention on Vulkan, also for those who merge it with what makes its operands. */
#pragma once

#include "backend/common/attn.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/rope.h"

/* How a kernel would run it. */
struct attn_plan {
    enum kern_id kern;
    uint32_t spec[VK_MAX_SPEC];
    int n_spec;
    uint32_t items, splits; /* workgroups, times parts of the keys */
    size_t part_bytes;      /* of one workgroup's part */
    uint32_t rows, shared;  /* attn_rows.comp: rows of a workgroup, bytes of shared memory */
};

struct attn_job {
    const struct exec *x;
    struct attn a;
    const struct arr *in[3]; /* q, k, v as the kernels read them */
    struct arr *copy[3];     /* owned, where they could not */
    bool is_wide;
    struct attn_plan plan;
    struct vk_enc *enc;
    struct sdpa_args args;
};

static inline bool attn_fits_i32(int64_t v)
{
    return v >= -INT32_MAX && v <= INT32_MAX;
}

/* attn_rows.comp: depends on sizes, dtype of in[0], flags and is_wide of the job. */
void attn_plan_rows(struct attn_plan *p, const struct attn_job *j);
/* Memory for the parts of several workgroups, and counters at 0. */
MUST_CHECK enum err attn_parts(struct vk_enc *e, uint64_t *parts, uint64_t *counters,
                               const struct attn_plan *p);

/* The attention of one query, its heads not yet in their places: parts of the rope are queries,
 * without a destination, and keys and values, whose destinations are the caches. The keys and
 * values of the attention are what these hold up to and with the new position. */
struct vk_attn_heads {
    const struct exec *sdpa; /* arrays as in the op; the queries have no storage */
    const struct vk_rope *rope;
};
/* Encodes it as one dispatch, or says why not; *why is GROUP_TAKEN before. */
MUST_CHECK enum err vk_attn_heads(struct vk_enc *e, const struct vk_attn_heads *h,
                                  enum group_reason *why);
/* Moves the step that recorded it to the position that h has now (recording_move). */
bool vk_attn_heads_move(struct vk_enc *e, struct be_recording *r, size_t step,
                        const struct vk_attn_heads *h);
