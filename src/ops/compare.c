/* Tests for special values and for equality. */
#include <math.h>

#include "ops/build.h"

static enum err constant_like(struct arr **out, struct arr *a, bool value, struct strm *s)
{
    return ops_fill_like(out, a, value, DT_BOOL, s);
}

enum err ops_isnan(struct arr **out, struct arr *a, struct strm *s)
{
    if (!dt_is_inexact(dtype_of(a)))
        return constant_like(out, a, false, s);
    return ops_binary(out, OP_NOT_EQUAL, a, a, s);
}

static enum err equals_number(struct arr **out, struct arr *a, double value, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    if (!dt_is_inexact(dtype_of(a)))
        return constant_like(out, a, false, s);
    TRY(arr_new_number(&v, value, dtype_of(a)));
    TRY(ops_binary(out, OP_EQUAL, a, v, s));
out:
    arr_unref(&v);
    return err;
}

enum err ops_isposinf(struct arr **out, struct arr *a, struct strm *s)
{
    return equals_number(out, a, INFINITY, s);
}

enum err ops_isneginf(struct arr **out, struct arr *a, struct strm *s)
{
    return equals_number(out, a, -INFINITY, s);
}

typedef enum err (*test_fn)(struct arr **out, struct arr *a, struct strm *s);

/* test[0](ab[0]) op test[1](ab[1]) */
static enum err combine(struct arr **out, enum op_id op, struct arr *const ab[2],
                        const test_fn test[2], struct strm *s)
{
    struct arr *x = NULL, *y = NULL;
    enum err err;

    TRY(test[0](&x, ab[0], s));
    TRY(test[1](&y, ab[1], s));
    TRY(ops_binary(out, op, x, y, s));
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

static enum err infinite(struct arr **out, struct arr *a, struct strm *s)
{
    return combine(out, OP_LOGICAL_OR, (struct arr *[]){ a, a },
                   (test_fn[]){ ops_isposinf, ops_isneginf }, s);
}

enum err ops_isinf(struct arr **out, struct arr *a, struct strm *s)
{
    struct arr *re = NULL, *im = NULL;
    enum err err;

    if (!dt_is_inexact(dtype_of(a)))
        return constant_like(out, a, false, s);
    if (a->dtype != DT_COMPLEX64)
        return infinite(out, a, s);
    TRY(ops_unary(&re, OP_REAL, a, s));
    TRY(ops_unary(&im, OP_IMAG, a, s));
    TRY(combine(out, OP_LOGICAL_OR, (struct arr *[]){ re, im }, (test_fn[]){ ops_isinf, ops_isinf },
                s));
out:
    arr_unref(&re);
    arr_unref(&im);
    return err;
}

enum err ops_isfinite(struct arr **out, struct arr *a, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    if (!dt_is_inexact(dtype_of(a)))
        return constant_like(out, a, true, s);
    TRY(combine(&x, OP_LOGICAL_OR, (struct arr *[]){ a, a }, (test_fn[]){ ops_isinf, ops_isnan },
                s));
    TRY(ops_unary(out, OP_LOGICAL_NOT, x, s));
out:
    arr_unref(&x);
    return err;
}

/* |a - b| <= atol + rtol * |b| */
static enum err within(struct arr **out, struct arr *a, struct arr *b, const struct ops_close *c,
                       struct strm *s)
{
    struct arr *lhs = NULL, *rhs = NULL, *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, c->rtol, DT_FLOAT32));
    TRY(ops_unary(&rhs, OP_ABS, b, s));
    STEP(rhs, ops_binary(&next, OP_MULTIPLY, v, rhs, s));
    STEP(v, arr_new_number(&next, c->atol, DT_FLOAT32));
    STEP(rhs, ops_binary(&next, OP_ADD, v, rhs, s));
    TRY(ops_binary(&lhs, OP_SUBTRACT, a, b, s));
    STEP(lhs, ops_unary(&next, OP_ABS, lhs, s));
    TRY(ops_binary(out, OP_LESS_EQUAL, lhs, rhs, s));
out:
    arr_unref(&lhs);
    arr_unref(&rhs);
    arr_unref(&v);
    return err;
}

/* Where one of them is infinite, close means the same infinity. */
static enum err correct_infinities(struct arr **x, struct arr *const ab[2], struct strm *s)
{
    struct arr *any = NULL, *pos = NULL, *neg = NULL;
    enum err err;

    TRY(combine(&any, OP_LOGICAL_OR, ab, (test_fn[]){ infinite, infinite }, s));
    STEP(any, ops_unary(&next, OP_LOGICAL_NOT, any, s));
    STEP(*x, ops_binary(&next, OP_LOGICAL_AND, *x, any, s));
    TRY(combine(&pos, OP_LOGICAL_AND, ab, (test_fn[]){ ops_isposinf, ops_isposinf }, s));
    TRY(combine(&neg, OP_LOGICAL_AND, ab, (test_fn[]){ ops_isneginf, ops_isneginf }, s));
    STEP(pos, ops_binary(&next, OP_LOGICAL_OR, pos, neg, s));
    STEP(*x, ops_binary(&next, OP_LOGICAL_OR, *x, pos, s));
out:
    arr_unref(&any);
    arr_unref(&pos);
    arr_unref(&neg);
    return err;
}

enum err ops_isclose(struct arr **out, struct arr *a, struct arr *b, const struct ops_close *c,
                     struct strm *s)
{
    struct arr *const ab[2] = { a, b };
    struct arr *x = NULL, *nan = NULL;
    enum err err;

    TRY(within(&x, a, b, c, s));
    TRY(correct_infinities(&x, ab, s));
    if (c->equal_nan) {
        TRY(combine(&nan, OP_LOGICAL_AND, ab, (test_fn[]){ ops_isnan, ops_isnan }, s));
        STEP(x, ops_binary(&next, OP_LOGICAL_OR, x, nan, s));
    }
    arr_move(out, &x);
out:
    arr_unref(&x);
    arr_unref(&nan);
    return err;
}

static enum err all_of(struct arr **out, struct arr *a, struct strm *s)
{
    return ops_reduce(out, REDUCE_AND, a, &(struct ops_axes){ INTS_ALL, false }, s);
}

enum err ops_allclose(struct arr **out, struct arr *a, struct arr *b, const struct ops_close *c,
                      struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_isclose(&x, a, b, c, s));
    TRY(all_of(out, x, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_array_equal(struct arr **out, struct arr *a, struct arr *b, bool equal_nan,
                         struct strm *s)
{
    bool nan = equal_nan && dt_is_inexact(dt_promote(dtype_of(a), dtype_of(b)));
    struct arr *x = NULL;
    enum err err;

    if (!arr_same_shape(a, b))
        return arr_new_number(out, 0, DT_BOOL);
    TRY(ops_binary(&x, nan ? OP_NAN_EQUAL : OP_EQUAL, a, b, s));
    TRY(all_of(out, x, s));
out:
    arr_unref(&x);
    return err;
}
