/* Gradients of elementwise ops: the expressions of derivatives.def as graphs. */
#include <math.h>

#include "ops/build.h"
#include "ops/rules.h"

/* ---- expressions ---- */

/* An expression is steps on a stack of arrays: a leaf is pushed, an op takes its operands and
 * leaves its result. OP_NONE ends it. */
enum leaf {
    A = OP_COUNT,
    B,
    Y,
    T,
    I, /* the imaginary unit; numbers follow */
#define NUMBER(name, value) name,
#include "ops/derivatives.def"
};

static const double numbers[] = {
#define NUMBER(name, value) [name - I] = (value),
#include "ops/derivatives.def"
};

#define ADD(x, y) x, y, OP_ADD
#define CONJ(x) x, OP_CONJUGATE
#define COS(x) x, OP_COS
#define COSH(x) x, OP_COSH
#define DIV(x, y) x, y, OP_DIVIDE
#define EXP(x) x, OP_EXP
#define FLOOR(x) x, OP_FLOOR
#define GREATER(x, y) x, y, OP_GREATER
#define GREATER_EQUAL(x, y) x, y, OP_GREATER_EQUAL
#define IMAG(x) x, OP_IMAG
#define LESS(x, y) x, y, OP_LESS
#define LESS_EQUAL(x, y) x, y, OP_LESS_EQUAL
#define LOG(x) x, OP_LOG
#define MUL(x, y) x, y, OP_MULTIPLY
#define NEG(x) x, OP_NEGATIVE
#define POWER(x, y) x, y, OP_POWER
#define REAL(x) x, OP_REAL
#define RSQRT(x) x, OP_RSQRT
#define SIGN(x) x, OP_SIGN
#define SIN(x) x, OP_SIN
#define SINH(x) x, OP_SINH
#define SQUARE(x) x, OP_SQUARE
#define SUB(x, y) x, y, OP_SUBTRACT
#define WHERE(x, y, z) x, y, z, OP_SELECT

#define OPERANDS 3
static const uint16_t *const partials[OP_COUNT][OPERANDS] = {
#define PARTIAL(id, operand, ...) [OP_##id][operand] = (const uint16_t[]){ __VA_ARGS__, OP_NONE },
#include "ops/derivatives.def"
};

static const uint16_t *const adjoints[OP_COUNT] = {
#define ADJOINT(id, ...) [OP_##id] = (const uint16_t[]){ __VA_ARGS__, OP_NONE },
#include "ops/derivatives.def"
};

/* ---- their values ---- */

/* No expression needs more at once. */
#define STACK_MAX 6

/* What the leaves stand for. */
struct point {
    const struct op_apply *f;
    struct arr *y, *t;
    bool is_conjugate;
    enum dtype dtype; /* of numbers and of the value */
};

static enum err leaf(struct arr **out, int id, const struct point *at)
{
    struct arr *x = id == Y ? at->y : at->f->in[id == B];

    if (id == T)
        return ops_same(out, at->t);
    if (id == I)
        return arr_new_scalar(out, (float[]){ 0, 1 }, DT_COMPLEX64);
    if (id > I)
        return arr_new_number(out, numbers[id - I], at->dtype);
    return at->is_conjugate ? ops_unary(out, OP_CONJUGATE, x, at->f->strm) : ops_same(out, x);
}

static enum err operation(struct arr **out, enum op_id op, struct arr *const *in, struct strm *s)
{
    switch (op_table[op].least_in) {
    case 1:
        return ops_unary(out, op, in[0], s);
    case 2:
        return ops_binary(out, op, in[0], in[1], s);
    default:
        return ops_where(out, in[0], in[1], in[2], s);
    }
}

static enum err value(struct arr **out, const uint16_t *steps, const struct point *at)
{
    struct arr *stack[STACK_MAX] = { NULL }, *x = NULL;
    int n = 0;
    enum err err;

    for (; *steps; steps++) {
        if (*steps >= OP_COUNT) {
            TRY(leaf(&stack[n++], *steps, at));
            continue;
        }
        int taken = op_table[*steps].least_in;
        n -= taken;
        TRY(operation(&x, (enum op_id) * steps, stack + n, at->f->strm));
        arr_unref_all(stack + n, (size_t)taken);
        arr_move(&stack[n++], &x);
    }
    err = ops_astype(out, stack[0], at->dtype, at->f->strm);
out:
    arr_unref_all(stack, STACK_MAX);
    return err;
}

/* ---- rules ---- */

enum err op_vjp_elementwise(struct vjp_call *c)
{
    const uint16_t *adjoint = adjoints[c->f.op];
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        const uint16_t *steps = adjoint ? adjoint : partials[c->f.op][i];
        struct point at = { &c->f, c->out[0], c->cotan[0], !adjoint, dtype_of(c->f.in[i]) };
        if (steps)
            TRY(value(&c->result[done], steps, &at));
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_elementwise(struct jvp_call *c)
{
    struct arr *part[2] = { NULL, NULL };
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->f.n_in; i++) {
        const uint16_t *steps = partials[c->f.op][i];
        struct point at = { &c->f, c->out[0], c->tan[i], false, dtype_of(c->out[0]) };
        if (!steps || !c->tan[i])
            continue;
        TRY(value(&part[1], steps, &at));
        STEP(part[0], op_sum_of_two(&next, part, c->f.strm));
        arr_unref(&part[1]);
    }
    arr_move(&c->result[0], &part[0]);
out:
    arr_unref_all(part, 2);
    return err;
}
