/* Reductions of any layout: one engine for reduce, argmin, argmax and logsumexp, whose kernels are
 * the same two files with other parts (kernels/reduce_head.glsl). */
#pragma once

#include "backend/common/reduce_plan.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/rt/encoder.h"

struct vk_reduction {
    enum kern_id row, col; /* modules of reduce_row.comp and reduce_col.comp */
    uint32_t kind;         /* specialization constant 3 */
    uint32_t part_bytes;   /* PART_BYTES of the family's *_ops.glsl */
    const struct reduce_plan *plan;
    const struct arr *in;
    const struct arr *out; /* row-major, has storage; NULL: parts are wanted */
};

/* Encodes one dispatch, or two where outputs are few and long. With r->out NULL the parts of all
 * outputs are left in scratch memory at *parts, which may otherwise be NULL. */
MUST_CHECK enum err vk_reduction_encode(struct vk_enc *e, const struct vk_reduction *r,
                                        uint64_t *parts);
