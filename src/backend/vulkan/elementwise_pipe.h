/* Pipelines of elementwise kernels by program and class. */
#pragma once

#include <stdatomic.h>

#include "backend/vulkan/elementwise_emit.h"
#include "backend/vulkan/pipeline.h"

/* Finds the pipeline, or emits its module and builds it. slot (may be NULL) is the memory of a step
 * of a plan: a step that runs again with the same program and class is neither hashed nor looked
 * up. Its content is released with mem_free. Borrowed for the life of the device. Thread-safety:
 * safe. */
MUST_CHECK enum err elem_pipe(const struct vk_pipe **pipe, const struct fx *f,
                              const struct elem_class *c, _Atomic(void *) *slot);
