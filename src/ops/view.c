/* Views: other shapes and orders of the same elements. */
#include "graph/tracing.h"
#include "ops/build.h"
#include "ops/rules.h"

/* ---- what the results are ---- */

/* Reads a shape that a caller asked for, with one entry -1 that follows from size, and checks that
 * it holds size elements. */
static enum err read_shape(struct shp *out, struct ints shape, int64_t size, const char *op)
{
    int infer = -1;
    int64_t known;

    if (shape.n > SHP_MAX)
        return err_set(ERR_ARG, "[%s] Arrays have at most %d dimensions, got %zu.", op, SHP_MAX,
                       shape.n);
    out->ndim = (int)shape.n;
    for (int i = 0; i < out->ndim; i++) {
        out->d[i] = shape.v[i];
        if (shape.v[i] >= 0)
            continue;
        if (shape.v[i] != -1)
            return err_set(ERR_ARG, "[%s] Negative dimension %d in the shape.", op, shape.v[i]);
        if (infer >= 0)
            return err_set(ERR_ARG, "[%s] Can only infer one dimension.", op);
        infer = i;
        out->d[i] = 1;
    }
    if (!shp_size_checked(out, &known))
        return err_set(ERR_OVERFLOW, "[%s] The shape holds too many elements.", op);
    if (infer >= 0 && known == 0)
        return err_set(ERR_ARG, "[%s] Cannot infer the shape of an empty array.", op);
    if (infer >= 0) {
        enum err err = ops_dim(&out->d[infer], size / known, op);
        if (err)
            return err;
        known *= out->d[infer];
    }
    if (known != size)
        return err_set(ERR_ARG, "[%s] Cannot reshape array of size %lld into shape %s.", op,
                       (long long)size, shp_text(out));
    return ERR_OK;
}

/* Product of dimensions; -1 if they are no shape or too large. */
static int64_t elements(const int32_t *v, int n)
{
    struct shp s = { .ndim = n };
    int64_t size;

    memcpy(s.d, v, (size_t)n * sizeof s.d[0]);
    return infer_is_shape(v, n) && shp_size_checked(&s, &size) ? size : -1;
}

static void set_shape(struct infer_call *c, const int32_t *v, int n)
{
    struct shp *shape = &c->out[0].shape;

    c->out[0].dtype = dtype_of(c->in[0]);
    shape->ndim = n;
    for (int i = 0; i < n; i++)
        shape->d[i] = v[i];
}

enum err op_infer_reshape(struct infer_call *c)
{
    const struct shape_params *p = c->params;
    enum err err;

    TRY(read_shape(&c->out[0].shape, (struct ints){ p->shape, (size_t)p->n },
                   (int64_t)c->in[0]->size, "reshape"));
    c->out[0].dtype = dtype_of(c->in[0]);
out:
    return err;
}

enum err op_infer_broadcast(struct infer_call *c)
{
    const struct shape_params *p = c->params;
    const struct arr *a = c->in[0];
    int lead = p->n - a->ndim;

    FITS(lead >= 0 && infer_is_shape(p->shape, p->n));
    for (int i = 0; i < a->ndim; i++)
        FITS(a->shape[i] == 1 || a->shape[i] == p->shape[lead + i]);
    set_shape(c, p->shape, p->n);
    return ERR_OK;
}

enum err op_infer_flatten(struct infer_call *c)
{
    const struct flatten_params *p = c->params;
    const struct arr *a = c->in[0];
    struct shp *to = &c->out[0].shape;
    enum err err;

    FITS(p->start >= 0 && p->start <= p->end && p->end < a->ndim);
    infer_like(c, a);
    TRY(ops_merged_dim(&to->d[p->start], a->shape + p->start, p->end - p->start + 1, "flatten"));
    memmove(&to->d[p->start + 1], &to->d[p->end + 1],
            (size_t)(a->ndim - p->end - 1) * sizeof to->d[0]);
    to->ndim = a->ndim - (p->end - p->start);
out:
    return err;
}

enum err op_infer_unflatten(struct infer_call *c)
{
    const struct unflatten_params *p = c->params;
    const struct arr *a = c->in[0];
    struct shp *to = &c->out[0].shape;

    FITS(infer_has_axis(a, p->axis) && p->n > 0);
    FITS(elements(p->shape, p->n) == a->shape[p->axis]);
    if (a->ndim - 1 + p->n > SHP_MAX)
        return err_set(ERR_ARG, "[unflatten] Arrays have at most %d dimensions.", SHP_MAX);
    c->out[0].dtype = dtype_of(a);
    to->ndim = a->ndim - 1 + p->n;
    for (int i = 0; i < to->ndim; i++) {
        int within = i - p->axis;
        bool inside = within >= 0 && within < p->n;
        to->d[i] = inside ? p->shape[within] : a->shape[within < 0 ? i : i - p->n + 1];
    }
    return ERR_OK;
}

enum err op_infer_expand_dims(struct infer_call *c)
{
    const struct axes_params *p = c->params;
    const struct arr *a = c->in[0];
    struct shp *to = &c->out[0].shape;

    FITS(p->n <= SHP_MAX - a->ndim);
    c->out[0].dtype = dtype_of(a);
    to->ndim = a->ndim + p->n;
    FITS(infer_is_set(p->axis, p->n, to->ndim));
    for (int i = 0, from = 0, next = 0; i < to->ndim; i++)
        if (next < p->n && p->axis[next] == i) {
            to->d[i] = 1;
            next++;
        } else {
            to->d[i] = a->shape[from++];
        }
    return ERR_OK;
}

enum err op_infer_squeeze(struct infer_call *c)
{
    const struct axes_params *p = c->params;
    const struct arr *a = c->in[0];
    struct shp *to = &c->out[0].shape;

    FITS(infer_is_set(p->axis, p->n, a->ndim));
    c->out[0].dtype = dtype_of(a);
    to->ndim = 0;
    for (int i = 0, next = 0; i < a->ndim; i++) {
        if (next >= p->n || p->axis[next] != i) {
            to->d[to->ndim++] = a->shape[i];
            continue;
        }
        next++;
        if (a->shape[i] != 1)
            return err_set(ERR_ARG,
                           "[squeeze] Cannot squeeze axis %d with size %d which is not "
                           "equal to 1.",
                           i, a->shape[i]);
    }
    return ERR_OK;
}

enum err op_infer_transpose(struct infer_call *c)
{
    const struct axes_params *p = c->params;
    const struct arr *a = c->in[0];
    uint32_t seen = 0;

    FITS(p->n == a->ndim);
    c->out[0].dtype = dtype_of(a);
    c->out[0].shape.ndim = p->n;
    for (int i = 0; i < p->n; i++) {
        FITS(infer_has_axis(a, p->axis[i]) && !(seen >> p->axis[i] & 1));
        seen |= (uint32_t)1 << p->axis[i];
        c->out[0].shape.d[i] = a->shape[p->axis[i]];
    }
    return ERR_OK;
}

/* Adds what dimension i of a strided view reaches to the first or the last element. */
static bool reach(int64_t *first, int64_t *last, int64_t size, int64_t stride)
{
    int64_t far, *end = stride < 0 ? first : last;

    return !MUL_OVERFLOWS(size - 1, stride, &far) && !ADD_OVERFLOWS(*end, far, end);
}

enum err op_infer_as_strided(struct infer_call *c)
{
    const struct as_strided_params *p = c->params;
    struct shp *to = &c->out[0].shape;
    int64_t first = p->offset, last = p->offset;
    bool is_empty = false, fits = true;

    FITS(c->in[0]->ndim == 1);
    c->out[0].dtype = dtype_of(c->in[0]);
    to->ndim = p->n;
    for (int i = 0; i < p->n; i++) {
        to->d[i] = p->d[i].size;
        FITS(to->d[i] >= 0);
        is_empty |= to->d[i] == 0;
        fits &= reach(&first, &last, to->d[i], p->d[i].stride);
    }
    if (!is_empty && !(fits && first >= 0 && last < (int64_t)c->in[0]->size))
        return err_set(ERR_ARG,
                       "[as_strided] Shape %s with these strides reaches out of an array of %zu "
                       "elements.",
                       shp_text(to), c->in[0]->size);
    return ERR_OK;
}

enum err op_infer_view(struct infer_call *c)
{
    const struct dtype_params *p = c->params;
    const struct arr *a = c->in[0];
    struct shp *shape = &c->out[0].shape;
    int64_t from = (int64_t)dt_size(dtype_of(a)), to = (int64_t)dt_size((enum dtype)p->dtype);

    if (a->ndim == 0 && from != to)
        return err_set(ERR_ARG, "[view] Changing the type of a scalar is only allowed for types "
                                "with the same size.");
    infer_like(c, a);
    c->out[0].dtype = (enum dtype)p->dtype;
    if (from == to)
        return ERR_OK;
    int32_t *last = &shape->d[shape->ndim - 1];
    int64_t bytes = *last * from;
    if (bytes % to != 0)
        return err_set(ERR_ARG, "[view] When viewing as a larger dtype, the size in bytes of "
                                "the last axis must be a multiple of the requested type size.");
    return ops_dim(last, bytes / to, "view");
}

/* ---- constructors ---- */

enum err ops_view(struct arr **out, struct arr *a, enum dtype t, struct strm *s)
{
    if (a->dtype == t)
        return ops_same(out, a);
    return ops_make_one(out, OP_VIEW, &(struct dtype_params){ (int32_t)t }, a, s);
}

enum err ops_reshape(struct arr **out, struct arr *a, struct ints shape, struct strm *s)
{
    struct shape_params p;
    struct shp to;
    enum err err;

    if (shape.n == a->ndim &&
        (shape.n == 0 || memcmp(shape.v, a->shape, shape.n * sizeof *shape.v) == 0))
        return ops_same(out, a);
    TRY(read_shape(&to, shape, (int64_t)a->size, "reshape"));
    p = shape_params(&to);
    /* For other sizes -1 remains what follows from them. */
    for (int i = 0; i < p.n && tracing_is_dynamic() && a->tracer; i++)
        p.shape[i] = shape.v[i];
    TRY(ops_make_one(out, OP_RESHAPE, &p, a, s));
out:
    return err;
}

enum err ops_flatten(struct arr **out, struct arr *a, int start, int end, struct strm *s)
{
    int ndim = a->ndim;

    if (ndim == 0)
        return ops_reshape(out, a, (struct ints){ (int32_t[]){ 1 }, 1 }, s);
    start = MAX(0, start < 0 ? start + ndim : start);
    end = MIN(ndim - 1, end < 0 ? end + ndim : end);
    if (end < start)
        return err_set(ERR_ARG,
                       "[flatten] start_axis must be less than or equal to end_axis, both inside "
                       "of %d dimensions.",
                       ndim);
    if (start == end)
        return ops_same(out, a);
    return ops_make_one(out, OP_FLATTEN, &(struct flatten_params){ start, end }, a, s);
}

enum err ops_unflatten(struct arr **out, struct arr *a, int axis, struct ints shape, struct strm *s)
{
    struct unflatten_params p = { 0 };
    struct shp part;
    int ax;
    enum err err;

    if (shape.n == 0)
        return err_set(ERR_ARG, "[unflatten] Shape to unflatten to cannot be empty.");
    TRY(shp_axis(&ax, axis, a->ndim, "unflatten"));
    TRY(read_shape(&part, shape, a->shape[ax], "unflatten"));
    if (part.ndim == 1)
        return ops_same(out, a);
    p.axis = ax;
    p.n = part.ndim;
    memcpy(p.shape, part.d, (size_t)part.ndim * sizeof p.shape[0]);
    err = ops_make_one(out, OP_UNFLATTEN, &p, a, s);
out:
    return err;
}

static struct axes_params axes_params(const struct axis_set *set)
{
    struct axes_params p = { .n = set->n };

    memcpy(p.axis, set->axis, (size_t)set->n * sizeof p.axis[0]);
    return p;
}

enum err ops_expand_dims(struct arr **out, struct arr *a, struct ints axes, struct strm *s)
{
    struct axis_set set;
    enum err err;

    if (axes.n == 0)
        return ops_same(out, a);
    if (axes.n > (size_t)(SHP_MAX - a->ndim))
        return err_set(ERR_ARG, "[expand_dims] Arrays have at most %d dimensions.", SHP_MAX);
    TRY(ops_axis_set(&set, axes, a->ndim + (int)axes.n, "expand_dims"));
    struct axes_params p = axes_params(&set);
    TRY(ops_make_one(out, OP_EXPAND_DIMS, &p, a, s));
out:
    return err;
}

static void ones_of(struct axis_set *set, const struct arr *a)
{
    set->n = 0;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] == 1)
            set->axis[set->n++] = i;
}

enum err ops_squeeze(struct arr **out, struct arr *a, struct ints axes, struct strm *s)
{
    struct axis_set set;
    enum err err;

    if (axes.n == SIZE_MAX)
        ones_of(&set, a);
    else
        TRY(ops_axis_set(&set, axes, a->ndim, "squeeze"));
    if (set.n == 0)
        return ops_same(out, a);
    struct axes_params p = axes_params(&set);
    err = ops_make_one(out, OP_SQUEEZE, &p, a, s);
out:
    return err;
}

static enum err transpose_by(struct arr **out, struct arr *a, const struct axes_params *p,
                             struct strm *s)
{
    bool identity = true;

    for (int i = 0; i < p->n; i++)
        identity &= p->axis[i] == i;
    return identity ? ops_same(out, a) : ops_make_one(out, OP_TRANSPOSE, p, a, s);
}

enum err ops_transpose(struct arr **out, struct arr *a, struct ints axes, struct strm *s)
{
    struct axes_params p = { .n = a->ndim };
    enum err err = ERR_OK;

    if (axes.n == SIZE_MAX)
        for (int i = 0; i < p.n; i++)
            p.axis[i] = p.n - 1 - i;
    else if (axes.n != a->ndim)
        return err_set(ERR_ARG, "[transpose] Received %zu axes for array with %d dimensions.",
                       axes.n, a->ndim);
    else
        TRY(ops_axis_list(&p, axes, a->ndim, "transpose"));
    err = transpose_by(out, a, &p, s);
out:
    return err;
}

/* Axes of moveaxis and swapaxes. */
static enum err two_axes(int *x, int *y, int ndim, const char *op)
{
    enum err err = shp_axis(x, *x, ndim, op);

    return err ? err : shp_axis(y, *y, ndim, op);
}

enum err ops_moveaxis(struct arr **out, struct arr *a, int source, int destination, struct strm *s)
{
    struct axes_params p = { .n = a->ndim };
    enum err err;

    TRY(two_axes(&source, &destination, a->ndim, "moveaxis"));
    for (int i = 0, from = 0; i < p.n; i++) {
        if (from == source)
            from++;
        p.axis[i] = i == destination ? source : from++;
    }
    err = transpose_by(out, a, &p, s);
out:
    return err;
}

enum err ops_swapaxes(struct arr **out, struct arr *a, int axis1, int axis2, struct strm *s)
{
    struct axes_params p = { .n = a->ndim };
    enum err err;

    TRY(two_axes(&axis1, &axis2, a->ndim, "swapaxes"));
    for (int i = 0; i < p.n; i++)
        p.axis[i] = i == axis1 ? axis2 : i == axis2 ? axis1 : i;
    err = transpose_by(out, a, &p, s);
out:
    return err;
}

enum err ops_broadcast_to(struct arr **out, struct arr *a, struct ints shape, struct strm *s)
{
    struct shp from, to, common;
    enum err err;

    TRY(shp_make(&to, shape.v, shape.n, "broadcast_to"));
    arr_shape(&from, a);
    TRY(shp_broadcast(&common, &from, &to, "broadcast_shapes"));
    if (!shp_equal(&common, &to))
        return err_set(ERR_ARG, "[broadcast_to] Cannot broadcast array of shape %s into shape %s.",
                       shp_text(&from), shp_text(&to));
    err = ops_stretch(out, a, &to, s);
out:
    return err;
}

enum err ops_broadcast_arrays(struct arr **outs, struct arrs in, struct strm *s)
{
    struct ops_stretch to = { .with = in };
    size_t done = 0;
    enum err err = ERR_OK;

    if (in.n)
        TRY(ops_common_shape(&to.shape, in));
    for (; done < in.n; done++)
        TRY(ops_stretch_with(&outs[done], in.v[done], &to, s));
out:
    if (err)
        arr_unref_all(outs, done);
    return err;
}

enum err ops_as_strided(struct arr **out, struct arr *a, const struct ops_as_strided *v,
                        struct strm *s)
{
    struct as_strided_params p = { .offset = (int64_t)v->offset };
    int64_t strides[SHP_MAX];
    struct arr *flat = NULL;
    struct shp to;
    enum err err;

    TRY(shp_make(&to, v->shape.v, v->shape.n, "as_strided"));
    /* Strides that are not given are row-major ones. */
    shp_row_strides(strides, &to);
    for (p.n = 0; p.n < to.ndim; p.n++) {
        p.d[p.n].size = to.d[p.n];
        p.d[p.n].stride = (size_t)p.n < v->n_strides ? v->strides[p.n] : strides[p.n];
    }
    /* Strides refer to row-major elements. */
    TRY(ops_flatten(&flat, a, 0, -1, s));
    TRY(ops_make_one(out, OP_AS_STRIDED, &p, flat, s));
out:
    arr_unref(&flat);
    return err;
}

enum err ops_atleast_nd(struct arr **out, struct arr *a, int n, struct strm *s)
{
    int32_t d0 = a->ndim > 0 ? a->shape[0] : 1, d1 = a->ndim > 1 ? a->shape[1] : 1;

    if (a->ndim >= n)
        return ops_same(out, a);
    if (n == 2) /* a vector becomes a row */
        return ops_reshape(out, a, (struct ints){ (int32_t[]){ 1, d0 }, 2 }, s);
    if (n == 3 && a->ndim < 2) /* and then a matrix of one column */
        return ops_reshape(out, a, (struct ints){ (int32_t[]){ 1, d0, 1 }, 3 }, s);
    return ops_reshape(out, a, (struct ints){ (int32_t[]){ d0, d1, 1 }, (size_t)n }, s);
}

enum err ops_copy(struct arr **out, struct arr *a, struct strm *s)
{
    return ops_make_one(out, OP_COPY, NULL, a, s);
}

enum err ops_stop_gradient(struct arr **out, struct arr *a, struct strm *s)
{
    return ops_make_one(out, OP_STOP_GRADIENT, NULL, a, s);
}

enum err ops_contiguous(struct arr **out, struct arr *a, bool allow_col_major, struct strm *s)
{
    return ops_make_one(out, OP_CONTIGUOUS, &(struct contiguous_params){ allow_col_major }, a, s);
}
