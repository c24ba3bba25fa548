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

/* All that the class of a flat walk depends on, for one program. */
struct elem_flat {
    size_t n;
    uint64_t low_bits; /* of the addresses, four each */
    uint32_t once_in;
    uint32_t gates; /* gate_changes() */
    bool is_wide, owns_outputs;
};

/* The class that elem_note kept in the slot for an equal walk, or NULL. */
const struct elem_class *elem_recall(_Atomic(void *) *slot, const struct elem_flat *flat);
/* Keeps the walk with its class, if that is the one that elem_pipe remembers. Thread-safety: of the
 * slot's plan. */
void elem_note(_Atomic(void *) *slot, const struct elem_flat *flat, const struct elem_class *c);
