/* Rules of norms. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* One node for everything that is wanted, which always has rows. */
enum err op_vjp_norm(struct vjp_call *c)
{
    bool is_rms = c->f.op == OP_RMS_NORM;
    struct norm_vjp_params p = { .of = *(const struct norm_params *)c->f.params };
    struct arr *in[4], *out[3] = { NULL };
    enum err err;

    if (c->f.in[0]->dtype == DT_FLOAT64 || !c->f.in[0]->size)
        return c->f.by_parts->vjp(c);
    for (size_t i = 0; i < c->n_wanted; i++)
        p.for_vectors |= c->wanted[i] > 0;
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[c->f.n_in] = c->cotan[0];
    TRY(ops_make(out, is_rms ? OP_RMS_NORM_VJP : OP_LAYER_NORM_VJP, &p,
                 (struct arrs){ in, c->f.n_in + 1 }, c->f.strm));
    for (size_t i = 0; i < c->n_wanted; i++)
        c->result[i] = arr_ref(out[c->wanted[i]]);
out:
    arr_unref_all(out, 3);
    return err;
}

/* Rows of x are normed one by one, whatever they are numbered by. */
enum err op_vmap_norm(struct vmap_call *c)
{
    struct arr *in[3];
    enum err err;

    for (size_t i = 1; i < c->f.n_in; i++)
        if (c->axis[i] != VMAP_NONE)
            return c->f.by_parts->vmap(c);
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[0] = NULL;
    TRY(vmap_front(&in[0], c, 0));
    TRY(ops_make(c->result, c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm));
    c->out_axis[0] = 0;
out:
    arr_unref(&in[0]);
    return err;
}
