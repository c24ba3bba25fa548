/* Reductions whose subgroups read memory in blocks, for software devices: kernels/block.glsl. They
 * do the first of the two dispatches that a reduction may need. */
#pragma once

#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/reduce.h"
#include "backend/vulkan/ops/variant.h"

/* Whether the layout and the sizes suit the kernels; in_addr is where the plan's walk starts. */
enum variant_reason reduce_block_judge(const struct vk_reduction *r, uint64_t in_addr);

/* Everything but where to write. r was judged to fit. */
void reduce_block_plan(struct reduce_block_args *a, const struct vk_reduction *r, uint64_t in_addr);

/* With out_parts, slices * n_out parts are written to a->out_addr; else there is one slice, and its
 * results are. Accesses are declared by the caller. */
MUST_CHECK enum err reduce_block_dispatch(struct vk_enc *e, const struct vk_reduction *r,
                                          const struct reduce_block_args *a, bool out_parts);
