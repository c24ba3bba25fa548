/* Updates of slices, and slices that start where an array says. */
#include "ops/build.h"

/* ---- fixed regions ---- */

static enum err update_node(struct arr **out, struct arr *src, struct arr *update,
                            const struct slice_update_params *p, struct strm *s)
{
    struct out_desc d = { .dtype = dtype_of(src) };

    arr_shape(&d.shape, src);
    return arr_new_op(out, .op = OP_SLICE_UPDATE, .strm = s, .in = (struct arr *[]){ src, update },
                      .n_in = 2, .params = p, .out = &d);
}

/* The region is all of src. */
static enum err update_whole(struct arr **out, struct arr *src, struct arr *update,
                             enum update_kind kind, struct strm *s)
{
    enum op_id op = op_of_update(kind);

    return op ? ops_binary(out, op, src, update, s) : ops_same(out, update);
}

enum err ops_slice_update(struct arr **out, struct arr *src, const struct ops_slice_update *u,
                          struct strm *s)
{
    struct ops_region r;
    struct arr *x = NULL;
    enum err err;

    TRY(ops_region(&r, src, &u->region, "slice_update"));
    TRY(ops_astype(&x, u->update, dtype_of(src), s));
    STEP(x, ops_broadcast_to(&next, x, shp_ints(&r.shape), s));
    if (x->size == 0)
        err = ops_same(out, src);
    else if (r.is_whole)
        err = update_whole(out, src, x, u->kind, s);
    else
        err = update_node(out, src, x, &(struct slice_update_params){ u->kind, r.p }, s);
out:
    arr_unref(&x);
    return err;
}

/* ---- regions that start where an array says ---- */

static enum err check_start(struct dynamic_slice_params *p, const struct arr *a,
                            const struct ops_start *v, const char *op)
{
    const struct arr *at = v->at;
    struct axes_params axes;
    enum err err;

    if (at->size > a->ndim)
        return err_set(ERR_ARG,
                       "[%s] Invalid number of starting positions for array with dimension %d.", op,
                       a->ndim);
    if (at->ndim > 1)
        return err_set(ERR_ARG,
                       "[%s] array of starting indices must be zero or one dimensional but has "
                       "dimension %d.",
                       op, at->ndim);
    if (at->size != v->axes.n)
        return err_set(ERR_ARG,
                       "[%s] Number of starting indices %zu does not match number of axes %zu.", op,
                       at->size, v->axes.n);
    if (!dt_is_integer(dtype_of(at)))
        return err_set(ERR_ARG, "[%s] Start indices must be integers, got type %s.", op,
                       dt_name(dtype_of(at)));
    TRY(ops_axis_list(&axes, v->axes, a->ndim, op));
    *p = (struct dynamic_slice_params){ .n_axes = axes.n };
    for (int i = 0; i < axes.n; i++)
        p->d[i].axis = axes.axis[i];
out:
    return err;
}

static void set_region(struct dynamic_slice_params *p, const struct shp *region)
{
    p->n = region->ndim;
    for (int i = 0; i < p->n; i++)
        p->d[i].size = region->d[i];
}

static enum err slice_shape(struct shp *out, const struct arr *a, struct ints size)
{
    struct shp shape;

    if (size.n != a->ndim)
        return err_set(ERR_ARG, "[slice] Invalid slice size for array with %d dimensions.",
                       a->ndim);
    arr_shape(&shape, a);
    out->ndim = a->ndim;
    for (int i = 0; i < a->ndim; i++)
        out->d[i] = size.v[i];
    for (int i = 0; i < a->ndim; i++)
        if (size.v[i] < 0 || size.v[i] > a->shape[i])
            return err_set(ERR_ARG, "[slice] Invalid slice size %s for array with shape %s.",
                           shp_text(out), shp_text(&shape));
    return ERR_OK;
}

enum err ops_slice_dynamic(struct arr **out, struct arr *a, const struct ops_start *start,
                           struct ints size, struct strm *s)
{
    struct out_desc d = { .dtype = dtype_of(a) };
    struct dynamic_slice_params p;
    enum err err;

    TRY(check_start(&p, a, start, "slice"));
    TRY(slice_shape(&d.shape, a, size));
    set_region(&p, &d.shape);
    err = arr_new_op(out, .op = OP_DYNAMIC_SLICE, .strm = s, .in = (struct arr *[]){ a, start->at },
                     .n_in = 2, .params = &p, .out = &d);
out:
    return err;
}

static enum err update_shape(struct shp *out, const struct arr *src, const struct arr *update,
                             const struct dynamic_slice_params *p)
{
    int lead = src->ndim - update->ndim;

    if (lead < 0)
        return err_set(ERR_ARG,
                       "[slice_update] The update has %d dimensions, the array with dimension %d "
                       "has fewer.",
                       update->ndim, src->ndim);
    arr_shape(out, src);
    for (int i = lead; i < src->ndim; i++)
        out->d[i] = MIN(update->shape[i - lead], src->shape[i]);
    for (int i = 0; i < p->n_axes; i++)
        if (p->d[i].axis < lead)
            out->d[p->d[i].axis] = 1;
    return ERR_OK;
}

enum err ops_slice_update_dynamic(struct arr **out, struct arr *src, struct arr *update,
                                  const struct ops_start *start, struct strm *s)
{
    struct out_desc d = { .dtype = dtype_of(src) };
    struct dynamic_slice_params p;
    struct arr *x = NULL;
    struct shp shape;
    enum err err;

    TRY(check_start(&p, src, start, "slice_update"));
    TRY(update_shape(&shape, src, update, &p));
    set_region(&p, &shape);
    TRY(ops_astype(&x, update, dtype_of(src), s));
    STEP(x, ops_broadcast_to(&next, x, shp_ints(&shape), s));
    arr_shape(&d.shape, src);
    if (x->size == 0)
        err = ops_same(out, src);
    else
        err = arr_new_op(out, .op = OP_DYNAMIC_SLICE_UPDATE, .strm = s,
                         .in = (struct arr *[]){ src, x, start->at }, .n_in = 3, .params = &p,
                         .out = &d);
out:
    arr_unref(&x);
    return err;
}
