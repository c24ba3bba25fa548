#include "graph/tracing.h"
#include "ops/build.h"
#include "ops/dtype_rules.h"
#include "ops/rules.h"

/* ---- dtypes ---- */

static const struct {
    const char *name;
    unsigned flags;
} rules[OP_COUNT] = {
#define BINARY_OP(id, name, word, rule, ...) [OP_##id] = { #word, rule },
#include "ops/ops.def"
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

enum err op_infer_binary(struct infer_call *c)
{
    struct arr *const *in = c->in;
    unsigned flags = rules[c->op].flags;
    enum dtype t = dtype_of(in[0]);

    FITS(in[1]->dtype == t && arr_same_shape(in[0], in[1]));
    FITS(!(flags & TO_BOOL) || t == DT_BOOL);
    FITS(!(flags & NO_COMPLEX) || t != DT_COMPLEX64);
    FITS(!(flags & BITS) || !dt_is_inexact(t));
    FITS(!(flags & SHIFT) || t != DT_BOOL);
    infer_like(c, in[0]);
    if (op_table[c->op].flags & OPF_BOOL_OUT)
        c->out[0].dtype = DT_BOOL;
    return ERR_OK;
}

enum err op_infer_divmod(struct infer_call *c)
{
    FITS(c->in[0]->dtype == c->in[1]->dtype && arr_same_shape(c->in[0], c->in[1]));
    if (c->in[0]->dtype == DT_COMPLEX64)
        return err_set(ERR_ARG, "[divmod] Complex type not supported.");
    infer_like(c, c->in[0]);
    c->out[1] = c->out[0];
    c->n_out = 2;
    return ERR_OK;
}

/* ---- constructors ---- */

/* The node over operands that are cast to t. */
static enum err binary_node(struct arr **out, enum op_id op, struct arr *const *src, enum dtype t,
                            struct strm *s)
{
    struct arr *in[2] = { NULL, NULL };
    enum err err;

    if (src[0]->dtype == t && src[1]->dtype == t && arr_same_shape(src[0], src[1]) &&
        !tracing_is_dynamic())
        return ops_make(out, op, NULL, (struct arrs){ src, 2 }, s);
    TRY(ops_align(in, src, t, s));
    TRY(ops_make_of(out, op, NULL, (struct given){ in, 2 }, s));
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
    return binary_node(outs, OP_DIVMOD, (struct arr *[]){ a, b },
                       dt_promote(dtype_of(a), dtype_of(b)), s);
}
