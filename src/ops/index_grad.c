/* Gradients of gathers. */
#include "ops/index.h"

/* Elements of the tangent at the same places; indices have none. */
enum err op_jvp_gather(struct jvp_call *c)
{
    struct arr *in[SHP_MAX + 1];

    for (size_t i = 1; i < c->f.n_in; i++)
        if (c->tan[i])
            return index_no_rule(&c->f, "jvp", "indices");
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[0] = c->tan[0];
    return ops_make(&c->result[0], c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm);
}

/* The cotangent added to zeros where it came from, by the op that scatters along the same axes. */
static enum err add_back(struct vjp_call *c, enum op_id op, const void *params)
{
    struct arr *in[SHP_MAX + 2], *zeros = NULL;
    enum err err;

    if (c->n_wanted > 1 || c->wanted[0] != 0)
        return index_no_rule(&c->f, "vjp", "indices");
    if (c->cotan[0]->size == 0)
        return ERR_OK;
    TRY(op_or_zeros(&zeros, NULL, c->f.in[0], c->f.strm));
    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    in[0] = zeros;
    in[c->f.n_in] = c->cotan[0];
    err = ops_make(&c->result[0], op, params, (struct arrs){ in, c->f.n_in + 1 }, c->f.strm);
out:
    arr_unref(&zeros);
    return err;
}

enum err op_vjp_gather(struct vjp_call *c)
{
    const struct gather_params *from = c->f.params;
    struct scatter_params p = { .kind = UPDATE_SUM, .n = from->n_axes };

    for (int i = 0; i < p.n; i++)
        p.axis[i] = from->d[i].axis;
    return add_back(c, OP_SCATTER, &p);
}

enum err op_vjp_gather_axis(struct vjp_call *c)
{
    const struct axis_params *from = c->f.params;

    return add_back(c, OP_SCATTER_AXIS, &(struct scatter_axis_params){ UPDATE_SUM, from->axis });
}
