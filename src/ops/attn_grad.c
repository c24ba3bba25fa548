/* Rules of attention. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* Inputs of attention but sinks: a batch of them is as many more batches. Results are new. */
static enum err join_batches(struct arr **in, const struct vmap_call *c, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++) {
        TRY(vmap_front(&in[i], c, i));
        STEP(in[i], ops_flatten(&next, in[i], 0, 1, c->f.strm));
    }
out:
    return err;
}

enum err op_vmap_sdpa(struct vmap_call *c)
{
    const struct sdpa_params *p = c->f.params;
    size_t n = c->f.n_in - (size_t)p->has_sinks;
    int32_t batches[2] = { vmap_batch(c), c->f.in[0]->shape[c->axis[0] == 0] };
    struct arr *in[5] = { NULL }, *r = NULL;
    enum err err;

    if (p->has_sinks && c->axis[n] != VMAP_NONE)
        return c->f.by_parts->vmap(c);
    TRY(join_batches(in, c, n));
    if (p->has_sinks)
        in[n] = arr_ref(c->f.in[n]);
    TRY(ops_make(&r, c->f.op, p, (struct arrs){ in, c->f.n_in }, c->f.strm));
    TRY(ops_unflatten(c->result, r, 0, (struct ints){ batches, 2 }, c->f.strm));
    c->out_axis[0] = 0;
out:
    arr_unref_all(in, 5);
    arr_unref(&r);
    return err;
}
