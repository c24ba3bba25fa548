/* Rules of attention. */
#include "base/gate.h"
#include "eval/stream.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

static bool is_empty(const struct op_apply *f)
{
    return !f->in[0]->size || !f->in[1]->size || !f->in[2]->size;
}

/* The node does not give the cotangent of a mask, and there is none for float64 or without a
 * setting.
 */
static bool needs_parts(const struct vjp_call *c)
{
    const struct sdpa_params *p = c->f.params;
    bool needs = c->f.in[0]->dtype == DT_FLOAT64 || is_empty(&c->f);

    if (c->f.strm->dev.type == DEV_GPU && !gate_on(GATE_VK_SDPA_VJP_NATIVE))
        return true;
    for (size_t i = 0; i < c->n_wanted; i++)
        needs |= p->has_mask && c->wanted[i] == 3;
    return needs;
}

enum err op_vjp_sdpa(struct vjp_call *c)
{
    struct arr *in[7], *out[4] = { NULL };
    size_t n = c->f.n_in;
    enum err err;

    if (needs_parts(c))
        return c->f.by_parts->vjp(c);
    memcpy(in, c->f.in, n * sizeof in[0]);
    in[n] = c->out[0];
    in[n + 1] = c->cotan[0];
    TRY(ops_make(out, OP_SDPA_VJP, c->f.params, (struct arrs){ in, n + 2 }, c->f.strm));
    for (size_t i = 0; i < c->n_wanted; i++)
        c->result[i] = arr_ref(out[MIN(c->wanted[i], 3)]);
out:
    arr_unref_all(out, 4);
    return err;
}

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
