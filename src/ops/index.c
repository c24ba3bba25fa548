/* Gathering by index arrays. */
#include "ops/build.h"
#include "ops/rules.h"

/* Index arrays of one shape and of integers, each along an axis of its own. */
static enum err check_indices(const struct infer_call *c)
{
    const struct gather_params *p = c->params;
    uint32_t seen = 0;

    for (int i = 0; i < p->n_axes; i++) {
        const struct arr *index = c->in[1 + i];
        FITS(infer_has_axis(c->in[0], p->d[i].axis) && !(seen >> p->d[i].axis & 1));
        FITS(arr_same_shape(index, c->in[1]));
        seen |= (uint32_t)1 << p->d[i].axis;
        if (!dt_is_integer(dtype_of(index)))
            return err_set(ERR_ARG, "[gather] Got indices with dtype %s. Indices must be integral.",
                           dt_name(dtype_of(index)));
    }
    return ERR_OK;
}

/* The shape of the indices, then that of a slice. */
enum err op_infer_gather(struct infer_call *c)
{
    const struct gather_params *p = c->params;
    const struct arr *src = c->in[0];
    struct shp *shape = &c->out[0].shape;
    enum err err;

    FITS(p->n == src->ndim && p->n_axes >= 0 && p->n_axes <= p->n);
    FITS(c->n_in == (size_t)p->n_axes + 1);
    TRY(check_indices(c));
    c->out[0].dtype = dtype_of(src);
    shape->ndim = 0;
    if (p->n_axes)
        arr_shape(shape, c->in[1]);
    if (shape->ndim + src->ndim > SHP_MAX)
        return err_set(ERR_ARG, "[gather] Arrays have at most %d dimensions.", SHP_MAX);
    bool is_empty = p->n_axes && !c->in[1]->size;
    for (int i = 0; i < p->n; i++) {
        FITS(p->d[i].size >= 0 && (p->d[i].size <= src->shape[i] || is_empty));
        shape->d[shape->ndim++] = p->d[i].size;
    }
out:
    return err;
}

enum err op_infer_gather_axis(struct infer_call *c)
{
    int32_t axis = ((const struct axis_params *)c->params)->axis;
    const struct arr *src = c->in[0], *at = c->in[1];

    FITS(infer_has_axis(src, axis) && src->ndim == at->ndim && dt_is_integer(dtype_of(at)));
    for (int i = 0; i < src->ndim; i++)
        FITS(i == axis ? src->shape[i] || !at->size : src->shape[i] == at->shape[i]);
    infer_like(c, at);
    c->out[0].dtype = dtype_of(src);
    return ERR_OK;
}

/* Slices of one axis: the result has the shape of indices, then that of a with size 1 at axis. */
static enum err gather_axis(struct arr **out, struct arr *a, struct arr *indices, int axis,
                            struct strm *s)
{
    struct gather_params p = { .n_axes = 1, .n = a->ndim, .d[0].axis = axis };

    for (int i = 0; i < a->ndim; i++)
        p.d[i].size = i == axis ? 1 : a->shape[i];
    return ops_make(out, OP_GATHER, &p, (struct arrs){ (struct arr *[]){ a, indices }, 2 }, s);
}

enum err ops_take(struct arr **out, struct arr *a, struct arr *indices, int axis, struct strm *s)
{
    int32_t order[SHP_MAX];
    struct arr *x = NULL;
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "take"));
    if (a->shape[axis] == 0 && indices->size != 0)
        return err_set(ERR_ARG, "[take] Cannot do a non-empty take from an empty axis.");
    TRY(gather_axis(&x, a, indices, axis, s));
    /* The dimensions of indices take the place of the axis. */
    int n = indices->ndim;
    for (int i = 0; i < x->ndim; i++)
        order[i] = i < axis ? n + i : i < axis + n ? i - axis : i;
    STEP(x, ops_transpose(&next, x, (struct ints){ order, x->ndim }, s));
    TRY(ops_squeeze(out, x, (struct ints){ (int32_t[]){ axis + n }, 1 }, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_take_flat(struct arr **out, struct arr *a, struct arr *indices, struct strm *s)
{
    struct arr *flat = NULL;
    enum err err;

    TRY(ops_flatten(&flat, a, 0, -1, s));
    TRY(ops_take(out, flat, indices, 0, s));
out:
    arr_unref(&flat);
    return err;
}

enum err ops_take_along_axis(struct arr **out, struct arr *a, struct arr *indices, int axis,
                             struct strm *s)
{
    struct shp from, at, common;
    struct arr *in[2] = { NULL, NULL };
    enum err err;

    if (a->ndim != indices->ndim)
        return err_set(ERR_ARG,
                       "[take_along_axis] Indices of dimension %d does not match array of "
                       "dimension %d.",
                       indices->ndim, a->ndim);
    if (!dt_is_integer(dtype_of(indices)))
        return err_set(ERR_ARG,
                       "[take_along_axis] Got indices with dtype %s. Indices must be "
                       "integral.",
                       dt_name(dtype_of(indices)));
    TRY(shp_axis(&axis, axis, a->ndim, "take_along_axis"));
    arr_shape(&from, a);
    arr_shape(&at, indices);
    int32_t from_size = from.d[axis], at_size = at.d[axis];
    from.d[axis] = at.d[axis] = 1;
    TRY(shp_broadcast(&common, &from, &at, "take_along_axis"));
    from = at = common;
    from.d[axis] = from_size;
    at.d[axis] = at_size;
    if (from_size == 0 && shp_size(&at) != 0) {
        err = err_set(ERR_ARG, "[take_along_axis] Cannot take from an empty axis.");
        goto out;
    }
    TRY(ops_broadcast_to(&in[0], a, shp_ints(&from), s));
    TRY(ops_broadcast_to(&in[1], indices, shp_ints(&at), s));
    err =
        ops_make_of(out, OP_GATHER_AXIS, &(struct axis_params){ axis }, (struct given){ in, 2 }, s);
out:
    arr_unref_all(in, 2);
    return err;
}
