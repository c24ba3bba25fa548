#include <math.h>

#include "ops/build.h"

enum {                 /* how an op treats its operand's dtype */
       TO_FLOAT = 1,   /* integers and bool become float32 */
       TO_BOOL = 2,    /* cast to bool first */
       NO_COMPLEX = 4, /* complex64 is an error */
};

struct rule {
    const char *name;
    unsigned flags;
    /* Ops with a case of their own: called first; *done says that *out is final. */
    enum err (*special)(struct arr **out, bool *done, struct arr *a, struct strm *s);
};

static enum err special_negative(struct arr **out, bool *done, struct arr *a, struct strm *s)
{
    (void)out, (void)done, (void)s;
    if (a->dtype == DT_BOOL)
        return err_set(ERR_ARG, "[negative] Not supported for bool, use logical_not instead.");
    return ERR_OK;
}

static enum err special_invert(struct arr **out, bool *done, struct arr *a, struct strm *s)
{
    if (dt_is_inexact(dtype_of(a)))
        return err_set(ERR_ARG, "[bitwise_invert] Bitwise inverse only allowed on integer types.");
    *done = a->dtype == DT_BOOL;
    return *done ? ops_unary(out, OP_LOGICAL_NOT, a, s) : ERR_OK;
}

/* Conjugate and real part of a real number are the number itself. */
static enum err special_identity(struct arr **out, bool *done, struct arr *a, struct strm *s)
{
    (void)s;
    *done = a->dtype != DT_COMPLEX64;
    return *done ? ops_same(out, a) : ERR_OK;
}

static enum err special_imag(struct arr **out, bool *done, struct arr *a, struct strm *s)
{
    *done = a->dtype != DT_COMPLEX64;
    return *done ? ops_fill_like(out, a, 0, dtype_of(a), s) : ERR_OK;
}

static const struct rule rules[OP_COUNT] = {
    [OP_ABS] = { "abs", 0, NULL },
    [OP_ARCCOS] = { "arccos", TO_FLOAT, NULL },
    [OP_ARCCOSH] = { "arccosh", TO_FLOAT, NULL },
    [OP_ARCSIN] = { "arcsin", TO_FLOAT, NULL },
    [OP_ARCSINH] = { "arcsinh", TO_FLOAT, NULL },
    [OP_ARCTAN] = { "arctan", TO_FLOAT, NULL },
    [OP_ARCTANH] = { "arctanh", TO_FLOAT, NULL },
    [OP_BITWISE_INVERT] = { "bitwise_invert", 0, special_invert },
    [OP_CEIL] = { "ceil", NO_COMPLEX, NULL },
    [OP_CONJUGATE] = { "conjugate", 0, special_identity },
    [OP_COS] = { "cos", TO_FLOAT, NULL },
    [OP_COSH] = { "cosh", TO_FLOAT, NULL },
    [OP_ERF] = { "erf", TO_FLOAT | NO_COMPLEX, NULL },
    [OP_ERFINV] = { "erfinv", TO_FLOAT | NO_COMPLEX, NULL },
    [OP_EXP] = { "exp", TO_FLOAT, NULL },
    [OP_EXPM1] = { "expm1", TO_FLOAT | NO_COMPLEX, NULL },
    [OP_FLOOR] = { "floor", NO_COMPLEX, NULL },
    [OP_IMAG] = { "imag", 0, special_imag },
    [OP_LOG] = { "log", TO_FLOAT, NULL },
    [OP_LOG2] = { "log2", TO_FLOAT, NULL },
    [OP_LOG10] = { "log10", TO_FLOAT, NULL },
    [OP_LOG1P] = { "log1p", TO_FLOAT, NULL },
    [OP_LOGICAL_NOT] = { "logical_not", TO_BOOL, NULL },
    [OP_NEGATIVE] = { "negative", 0, special_negative },
    [OP_REAL] = { "real", 0, special_identity },
    [OP_ROUND] = { "round", 0, NULL },
    [OP_RSQRT] = { "rsqrt", TO_FLOAT, NULL },
    [OP_SIGMOID] = { "sigmoid", TO_FLOAT | NO_COMPLEX, NULL },
    [OP_SIGN] = { "sign", 0, NULL },
    [OP_SIN] = { "sin", TO_FLOAT, NULL },
    [OP_SINH] = { "sinh", TO_FLOAT, NULL },
    [OP_SQRT] = { "sqrt", TO_FLOAT, NULL },
    [OP_SQUARE] = { "square", 0, NULL },
    [OP_TAN] = { "tan", TO_FLOAT, NULL },
    [OP_TANH] = { "tanh", TO_FLOAT, NULL },
};

enum err ops_unary(struct arr **out, enum op_id op, struct arr *a, struct strm *s)
{
    const struct rule *r = &rules[op];
    enum dtype t = dtype_of(a);
    struct arr *x = NULL;
    bool done = false;
    enum err err = ERR_OK;

    if (r->special) {
        TRY(r->special(out, &done, a, s));
        if (done)
            goto out;
    }
    if ((r->flags & NO_COMPLEX) && t == DT_COMPLEX64)
        return err_set(ERR_ARG, "[%s] Not supported for complex64.", r->name);
    if (r->flags & TO_FLOAT)
        t = dt_at_least_float(t);
    if (r->flags & TO_BOOL)
        t = DT_BOOL;
    TRY(ops_astype(&x, a, t, s));
    if (op == OP_REAL || op == OP_IMAG)
        t = DT_FLOAT32;
    STEP(x, ops_node(&next, x, &(struct ops_node){ op, t, NULL, NULL }, s));
    if (op == OP_ABS && t == DT_COMPLEX64)
        STEP(x, ops_astype(&next, x, DT_FLOAT32, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

enum err ops_astype(struct arr **out, struct arr *a, enum dtype t, struct strm *s)
{
    if (a->dtype == t)
        return ops_same(out, a);
    return ops_node(
        out, a, &(struct ops_node){ OP_ASTYPE, t, NULL, &(struct dtype_params){ (int32_t)t } }, s);
}

enum err ops_view(struct arr **out, struct arr *a, enum dtype t, struct strm *s)
{
    size_t from = dt_size(dtype_of(a)), to = dt_size(t);
    struct shp shape;
    enum err err;

    if (a->dtype == t)
        return ops_same(out, a);
    if (a->ndim == 0 && from != to)
        return err_set(ERR_ARG, "[view] Changing the type of a scalar is only allowed for types "
                                "with the same size.");
    arr_shape(&shape, a);
    if (from != to) {
        int32_t *last = &shape.d[shape.ndim - 1];
        int64_t bytes = (int64_t)*last * (int64_t)from;
        if (bytes % (int64_t)to != 0)
            return err_set(ERR_ARG, "[view] When viewing as a larger dtype, the size in bytes of "
                                    "the last axis must be a multiple of the requested type size.");
        TRY(ops_dim(last, bytes / (int64_t)to, "view"));
    }
    struct dtype_params p = { (int32_t)t };
    err = ops_node(out, a, &(struct ops_node){ OP_VIEW, t, &shape, &p }, s);
out:
    return err;
}

/* a times a number, which takes part as at least a float. */
static enum err scaled(struct arr **out, struct arr *a, double factor, struct strm *s)
{
    struct arr *c = NULL;
    enum err err;

    TRY(arr_new_number(&c, factor, dt_at_least_float(dtype_of(a))));
    TRY(ops_binary(out, OP_MULTIPLY, a, c, s));
out:
    arr_unref(&c);
    return err;
}

enum err ops_round(struct arr **out, struct arr *a, int decimals, struct strm *s)
{
    struct arr *x = NULL;
    float scale = (float)pow(10, decimals);
    enum err err;

    if (decimals == 0)
        return ops_unary(out, OP_ROUND, a, s);
    TRY(scaled(&x, a, scale, s));
    STEP(x, ops_unary(&next, OP_ROUND, x, s));
    STEP(x, scaled(&next, x, 1 / scale, s));
    TRY(ops_astype(out, x, dtype_of(a), s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_degrees(struct arr **out, struct arr *a, struct strm *s)
{
    return scaled(out, a, 180.0 / M_PI, s);
}

enum err ops_radians(struct arr **out, struct arr *a, struct strm *s)
{
    return scaled(out, a, M_PI / 180.0, s);
}

enum err ops_reciprocal(struct arr **out, struct arr *a, struct strm *s)
{
    struct arr *one = NULL;
    enum err err;

    TRY(arr_new_number(&one, 1, dt_at_least_float(dtype_of(a))));
    TRY(ops_binary(out, OP_DIVIDE, one, a, s));
out:
    arr_unref(&one);
    return err;
}
