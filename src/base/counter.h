/* Counters that many threads add to and few look at. Each thread has its own copy of all of them,
 * so that counting is a plain addition; the sum is taken when somebody asks. The copy of a thread
 * that ends passes on to one that begins, with what is in it. Where more threads count at a time
 * than there are copies, the others share one. Thread-safety: safe; what other threads count
 * meanwhile may be missing from a sum. */
#pragma once

#include <stdatomic.h>

#include "base/common.h"
#include "base/mem.h"

/* Who counts where. */
enum {
    COUNTER_STAT = 0,      /* base/stat.h */
    COUNTER_REWRITE = 64,  /* plan/rewrite.h */
    COUNTER_BACKEND = 256, /* the GPU backend's */
    COUNTER_COUNT = 2048
};

/* The calling thread's copy; NULL: none yet, or none left for it. */
extern _Thread_local _Atomic uint64_t *counter_own;
void counter_add_slow(unsigned id, uint64_t n);

static inline void counter_add(unsigned id, uint64_t n)
{
    _Atomic uint64_t *own = counter_own;

    if (!own) {
        counter_add_slow(id, n);
        return;
    }
    /* Nobody else writes it: no locked operation is needed. */
    n += atomic_load_explicit(&own[id], memory_order_relaxed);
    atomic_store_explicit(&own[id], n, memory_order_relaxed);
}

/* What a step of a plan counts is counted when it is encoded. While one is recorded, which is
 * before that and not as often, it is noted for whoever encodes the recording. */
struct counter_note {
    unsigned id;
    uint64_t n;
};
struct counter_notes {
    VEC(struct counter_note) note;
};
extern _Thread_local struct counter_notes *counter_notes; /* of the calling thread; NULL: count */
void counter_note(unsigned id, uint64_t n);

static inline void counter_add_step(unsigned id, uint64_t n)
{
    if (counter_notes)
        counter_note(id, n);
    else
        counter_add(id, n);
}

/* What all threads added since the last reset. */
uint64_t counter_get(unsigned id);
void counter_reset(unsigned first, unsigned n);
