/* Updates of slices, and slices that start where an array says. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- fixed regions ---- */

static bool has_shape(const struct arr *a, const struct shp *shape)
{
    return a->ndim == shape->ndim && shp_same_dims(a->shape, shape->d, a->ndim);
}

enum err op_infer_slice_update(struct infer_call *c)
{
    const struct slice_update_params *p = c->params;
    struct arr *src = c->in[0], *update = c->in[1];
    struct shp region;

    FITS(ops_region_shape(&region, src, &p->region));
    FITS(update->dtype == src->dtype && has_shape(update, &region));
    infer_like(c, src);
    return ERR_OK;
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
        err = ops_make(out, OP_SLICE_UPDATE, &(struct slice_update_params){ u->kind, r.p },
                       (struct arrs){ (struct arr *[]){ src, x }, 2 }, s);
out:
    arr_unref(&x);
    return err;
}

/* ---- regions that start where an array says ---- */

/* The start suits the array, and the region lies within it. */
static enum err check_start(const struct infer_call *c, const struct arr *a, const struct arr *at,
                            const char *op)
{
    const struct dynamic_slice_params *p = c->params;
    struct shp shape;

    if (at->size > a->ndim)
        return err_set(ERR_ARG,
                       "[%s] Invalid number of starting positions for array with dimension %d.", op,
                       a->ndim);
    if (at->ndim > 1)
        return err_set(ERR_ARG,
                       "[%s] array of starting indices must be zero or one dimensional but has "
                       "dimension %d.",
                       op, at->ndim);
    if (at->size != (size_t)p->n_axes)
        return err_set(ERR_ARG,
                       "[%s] Number of starting indices %zu does not match number of axes %d.", op,
                       at->size, p->n_axes);
    if (!dt_is_integer(dtype_of(at)))
        return err_set(ERR_ARG, "[%s] Start indices must be integers, got type %s.", op,
                       dt_name(dtype_of(at)));
    FITS(p->n == a->ndim);
    for (int i = 0; i < p->n_axes; i++)
        FITS(infer_has_axis(a, p->d[i].axis));
    arr_shape(&shape, a);
    for (int i = 0; i < p->n; i++)
        if (p->d[i].size < 0 || p->d[i].size > a->shape[i]) {
            struct shp size = { .ndim = p->n };
            for (int k = 0; k < p->n; k++)
                size.d[k] = p->d[k].size;
            return err_set(ERR_ARG, "[%s] Invalid slice size %s for array with shape %s.", op,
                           shp_text(&size), shp_text(&shape));
        }
    return ERR_OK;
}

enum err op_infer_dynamic_slice(struct infer_call *c)
{
    const struct dynamic_slice_params *p = c->params;
    enum err err;

    TRY(check_start(c, c->in[0], c->in[1], "slice"));
    infer_like(c, c->in[0]);
    for (int i = 0; i < p->n; i++)
        c->out[0].shape.d[i] = p->d[i].size;
out:
    return err;
}

enum err op_infer_dynamic_slice_update(struct infer_call *c)
{
    const struct dynamic_slice_params *p = c->params;
    const struct arr *src = c->in[0], *update = c->in[1];
    enum err err;

    TRY(check_start(c, src, c->in[2], "slice_update"));
    FITS(update->dtype == src->dtype && update->ndim == p->n);
    for (int i = 0; i < p->n; i++)
        FITS(update->shape[i] == p->d[i].size);
    infer_like(c, src);
out:
    return err;
}

/* The axes that the caller gives. */
static enum err read_axes(struct dynamic_slice_params *p, const struct arr *a, struct ints list,
                          const char *op)
{
    struct axes_params axes;
    enum err err;

    TRY(ops_axis_list(&axes, list, a->ndim, op));
    *p = (struct dynamic_slice_params){ .n_axes = axes.n };
    for (int i = 0; i < axes.n; i++)
        p->d[i].axis = axes.axis[i];
out:
    return err;
}

enum err ops_slice_dynamic(struct arr **out, struct arr *a, const struct ops_start *start,
                           struct ints size, struct strm *s)
{
    struct dynamic_slice_params p;
    enum err err;

    TRY(read_axes(&p, a, start->axes, "slice"));
    if (size.n != a->ndim)
        return err_set(ERR_ARG, "[slice] Invalid slice size for array with %d dimensions.",
                       a->ndim);
    for (p.n = 0; p.n < a->ndim; p.n++)
        p.d[p.n].size = size.v[p.n];
    err = ops_make(out, OP_DYNAMIC_SLICE, &p, (struct arrs){ (struct arr *[]){ a, start->at }, 2 },
                   s);
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
    struct dynamic_slice_params p;
    struct arr *x = NULL;
    struct shp shape;
    enum err err;

    TRY(read_axes(&p, src, start->axes, "slice_update"));
    TRY(update_shape(&shape, src, update, &p));
    for (p.n = 0; p.n < shape.ndim; p.n++)
        p.d[p.n].size = shape.d[p.n];
    TRY(ops_astype(&x, update, dtype_of(src), s));
    STEP(x, ops_broadcast_to(&next, x, shp_ints(&shape), s));
    if (x->size == 0)
        err = ops_same(out, src);
    else
        err = ops_make(out, OP_DYNAMIC_SLICE_UPDATE, &p,
                       (struct arrs){ (struct arr *[]){ src, x, start->at }, 3 }, s);
out:
    arr_unref(&x);
    return err;
}
