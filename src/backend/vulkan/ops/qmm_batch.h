/* Batches of products with packed matrices, for the kernels. */
#pragma once

#include "backend/common/qmm_plan.h"
#include "backend/vulkan/rt/encoder.h"

/* Address of the qmm_batch_args of a plan; 0 where it is one product. Declares the index arrays as
 * read by the next dispatch. */
MUST_CHECK enum err qmm_batch_encode(struct vk_enc *e, uint64_t *addr, const struct qmm_plan *p);
