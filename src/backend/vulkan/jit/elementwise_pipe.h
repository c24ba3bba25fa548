/* Pipelines of elementwise kernels by program and class. */
#pragma once

#include "backend/vulkan/jit/elementwise_emit.h"
#include "backend/vulkan/rt/pipeline.h"

/* Finds the pipeline, or emits its module and builds it. Borrowed for the life of the device; while
 * a recording looks what is missing it may be NULL (vk_enc_dispatch). Thread-safety: safe. */
MUST_CHECK enum err elem_pipe(const struct vk_pipe **pipe, const struct elem_program *f,
                              const struct elem_class *c);
