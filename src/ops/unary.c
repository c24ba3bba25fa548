#include <math.h>

#include "ops/build.h"
#include "ops/dtype_rules.h"
#include "ops/rules.h"

/* ---- dtypes ---- */

static const struct {
    const char *name;
    unsigned flags;
} rules[OP_COUNT] = {
#define UNARY_OP(id, name, word, rule, ...) [OP_##id] = { #word, rule },
#include "ops/ops.def"
};

/* What an operand of type t is cast to. */
static enum dtype operand_dtype(enum op_id op, enum dtype t)
{
    unsigned flags = rules[op].flags;

    return flags & TO_BOOL ? DT_BOOL : flags & TO_FLOAT ? dt_at_least_float(t) : t;
}

enum err op_infer_unary(struct infer_call *c)
{
    unsigned flags = rules[c->op].flags;
    enum dtype t = dtype_of(c->in[0]);

    FITS(operand_dtype(c->op, t) == t);
    FITS(!(flags & NO_COMPLEX) || t != DT_COMPLEX64);
    FITS(!(flags & NO_BOOL) || t != DT_BOOL);
    FITS(!(flags & BITS) || !dt_is_inexact(t));
    FITS(!(flags & PART) || t == DT_COMPLEX64);
    infer_like(c, c->in[0]);
    if (flags & PART)
        c->out[0].dtype = DT_FLOAT32;
    return ERR_OK;
}

static enum err check_dtype(enum op_id op, enum dtype t)
{
    unsigned flags = rules[op].flags;

    if ((flags & NO_BOOL) && t == DT_BOOL)
        return err_set(ERR_ARG, "[%s] Not supported for bool, use logical_not instead.",
                       rules[op].name);
    if ((flags & BITS) && dt_is_inexact(t))
        return err_set(ERR_ARG, "[%s] Bitwise inverse only allowed on integer types.",
                       rules[op].name);
    if ((flags & NO_COMPLEX) && t == DT_COMPLEX64)
        return err_set(ERR_ARG, "[%s] Not supported for complex64.", rules[op].name);
    return ERR_OK;
}

/* ---- constructors ---- */

/* Ops that are another one, or none, for some dtypes. *done: *out is final. */
static enum err special(struct arr **out, bool *done, enum op_id op, struct arr *a, struct strm *s)
{
    *done = true;
    if (op == OP_BITWISE_INVERT && a->dtype == DT_BOOL)
        return ops_unary(out, OP_LOGICAL_NOT, a, s);
    if (op == OP_IMAG && a->dtype != DT_COMPLEX64)
        return ops_fill_like(out, a, 0, dtype_of(a), s);
    if ((op == OP_CONJUGATE || op == OP_REAL) && a->dtype != DT_COMPLEX64)
        return ops_same(out, a);
    *done = false;
    return ERR_OK;
}

enum err ops_unary(struct arr **out, enum op_id op, struct arr *a, struct strm *s)
{
    struct arr *x = NULL;
    bool done;
    enum err err;

    TRY(special(out, &done, op, a, s));
    if (done)
        goto out;
    TRY(check_dtype(op, dtype_of(a)));
    TRY(ops_astype(&x, a, operand_dtype(op, dtype_of(a)), s));
    STEP(x, ops_make_one(&next, op, NULL, x, s));
    if (op == OP_ABS && x->dtype == DT_COMPLEX64)
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
    return ops_make_one(out, OP_ASTYPE, &(struct dtype_params){ (int32_t)t }, a, s);
}

/* ---- 8-bit floats ---- */

enum err op_infer_to_fp8(struct infer_call *c)
{
    FITS(dt_is_float(dtype_of(c->in[0])));
    infer_like(c, c->in[0]);
    c->out[0].dtype = DT_UINT8;
    return ERR_OK;
}

enum err op_infer_from_fp8(struct infer_call *c)
{
    const struct dtype_params *p = c->params;

    FITS(c->in[0]->dtype == DT_UINT8 && dt_is_float((enum dtype)p->dtype));
    FITS(p->dtype != DT_FLOAT64);
    infer_like(c, c->in[0]);
    c->out[0].dtype = (enum dtype)p->dtype;
    return ERR_OK;
}

enum err ops_to_fp8(struct arr **out, struct arr *a, struct strm *s)
{
    if (!dt_is_float(dtype_of(a)))
        return err_set(ERR_ARG,
                       "[to_fp8] Only real floating types are supported but x.dtype() == %s.",
                       dt_name(dtype_of(a)));
    return ops_make_one(out, OP_TO_FP8, NULL, a, s);
}

/* float64 comes from float32, which holds every 8-bit float. */
enum err ops_from_fp8(struct arr **out, struct arr *a, enum dtype t, struct strm *s)
{
    struct dtype_params p = { (int32_t)(t == DT_FLOAT64 ? DT_FLOAT32 : t) };
    struct arr *x = NULL;
    enum err err;

    if (a->dtype != DT_UINT8)
        return err_set(ERR_ARG, "[from_fp8] Input must have type uint8 but x.dtype() == %s.",
                       dt_name(dtype_of(a)));
    if (!dt_is_float(t))
        return err_set(ERR_ARG,
                       "[from_fp8] Only real floating types are supported but dtype == %s.",
                       dt_name(t));
    TRY(ops_make_one(&x, OP_FROM_FP8, &p, a, s));
    TRY(ops_astype(out, x, t, s));
out:
    arr_unref(&x);
    return err;
}

/* ---- multiples ---- */

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
