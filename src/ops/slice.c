/* Slices and splits. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- what the results are ---- */

/* How many elements a range that is clamped has. */
static int64_t range_count(int64_t start, int64_t stop, int64_t step)
{
    return step < 0 ? (start - stop - step - 1) / -step : (stop - start + step - 1) / step;
}

bool ops_region_shape(struct shp *out, const struct arr *a, const struct slice_params *p)
{
    if (p->n != a->ndim)
        return false;
    out->ndim = p->n;
    for (int i = 0; i < p->n; i++) {
        int64_t start = p->d[i].start, stop = p->d[i].stop, step = p->d[i].step;
        if (step == 0 || (step < 0 ? stop > start : start > stop))
            return false;
        int64_t count = range_count(start, stop, step), last = start + (count - 1) * step;
        if (count > 0 && MAX(start, last) >= a->shape[i])
            return false;
        if (count > 0 && MIN(start, last) < 0)
            return false;
        out->d[i] = (int32_t)count;
    }
    return true;
}

enum err op_infer_slice(struct infer_call *c)
{
    c->out[0].dtype = dtype_of(c->in[0]);
    FITS(ops_region_shape(&c->out[0].shape, c->in[0], c->params));
    return ERR_OK;
}

enum err op_infer_split(struct infer_call *c)
{
    const struct split_params *p = c->params;
    const struct arr *a = c->in[0];
    int32_t from = 0;

    FITS(infer_has_axis(a, p->axis));
    c->n_out = (size_t)p->n + 1;
    for (int i = 0; i <= p->n; i++) {
        int32_t to = i < p->n ? p->at[i] : a->shape[p->axis];
        FITS(to >= from);
        c->out[i].dtype = dtype_of(a);
        arr_shape(&c->out[i].shape, a);
        c->out[i].shape.d[p->axis] = to - from;
        from = to;
    }
    return ERR_OK;
}

/* ---- slices ---- */

int32_t ops_slice_clamp(struct slice_params *p, int i, int32_t n)
{
    int64_t start = p->d[i].start, stop = p->d[i].stop, step = p->d[i].step;

    start = start < 0 ? start + n : start;
    stop = stop < 0 ? stop + n : stop;
    if (step < 0) { /* stop may be -1: the place before the first element */
        start = MIN(start, n - 1);
        stop = MIN(MAX(stop, -1), start);
    } else {
        start = MAX(0, MIN(start, n));
        stop = MAX(start, MIN(stop, n));
    }
    int64_t count = range_count(start, stop, step);
    if (count == 1) {
        stop = start + 1;
        p->d[i].step = 1;
    }
    p->d[i].start = (int32_t)start;
    p->d[i].stop = (int32_t)stop;
    return (int32_t)count;
}

/* r->p has the caller's numbers and becomes normalised. */
static enum err resolve(struct ops_region *r, const struct arr *a, const char *op)
{
    r->p.n = r->shape.ndim = a->ndim;
    r->is_whole = true;
    for (int i = 0; i < a->ndim; i++) {
        if (r->p.d[i].step == 0)
            return err_set(ERR_ARG, "[%s] The stride of axis %d is zero.", op, i);
        r->is_whole &= r->p.d[i].step > 0;
        r->shape.d[i] = ops_slice_clamp(&r->p, i, a->shape[i]);
        r->is_whole &= r->shape.d[i] == a->shape[i];
    }
    return ERR_OK;
}

enum err ops_region(struct ops_region *r, const struct arr *a, const struct ops_slice *v,
                    const char *op)
{
    size_t n = a->ndim;

    *r = (struct ops_region){ 0 };
    if (v->start.n != n || v->stop.n != n || v->step.n != n)
        return err_set(ERR_ARG,
                       "[%s] Invalid number of indices or strides for array with "
                       "dimension %zu.",
                       op, n);
    for (size_t i = 0; i < n; i++) {
        r->p.d[i].start = v->start.v[i];
        r->p.d[i].stop = v->stop.v[i];
        r->p.d[i].step = v->step.v[i];
    }
    return resolve(r, a, op);
}

static enum err slice_node(struct arr **out, struct arr *a, const struct ops_region *r,
                           struct strm *s)
{
    return r->is_whole ? ops_same(out, a) : ops_make_one(out, OP_SLICE, &r->p, a, s);
}

enum err ops_slice(struct arr **out, struct arr *a, const struct ops_slice *v, struct strm *s)
{
    struct ops_region r;
    enum err err;

    TRY(ops_region(&r, a, v, "slice"));
    TRY(slice_node(out, a, &r, s));
out:
    return err;
}

enum err ops_slice_axis(struct arr **out, struct arr *a, int axis, const int32_t range[2],
                        struct strm *s)
{
    struct ops_region r = { 0 };
    enum err err;

    for (int i = 0; i < a->ndim; i++) {
        r.p.d[i].stop = a->shape[i];
        r.p.d[i].step = 1;
    }
    r.p.d[axis].start = range[0];
    r.p.d[axis].stop = range[1];
    TRY(resolve(&r, a, "split"));
    TRY(slice_node(out, a, &r, s));
out:
    return err;
}

/* Few increasing cuts inside of the axis become one node with all parts as outputs. */
#define SPLIT_MAX 10

static bool is_plain_split(struct ints indices, int32_t size)
{
    if (indices.n >= SPLIT_MAX || indices.v[0] <= 0 || indices.v[indices.n - 1] >= size)
        return false;
    for (size_t i = 1; i < indices.n; i++)
        if (indices.v[i] < indices.v[i - 1])
            return false;
    return true;
}

static enum err split_node(struct arr **outs, struct arr *a, struct ints indices, int axis,
                           struct strm *s)
{
    struct split_params p = { .axis = axis, .n = (int32_t)indices.n };

    memcpy(p.at, indices.v, indices.n * sizeof p.at[0]);
    return ops_make_one(outs, OP_SPLIT, &p, a, s);
}

static enum err split_slices(struct arr **outs, struct arr *a, struct ints indices, int axis,
                             struct strm *s)
{
    int32_t range[2] = { 0, 0 };
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done <= indices.n; done++) {
        range[1] = done < indices.n ? indices.v[done] : a->shape[axis];
        TRY(ops_slice_axis(&outs[done], a, axis, range, s));
        range[0] = range[1];
    }
out:
    if (err)
        arr_unref_all(outs, done);
    return err;
}

enum err ops_split_sections(struct arr **outs, struct arr *a, struct ints indices, int axis,
                            struct strm *s)
{
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "split"));
    if (indices.n == 0)
        err = ops_same(outs, a);
    else if (is_plain_split(indices, a->shape[axis]))
        err = split_node(outs, a, indices, axis, s);
    else
        err = split_slices(outs, a, indices, axis, s);
out:
    return err;
}

enum err ops_split(struct arr **outs, struct arr *a, int n, int axis, struct strm *s)
{
    int32_t *cuts = NULL;
    enum err err;

    if (n <= 0)
        return err_set(ERR_ARG, "[split] num_splits must be positive and non-zero but got %d.", n);
    TRY(shp_axis(&axis, axis, a->ndim, "split"));
    if (a->shape[axis] % n != 0)
        return err_set(ERR_ARG,
                       "[split] Array split does not result in sub arrays with equal "
                       "size: attempting %d splits along axis %d of size %d.",
                       n, axis, a->shape[axis]);
    err = ERR_NO_MEMORY;
    if (!(cuts = mem_alloc_array((size_t)n, sizeof *cuts)))
        goto out;
    for (int i = 0; i < n - 1; i++)
        cuts[i] = (i + 1) * (a->shape[axis] / n);
    err = ops_split_sections(outs, a, (struct ints){ cuts, (size_t)n - 1 }, axis, s);
out:
    mem_free(cuts);
    return err;
}
