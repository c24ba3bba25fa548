/* Updates of the places that index arrays or a mask give. */
#include "ops/index.h"

/* ---- slices ---- */

/* Updates have the shape of the indices, then slices that fit into the source. */
enum err op_infer_scatter(struct infer_call *c)
{
    const struct scatter_params *p = c->params;
    const struct arr *src = c->in[0], *update = c->in[c->n_in - 1];
    int lead = p->n ? c->in[1]->ndim : 0;
    uint32_t seen = 0;
    enum err err = ERR_OK;

    FITS(c->n_in == (size_t)p->n + 2 && update->dtype == src->dtype);
    for (int i = 0; i < p->n; i++)
        TRY(index_check(c, i, p->axis[i], &seen));
    FITS(update->ndim == lead + src->ndim);
    FITS(!lead || shp_same_dims(update->shape, c->in[1]->shape, lead));
    for (int i = 0; i < src->ndim; i++)
        FITS(update->shape[lead + i] <= src->shape[i]);
    infer_like(c, src);
out:
    return err;
}

static enum err check_updates(const struct arr *a, const struct arr *updates,
                              const struct shp *indices)
{
    struct shp of, shape;

    arr_shape(&of, a);
    arr_shape(&shape, updates);
    if (shape.ndim != of.ndim + indices->ndim)
        return err_set(ERR_ARG,
                       "[scatter] Updates with %d dimensions do not match the sum of those of the "
                       "array (%d) and of the indices (%d).",
                       shape.ndim, of.ndim, indices->ndim);
    if (!shp_same_dims(shape.d, indices->d, indices->ndim))
        return err_set(ERR_ARG,
                       "[scatter] Updates with shape %s are not valid for indices with shape %s.",
                       shp_text(&shape), shp_text(indices));
    for (int i = 0; i < of.ndim; i++)
        if (shape.d[indices->ndim + i] > of.d[i])
            return err_set(
                ERR_ARG,
                "[scatter] Updates with shape %s are too large for an array with shape %s.",
                shp_text(&shape), shp_text(&of));
    return ERR_OK;
}

enum err ops_scatter(struct arr **out, struct arr *a, const struct ops_scatter *v, struct strm *s)
{
    struct scatter_params p = { .kind = v->kind, .n = (int32_t)v->indices.n };
    struct arr *in[SHP_MAX + 2] = { NULL };
    size_t n = v->indices.n;
    struct shp shape;
    enum err err;

    TRY(index_prepare(in + 1, &shape, a, &(struct index_list){ v->indices, v->axes, "scatter" },
                      s));
    TRY(check_updates(a, v->updates, &shape));
    for (size_t i = 0; i < n; i++)
        p.axis[i] = v->axes.v[i];
    if (v->updates->size == 0) {
        err = ops_same(out, a);
        goto out;
    }
    TRY(ops_astype(&in[n + 1], v->updates, dtype_of(a), s));
    in[0] = arr_ref(a);
    err = ops_make_of(out, OP_SCATTER, &p, (struct given){ in, n + 2 }, s);
out:
    arr_unref_all(in, ARRAY_LEN(in));
    return err;
}

/* ---- elements along an axis ---- */

enum err op_infer_scatter_axis(struct infer_call *c)
{
    const struct scatter_axis_params *p = c->params;
    const struct arr *src = c->in[0], *at = c->in[1], *update = c->in[2];

    FITS(p->kind == UPDATE_SUM || p->kind == UPDATE_NONE);
    FITS(infer_has_axis(src, p->axis) && src->ndim == at->ndim && dt_is_integer(dtype_of(at)));
    FITS(update->dtype == src->dtype && arr_same_shape(update, at));
    for (int i = 0; i < src->ndim; i++)
        FITS(i == p->axis ? src->shape[i] || !at->size : src->shape[i] == at->shape[i]);
    infer_like(c, src);
    return ERR_OK;
}

/* Values without leading dimensions of size 1 that the indices do not have. */
static enum err drop_lead(struct arr **values, int ndim, struct strm *s)
{
    int32_t axes[SHP_MAX];
    size_t n = (size_t)MAX((*values)->ndim - ndim, 0);
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++)
        axes[i] = (int32_t)i;
    if (n)
        STEP(*values, ops_squeeze(&next, *values, (struct ints){ axes, n }, s));
out:
    return err;
}

/* in: a, indices, updates, of which the latter two get one shape and all of them the same size but
 * along the axis. */
static enum err broadcast_but(struct arr *in[3], int axis, struct strm *s)
{
    struct shp from, at, common;
    enum err err;

    TRY(ops_common_shape(&at, (struct arrs){ in + 1, 2 }));
    arr_shape(&from, in[0]);
    int32_t from_size = from.d[axis], at_size = at.d[axis];
    from.d[axis] = at.d[axis] = 1;
    TRY(shp_broadcast(&common, &from, &at, "broadcast_shapes"));
    for (int i = 0; i < 3; i++) {
        common.d[axis] = i ? at_size : from_size;
        STEP(in[i], ops_broadcast_to(&next, in[i], shp_ints(&common), s));
    }
out:
    return err;
}

enum err ops_scatter_axis(struct arr **out, struct arr *a, const struct ops_scatter_axis *v,
                          struct strm *s)
{
    const char *op = v->kind == UPDATE_SUM ? "scatter_add_axis" : "put_along_axis";
    struct scatter_axis_params p = { v->kind, v->axis };
    struct arr *in[3] = { NULL };
    enum err err;

    TRY(shp_axis(&p.axis, v->axis, a->ndim, op));
    if (a->ndim != v->indices->ndim)
        return err_set(ERR_ARG,
                       "[%s] Indices of dimension %d does not match array of dimension %d.", op,
                       v->indices->ndim, a->ndim);
    if (a->size == 0)
        return ops_same(out, a);
    if (!dt_is_integer(dtype_of(v->indices)))
        return err_set(ERR_ARG, "[%s] Got indices with dtype %s. Indices must be integral.", op,
                       dt_name(dtype_of(v->indices)));
    in[0] = arr_ref(a);
    in[1] = arr_ref(v->indices);
    TRY(ops_astype(&in[2], v->updates, dtype_of(a), s));
    TRY(drop_lead(&in[2], a->ndim, s));
    TRY(broadcast_but(in, p.axis, s));
    if (in[1]->size == 0)
        err = ops_same(out, in[0]);
    else
        err = ops_make_of(out, OP_SCATTER_AXIS, &p, (struct given){ in, 3 }, s);
out:
    arr_unref_all(in, 3);
    return err;
}

/* ---- where a mask is true ---- */

/* Every element of the first axis has a mask and values of its own, which are counted in order. */
enum err op_infer_masked_scatter(struct infer_call *c)
{
    const struct arr *src = c->in[0], *mask = c->in[1], *values = c->in[2];

    FITS(mask->dtype == DT_BOOL && values->dtype == src->dtype);
    FITS(src->ndim && values->ndim && arr_same_shape(mask, src));
    FITS(values->shape[0] == src->shape[0]);
    infer_like(c, src);
    return ERR_OK;
}

static enum err check_mask(const struct arr *a, const struct arr *mask, const struct arr *values)
{
    struct shp of, shape;
    int rest = a->ndim - mask->ndim;

    if (mask->dtype != DT_BOOL)
        return err_set(ERR_ARG, "[masked_scatter] The mask has to be boolean, but it is %s.",
                       dt_name(dtype_of(mask)));
    if (rest < 0)
        return err_set(ERR_ARG,
                       "[masked_scatter] The mask has %d dimensions, more than the array with %d.",
                       mask->ndim, a->ndim);
    if (values->ndim > rest + 1)
        return err_set(ERR_ARG,
                       "[masked_scatter] Values with %d dimensions cannot be broadcast with the "
                       "last %d dimensions of the array.",
                       values->ndim, rest);
    arr_shape(&of, a);
    arr_shape(&shape, mask);
    if (!shp_same_dims(mask->shape, a->shape, mask->ndim))
        return err_set(ERR_ARG,
                       "[masked_scatter] The mask has shape %s, which is not the beginning of the "
                       "shape %s of the array.",
                       shp_text(&shape), shp_text(&of));
    return ERR_OK;
}

/* A mask for every element of a, under one more axis in front. */
static enum err stretch_mask(struct arr **mask, const struct arr *a, struct strm *s)
{
    struct shp shape = { .ndim = a->ndim + 1, .d = { 1 } };
    int given = (*mask)->ndim;
    enum err err;

    for (int i = 0; i < a->ndim; i++)
        shape.d[i + 1] = i < given ? a->shape[i] : 1;
    STEP(*mask, ops_reshape(&next, *mask, shp_ints(&shape), s));
    for (int i = given; i < a->ndim; i++)
        shape.d[i + 1] = a->shape[i];
    STEP(*mask, ops_broadcast_to(&next, *mask, shp_ints(&shape), s));
out:
    return err;
}

/* Values for every true element of the mask, of as many as are given, likewise. */
static enum err stretch_values(struct arr **values, const struct arr *a, const struct arr *mask,
                               struct strm *s)
{
    static const int32_t front = 0;
    int rest = a->ndim - mask->ndim;
    struct shp shape = { .ndim = rest + 1 };
    enum err err;

    shape.d[0] = (*values)->ndim == rest + 1 ? (*values)->shape[0] : 0;
    if ((*values)->ndim <= rest)
        TRY(ops_dim(&shape.d[0], (int64_t)mask->size, "masked_scatter"));
    for (int i = 0; i < rest; i++)
        shape.d[i + 1] = a->shape[mask->ndim + i];
    STEP(*values, ops_broadcast_to(&next, *values, shp_ints(&shape), s));
    STEP(*values, ops_expand_dims(&next, *values, (struct ints){ &front, 1 }, s));
out:
    return err;
}

enum err ops_masked_scatter(struct arr **out, struct arr *a, struct arr *mask, struct arr *values,
                            struct strm *s)
{
    static const int32_t front = 0;
    struct arr *in[3] = { NULL }, *x = NULL;
    enum err err;

    TRY(check_mask(a, mask, values));
    TRY(ops_astype(&in[2], values, dtype_of(a), s));
    TRY(stretch_values(&in[2], a, mask, s));
    in[1] = arr_ref(mask);
    TRY(ops_expand_dims(&in[0], a, (struct ints){ &front, 1 }, s));
    TRY(stretch_mask(&in[1], a, s));
    TRY(ops_make_of(&x, OP_MASKED_SCATTER, NULL, (struct given){ in, 3 }, s));
    err = ops_squeeze(out, x, (struct ints){ &front, 1 }, s);
out:
    arr_unref_all(in, 3);
    arr_unref(&x);
    return err;
}
