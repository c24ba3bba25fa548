/* Gathering by index arrays. */
#include "ops/index.h"

enum err index_check(const struct infer_call *c, int i, int32_t axis, uint32_t *seen)
{
    const struct arr *index = c->in[1 + i];

    FITS(infer_has_axis(c->in[0], axis) && !(*seen >> axis & 1));
    FITS(arr_same_shape(index, c->in[1]));
    *seen |= (uint32_t)1 << axis;
    if (!dt_is_integer(dtype_of(index)))
        return err_set(ERR_ARG, "[%s] Got indices with dtype %s. Indices must be integral.",
                       c->op == OP_GATHER ? "gather" : "scatter", dt_name(dtype_of(index)));
    return ERR_OK;
}

static bool is_any_zero(const struct gather_params *p)
{
    for (int i = 0; i < p->n; i++)
        if (p->d[i].size == 0)
            return true;
    return false;
}

/* The shape of the indices, then that of a slice. */
enum err op_infer_gather(struct infer_call *c)
{
    const struct gather_params *p = c->params;
    const struct arr *src = c->in[0];
    struct shp *shape = &c->out[0].shape;
    uint32_t seen = 0;
    enum err err = ERR_OK;

    FITS(p->n == src->ndim && p->n_axes >= 0 && p->n_axes <= p->n);
    FITS(c->n_in == (size_t)p->n_axes + 1);
    for (int i = 0; i < p->n_axes; i++)
        TRY(index_check(c, i, p->d[i].axis, &seen));
    c->out[0].dtype = dtype_of(src);
    shape->ndim = 0;
    if (p->n_axes)
        arr_shape(shape, c->in[1]);
    if (shape->ndim + src->ndim > SHP_MAX)
        return err_set(ERR_ARG, "[gather] Arrays have at most %d dimensions.", SHP_MAX);
    bool is_empty = (p->n_axes && !c->in[1]->size) || is_any_zero(p);
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

/* ---- index arrays ---- */

static enum err check_axes(const struct arr *a, const struct index_list *l)
{
    uint32_t seen = 0;

    if (l->indices.n > a->ndim)
        return err_set(ERR_ARG, "[%s] Too many index arrays: %zu for an array with %d dimensions.",
                       l->op, l->indices.n, a->ndim);
    for (size_t i = 0; i < l->axes.n; i++) {
        int32_t axis = l->axes.v[i];
        if (axis < 0 || axis >= a->ndim)
            return err_set(ERR_ARG, "[%s] Axis %d does not match an array with %d dimensions.",
                           l->op, axis, a->ndim);
        if (seen >> axis & 1)
            return err_set(ERR_ARG, "[%s] Repeat axes not allowed: axis %d.", l->op, axis);
        seen |= (uint32_t)1 << axis;
    }
    if (l->indices.n != l->axes.n)
        return err_set(ERR_ARG,
                       "[%s] Number of index arrays (%zu) does not match number of axes (%zu).",
                       l->op, l->indices.n, l->axes.n);
    return ERR_OK;
}

static enum err common_dtype(enum dtype *t, const struct index_list *l)
{
    for (size_t i = 0; i < l->indices.n; i++) {
        enum dtype own = dtype_of(l->indices.v[i]);
        if (own == DT_BOOL)
            return err_set(ERR_ARG, "[%s] Boolean indices not supported.", l->op);
        *t = i ? dt_promote(*t, own) : own;
    }
    if (l->indices.n && !dt_is_integer(*t))
        return err_set(ERR_ARG, "[%s] Got indices with dtype %s. Indices must be integral.", l->op,
                       dt_name(*t));
    return ERR_OK;
}

enum err index_prepare(struct arr **in, struct shp *shape, const struct arr *a,
                       const struct index_list *l, struct strm *s)
{
    enum dtype t = DT_INT32;
    enum err err;

    TRY(check_axes(a, l));
    TRY(common_dtype(&t, l));
    shape->ndim = 0;
    if (l->indices.n)
        TRY(ops_common_shape(shape, l->indices));
    struct ops_stretch to = { .shape = *shape, .with = l->indices };
    for (size_t i = 0; i < l->indices.n; i++) {
        TRY(ops_astype(&in[i], l->indices.v[i], t, s));
        STEP(in[i], ops_stretch_with(&next, in[i], &to, s));
    }
out:
    if (err)
        arr_unref_all(in, l->indices.n);
    return err;
}

enum err index_no_rule(const struct op_apply *f, const char *rule, const char *what)
{
    return err_set(ERR_ARG, "[%s::%s] Not supported for %s: stop_gradient keeps them out.",
                   op_name(f->op), rule, what);
}

/* ---- gathers ---- */

static enum err check_sizes(const struct arr *a, struct ints sizes, bool has_indices)
{
    struct shp of, size = { .ndim = a->ndim };
    bool is_empty = !has_indices;

    if (sizes.n != a->ndim)
        return err_set(ERR_ARG,
                       "[gather] Got slice_sizes with size %zu for an array with %d dimensions.",
                       sizes.n, a->ndim);
    arr_shape(&of, a);
    for (int i = 0; i < a->ndim; i++) {
        size.d[i] = sizes.v[i];
        is_empty |= sizes.v[i] == 0;
    }
    if (a->size == 0 && !is_empty)
        return err_set(ERR_ARG,
                       "[gather] Of an empty array with shape %s, either the indices or the slices "
                       "must be empty, but the slices have shape %s.",
                       shp_text(&of), shp_text(&size));
    for (int i = 0; i < a->ndim; i++)
        if (size.d[i] < 0 || (a->size && size.d[i] > of.d[i]))
            return err_set(ERR_ARG, "[gather] Invalid slice sizes %s for an array with shape %s.",
                           shp_text(&size), shp_text(&of));
    return ERR_OK;
}

enum err ops_gather(struct arr **out, struct arr *a, const struct ops_gather *g, struct strm *s)
{
    struct gather_params p = { .n_axes = (int32_t)g->indices.n, .n = a->ndim };
    struct arr *in[SHP_MAX + 1] = { NULL };
    struct shp shape;
    enum err err;

    TRY(index_prepare(in + 1, &shape, a, &(struct index_list){ g->indices, g->axes, "gather" }, s));
    TRY(check_sizes(a, g->sizes, shp_size(&shape) != 0));
    for (int i = 0; i < p.n_axes; i++)
        p.d[i].axis = g->axes.v[i];
    for (int i = 0; i < p.n; i++)
        p.d[i].size = g->sizes.v[i];
    in[0] = arr_ref(a);
    err = ops_make_of(out, OP_GATHER, &p, (struct given){ in, g->indices.n + 1 }, s);
out:
    arr_unref_all(in, ARRAY_LEN(in));
    return err;
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
