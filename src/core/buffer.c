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

enum err buf_mirror(struct buf **out, struct buf *b, const struct be *maker)
{
    struct buf *mirror = atomic_load(&b->mirror);
    struct buf *made = NULL;
    enum err err = ERR_OK;

    if (mirror)
        goto out;
    TRY(maker->buf_mirror(&made, b));
    if (atomic_compare_exchange_strong(&b->mirror, &mirror, made)) {
        mirror = made;
        made = NULL;
    }
out:
    buf_unref(&made); /* another thread was first */
    *out = mirror;
    return err;
}

enum err buf_host(const void **out, struct buf *b)
{
    struct buf *readable = b;

    if (!b->host) {
        enum err err = buf_mirror(&readable, b, b->home);
        if (err)
            return err;
    }
    *out = readable->host;
    return ERR_OK;
}
