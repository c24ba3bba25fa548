#include "backend/backend.h"
#include "base/process.h"
#include "graph/array.h"
#include "graph/memory.h"

/* One word counts all references, so that a hold and its end are one atomic operation each: 32 bits
 * for all of them, 16 for those among them that work in flight of one stream holds, 16 for that
 * stream. Only one stream is counted at a time; holds of another one that comes meanwhile, and
 * those that the bits have no room for, are ordinary references. So the count never exceeds what
 * the stream really holds. */
#define ONE_HELD ((uint64_t)1 << 32)
#define MAX_HELD 0xffffu
#define STREAM_SHIFT 48

static uint32_t held_by(uint64_t word, int stream_index)
{
    return word >> STREAM_SHIFT == (uint64_t)stream_index ? word >> 32 & MAX_HELD : 0;
}

struct buf *buf_ref(struct buf *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

int buf_refs(const struct buf *b)
{
    return (int)(uint32_t)atomic_load_explicit(&b->refs, memory_order_acquire);
}

static void destroy(struct buf *b)
{
    if (process_is_child()) /* the device is not here, and its locks may be held for ever */
        return;
    buf_drop_mirror(b);
    if (!b->dtor) {
        b->home->buf_free(b);
        return;
    }
    b->dtor(b->dtor_arg);
    memory_release(b->size);
    mem_free(b);
}

void buf_unref(struct buf **pb)
{
    struct buf *b = *pb;

    *pb = NULL;
    if (!b)
        return;
    /* Nobody can join the only owner. */
    if (buf_refs(b) == 1 ||
        (uint32_t)atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        destroy(b);
}

static uint64_t with_hold(uint64_t word, int stream_index)
{
    uint32_t held = word >> 32 & MAX_HELD;
    bool is_counted = (!held || held_by(word, stream_index)) && held < MAX_HELD &&
                      stream_index < 1 << (64 - STREAM_SHIFT);

    if (!is_counted)
        return word + 1;
    return (uint64_t)stream_index << STREAM_SHIFT | ((word << 16 >> 16) + ONE_HELD + 1);
}

struct buf *buf_hold(struct buf *b, int stream_index)
{
    uint64_t now = atomic_load_explicit(&b->refs, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&b->refs, &now, with_hold(now, stream_index),
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
    return b;
}

void buf_release(struct buf **pb, int stream_index)
{
    struct buf *b = *pb;
    uint64_t now = atomic_load_explicit(&b->refs, memory_order_acquire), next;

    *pb = NULL;
    do
        next = now - 1 - (held_by(now, stream_index) ? ONE_HELD : 0);
    while ((uint32_t)now > 1 &&
           !atomic_compare_exchange_weak_explicit(&b->refs, &now, next, memory_order_acq_rel,
                                                  memory_order_acquire));
    if ((uint32_t)next == 0)
        destroy(b);
}

bool buf_is_only_held_by(const struct buf *b, int stream_index)
{
    uint64_t word = atomic_load_explicit(&b->refs, memory_order_acquire);

    return (uint32_t)word == 1 + held_by(word, stream_index);
}

int buf_owners(const struct buf *b, int stream_index)
{
    uint64_t word = atomic_load_explicit(&b->refs, memory_order_acquire);

    return (int)((uint32_t)word - held_by(word, stream_index));
}

void buf_drop_mirror(struct buf *b)
{
    if (!atomic_load_explicit(&b->mirror, memory_order_acquire))
        return;
    struct buf *mirror = atomic_exchange(&b->mirror, NULL);
    buf_unref(&mirror);
}

void buf_add_mirror(struct buf *b, struct buf *m)
{
    struct buf *newest = atomic_load(&b->mirror);

    do
        atomic_store(&m->mirror, newest);
    while (!atomic_compare_exchange_weak(&b->mirror, &newest, m));
}

/* Calls of buf_expects_reads that may still say yes. */
#define READ_CREDIT 16
static _Atomic int read_credit = READ_CREDIT;

bool buf_expects_reads(void)
{
    int left = atomic_load_explicit(&read_credit, memory_order_relaxed);

    if (left > 0)
        atomic_store_explicit(&read_credit, left - 1, memory_order_relaxed);
    return left > 0;
}

static bool holds(const struct buf *mirror, struct span want)
{
    return mirror->of.lo <= want.lo && want.lo + want.size <= mirror->of.lo + mirror->of.size;
}

/* What to copy when the mirrors from newest on lack the wanted bytes: as much again as they have
 * together, so that however small the pieces are that somebody reads one by one, all copies cost at
 * most twice the buffer. */
static struct span worthwhile(const struct buf *b, const struct buf *newest, struct span want)
{
    size_t size = 0;

    for (const struct buf *m = newest; m; m = atomic_load(&m->mirror))
        size += m->of.size;
    size = MAX(size, want.size);
    if (size >= b->size / 2)
        return (struct span){ 0, b->size };
    return (struct span){ MIN(want.lo, b->size - size), size };
}

enum err buf_mirror(struct buf **out, struct buf *b, struct span want, const struct be *maker)
{
    struct buf *made = NULL;
    enum err err = ERR_OK;

    for (;;) {
        struct buf *newest = atomic_load(&b->mirror), *m = newest;
        while (m && !holds(m, want))
            m = atomic_load(&m->mirror);
        *out = m;
        if (m)
            break; /* another thread may have been first */
        if (!made) {
            process_enter();
            err = maker->buf_mirror(&made, b, worthwhile(b, newest, want));
            process_leave();
            TRY(err);
        }
        atomic_store(&made->mirror, newest);
        if (atomic_compare_exchange_strong(&b->mirror, &newest, made))
            made = NULL;
        else
            atomic_store(&made->mirror, NULL);
    }
out:
    buf_unref(&made);
    return err;
}

enum err buf_host_span(const void **out, struct buf *b, struct span want)
{
    struct buf *m;

    if (b->host) {
        *out = (const char *)b->host + want.lo;
        return ERR_OK;
    }
    atomic_store_explicit(&read_credit, READ_CREDIT, memory_order_relaxed);
    enum err err = buf_mirror(&m, b, want, b->home);
    if (!err)
        *out = (const char *)m->host + (want.lo - m->of.lo);
    return err;
}

enum err buf_host(const void **out, struct buf *b)
{
    return buf_host_span(out, b, (struct span){ 0, b->size });
}
