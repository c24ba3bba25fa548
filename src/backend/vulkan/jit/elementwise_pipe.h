/* Pipelines of elementwise kernels by program and class. */
#pragma once

#include <stdatomic.h>

#include "backend/vulkan/jit/elementwise_emit.h"
#include "backend/vulkan/rt/encoder.h"
#include "backend/vulkan/rt/pipeline.h"

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

/* What a step remembers: steps mostly run with the same class again, and walk the same way. */
struct elem_known {
    struct elem_class c;
    const struct vk_pipe *pipe;
    struct elem_flat flat; /* n 0: of no flat walk; then there is nothing below */
    size_t groups;
    struct vk_grid grid;
    struct variant_hit hit;
};

/* What elem_note kept in the slot (may be NULL) for an equal walk, or NULL. */
static inline const struct elem_known *elem_recall(_Atomic(void *) *slot,
                                                   const struct elem_flat *flat)
{
    const struct elem_known *k = slot ? atomic_load_explicit(slot, memory_order_acquire) : NULL;
    bool is_same = k && k->flat.n == flat->n && k->flat.low_bits == flat->low_bits &&
                   k->flat.once_in == flat->once_in && k->flat.gates == flat->gates &&
                   k->flat.is_wide == flat->is_wide && k->flat.owns_outputs == flat->owns_outputs;

    return is_same ? k : NULL;
}

/* Keeps a flat walk, if its class is the one that elem_pipe remembers; the pipe is elem_pipe's.
 * Thread-safety: of the slot's plan. */
void elem_note(_Atomic(void *) *slot, const struct elem_known *k);
