#include "backend/backend.h"
#include "core/array.h"
#include "core/memory.h"

struct buf *buf_ref(struct buf *b)
{
    if (b)
        ref_inc(&b->rc);
    return b;
}

void buf_unref(struct buf **pb)
{
    struct buf *b = *pb;

    *pb = NULL;
    if (!b || !ref_dec(&b->rc))
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

/* in_flight counts the references of one stream at a time; those of another one that comes
 * meanwhile are ordinary references. So the count never exceeds what the stream really holds. */
static uint64_t stream_word(int stream_index)
{
    return (uint64_t)(uint32_t)stream_index << 32;
}

static uint32_t held_by(uint64_t word, int stream_index)
{
    return word >> 32 == (uint32_t)stream_index ? (uint32_t)word : 0;
}

struct buf *buf_hold(struct buf *b, int stream_index)
{
    uint64_t now = atomic_load(&b->in_flight), next;

    ref_inc(&b->rc);
    do {
        bool is_other = (uint32_t)now && !held_by(now, stream_index);
        next = is_other ? now : stream_word(stream_index) | (held_by(now, stream_index) + 1);
    } while (!atomic_compare_exchange_weak(&b->in_flight, &now, next));
    return b;
}

void buf_release(struct buf **pb, int stream_index)
{
    uint64_t now = atomic_load(&(*pb)->in_flight), next;

    do
        next = held_by(now, stream_index) ? now - 1 : now;
    while (!atomic_compare_exchange_weak(&(*pb)->in_flight, &now, next));
    buf_unref(pb);
}

bool buf_is_only_held_by(const struct buf *b, int stream_index)
{
    /* In this order: what is released in between makes the buffer look more used than it is. */
    int refs = ref_get(&b->rc);

    return refs == 1 + (int)held_by(atomic_load(&b->in_flight), stream_index);
}

void buf_drop_mirror(struct buf *b)
{
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
        if (!made)
            TRY(maker->buf_mirror(&made, b, worthwhile(b, newest, want)));
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
