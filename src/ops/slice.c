/* Slices and splits. */
#include "ops/build.h"

/* Start, stop and step of one dimension of size n, clamped; gives the number of elements. */
static int32_t clamp_range(struct slice_params *p, int i, int32_t n)
{
    int64_t start = p->start[i], stop = p->stop[i], step = p->step[i];
    int64_t count;

    start = start < 0 ? start + n : start;
    stop = stop < 0 ? stop + n : stop;
    if (step < 0) { /* stop may be -1: the place before the first element */
        start = MIN(start, n - 1);
        stop = MIN(MAX(stop, -1), start);
        count = (start - stop - step - 1) / -step;
    } else {
        start = MAX(0, MIN(start, n));
        stop = MAX(start, MIN(stop, n));
        count = (stop - start + step - 1) / step;
    }
    p->start[i] = (int32_t)start;
    p->stop[i] = (int32_t)stop;
    if (count == 1)
        p->step[i] = 1;
    return (int32_t)count;
}

static enum err slice_by(struct arr **out, struct arr *a, struct slice_params *p, struct strm *s)
{
    struct shp to = { .ndim = a->ndim };
    bool whole = true;

    p->n = a->ndim;
    for (int i = 0; i < a->ndim; i++) {
        if (p->step[i] == 0)
            return err_set(ERR_ARG, "[slice] The stride of axis %d is zero.", i);
        whole &= p->step[i] > 0;
        to.d[i] = clamp_range(p, i, a->shape[i]);
        whole &= to.d[i] == a->shape[i];
    }
    if (whole)
        return ops_same(out, a);
    return ops_node(out, a, &(struct ops_node){ OP_SLICE, dtype_of(a), &to, p }, s);
}

enum err ops_slice(struct arr **out, struct arr *a, const struct ops_slice *v, struct strm *s)
{
    struct slice_params p = { 0 };
    size_t n = a->ndim, bytes = n * sizeof p.start[0];

    if (v->start.n != n || v->stop.n != n || v->step.n != n)
        return err_set(ERR_ARG,
                       "[slice] Invalid number of indices or strides for array with "
                       "dimension %zu.",
                       n);
    if (n) {
        memcpy(p.start, v->start.v, bytes);
        memcpy(p.stop, v->stop.v, bytes);
        memcpy(p.step, v->step.v, bytes);
    }
    return slice_by(out, a, &p, s);
}

/* The part [start, stop) of one axis. */
static enum err slice_axis(struct arr **out, struct arr *a, int axis, const int32_t range[2],
                           struct strm *s)
{
    struct slice_params p = { 0 };

    for (int i = 0; i < a->ndim; i++) {
        p.stop[i] = a->shape[i];
        p.step[i] = 1;
    }
    p.start[axis] = range[0];
    p.stop[axis] = range[1];
    return slice_by(out, a, &p, s);
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
    struct out_desc d[SPLIT_MAX];
    struct split_params p = { axis };
    int32_t from = 0;

    for (size_t i = 0; i <= indices.n; i++) {
        int32_t to = i < indices.n ? indices.v[i] : a->shape[axis];
        d[i].dtype = dtype_of(a);
        arr_shape(&d[i].shape, a);
        d[i].shape.d[axis] = to - from;
        from = to;
    }
    return node_new(outs, &(struct node_params){ .op = OP_SPLIT,
                                                 .strm = s,
                                                 .in = &a,
                                                 .n_in = 1,
                                                 .params = &p,
                                                 .params_size = sizeof p,
                                                 .out = d,
                                                 .n_out = indices.n + 1 });
}

static enum err split_slices(struct arr **outs, struct arr *a, struct ints indices, int axis,
                             struct strm *s)
{
    int32_t range[2] = { 0, 0 };
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done <= indices.n; done++) {
        range[1] = done < indices.n ? indices.v[done] : a->shape[axis];
        TRY(slice_axis(&outs[done], a, axis, range, s));
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
