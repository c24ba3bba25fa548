/* Functions that are made of other ops. */
#include "ops/build.h"

enum err ops_logical_xor(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    struct arr *x = NULL, *y = NULL;
    enum err err;

    TRY(ops_astype(&x, a, DT_BOOL, s));
    TRY(ops_astype(&y, b, DT_BOOL, s));
    err = ops_binary(out, OP_NOT_EQUAL, x, y, s);
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

enum err ops_trunc(struct arr **out, struct arr *a, struct strm *s)
{
    struct arr *zero = NULL, *is = NULL, *up = NULL, *down = NULL;
    enum err err;

    if (a->dtype == DT_COMPLEX64)
        return err_set(ERR_ARG, "[trunc] Not supported for complex64.");
    if (dt_is_integer(dtype_of(a)))
        return ops_same(out, a);
    TRY(arr_new_number(&zero, 0, dtype_of(a)));
    TRY(ops_binary(&is, OP_LESS, a, zero, s));
    TRY(ops_unary(&up, OP_CEIL, a, s));
    TRY(ops_unary(&down, OP_FLOOR, a, s));
    err = ops_where(out, is, up, down, s);
out:
    arr_unref(&zero);
    arr_unref(&is);
    arr_unref(&up);
    arr_unref(&down);
    return err;
}

static enum err check_cross_entropy(const struct arr *logits, const struct arr *targets)
{
    struct shp shape, of;

    arr_shape(&shape, targets);
    arr_shape(&of, logits);
    if (!logits->ndim)
        return err_set(ERR_ARG, "[cross_entropy] logits must have at least one dimension.");
    if (!dt_is_float(dtype_of(logits)))
        return err_set(ERR_ARG, "[cross_entropy] logits must be of a floating type but are %s.",
                       dt_name(dtype_of(logits)));
    if (!dt_is_integer(dtype_of(targets)) || targets->dtype == DT_BOOL)
        return err_set(ERR_ARG, "[cross_entropy] targets must be integers but are %s.",
                       dt_name(dtype_of(targets)));
    if (targets->ndim != logits->ndim - 1 ||
        !shp_same_dims(targets->shape, logits->shape, targets->ndim))
        return err_set(ERR_ARG,
                       "[cross_entropy] targets of shape %s do not fit logits of shape %s, all but "
                       "the last axis of which they should have.",
                       shp_text(&shape), shp_text(&of));
    return ERR_OK;
}

enum err ops_cross_entropy(struct arr **out, struct arr *logits, struct arr *targets,
                           struct strm *s)
{
    const struct ints last = { (int32_t[]){ -1 }, 1 };
    struct arr *x = NULL, *sum = NULL, *at = NULL;
    enum err err;

    TRY(check_cross_entropy(logits, targets));
    TRY(ops_astype(&x, logits, dt_promote(dtype_of(logits), DT_FLOAT32), s));
    TRY(ops_logsumexp(&sum, x, &(struct ops_axes){ last, false }, s));
    TRY(ops_expand_dims(&at, targets, last, s));
    STEP(at, ops_take_along_axis(&next, x, at, -1, s));
    STEP(at, ops_squeeze(&next, at, last, s));
    STEP(x, ops_binary(&next, OP_SUBTRACT, sum, at, s));
    err = ops_astype(out, x, DT_FLOAT32, s);
out:
    arr_unref(&x);
    arr_unref(&sum);
    arr_unref(&at);
    return err;
}

/* ---- along an axis ---- */

enum err ops_diff(struct arr **out, struct arr *a, int n, int axis, struct strm *s)
{
    struct arr *x = NULL, *upper = NULL, *lower = NULL;
    int at = axis < 0 ? axis + a->ndim : axis;
    enum err err = ERR_OK;

    if (at < 0 || at >= a->ndim)
        return err_set(ERR_RANGE, "[diff] Axis is out of bounds for the array.");
    if (n < 0)
        return err_set(ERR_ARG, "[diff] Order `n` must be non-negative.");
    x = arr_ref(a);
    for (int i = 0; i < n && x->shape[at]; i++) {
        int32_t size = x->shape[at];
        STEP(upper, ops_slice_axis(&next, x, at, (int32_t[]){ 1, size }, s));
        STEP(lower, ops_slice_axis(&next, x, at, (int32_t[]){ 0, size - 1 }, s));
        STEP(x, ops_binary(&next, OP_SUBTRACT, upper, lower, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&upper);
    arr_unref(&lower);
    return err;
}

enum err ops_vecdot(struct arr **out, struct arr *a, struct arr *b, int axis, struct strm *s)
{
    int32_t at = axis < 0 ? axis + a->ndim : axis;
    struct arr *x = NULL;
    enum err err;

    if (a->ndim == 0 || b->ndim == 0)
        return err_set(ERR_ARG, "[vecdot] inputs must be at least 1D.");
    if (at < 0 || at >= a->ndim || (axis < 0 ? axis + b->ndim != at : axis >= b->ndim))
        return err_set(ERR_RANGE, "[vecdot] axis is out of bounds.");
    if (a->shape[at] != b->shape[at])
        return err_set(ERR_ARG, "[vecdot] a and b must have the same size along axis.");
    TRY(ops_unary(&x, OP_CONJUGATE, a, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, b, s));
    err = ops_reduce(out, REDUCE_SUM, x, &(struct ops_axes){ { &at, 1 }, false }, s);
out:
    arr_unref(&x);
    return err;
}

enum err ops_flip(struct arr **out, struct arr *a, struct ints axes, struct strm *s)
{
    int32_t start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
    size_t n = a->ndim;
    bool is_all = axes.n == INTS_ALL.n;
    int axis;
    enum err err = ERR_OK;

    for (int i = 0; i < a->ndim; i++) {
        start[i] = 0;
        stop[i] = a->shape[i];
        step[i] = 1;
    }
    for (size_t i = 0; i < (is_all ? n : axes.n); i++) {
        TRY(shp_axis(&axis, is_all ? (int)i : axes.v[i], a->ndim, "flip"));
        start[axis] = a->shape[axis] - 1;
        stop[axis] = -a->shape[axis] - 1;
        step[axis] = -1;
    }
    err = ops_slice(out, a, &(struct ops_slice){ { start, n }, { stop, n }, { step, n } }, s);
out:
    return err;
}

enum err ops_count_nonzero(struct arr **out, struct arr *a, const struct ops_axes *axes,
                           struct strm *s)
{
    struct arr *x = NULL, *zero = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, dtype_of(a)));
    TRY(ops_binary(&x, OP_NOT_EQUAL, a, zero, s));
    STEP(x, ops_astype(&next, x, DT_INT32, s));
    err = ops_reduce(out, REDUCE_SUM, x, axes, s);
out:
    arr_unref(&x);
    arr_unref(&zero);
    return err;
}

enum err ops_unstack(struct arr **parts, struct arr *a, int axis, struct strm *s)
{
    struct arr *part = NULL;
    int done = 0;
    enum err err = ERR_OK;

    for (; done < a->shape[axis]; done++) {
        parts[done] = NULL;
        STEP(part, ops_slice_axis(&next, a, axis, (int32_t[]){ done, done + 1 }, s));
        TRY(ops_squeeze(&parts[done], part, (struct ints){ &axis, 1 }, s));
    }
out:
    arr_unref(&part);
    if (err)
        arr_unref_all(parts, (size_t)done);
    return err;
}

/* ---- search ---- */

/* Where a comes before b; NaN comes last. */
static enum err comes_before(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    struct arr *less = NULL, *b_is = NULL, *a_is = NULL;
    enum err err;

    TRY(ops_binary(&less, OP_LESS, a, b, s));
    if (!dt_is_inexact(dtype_of(a))) {
        arr_move(out, &less);
        goto out;
    }
    TRY(ops_isnan(&b_is, b, s));
    TRY(ops_isnan(&a_is, a, s));
    STEP(b_is, ops_binary(&next, OP_GREATER, b_is, a_is, s));
    err = ops_binary(out, OP_LOGICAL_OR, less, b_is, s);
out:
    arr_unref(&less);
    arr_unref(&a_is);
    arr_unref(&b_is);
    return err;
}

/* One step of a binary search for all values: at + width where what lies in front of it comes
 * before the value, or, to the right, not behind it. */
struct search {
    struct arr *sorted, *values;
    bool right;
    struct strm *strm;
};

static enum err search_step(struct arr **out, const struct search *v, struct arr *at, int64_t width)
{
    struct arr *to = NULL, *x = NULL, *ok = NULL, *n = NULL;
    struct strm *s = v->strm;
    enum err err;

    TRY(arr_new_number(&n, (double)width, DT_INT32));
    TRY(ops_binary(&to, OP_ADD, at, n, s));
    STEP(n, arr_new_number(&next, 1, DT_INT32));
    TRY(ops_binary(&x, OP_SUBTRACT, to, n, s));
    STEP(n, arr_new_number(&next, (double)v->sorted->size - 1, DT_INT32));
    STEP(x, ops_binary(&next, OP_MINIMUM, x, n, s));
    STEP(x, ops_take_flat(&next, v->sorted, x, s));
    if (v->right) {
        TRY(comes_before(&ok, v->values, x, s));
        STEP(ok, ops_unary(&next, OP_LOGICAL_NOT, ok, s));
    } else {
        TRY(comes_before(&ok, x, v->values, s));
    }
    STEP(n, arr_new_number(&next, (double)v->sorted->size, DT_INT32));
    STEP(x, ops_binary(&next, OP_LESS_EQUAL, to, n, s));
    STEP(ok, ops_binary(&next, OP_LOGICAL_AND, ok, x, s));
    err = ops_where(out, ok, to, at, s);
out:
    arr_unref(&to);
    arr_unref(&x);
    arr_unref(&ok);
    arr_unref(&n);
    return err;
}

static enum err check_search(const struct arr *sorted, const char *side)
{
    if (strcmp(side, "left") != 0 && strcmp(side, "right") != 0)
        return err_set(ERR_ARG, "[searchsorted] Invalid side '%s'. Expected 'left' or 'right'.",
                       side);
    if (sorted->ndim != 1)
        return err_set(ERR_ARG,
                       "[searchsorted] The sorted sequence must be 1-D but has %d dimensions.",
                       sorted->ndim);
    return ERR_OK;
}

enum err ops_searchsorted(struct arr **out, struct arr *sorted, struct arr *values,
                          const char *side, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(sorted), dtype_of(values));
    struct search v = { .right = strcmp(side, "right") == 0, .strm = s };
    int64_t width = 1;
    struct arr *at = NULL;
    enum err err;

    TRY(check_search(sorted, side));
    TRY(ops_astype(&v.sorted, sorted, t, s));
    TRY(ops_astype(&v.values, values, t, s));
    TRY(ops_fill_like(&at, values, 0, DT_INT32, s));
    while (width <= (int64_t)sorted->size / 2)
        width *= 2;
    for (; width && sorted->size && values->size; width /= 2)
        STEP(at, search_step(&next, &v, at, width));
    err = ops_astype(out, at, DT_UINT32, s);
out:
    arr_unref(&at);
    arr_unref(&v.sorted);
    arr_unref(&v.values);
    return err;
}
