/* Entry points of the op families on Vulkan. */
#pragma once

#include "backend/backend.h"

/* Runs elementwise programs of any length with emitted kernels. */
enum err vk_elementwise(const struct exec *x);
/* Strided copy with conversion. */
enum err vk_copy(struct strm *s, const struct be_copy *c);

#define OWN(id, word) enum err vk_##word(const struct exec *x);
#define GPU_ONLY(id, word) OWN(id, word)
#include "ops/families.def"
