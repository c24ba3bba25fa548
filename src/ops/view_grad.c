/* Gradients of views, slices and splits: all are linear, and cotangents go back by what undoes
 * them. */
#include "ops/build.h"
#include "ops/rules.h"

static enum err back_by(struct vjp_call *c, enum op_id op, const void *params)
{
    return ops_make_one(&c->result[0], op, params, c->cotan[0], c->f.strm);
}

enum err op_vjp_reshape(struct vjp_call *c)
{
    return ops_reshape(&c->result[0], c->cotan[0], shape_of(c->f.in[0]), c->f.strm);
}

enum err op_vjp_flatten(struct vjp_call *c)
{
    const struct flatten_params *p = c->f.params;
    struct unflatten_params to = { .axis = p->start, .n = p->end - p->start + 1 };

    for (int i = 0; i < to.n; i++)
        to.shape[i] = c->f.in[0]->shape[p->start + i];
    return back_by(c, OP_UNFLATTEN, &to);
}

enum err op_vjp_unflatten(struct vjp_call *c)
{
    const struct unflatten_params *p = c->f.params;

    return back_by(c, OP_FLATTEN, &(struct flatten_params){ p->axis, p->axis + p->n - 1 });
}

enum err op_vjp_expand_dims(struct vjp_call *c)
{
    return back_by(c, OP_SQUEEZE, c->f.params);
}

enum err op_vjp_squeeze(struct vjp_call *c)
{
    return back_by(c, OP_EXPAND_DIMS, c->f.params);
}

enum err op_vjp_transpose(struct vjp_call *c)
{
    const struct axes_params *p = c->f.params;
    struct axes_params to = { .n = p->n };

    for (int i = 0; i < p->n; i++)
        to.axis[p->axis[i]] = i;
    return back_by(c, OP_TRANSPOSE, &to);
}

/* An element has the cotangents of all its copies. */
enum err op_vjp_broadcast(struct vjp_call *c)
{
    const struct arr *a = c->f.in[0], *t = c->cotan[0];
    int32_t leading[SHP_MAX], copied[SHP_MAX];
    size_t lead = (size_t)(t->ndim - a->ndim), n = 0;
    struct arr *x = NULL;
    enum err err;

    for (size_t i = 0; i < t->ndim; i++) {
        leading[i] = (int32_t)i;
        if (t->shape[i] != (i < lead ? 1 : a->shape[i - lead]))
            copied[n++] = (int32_t)i;
    }
    TRY(ops_reduce(&x, REDUCE_SUM, c->cotan[0], &(struct ops_axes){ { copied, n }, true },
                   c->f.strm));
    STEP(x, ops_squeeze(&next, x, (struct ints){ leading, lead }, c->f.strm));
    TRY(ops_astype(&c->result[0], x, dtype_of(a), c->f.strm));
out:
    arr_unref(&x);
    return err;
}

enum err op_vjp_slice(struct vjp_call *c)
{
    struct slice_update_params p = { .kind = UPDATE_NONE };
    struct arr *in[2] = { NULL, c->cotan[0] };
    enum err err;

    if (in[1]->size == 0)
        return ERR_OK;
    op_own_params(&p.region, &c->f);
    TRY(op_or_zeros(&in[0], NULL, c->f.in[0], c->f.strm));
    err = ops_make(&c->result[0], OP_SLICE_UPDATE, &p, (struct arrs){ in, 2 }, c->f.strm);
out:
    arr_unref(&in[0]);
    return err;
}

enum err op_vjp_split(struct vjp_call *c)
{
    const struct split_params *p = c->f.params;
    struct arr *part[OP_MAX_OUT] = { NULL };
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->f.n_out; i++)
        TRY(op_or_zeros(&part[i], c->cotan[i], c->out[i], c->f.strm));
    err = ops_concatenate(&c->result[0], (struct arrs){ part, c->f.n_out }, p->axis, c->f.strm);
out:
    arr_unref_all(part, OP_MAX_OUT);
    return err;
}

/* The elements that a strided view shows, by their numbers, get what arrives at all their places.
 */
enum err op_vjp_as_strided(struct vjp_call *c)
{
    struct arange_params all = { .stop = c->f.in[0]->shape[0], .step = 1 };
    struct arr *at = NULL, *t = NULL, *zeros = NULL;
    enum err err;

    TRY(ops_arange(&at, &all, DT_INT32, c->f.strm));
    STEP(at, ops_make_one(&next, OP_AS_STRIDED, c->f.params, at, c->f.strm));
    STEP(at, ops_flatten(&next, at, 0, -1, c->f.strm));
    TRY(ops_flatten(&t, c->cotan[0], 0, -1, c->f.strm));
    TRY(op_or_zeros(&zeros, NULL, c->f.in[0], c->f.strm));
    err = ops_scatter_axis(&c->result[0], zeros, &(struct ops_scatter_axis){ at, t, 0, UPDATE_SUM },
                           c->f.strm);
out:
    arr_unref(&at);
    arr_unref(&t);
    arr_unref(&zeros);
    return err;
}
