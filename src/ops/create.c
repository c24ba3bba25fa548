#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

enum err ops_full(struct arr **out, struct ints shape, struct arr *vals, enum dtype t,
                  struct strm *s)
{
    struct arr *x = NULL;
    struct shp to;
    enum err err;

    TRY(shp_make(&to, shape.v, shape.n, "full"));
    TRY(ops_astype(&x, vals, t, s));
    STEP(x, ops_broadcast_to(&next, x, shp_ints(&to), s));
    TRY(ops_make_one(out, OP_FULL, NULL, x, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_full_like(struct arr **out, struct arr *a, struct arr *vals, enum dtype t,
                       struct strm *s)
{
    struct ops_stretch to = { .with = { &a, 1 } };
    struct arr *x = NULL;
    enum err err;

    TRY(ops_common_shape(&to.shape, (struct arrs){ (struct arr *[]){ a, vals }, 2 }));
    TRY(ops_astype(&x, vals, t, s));
    STEP(x, ops_stretch_with(&next, x, &to, s));
    TRY(ops_make_one(out, OP_FULL, NULL, x, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_fill(struct arr **out, struct ints shape, double value, enum dtype t, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, value, t));
    TRY(ops_full(out, shape, v, t, s));
out:
    arr_unref(&v);
    return err;
}

enum err ops_fill_like(struct arr **out, struct arr *a, double value, enum dtype t, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, value, t));
    TRY(ops_full_like(out, a, v, t, s));
out:
    arr_unref(&v);
    return err;
}

/* One element in one dimension. */
static enum err one_element(struct arr **out, double value, enum dtype t, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(arr_new_number(&x, value, t));
    TRY(ops_reshape(out, x, (struct ints){ (int32_t[]){ 1 }, 1 }, s));
out:
    arr_unref(&x);
    return err;
}

enum err op_infer_arange(struct infer_call *c)
{
    const struct arange_params *r = c->params;
    double size = ceil((r->stop - r->start) / r->step);

    if (r->dtype == DT_BOOL)
        return err_set(ERR_ARG, "[arange] bool not supported for arange.");
    if (isnan(r->step) || !isfinite(r->start) || !isfinite(r->stop))
        return err_set(ERR_ARG, "[arange] Cannot compute length.");
    if (r->step == 0)
        return err_set(ERR_ARG, "[arange] step must be nonzero.");
    if (size > INT32_MAX)
        return err_set(ERR_ARG, "[arange] Maximum size exceeded.");
    c->out[0].dtype = (enum dtype)r->dtype;
    c->out[0].shape.ndim = 1;
    c->out[0].shape.d[0] = size > 0 ? (int32_t)size : 0;
    return ERR_OK;
}

enum err ops_arange(struct arr **out, const struct arange_params *r, enum dtype t, struct strm *s)
{
    struct arange_params p = { r->start, r->stop, r->step, (int32_t)t };
    bool reaches = r->step > 0 ? r->start < r->stop : r->start > r->stop;

    if (t != DT_BOOL && isfinite(r->start) && isfinite(r->stop) && isinf(r->step) && reaches)
        return one_element(out, r->start, t, s);
    return ops_make(out, OP_ARANGE, &p, (struct arrs){ NULL, 0 }, s);
}

/* 0, 1, ..., n - 1 shifted by first. */
static enum err count_from(struct arr **out, double first, int n, enum dtype t, struct strm *s)
{
    return ops_arange(out, &(struct arange_params){ first, first + n, 1 }, t, s);
}

/* out = x * factor, both of the same dtype. */
static enum err times(struct arr **out, struct arr *x, double factor, struct strm *s)
{
    struct arr *f = NULL;
    enum err err;

    TRY(arr_new_number(&f, factor, dtype_of(x)));
    TRY(ops_binary(out, OP_MULTIPLY, x, f, s));
out:
    arr_unref(&f);
    return err;
}

enum err ops_linspace(struct arr **out, const struct ops_linspace *l, enum dtype t, struct strm *s)
{
    enum dtype inner = t == DT_FLOAT64 ? DT_FLOAT64 : DT_FLOAT32;
    struct arr *x = NULL, *y = NULL, *c = NULL;
    enum err err;

    if (l->num < 0)
        return err_set(ERR_ARG, "[linspace] number of samples, %d, must be non-negative.", l->num);
    if (l->num == 1) /* bounds are float32 unless float64 is asked for */
        return one_element(out, t == DT_FLOAT64 ? l->start : (float)l->start, t, s);
    /* (1 - x) * start + x * stop with x from 0 to 1 */
    TRY(count_from(&x, 0, l->num, inner, s));
    TRY(arr_new_number(&c, l->is_open ? l->num : l->num - 1, inner));
    STEP(x, ops_binary(&next, OP_DIVIDE, x, c, s));
    STEP(c, arr_new_number(&next, 1, inner));
    TRY(ops_binary(&y, OP_SUBTRACT, c, x, s));
    STEP(y, times(&next, y, l->start, s));
    STEP(x, times(&next, x, l->stop, s));
    STEP(x, ops_binary(&next, OP_ADD, y, x, s));
    TRY(ops_astype(out, x, t, s));
out:
    arr_unref(&x);
    arr_unref(&y);
    arr_unref(&c);
    return err;
}

/* Compares the row number with the column number less k. */
static enum err diagonal_test(struct arr **out, enum op_id op, const struct ops_diagonal *d,
                              enum dtype t, struct strm *s)
{
    struct arr *row = NULL, *col = NULL, *x = NULL;
    /* Diagonals outside of the matrix are all alike. */
    int64_t k = MAX(MIN((int64_t)d->k, d->m), -(int64_t)d->n);
    enum err err;

    TRY(count_from(&row, 0, d->n, DT_INT32, s));
    STEP(row, ops_expand_dims(&next, row, (struct ints){ (int32_t[]){ 1 }, 1 }, s));
    TRY(count_from(&col, (double)-k, d->m, DT_INT32, s));
    STEP(col, ops_expand_dims(&next, col, (struct ints){ (int32_t[]){ 0 }, 1 }, s));
    TRY(ops_binary(&x, op, row, col, s));
    TRY(ops_astype(out, x, t, s));
out:
    arr_unref(&row);
    arr_unref(&col);
    arr_unref(&x);
    return err;
}

enum err ops_eye(struct arr **out, const struct ops_diagonal *d, enum dtype t, struct strm *s)
{
    if (d->n < 0 || d->m < 0)
        return err_set(ERR_ARG, "[eye] N and M must be positive integers.");
    return diagonal_test(out, OP_EQUAL, d, t, s);
}

enum err ops_tri(struct arr **out, const struct ops_diagonal *d, enum dtype t, struct strm *s)
{
    return diagonal_test(out, OP_GREATER_EQUAL, d, t, s);
}

/* The part of a on and below diagonal k, or the rest. */
static enum err triangle(struct arr **out, struct arr *a, int k, bool lower, struct strm *s)
{
    struct arr *mask = NULL, *zero = NULL;
    enum err err;

    if (a->ndim < 2)
        return err_set(ERR_ARG, "[%s] array must be at least 2-D", lower ? "tril" : "triu");
    struct ops_diagonal d = { a->shape[a->ndim - 2], a->shape[a->ndim - 1], k };
    TRY(ops_tri(&mask, &d, DT_BOOL, s));
    TRY(arr_new_number(&zero, 0, dtype_of(a)));
    TRY(lower ? ops_where(out, mask, a, zero, s) : ops_where(out, mask, zero, a, s));
out:
    arr_unref(&mask);
    arr_unref(&zero);
    return err;
}

enum err ops_tril(struct arr **out, struct arr *a, int k, struct strm *s)
{
    return triangle(out, a, k, true, s);
}

enum err ops_triu(struct arr **out, struct arr *a, int k, struct strm *s)
{
    return triangle(out, a, k == INT32_MIN ? k : k - 1, false, s);
}
