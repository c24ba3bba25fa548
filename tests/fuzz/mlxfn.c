/* The reader of exported functions, and what it made of the file run on zeros. */
#include "io/mlxfn.h"
#include "eval/eval.h"
#include "fuzz/fuzz.h"
#include "graph/dtype.h"

/* Larger graphs of small files are true, and slow to run. */
#define MAX_BYTES ((size_t)1 << 20)

static bool is_small(const struct out_desc *d, size_t n, size_t *sum)
{
    int64_t size;

    for (size_t i = 0; i < n; i++)
        if (!shp_size_checked(&d[i].shape, &size) || (size_t)size > MAX_BYTES ||
            (*sum += (size_t)size * dt_size(d[i].dtype)) > MAX_BYTES)
            return false;
    return true;
}

static enum err zeros(struct arr **out, const struct out_desc *d)
{
    void *bytes = mem_alloc(shp_size(&d->shape) * dt_size(d->dtype) + 1);
    enum err err = bytes ? arr_new_data(out, bytes, &d->shape, d->dtype) : ERR_NO_MEMORY;

    mem_free(bytes);
    return err;
}

static void run(const struct mlxfn *f, const struct mlxfn_trace *t)
{
    struct arr **in = mem_alloc_array(t->in.n + 1, sizeof *in);
    struct arr **out = mem_alloc_array(t->out.n + 1, sizeof *out);
    size_t bytes = 0;
    bool runs =
        in && out && is_small(t->in.v, t->in.n, &bytes) && is_small(t->made.v, t->made.n, &bytes);

    for (size_t i = 0; runs && i < t->in.n; i++)
        runs = zeros(&in[i], &t->in.v[i]) == ERR_OK;
    if (runs && mlxfn_apply(out, f, t, (struct arrs){ in, t->in.n }) == ERR_OK &&
        eval_arrays(out, t->out.n, false) == ERR_OK)
        runs = false;
    for (size_t i = 0; in && i < t->in.n; i++)
        arr_unref(&in[i]);
    for (size_t i = 0; out && i < t->out.n; i++)
        arr_unref(&out[i]);
    mem_free(in);
    mem_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct source *src = NULL;
    struct mlxfn *f = NULL;
    void *copy = mem_alloc(size); /* of exactly this size, so that a sanitizer sees its end */

    if (!copy)
        return 0;
    memcpy(copy, data, size);
    if (source_new_memory(&src, copy, size, "fuzz.mlxfn") != ERR_OK)
        return 0;
    if (mlxfn_read(&f, src) == ERR_OK)
        for (size_t i = 0; i < f->trace.n; i++)
            run(f, &f->trace.v[i]);
    mlxfn_destroy(&f);
    source_unref(&src);
    return 0;
}
