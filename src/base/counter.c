#include "base/counter.h"

#include <pthread.h>

/* Threads that count at a time without sharing; memory that none of them touches costs nothing. */
#define COPIES 64

static struct copy {
    atomic_bool is_taken;
    _Alignas(64) _Atomic uint64_t n[COUNTER_COUNT];
} copies[COPIES];
static _Atomic unsigned n_copies; /* those before it may have been used */

static _Atomic uint64_t shared[COUNTER_COUNT]; /* of threads without a copy */
static _Atomic uint64_t start[COUNTER_COUNT];  /* sums at the last reset */

_Thread_local _Atomic uint64_t *counter_own;
static _Thread_local bool has_none; /* there was no copy for this thread, or it is ending */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

static void leave(void *copy)
{
    counter_own = NULL;
    has_none = true;
    atomic_store_explicit(&((struct copy *)copy)->is_taken, false, memory_order_release);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, leave) == 0;
}

static struct copy *take_copy(void)
{
    for (unsigned i = 0; i < COPIES; i++) {
        unsigned used = atomic_load_explicit(&n_copies, memory_order_relaxed);
        if (atomic_exchange_explicit(&copies[i].is_taken, true, memory_order_acquire))
            continue;
        while (used <= i && !atomic_compare_exchange_weak(&n_copies, &used, i + 1))
            ;
        return &copies[i];
    }
    return NULL;
}

static void join(void)
{
    pthread_once(&once, make_key);
    struct copy *c = has_key ? take_copy() : NULL;
    has_none = true;
    if (!c)
        return;
    if (pthread_setspecific(key, c) != 0) { /* nobody would take it back */
        atomic_store_explicit(&c->is_taken, false, memory_order_release);
        return;
    }
    counter_own = c->n;
}

void counter_add_slow(unsigned id, uint64_t n)
{
    if (!has_none)
        join();
    if (counter_own)
        counter_add(id, n);
    else
        atomic_fetch_add_explicit(&shared[id], n, memory_order_relaxed);
}

_Thread_local struct counter_notes *counter_notes;

/* Of one counter there is one note. Where there is no memory something is not counted. */
void counter_note(unsigned id, uint64_t n)
{
    struct counter_notes *t = counter_notes;

    for (size_t i = 0; i < t->note.n; i++)
        if (t->note.v[i].id == id) {
            t->note.v[i].n += n;
            return;
        }
    enum err err = VEC_PUSH(&t->note, (struct counter_note){ id, n });
    (void)err;
}

static uint64_t sum_of(unsigned id)
{
    uint64_t sum = atomic_load_explicit(&shared[id], memory_order_relaxed);
    unsigned n = atomic_load_explicit(&n_copies, memory_order_acquire);

    for (unsigned i = 0; i < n; i++)
        sum += atomic_load_explicit(&copies[i].n[id], memory_order_relaxed);
    return sum;
}

uint64_t counter_get(unsigned id)
{
    return sum_of(id) - atomic_load_explicit(&start[id], memory_order_relaxed);
}

void counter_reset(unsigned first, unsigned n)
{
    for (unsigned id = first; id < first + n; id++)
        atomic_store_explicit(&start[id], sum_of(id), memory_order_relaxed);
}
