/* Reductions made of others: mean, variance, softmax, logsumexp. */
#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_softmax(struct infer_call *c)
{
    FITS(c->in[0]->ndim && dt_is_float(dtype_of(c->in[0])));
    infer_like(c, c->in[0]);
    return ERR_OK;
}

enum err op_infer_logsumexp(struct infer_call *c)
{
    struct shp *shape = &c->out[0].shape;

    FITS(c->in[0]->ndim && dt_is_float(dtype_of(c->in[0])));
    infer_like(c, c->in[0]);
    shape->d[shape->ndim - 1] = 1;
    return ERR_OK;
}

/* Bad axes are another error for the mean than for the sum. */
static enum err check_axes(const struct arr *a, struct ints axes, const char *op)
{
    for (size_t i = 0; axes.n != SIZE_MAX && i < axes.n; i++) {
        int axis;
        enum err err = shp_axis(&axis, axes.v[i], a->ndim, op);
        if (err)
            return err;
    }
    return ERR_OK;
}

enum err ops_mean(struct arr **out, struct arr *a, const struct ops_axes *x, struct strm *s)
{
    struct arr *sum = NULL, *n = NULL;
    enum err err;

    TRY(check_axes(a, x->axes, "mean"));
    TRY(ops_reduce(&sum, REDUCE_SUM, a, x, s));
    TRY(ops_number_of_elements(
        &n, a, &(struct ops_elements){ x->axes, true, dt_at_least_float(dtype_of(a)) }, s));
    TRY(ops_binary(out, OP_MULTIPLY, sum, n, s));
out:
    arr_unref(&sum);
    arr_unref(&n);
    return err;
}

/* |d|^2, real for complex d as well. */
static enum err squared_magnitude(struct arr **out, struct arr *d, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    if (d->dtype != DT_COMPLEX64)
        return ops_unary(out, OP_SQUARE, d, s);
    TRY(ops_unary(&x, OP_CONJUGATE, d, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, d, x, s));
    TRY(ops_unary(out, OP_REAL, x, s));
out:
    arr_unref(&x);
    return err;
}

static enum dtype variance_dtype(const struct arr *a)
{
    return a->dtype == DT_COMPLEX64 ? DT_FLOAT32 : dt_at_least_float(dtype_of(a));
}

/* max(n - ddof, 0), where n elements of a lie along the axes. */
static enum err degrees_of_freedom(struct arr **out, struct arr *a, struct ints axes, int ddof,
                                   struct strm *s)
{
    enum dtype t = variance_dtype(a);
    struct arr *n = NULL, *v = NULL;
    enum err err;

    TRY(ops_number_of_elements(&n, a, &(struct ops_elements){ axes, false, t }, s));
    TRY(arr_new_number(&v, ddof, t));
    STEP(n, ops_binary(&next, OP_SUBTRACT, n, v, s));
    STEP(v, arr_new_number(&next, 0, t));
    TRY(ops_binary(out, OP_MAXIMUM, n, v, s));
out:
    arr_unref(&n);
    arr_unref(&v);
    return err;
}

enum err ops_var(struct arr **out, struct arr *a, const struct ops_axes *x, int ddof,
                 struct strm *s)
{
    struct arr *v = NULL, *n = NULL;
    enum err err;

    TRY(ops_mean(&v, a, &(struct ops_axes){ x->axes, true }, s));
    STEP(v, ops_binary(&next, OP_SUBTRACT, a, v, s));
    STEP(v, squared_magnitude(&next, v, s));
    STEP(v, ops_reduce(&next, REDUCE_SUM, v, x, s));
    if (ddof) {
        TRY(degrees_of_freedom(&n, a, x->axes, ddof, s));
        TRY(ops_binary(out, OP_DIVIDE, v, n, s));
    } else {
        TRY(ops_number_of_elements(&n, a,
                                   &(struct ops_elements){ x->axes, true, variance_dtype(a) }, s));
        TRY(ops_binary(out, OP_MULTIPLY, v, n, s));
    }
out:
    arr_unref(&v);
    arr_unref(&n);
    return err;
}

enum err ops_std(struct arr **out, struct arr *a, const struct ops_axes *x, int ddof,
                 struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(ops_var(&v, a, x, ddof, s));
    TRY(ops_unary(out, OP_SQRT, v, s));
out:
    arr_unref(&v);
    return err;
}

/* ---- along the last axis there is one node, elsewhere a composition ---- */

/* True if the axes are the last one, or end in it and all others before are consecutive and of
 * size 1. */
static bool is_last_axis(const struct arr *a, struct ints axes)
{
    int n = axes.n == SIZE_MAX ? a->ndim : (int)MIN(axes.n, (size_t)a->ndim + 1);

    if (n == 0 || n > a->ndim || a->dtype == DT_COMPLEX64)
        return false;
    int expected = a->ndim - 1;
    bool negative = axes.n != SIZE_MAX && axes.v[n - 1] < 0;
    for (int i = n - 1; i >= 0; i--, expected--) {
        int64_t axis = axes.n == SIZE_MAX ? i : axes.v[i];
        axis += negative ? a->ndim : 0;
        if (axis != expected || axis < 0 || (i < n - 1 && a->shape[axis] != 1))
            return false;
    }
    return true;
}

/* These two refuse axes of a scalar as a bad argument, where a reduction says out of range. */
static enum err check_scalar(const struct arr *a, struct ints axes, const char *op)
{
    if (a->ndim == 0 && axes.n != SIZE_MAX && axes.n != 0)
        return err_set(ERR_ARG, "[%s] Received non-empty axes for array with 0 dimensions.", op);
    return ERR_OK;
}

/* log(sum(exp(a - max))) + max, or max where that is infinite. */
static enum err logsumexp_by_parts(struct arr **out, struct arr *a, const struct ops_axes *x,
                                   struct strm *s)
{
    struct arr *top = NULL, *r = NULL, *inf = NULL;
    enum err err;

    TRY(ops_reduce(&top, REDUCE_MAX, a, &(struct ops_axes){ x->axes, true }, s));
    STEP(top, ops_stop_gradient(&next, top, s));
    TRY(ops_binary(&r, OP_SUBTRACT, a, top, s));
    STEP(r, ops_unary(&next, OP_EXP, r, s));
    STEP(r, ops_reduce(&next, REDUCE_SUM, r, x, s));
    STEP(r, ops_unary(&next, OP_LOG, r, s));
    STEP(top, ops_reshape(&next, top, shape_of(r), s));
    STEP(r, ops_binary(&next, OP_ADD, r, top, s));
    TRY(ops_isinf(&inf, top, s));
    TRY(ops_where(out, inf, top, r, s));
out:
    arr_unref(&top);
    arr_unref(&r);
    arr_unref(&inf);
    return err;
}

enum err ops_logsumexp(struct arr **out, struct arr *a, const struct ops_axes *x, struct strm *s)
{
    struct arr *r = NULL;
    enum err err;

    if (a->size == 0)
        return err_set(ERR_ARG, "[logsumexp] Received empty array.");
    TRY(check_scalar(a, x->axes, "logsumexp"));
    TRY(ops_astype(&r, a, dt_at_least_float(dtype_of(a)), s));
    if (!is_last_axis(a, x->axes)) { /* a difference of unsigned numbers would wrap around */
        err = logsumexp_by_parts(out, r, x, s);
        goto out;
    }
    STEP(r, ops_make_one(&next, OP_LOGSUMEXP, NULL, r, s));
    if (!x->keepdims)
        STEP(r, ops_squeeze(&next, r, x->axes, s));
    arr_move(out, &r);
out:
    arr_unref(&r);
    return err;
}

/* exp(a - max) / sum(exp(a - max)) */
static enum err softmax_by_parts(struct arr **out, struct arr *a, struct ints axes, bool precise,
                                 struct strm *s)
{
    struct ops_axes keep = { axes, true };
    struct arr *x = NULL, *y = NULL;
    bool widen = precise && a->dtype != DT_COMPLEX64;
    enum err err;

    TRY(ops_astype(&x, a, widen ? DT_FLOAT32 : dtype_of(a), s));
    TRY(ops_reduce(&y, REDUCE_MAX, x, &keep, s));
    STEP(y, ops_stop_gradient(&next, y, s));
    STEP(x, ops_binary(&next, OP_SUBTRACT, x, y, s));
    STEP(x, ops_unary(&next, OP_EXP, x, s));
    STEP(y, ops_reduce(&next, REDUCE_SUM, x, &keep, s));
    STEP(x, ops_binary(&next, OP_DIVIDE, x, y, s));
    TRY(ops_astype(out, x, dtype_of(a), s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

enum err ops_softmax(struct arr **out, struct arr *a, struct ints axes, bool precise,
                     struct strm *s)
{
    struct softmax_params p = { precise };
    struct arr *x = NULL;
    enum err err;

    if (a->size == 0)
        return ops_same(out, a);
    TRY(check_scalar(a, axes, "softmax"));
    if (!is_last_axis(a, axes))
        return softmax_by_parts(out, a, axes, precise, s);
    TRY(ops_astype(&x, a, dt_at_least_float(dtype_of(a)), s));
    TRY(ops_make_one(out, OP_SOFTMAX, &p, x, s));
out:
    arr_unref(&x);
    return err;
}
