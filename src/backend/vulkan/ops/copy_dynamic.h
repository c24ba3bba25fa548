/* Copies whose offsets are computed on the device. */
#pragma once

#include "backend/vulkan/rt/encoder.h"

/* c has a start and a shape that is not empty. */
MUST_CHECK enum err vk_copy_dynamic(struct vk_enc *e, const struct be_copy *c);
