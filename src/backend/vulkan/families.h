/* Entry points of the op families on Vulkan, one row of families.def each. */
#pragma once

#include "backend/backend.h"

/* Runs elementwise programs of any length with emitted kernels. */
enum err vk_elementwise(const struct exec *x);
/* Strided copy with conversion. */
enum err vk_copy(struct strm *s, const struct be_copy *c);

#define FAMILY(id, fn) enum err fn(const struct exec *x);
#include "backend/vulkan/families.def"
#undef FAMILY
