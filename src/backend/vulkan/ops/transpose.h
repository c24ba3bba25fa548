/* Copies whose source and destination are consecutive along different axes. */
#pragma once

#include "backend/vulkan/ops/elementwise.h"

/* Encodes the copy that job describes (a nest with both operands, addresses set and declared) where
 * a kernel for transposition fits; *done says whether one did. */
MUST_CHECK enum err vk_transpose(bool *done, struct vk_enc *e, const struct elem_job *job);
