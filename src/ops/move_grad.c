/* Gradients of concatenations and padding. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- concatenation ---- */

/* The cotangent of each input that is wanted is its part, from start[i] to start[i + 1]. */
static enum err cut(struct vjp_call *c, int axis, const int32_t *start)
{
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++)
        TRY(ops_slice_axis(&c->result[done], c->cotan[0], axis, start + c->wanted[done],
                           c->f.strm));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_vjp_concatenate(struct vjp_call *c)
{
    int axis = ((const struct axis_params *)c->f.params)->axis;
    int32_t *start = mem_alloc_array(c->f.n_in + 1, sizeof *start);
    enum err err;

    if (!start)
        return ERR_NO_MEMORY;
    start[0] = 0;
    for (size_t i = 0; i < c->f.n_in; i++)
        start[i + 1] = start[i] + c->f.in[i]->shape[axis];
    err = cut(c, axis, start);
    mem_free(start);
    return err;
}

/* ---- padding ---- */

/* What lies outside of the region. */
static enum err sum_of_border(struct arr **out, struct vjp_call *c,
                              const struct slice_params *region)
{
    struct slice_update_params p = { UPDATE_NONE, *region };
    struct arr *in[2] = { c->cotan[0], NULL }, *x = NULL;
    enum err err;

    TRY(op_or_zeros(&in[1], NULL, c->f.in[0], c->f.strm));
    TRY(ops_make(&x, OP_SLICE_UPDATE, &p, (struct arrs){ in, 2 }, c->f.strm));
    STEP(x, ops_reduce(&next, REDUCE_SUM, x, &(struct ops_axes){ INTS_ALL, false }, c->f.strm));
    err = ops_astype(out, x, dtype_of(c->f.in[1]), c->f.strm);
out:
    arr_unref(&in[1]);
    arr_unref(&x);
    return err;
}

enum err op_vjp_pad(struct vjp_call *c)
{
    struct slice_params region;
    size_t done = 0;
    enum err err = ERR_OK;

    ops_pad_region(&region, c->f.in[0], c->f.params);
    for (; done < c->n_wanted; done++)
        if (c->wanted[done] == 0)
            TRY(ops_make_one(&c->result[done], OP_SLICE, &region, c->cotan[0], c->f.strm));
        else
            TRY(sum_of_border(&c->result[done], c, &region));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}
