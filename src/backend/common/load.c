/* Load: bytes of a file into the memory of the stream's device. They are read when the step is
 * encoded, into memory that nothing uses yet, so that no device has to wait for them. */
#include "graph/load.h"

#include "backend/common/families.h"

static enum err fill(void *arg, void *dst, size_t offset, size_t n)
{
    return load_read(arg, dst, offset, n);
}

static void drop_source(void *arg)
{
    struct source *s = arg;

    source_unref(&s);
}

/* False if the bytes have to be copied. */
static bool use_in_place(struct arr *out, const struct load_part *p)
{
    void *bytes = load_in_place(p, arr_nbytes(out), dt_size((enum dtype)out->dtype));
    struct source *held = bytes ? source_ref(p->source) : NULL;

    if (bytes && arr_adopt(out, bytes, drop_source, held) == ERR_OK)
        return true;
    source_unref(&held);
    return false;
}

enum err be_load(const struct exec *x)
{
    const struct be *be = x->strm->be;
    const struct load_part *p = load_part_get(x->in[0]);
    struct arr *out = x->out[0];
    size_t n = arr_nbytes(out);
    enum err err;

    TRY(load_check(p, n)); /* before memory is taken for what a file only claims to hold */
    if (be->type == DEV_CPU && use_in_place(out, p))
        return ERR_OK;
    TRY(arr_alloc(out, be));
    if (out->buf->host)
        err = load_read(p, out->buf->host, 0, n);
    else if (be->buf_fill)
        err = be->buf_fill(out->buf, n, fill, (void *)p);
out:
    return err;
}
