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
