/* Sorting along an axis, and what is made of it. */
#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

static enum err infer_sorted(struct infer_call *c, int32_t axis, bool is_arg)
{
    FITS(infer_has_axis(c->in[0], axis));
    infer_like(c, c->in[0]);
    if (is_arg)
        c->out[0].dtype = DT_UINT32;
    return ERR_OK;
}

enum err op_infer_sort(struct infer_call *c)
{
    const struct axis_params *p = c->params;

    return infer_sorted(c, p->axis, c->op == OP_ARG_SORT);
}

enum err op_infer_partition(struct infer_call *c)
{
    const struct partition_params *p = c->params;

    FITS(infer_has_axis(c->in[0], p->axis));
    FITS(p->kth >= 0 && p->kth < c->in[0]->shape[p->axis]);
    return infer_sorted(c, p->axis, c->op == OP_ARG_PARTITION);
}

static enum err sorted(struct arr **out, enum op_id op, struct arr *a, int axis, struct strm *s)
{
    enum err err = shp_axis(&axis, axis, a->ndim, op == OP_ARG_SORT ? "argsort" : "sort");

    return err ? err : ops_make_one(out, op, &(struct axis_params){ axis }, a, s);
}

enum err ops_sort(struct arr **out, struct arr *a, int axis, struct strm *s)
{
    return sorted(out, OP_SORT, a, axis, s);
}

enum err ops_argsort(struct arr **out, struct arr *a, int axis, struct strm *s)
{
    return sorted(out, OP_ARG_SORT, a, axis, s);
}

static enum err partitioned(struct arr **out, enum op_id op, struct arr *a,
                            struct partition_params p, struct strm *s)
{
    const char *name = op == OP_ARG_PARTITION ? "argpartition" : "partition";
    struct shp shape;
    enum err err;

    TRY(shp_axis(&p.axis, p.axis, a->ndim, name));
    int32_t size = a->shape[p.axis], kth = p.kth;
    p.kth = kth < 0 ? kth + size : kth;
    arr_shape(&shape, a);
    if (p.kth < 0 || p.kth >= size)
        return err_set(ERR_ARG,
                       "[%s] Received invalid kth %d along axis %d for array with shape: %s", name,
                       kth, p.axis, shp_text(&shape));
    err = ops_make_one(out, op, &p, a, s);
out:
    return err;
}

enum err ops_partition(struct arr **out, struct arr *a, int kth, int axis, struct strm *s)
{
    return partitioned(out, OP_PARTITION, a, (struct partition_params){ kth, axis }, s);
}

enum err ops_argpartition(struct arr **out, struct arr *a, int kth, int axis, struct strm *s)
{
    return partitioned(out, OP_ARG_PARTITION, a, (struct partition_params){ kth, axis }, s);
}

enum err ops_topk(struct arr **out, struct arr *a, int k, int axis, struct strm *s)
{
    int32_t start[SHP_MAX] = { 0 }, stop[SHP_MAX], step[SHP_MAX];
    struct arr *parted = NULL;
    struct shp shape;
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "topk"));
    arr_shape(&shape, a);
    if (k < 0 || k > shape.d[axis])
        return err_set(ERR_ARG,
                       "[topk] Received invalid k=%d along axis %d for array with shape: %s", k,
                       axis, shp_text(&shape));
    if (k == shape.d[axis])
        return ops_same(out, a);
    if (k > 0)
        TRY(ops_partition(&parted, a, -k, axis, s));
    for (int i = 0; i < shape.ndim; i++) {
        stop[i] = shape.d[i];
        step[i] = 1;
    }
    start[axis] = shape.d[axis] - k;
    size_t n = (size_t)shape.ndim;
    err = ops_slice(out, parted ? parted : a,
                    &(struct ops_slice){ { start, n }, { stop, n }, { step, n } }, s);
out:
    arr_unref(&parted);
    return err;
}

/* ---- median ---- */

/* a with the axes of the set as one last axis. */
static enum err flatten_axes(struct arr **out, struct arr *a, const struct axis_set *set,
                             struct strm *s)
{
    int32_t order[SHP_MAX];
    int kept = 0, last = a->ndim - set->n;
    struct arr *x = NULL;
    enum err err;

    for (int i = 0, j = 0; i < a->ndim; i++)
        if (j < set->n && set->axis[j] == i)
            order[last + j++] = i;
        else
            order[kept++] = i;
    TRY(ops_transpose(&x, a, (struct ints){ order, a->ndim }, s));
    if (set->n == 0)
        TRY(ops_expand_dims(out, x, (struct ints){ &(int32_t){ -1 }, 1 }, s));
    else
        TRY(ops_flatten(out, x, last, -1, s));
out:
    arr_unref(&x);
    return err;
}

/* Element `at` of the last axis, which keeps size 1, in dtype t. */
static enum err element(struct arr **out, struct arr *x, int32_t at, enum dtype t, struct strm *s)
{
    struct arr *one = NULL;
    enum err err;

    TRY(ops_slice_axis(&one, x, x->ndim - 1, (int32_t[]){ at, at + 1 }, s));
    TRY(ops_astype(out, one, t, s));
out:
    arr_unref(&one);
    return err;
}

/* The middle of sorted elements, the mean of two where there is none. */
static enum err middle(struct arr **out, struct arr *sorted, struct strm *s)
{
    enum dtype t = dt_at_least_float(dtype_of(sorted));
    int32_t n = sorted->shape[sorted->ndim - 1];
    struct arr *x = NULL, *other = NULL;
    enum err err;

    TRY(element(&x, sorted, n / 2, t, s));
    if (n % 2 == 0) {
        TRY(element(&other, sorted, n / 2 - 1, t, s));
        STEP(x, ops_binary(&next, OP_ADD, x, other, s));
        STEP(other, arr_new_number(&next, 0.5, t));
        STEP(x, ops_binary(&next, OP_MULTIPLY, x, other, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&other);
    return err;
}

/* *m where no element of the last axis of x is NaN, else NaN: sorted last, they are never in the
 * middle. */
static enum err keep_nans(struct arr **m, struct arr *x, struct strm *s)
{
    struct ops_axes last = { { &(int32_t){ -1 }, 1 }, true };
    struct arr *is_nan = NULL, *nan = NULL;
    enum err err;

    TRY(ops_isnan(&is_nan, x, s));
    STEP(is_nan, ops_reduce(&next, REDUCE_OR, is_nan, &last, s));
    TRY(arr_new_number(&nan, NAN, dtype_of(*m)));
    STEP(*m, ops_where(&next, is_nan, nan, *m, s));
out:
    arr_unref(&is_nan);
    arr_unref(&nan);
    return err;
}

enum err ops_median(struct arr **out, struct arr *a, const struct ops_axes *axes, struct strm *s)
{
    struct axis_set set;
    struct arr *x = NULL, *m = NULL;
    enum err err;

    TRY(ops_axis_set(&set, axes->axes, a->ndim, "median"));
    TRY(flatten_axes(&x, a, &set, s));
    if (x->shape[x->ndim - 1] == 0)
        err = err_set(ERR_ARG, "[median] Cannot take median along empty axis.");
    TRY(err);
    TRY(ops_sort(&m, x, -1, s));
    STEP(m, middle(&next, m, s));
    if (dt_is_inexact(dtype_of(a)))
        TRY(keep_nans(&m, x, s));
    STEP(m, ops_squeeze(&next, m, (struct ints){ &(int32_t){ -1 }, 1 }, s));
    if (axes->keepdims)
        STEP(m, ops_expand_dims(&next, m, (struct ints){ set.axis, (size_t)set.n }, s));
    arr_move(out, &m);
out:
    arr_unref(&x);
    arr_unref(&m);
    return err;
}
