/* Host memory: allocation that can fail, a typed growable vector, a scratch arena, reference
 * counts.
 *
 * Every allocation of the library goes through here, so that tests can make the n-th one fail. */
#pragma once

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/common.h"
#include "base/err.h"

/* Zeroed memory, or NULL with the error text set. mem_free accepts NULL. Thread-safety: safe. */
void *mem_alloc(size_t size);
void *mem_alloc_array(size_t n, size_t size);
void mem_free(void *p);
char *mem_strdup(const char *s);

/* Like mem_alloc without zeroing, aligned to a cache line; released with mem_free. For payloads. */
void *mem_alloc_aligned(size_t size);

/* The same for small blocks that come and go in great numbers, such as graph nodes: a thread keeps
 * those it frees for its next ones. */
void *mem_pool_alloc(size_t size);
void mem_pool_free(void *p, size_t size);

/* The n-th allocation from now on fails (1 = the next one), and all after it until reset with 0.
 * For tests; counts over all threads. */
void mem_fail_after(size_t n);

/* ---- typed growable vector: struct { T *v; size_t n, cap; } ---- */

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *v;                                                                                      \
        size_t n, cap;                                                                             \
    }

/* Makes room for `extra` elements behind n; a sum that overflows is no memory. */
MUST_CHECK enum err vec_grow_(void *pv, size_t *cap, size_t n, size_t extra, size_t elem);

/* Room for `extra` more elements. Evaluates to enum err. */
#define VEC_RESERVE(vec, extra)                                                                    \
    ((size_t)(extra) <= (vec)->cap - (vec)->n                                                      \
         ? ERR_OK                                                                                  \
         : vec_grow_(&(vec)->v, &(vec)->cap, (vec)->n, (extra), sizeof *(vec)->v))

/* Appends one element. Evaluates to enum err. */
#define VEC_PUSH(vec, ...)                                                                         \
    (VEC_RESERVE(vec, 1) != ERR_OK ? ERR_NO_MEMORY : ((vec)->v[(vec)->n++] = (__VA_ARGS__), ERR_OK))

#define VEC_FINI(vec)                                                                              \
    do {                                                                                           \
        mem_free((vec)->v);                                                                        \
        (vec)->v = NULL;                                                                           \
        (vec)->n = (vec)->cap = 0;                                                                 \
    } while (0)

/* ---- scratch arena: many small allocations, one release ---- */

struct arena_block;
struct arena {
    struct arena_block *head;
};

/* Zeroed, 16-byte aligned memory that lives until arena_fini. NULL with the error text set. */
void *arena_alloc(struct arena *a, size_t size);
void arena_fini(struct arena *a);

/* ---- reference counts ---- */

typedef atomic_int refcount;

static inline void ref_inc(refcount *rc)
{
    atomic_fetch_add_explicit(rc, 1, memory_order_relaxed);
}

/* Drops one reference; true when it was the last. Orders the other owners' writes before a free.
 * For counts that a thread without a reference may raise from zero again. */
static inline bool ref_dec_revivable(refcount *rc)
{
    if (atomic_fetch_sub_explicit(rc, 1, memory_order_release) != 1)
        return false;
    /* A load and not a fence, which ThreadSanitizer does not see. */
    (void)atomic_load_explicit(rc, memory_order_acquire);
    return true;
}

/* The same for all other counts: nobody can join the only owner, so that its goodbye costs no
 * atomic operation. */
static inline bool ref_dec(refcount *rc)
{
    return atomic_load_explicit(rc, memory_order_acquire) == 1 || ref_dec_revivable(rc);
}

static inline int ref_get(const refcount *rc)
{
    return atomic_load_explicit(rc, memory_order_acquire);
}
