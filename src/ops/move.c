/* Ops that move elements: concatenation, repetition, padding. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- concatenation ---- */

enum err op_infer_concatenate(struct infer_call *c)
{
    int axis = ((const struct axis_params *)c->params)->axis;
    struct shp *out = &c->out[0].shape;
    int64_t size = 0;

    FITS(infer_has_axis(c->in[0], axis));
    infer_like(c, c->in[0]);
    for (size_t i = 0; i < c->n_in; i++) {
        const struct arr *a = c->in[i];
        struct shp b;
        if (a->ndim != out->ndim)
            return err_set(ERR_ARG,
                           "[concatenate] All the input arrays must have the same number "
                           "of dimensions. However, got arrays with dimensions %d and %d.",
                           out->ndim, a->ndim);
        FITS(a->dtype == c->in[0]->dtype);
        arr_shape(&b, a);
        size += b.d[axis];
        b.d[axis] = out->d[axis];
        if (shp_equal(&b, out))
            continue;
        b.d[axis] = a->shape[axis];
        return err_set(ERR_ARG,
                       "[concatenate] All the input array dimensions must match exactly "
                       "except for the concatenation axis %d. However, got shapes %s and "
                       "%s.",
                       axis, shp_text(out), shp_text(&b));
    }
    return ops_dim(&out->d[axis], size, "concatenate");
}

/* Room for as many references as in has. */
static enum err parts_new(struct arr ***out, struct arrs in)
{
    *out = mem_alloc_array(in.n, sizeof(struct arr *));
    return *out ? ERR_OK : ERR_NO_MEMORY;
}

static void parts_free(struct arr **parts, size_t n)
{
    if (parts)
        arr_unref_all(parts, n);
    mem_free(parts);
}

enum err ops_concatenate(struct arr **out, struct arrs in, int axis, struct strm *s)
{
    struct arr **cast = NULL;
    enum dtype t;
    enum err err;

    if (in.n == 0)
        return err_set(ERR_ARG, "[concatenate] No arrays provided for concatenation.");
    if (in.n == 1)
        return ops_same(out, in.v[0]);
    if (in.n > UINT16_MAX)
        return err_set(ERR_ARG, "[concatenate] At most %d arrays at once, got %zu.", UINT16_MAX,
                       in.n);
    TRY(shp_axis(&axis, axis, in.v[0]->ndim, "concatenate"));
    t = dtype_of(in.v[0]);
    for (size_t i = 1; i < in.n; i++)
        t = dt_promote(t, dtype_of(in.v[i]));
    TRY(parts_new(&cast, in));
    for (size_t i = 0; i < in.n; i++)
        TRY(ops_astype(&cast[i], in.v[i], t, s));
    TRY(ops_make_of(out, OP_CONCATENATE, &(struct axis_params){ axis },
                    (struct given){ cast, in.n }, s));
out:
    parts_free(cast, in.n);
    return err;
}

enum err ops_concatenate_flat(struct arr **out, struct arrs in, struct strm *s)
{
    struct arr **flat = NULL;
    enum err err;

    TRY(parts_new(&flat, in));
    for (size_t i = 0; i < in.n; i++)
        TRY(ops_flatten(&flat[i], in.v[i], 0, -1, s));
    TRY(ops_concatenate(out, (struct arrs){ flat, in.n }, 0, s));
out:
    parts_free(flat, in.n);
    return err;
}

enum err ops_stack(struct arr **out, struct arrs in, int axis, struct strm *s)
{
    struct arr **parts = NULL;
    enum err err;

    if (in.n == 0)
        return err_set(ERR_ARG, "[stack] No arrays provided for stacking.");
    for (size_t i = 1; i < in.n; i++)
        if (!arr_same_shape(in.v[0], in.v[i]))
            return err_set(ERR_ARG, "[stack] All arrays must have the same shape.");
    TRY(shp_axis(&axis, axis, in.v[0]->ndim + 1, "stack"));
    TRY(parts_new(&parts, in));
    for (size_t i = 0; i < in.n; i++)
        TRY(ops_expand_dims(&parts[i], in.v[i], (struct ints){ &axis, 1 }, s));
    TRY(ops_concatenate(out, (struct arrs){ parts, in.n }, axis, s));
out:
    parts_free(parts, in.n);
    return err;
}

/* ---- repetition ---- */

enum err ops_repeat(struct arr **out, struct arr *a, int repeats, int axis, struct strm *s)
{
    struct arr *x = NULL;
    struct shp to;
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "repeat"));
    if (repeats < 0)
        return err_set(ERR_ARG, "[repeat] Number of repeats cannot be negative.");
    if (repeats == 1)
        return ops_same(out, a);
    arr_shape(&to, a);
    TRY(ops_dim(&to.d[axis], (int64_t)to.d[axis] * repeats, "repeat"));
    if (repeats == 0)
        return arr_new_data(out, NULL, &to, dtype_of(a));
    /* A new dimension after the axis, stretched and merged back. */
    int32_t after[] = { axis + 1 };
    struct shp wide;
    TRY(ops_expand_dims(&x, a, (struct ints){ after, 1 }, s));
    arr_shape(&wide, x);
    wide.d[axis + 1] = repeats;
    STEP(x, ops_stretch(&next, x, &wide, s));
    TRY(ops_reshape(out, x, shp_ints(&to), s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_repeat_flat(struct arr **out, struct arr *a, int repeats, struct strm *s)
{
    struct arr *flat = NULL;
    enum err err;

    TRY(ops_flatten(&flat, a, 0, -1, s));
    TRY(ops_repeat(out, flat, repeats, 0, s));
out:
    arr_unref(&flat);
    return err;
}

enum err ops_tile(struct arr **out, struct arr *a, struct ints reps, struct strm *s)
{
    struct shp narrow = { 0 }, wide = { 0 }, to = { 0 };
    int ndim = (int)MAX(reps.n, (size_t)a->ndim);
    struct arr *x = NULL;
    enum err err;

    if (reps.n > SHP_MAX)
        return err_set(ERR_ARG, "[tile] Arrays have at most %d dimensions.", SHP_MAX);
    for (int i = 0; i < ndim; i++) {
        int from = i - (ndim - a->ndim), rep = i - (ndim - (int)reps.n);
        int32_t size = from < 0 ? 1 : a->shape[from], times = rep < 0 ? 1 : reps.v[rep];
        if (times < 0)
            return err_set(ERR_ARG, "[tile] Number of repeats cannot be negative.");
        if (narrow.ndim > SHP_MAX - 2)
            return err_set(ERR_ARG, "[tile] Too many dimensions.");
        if (times != 1) {
            narrow.d[narrow.ndim++] = 1;
            wide.d[wide.ndim++] = times;
        }
        narrow.d[narrow.ndim++] = size;
        wide.d[wide.ndim++] = size;
        TRY(ops_dim(&to.d[to.ndim++], (int64_t)size * times, "tile"));
    }
    TRY(ops_reshape(&x, a, shp_ints(&narrow), s));
    STEP(x, ops_stretch(&next, x, &wide, s));
    TRY(ops_reshape(out, x, shp_ints(&to), s));
out:
    arr_unref(&x);
    return err;
}

/* ---- padding ---- */

/* Which of the n elements of an axis stands at position i, inside or outside of [0, n). */
typedef int32_t (*border_fn)(int64_t i, int32_t n);

static int32_t border_edge(int64_t i, int32_t n)
{
    return (int32_t)MAX(0, MIN(i, n - 1));
}

/* A mirror between elements: the outermost one is repeated. */
static int32_t border_symmetric(int64_t i, int32_t n)
{
    int64_t period = 2 * (int64_t)n, at = (i % period + period) % period;

    return (int32_t)(at < n ? at : period - 1 - at);
}

/* A mirror on the outermost element. */
static int32_t border_reflect(int64_t i, int32_t n)
{
    if (n == 1)
        return 0;
    int64_t period = 2 * ((int64_t)n - 1), at = (i % period + period) % period;
    return (int32_t)(at < n ? at : period - at);
}

static const struct {
    const char *mode;
    border_fn fn; /* NULL: a constant */
} pad_modes[] = {
    { "constant", NULL },
    { "edge", border_edge },
    { "reflect", border_reflect },
    { "symmetric", border_symmetric },
};

/* *x padded along one axis by copies of its own elements. */
static enum err pad_axis(struct arr **x, int axis, border_fn fn, const int32_t pads[2],
                         struct strm *s)
{
    int32_t n = (*x)->shape[axis];
    struct shp to = { .ndim = 1 };
    struct arr *indices = NULL;
    int32_t *from = NULL;
    enum err err;

    TRY(ops_dim(&to.d[0], (int64_t)n + pads[0] + pads[1], "pad"));
    err = ERR_NO_MEMORY;
    if (!(from = mem_alloc_array((size_t)to.d[0], sizeof *from)))
        goto out;
    for (int32_t i = 0; i < to.d[0]; i++)
        from[i] = fn((int64_t)i - pads[0], n);
    TRY(arr_new_data(&indices, from, &to, DT_INT32));
    STEP(*x, ops_take(&next, *x, indices, axis, s));
out:
    arr_unref(&indices);
    mem_free(from);
    return err;
}

/* An empty axis has no element to repeat. MLX makes zeros of edges on both sides, nothing else. */
static enum err pad_empty_axis(struct arr **x, int axis, size_t mode, const int32_t pads[2],
                               struct strm *s)
{
    struct shp to;
    enum err err;

    if (pad_modes[mode].fn != border_edge || !pads[0] || !pads[1])
        return err_set(ERR_ARG, "[pad] Cannot pad empty axis %d using mode '%s'.", axis,
                       pad_modes[mode].mode);
    arr_shape(&to, *x);
    TRY(ops_dim(&to.d[axis], (int64_t)pads[0] + pads[1], "pad"));
    STEP(*x, ops_fill(&next, shp_ints(&to), 0, dtype_of(*x), s));
out:
    return err;
}

/* The value to pad with: of several the first, as in MLX. */
static enum err pad_value(struct arr **out, struct arr *value, enum dtype t, struct strm *s)
{
    int32_t zero = 0, one = 1;
    struct arr *x = NULL;
    enum err err;

    if (!value->size)
        return err_set(ERR_ARG, "[pad] The value to pad with is an empty array.");
    TRY(ops_flatten(&x, value, 0, -1, s));
    STEP(x, ops_slice(&next, x, &(struct ops_slice){ { &zero, 1 }, { &one, 1 }, { &one, 1 } }, s));
    STEP(x, ops_reshape(&next, x, (struct ints){ NULL, 0 }, s));
    err = ops_astype(out, x, t, s);
out:
    arr_unref(&x);
    return err;
}

enum err op_infer_pad(struct infer_call *c)
{
    const struct pad_params *p = c->params;
    struct arr *a = c->in[0], *value = c->in[1];
    enum err err = ERR_OK;

    FITS(value->ndim == 0 && value->dtype == a->dtype);
    infer_like(c, a);
    for (int i = 0; i < p->n; i++) {
        FITS(infer_has_axis(a, p->d[i].axis) && p->d[i].low >= 0 && p->d[i].high >= 0);
        int32_t *dim = &c->out[0].shape.d[p->d[i].axis];
        TRY(ops_dim(dim, (int64_t)*dim + p->d[i].low + p->d[i].high, "pad"));
    }
out:
    return err;
}

void ops_pad_region(struct slice_params *out, const struct arr *a, const struct pad_params *p)
{
    *out = (struct slice_params){ .n = a->ndim };
    for (int i = 0; i < a->ndim; i++)
        out->d[i].step = 1;
    for (int i = 0; i < p->n; i++)
        out->d[p->d[i].axis].start += p->d[i].low;
    for (int i = 0; i < a->ndim; i++)
        out->d[i].stop = out->d[i].start + a->shape[i];
}

static enum err pad_constant(struct arr **out, struct arr *a, const struct pad_params *p,
                             struct arr *value, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(pad_value(&v, value, dtype_of(a), s));
    TRY(ops_make(out, OP_PAD, p, (struct arrs){ (struct arr *[]){ a, v }, 2 }, s));
out:
    arr_unref(&v);
    return err;
}

static enum err check_pads(struct pad_params *p, const struct arr *a, const struct ops_pad *in)
{
    enum err err = ERR_OK;

    if (in->axes.n != in->low.n || in->axes.n != in->high.n || in->axes.n > SHP_MAX)
        return err_set(ERR_ARG,
                       "[pad] Invalid number of padding sizes passed to pad with axes of "
                       "size %zu.",
                       in->axes.n);
    for (p->n = 0; p->n < (int)in->axes.n; p->n++) {
        int i = p->n, axis;
        TRY(shp_axis(&axis, in->axes.v[i], a->ndim, "pad"));
        p->d[i].axis = axis;
        p->d[i].low = in->low.v[i];
        p->d[i].high = in->high.v[i];
        if (p->d[i].low < 0 || p->d[i].high < 0)
            return err_set(ERR_ARG,
                           "[pad] Invalid padding sizes (%d, %d) for axis %d. Padding "
                           "sizes must be non-negative.",
                           p->d[i].low, p->d[i].high, axis);
    }
out:
    return err;
}

enum err ops_pad(struct arr **out, struct arr *a, const struct ops_pad *in, struct strm *s)
{
    struct pad_params p = { 0 };
    struct arr *x = NULL;
    size_t mode = 0;
    enum err err;

    TRY(check_pads(&p, a, in));
    while (mode < ARRAY_LEN(pad_modes) && strcmp(in->mode, pad_modes[mode].mode) != 0)
        mode++;
    if (mode == ARRAY_LEN(pad_modes))
        return err_set(ERR_ARG, "[pad] Invalid padding mode (%s) passed to pad.", in->mode);
    if (!pad_modes[mode].fn)
        return pad_constant(out, a, &p, in->value, s);
    x = arr_ref(a);
    for (int i = 0; i < p.n; i++) {
        const int32_t pads[] = { p.d[i].low, p.d[i].high };
        if (!pads[0] && !pads[1])
            continue;
        if (x->shape[p.d[i].axis] == 0)
            TRY(pad_empty_axis(&x, p.d[i].axis, mode, pads, s));
        else
            TRY(pad_axis(&x, p.d[i].axis, pad_modes[mode].fn, pads, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

enum err ops_pad_symmetric(struct arr **out, struct arr *a, int width, const struct ops_pad *in,
                           struct strm *s)
{
    int32_t axes[SHP_MAX], widths[SHP_MAX];
    struct ops_pad p = *in;

    for (int i = 0; i < a->ndim; i++) {
        axes[i] = i;
        widths[i] = width;
    }
    p.axes = (struct ints){ axes, a->ndim };
    p.low = p.high = (struct ints){ widths, a->ndim };
    return ops_pad(out, a, &p, s);
}
