#include "ops/build.h"

enum {                 /* how an op treats its operands' dtypes, after promotion */
       TO_FLOAT = 1,   /* integers and bool become float32 */
       TO_BOOL = 2,    /* operands are cast to bool instead of promoted */
       NO_COMPLEX = 4, /* complex64 is an error */
       BITS = 8,       /* integers and bool only */
       SHIFT = 16,     /* bool is shifted as uint8 */
};

static const struct {
    const char *name;
    unsigned flags;
} rules[OP_COUNT] = {
    [OP_ADD] = { "add", 0 },
    [OP_ARCTAN2] = { "arctan2", TO_FLOAT | NO_COMPLEX },
    [OP_BITWISE_AND] = { "bitwise_and", BITS },
    [OP_BITWISE_OR] = { "bitwise_or", BITS },
    [OP_BITWISE_XOR] = { "bitwise_xor", BITS },
    [OP_LEFT_SHIFT] = { "left_shift", BITS | SHIFT },
    [OP_RIGHT_SHIFT] = { "right_shift", BITS | SHIFT },
    [OP_DIVIDE] = { "divide", TO_FLOAT },
    [OP_EQUAL] = { "equal", 0 },
    [OP_NAN_EQUAL] = { "equal", 0 },
    [OP_NOT_EQUAL] = { "not_equal", 0 },
    [OP_GREATER] = { "greater", 0 },
    [OP_GREATER_EQUAL] = { "greater_equal", 0 },
    [OP_LESS] = { "less", 0 },
    [OP_LESS_EQUAL] = { "less_equal", 0 },
    [OP_LOGICAL_AND] = { "logical_and", TO_BOOL },
    [OP_LOGICAL_OR] = { "logical_or", TO_BOOL },
    [OP_LOG_ADD_EXP] = { "logaddexp", TO_FLOAT },
    [OP_MAXIMUM] = { "maximum", 0 },
    [OP_MINIMUM] = { "minimum", 0 },
    [OP_MULTIPLY] = { "multiply", 0 },
    [OP_POWER] = { "power", 0 },
    [OP_REMAINDER] = { "remainder", NO_COMPLEX },
    [OP_SUBTRACT] = { "subtract", 0 },
};

static enum err operand_dtype(enum dtype *out, enum op_id op, const struct arr *a,
                              const struct arr *b)
{
    unsigned flags = rules[op].flags;
    enum dtype t = a->dtype == b->dtype ? dtype_of(a) : dt_promote(dtype_of(a), dtype_of(b));

    if ((flags & NO_COMPLEX) && t == DT_COMPLEX64)
        return err_set(ERR_ARG, "[%s] Not supported for complex64.", rules[op].name);
    if ((flags & BITS) && dt_is_inexact(t))
        return err_set(ERR_RUNTIME,
                       "[%s] Only allowed on integer or boolean types but got types %s and %s.",
                       rules[op].name, dt_name(dtype_of(a)), dt_name(dtype_of(b)));
    if (flags & TO_FLOAT)
        t = dt_at_least_float(t);
    if (flags & TO_BOOL)
        t = DT_BOOL;
    if ((flags & SHIFT) && t == DT_BOOL)
        t = DT_UINT8;
    *out = t;
    return ERR_OK;
}

/* The node over operands that are cast to t. */
static enum err binary_node(struct arr **out, enum op_id op, struct arr *const *src, enum dtype t,
                            struct strm *s)
{
    struct arr *in[2] = { NULL, NULL };
    struct out_desc d;
    enum err err;

    d.dtype = op_table[op].flags & OPF_BOOL_OUT ? DT_BOOL : t;
    if (src[0]->dtype == t && src[1]->dtype == t && arr_same_shape(src[0], src[1])) {
        arr_shape(&d.shape, src[0]);
        return arr_new_op(out, .op = (uint16_t)op, .strm = s, .in = src, .n_in = 2, .out = &d);
    }
    TRY(ops_align(in, src, t, &d.shape, s));
    TRY(arr_new_op(out, .op = (uint16_t)op, .strm = s, .given = in, .n_in = 2, .out = &d));
out:
    arr_unref_all(in, 2);
    return err;
}

enum err ops_binary(struct arr **out, enum op_id op, struct arr *a, struct arr *b, struct strm *s)
{
    enum dtype t = DT_BOOL;
    enum err err = operand_dtype(&t, op, a, b);

    return err ? err : binary_node(out, op, (struct arr *[]){ a, b }, t, s);
}

enum err ops_floor_divide(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct arr *q = NULL;
    enum err err;

    /* Of integers Divide rounds downwards itself; complex quotients are left as they are. */
    if (!dt_is_float(t))
        return binary_node(out, OP_DIVIDE, (struct arr *[]){ a, b }, t, s);
    TRY(ops_binary(&q, OP_DIVIDE, a, b, s));
    TRY(ops_unary(out, OP_FLOOR, q, s));
out:
    arr_unref(&q);
    return err;
}

enum err ops_divmod(struct arr *outs[2], struct arr *a, struct arr *b, struct strm *s)
{
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    struct arr *in[2] = { NULL, NULL };
    struct out_desc d[2];
    enum err err;

    if (t == DT_COMPLEX64)
        return err_set(ERR_ARG, "[divmod] Complex type not supported.");
    TRY(ops_align(in, (struct arr *[]){ a, b }, t, &d[0].shape, s));
    d[0].dtype = t;
    d[1] = d[0];
    TRY(node_new(outs,
                 &(struct node_params){
                     .op = OP_DIVMOD, .strm = s, .in = in, .n_in = 2, .out = d, .n_out = 2 }));
out:
    arr_unref_all(in, 2);
    return err;
}
