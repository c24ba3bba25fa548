/* Gradients and batches of every elementwise op, of real and of complex numbers. */
#include <math.h>

#include "support/arrays.h"
#include "support/rules.h"

/* ---- constructors ---- */

/* By the number of operands; what ops.def has of other dtypes is made of them. */
static enum err make(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                     struct strm *s)
{
    if (f->n_in == 1)
        return ops_unary(out, f->op, in[0], s);
    return ops_binary(out, f->op, in[0], in[1], s);
}

static enum err make_select(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                            struct strm *s)
{
    (void)f;
    return ops_where(out, in[0], in[1], in[2], s);
}

static enum err make_divmod(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                            struct strm *s)
{
    (void)f;
    return ops_divmod(out, in[0], in[1], s);
}

static enum err make_real(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                          struct strm *s)
{
    (void)f;
    return ops_astype(out, in[0], DT_FLOAT32, s);
}

static enum err make_complex(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                             struct strm *s)
{
    (void)f;
    return ops_astype(out, in[0], DT_COMPLEX64, s);
}

/* ---- subjects ---- */

#define F DT_FLOAT32
#define C DT_COMPLEX64
#define N DT_INT32
#define O DT_BOOL
#define SHAPE_OF_ALL                                                                               \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            2, 3                                                                                   \
        }                                                                                          \
    }
#define SHAPES SHAPE_OF_ALL, SHAPE_OF_ALL, SHAPE_OF_ALL

#define UNARY_OF(id, type, low_, high_, smooth)                                                    \
    {                                                                                              \
        .name = #id " of " #type, .op = OP_##id, .make = make, .shape = { SHAPES },                \
        .dtype = { type }, .n_in = 1, .grads = 1, .is_curved = true, .is_smooth = (smooth),        \
        .low = (low_), .high = (high_)                                                             \
    }
#define BINARY_OF(id, type, low_, high_, smooth)                                                   \
    {                                                                                              \
        .name = #id " of " #type, .op = OP_##id, .make = make, .shape = { SHAPES },                \
        .dtype = { type, type }, .n_in = 2, .grads = 3, .is_curved = true, .is_smooth = (smooth),  \
        .low = (low_), .high = (high_)                                                             \
    }
#define FLAT(id, type, inputs, outputs, constructor)                                               \
    {                                                                                              \
        .name = #id, .op = OP_##id, .make = constructor, .shape = { SHAPES },                      \
        .dtype = { type, type }, .n_in = inputs, .n_out = outputs, .is_flat = true                 \
    }

/* Within a range where the op is smooth; both parts of complex numbers are in it or, with the other
 * sign, in another quadrant. */
#define REAL(id, low, high) UNARY_OF(id, F, low, high, true)
#define COMPLEX(id) UNARY_OF(id, C, 0.3, 1.2, true), UNARY_OF(id, C, -1.2, -0.3, true)
#define REAL2(id, low, high) BINARY_OF(id, F, low, high, true)
#define COMPLEX2(id) BINARY_OF(id, C, 0.3, 1.2, true), BINARY_OF(id, C, -1.2, -0.3, true)

static const struct rule_subject subjects[] = {
    REAL(ABS, 0.5, 2),
    REAL(ABS, -2, -0.5),
    /* MLX takes the sign of a complex number for constant. */
    UNARY_OF(ABS, C, -1.2, -0.3, false),
    REAL(ARCCOS, -0.7, 0.7),
    COMPLEX(ARCCOS),
    REAL(ARCCOSH, 1.5, 3),
    COMPLEX(ARCCOSH),
    REAL(ARCSIN, -0.7, 0.7),
    COMPLEX(ARCSIN),
    REAL(ARCSINH, -2, 2),
    COMPLEX(ARCSINH),
    REAL(ARCTAN, -2, 2),
    COMPLEX(ARCTAN),
    REAL(ARCTANH, -0.6, 0.6),
    COMPLEX(ARCTANH),
    COMPLEX(CONJUGATE),
    REAL(COS, -3, 3),
    COMPLEX(COS),
    REAL(COSH, -2, 2),
    COMPLEX(COSH),
    REAL(ERF, -1.5, 1.5),
    REAL(ERFINV, -0.6, 0.6),
    REAL(EXP, -2, 1),
    COMPLEX(EXP),
    REAL(EXPM1, -2, 1),
    COMPLEX(IMAG),
    REAL(LOG, 0.5, 3),
    COMPLEX(LOG),
    REAL(LOG2, 0.5, 3),
    COMPLEX(LOG2),
    REAL(LOG10, 0.5, 3),
    COMPLEX(LOG10),
    REAL(LOG1P, -0.5, 2),
    COMPLEX(LOG1P),
    REAL(NEGATIVE, -1, 1),
    COMPLEX(NEGATIVE),
    COMPLEX(REAL),
    REAL(RSQRT, 0.5, 3),
    COMPLEX(RSQRT),
    REAL(SIGMOID, -3, 3),
    REAL(SIN, -3, 3),
    COMPLEX(SIN),
    REAL(SINH, -2, 2),
    COMPLEX(SINH),
    REAL(SQRT, 0.5, 3),
    COMPLEX(SQRT),
    REAL(SQUARE, -2, 2),
    COMPLEX(SQUARE),
    REAL(TAN, -1, 1),
    COMPLEX(TAN),
    REAL(TANH, -2, 2),
    COMPLEX(TANH),

    REAL2(ADD, -1, 1),
    COMPLEX2(ADD),
    REAL2(ARCTAN2, 0.5, 2),
    REAL2(ARCTAN2, -2, -0.5),
    REAL2(DIVIDE, 0.5, 2),
    COMPLEX2(DIVIDE),
    REAL2(LOG_ADD_EXP, -2, 2),
    COMPLEX2(LOG_ADD_EXP),
    /* These have edges: ranges are wide, so that operands are hardly ever near each other. */
    REAL2(MAXIMUM, -100, 100),
    REAL2(MINIMUM, -100, 100),
    REAL2(REMAINDER, 20, 40),
    REAL2(MULTIPLY, -2, 2),
    COMPLEX2(MULTIPLY),
    REAL2(POWER, 0.5, 2),
    COMPLEX2(POWER),
    REAL2(SUBTRACT, -1, 1),
    COMPLEX2(SUBTRACT),

    { "where", OP_SELECT, make_select, { SHAPES }, { O, F, F }, 3, .grads = 6, .is_smooth = true },
    { "complex where", OP_SELECT, make_select, { SHAPES }, { O, C, C }, 3, .grads = 6 },
    { "complex to real", OP_ASTYPE, make_real, { SHAPES }, { C }, 1, .grads = 1 },
    { "real to complex",
      OP_ASTYPE,
      make_complex,
      { SHAPES },
      { F },
      1,
      .grads = 1,
      .is_single = true },

    { "invert", OP_BITWISE_INVERT, make, { SHAPES }, { N }, 1 },
    { "to 8 bits", OP_TO_FP8, make, { SHAPES }, { F }, 1, .no_vjp = true, .no_jvp = true },
    { "from 8 bits",
      OP_FROM_FP8,
      rules_node,
      { SHAPES },
      { DT_UINT8 },
      1,
      .no_vjp = true,
      .no_jvp = true,
      .with = &(const struct dtype_params){ F } },
    FLAT(CEIL, F, 1, 1, make),
    FLAT(FLOOR, F, 1, 1, make),
    FLAT(LOGICAL_NOT, O, 1, 1, make),
    FLAT(ROUND, F, 1, 1, make),
    FLAT(SIGN, C, 1, 1, make),
    FLAT(BITWISE_AND, N, 2, 1, make),
    FLAT(BITWISE_OR, N, 2, 1, make),
    FLAT(BITWISE_XOR, N, 2, 1, make),
    FLAT(LEFT_SHIFT, N, 2, 1, make),
    FLAT(RIGHT_SHIFT, N, 2, 1, make),
    FLAT(EQUAL, N, 2, 1, make),
    FLAT(NAN_EQUAL, N, 2, 1, make),
    FLAT(NOT_EQUAL, N, 2, 1, make),
    FLAT(GREATER, F, 2, 1, make),
    FLAT(GREATER_EQUAL, F, 2, 1, make),
    FLAT(LESS, F, 2, 1, make),
    FLAT(LESS_EQUAL, F, 2, 1, make),
    FLAT(LOGICAL_AND, O, 2, 1, make),
    FLAT(LOGICAL_OR, O, 2, 1, make),
    FLAT(DIVMOD, F, 2, 2, make_divmod),
};

static void test_on_the_cpu(void **state)
{
    (void)state;
    rules_check_cpu(subjects, ARRAY_LEN(subjects));
}

static void test_without_memory(void **state)
{
    (void)state;
    rules_check_memory(subjects, ARRAY_LEN(subjects));
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    rules_check_gpu(subjects, ARRAY_LEN(subjects));
}

static bool has_subject(int op)
{
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
        if (subjects[i].op == (enum op_id)op)
            return true;
    return false;
}

/* A new op is not forgotten. */
static void test_all_are_tested(void **state)
{
    (void)state;
    for (int op = 1; op < OP_COUNT; op++)
        switch (op_table[op].family) {
        case OP_FAMILY_UNARY:
        case OP_FAMILY_BINARY:
        case OP_FAMILY_TERNARY:
        case OP_FAMILY_DIVMOD:
            assert_non_null(op_table[op].vmap);
            if (!has_subject(op))
                fail_msg("%s has no subject", op_name((enum op_id)op));
            break;
        default:
            break;
        }
}

/* ---- at single points ---- */

/* The gradients at numbers of a dtype. */
static void gradients_at(double complex out[2], enum op_id op, const double x[2], enum dtype t)
{
    struct strm *s = test_stream();
    struct arr *in[2] = { NULL }, *y = NULL, *one = NULL, *g[2] = { NULL };
    int n = op_table[op].least_in, wanted[2] = { 0, 1 };

    for (int i = 0; i < n; i++)
        assert_ok(arr_new_number(&in[i], x[i], t));
    assert_ok(n == 1 ? ops_unary(&y, op, in[0], s) : ops_binary(&y, op, in[0], in[1], s));
    assert_ok(arr_new_number(&one, 1, (enum dtype)y->dtype));
    struct vjp_call c = { { .op = op, .in = in, .n_in = (size_t)n, .n_out = 1, .strm = s },
                          &y,
                          &one,
                          wanted,
                          (size_t)n,
                          g };
    assert_ok(op_table[op].vjp(&c));
    for (int i = 0; i < n; i++) {
        assert_int_equal(g[i]->dtype, t);
        double complex *v = arr_values(g[i]);
        out[i] = v[0];
        mem_free(v);
    }
    arr_unref_all(in, 2);
    arr_unref_all(g, 2);
    arr_unref(&y);
    arr_unref(&one);
}

/* Where functions have edges and poles. */
static void test_edges(void **state)
{
    static const struct {
        enum op_id op;
        double x[2], want[2];
    } rows[] = {
        { OP_ABS, { 0 }, { 0 } },
        { OP_MAXIMUM, { 1, 1 }, { 0, 1 } },
        { OP_MINIMUM, { 1, 1 }, { 0, 1 } },
        { OP_POWER, { 0, 0 }, { 0, -INFINITY } },
        { OP_POWER, { 0, 1 }, { 1, 0 } },
        { OP_POWER, { 0, 2 }, { 0, 0 } },
        { OP_POWER, { 2, 0 }, { 0, 0.6931472 } },
        { OP_POWER, { -2, 3 }, { 12, NAN } },
        { OP_LOG_ADD_EXP, { 200, -200 }, { 1, 0 } },
        { OP_LOG_ADD_EXP, { -200, 200 }, { 0, 1 } },
        { OP_TANH, { 100 }, { 0 } },
        { OP_SQRT, { 0 }, { INFINITY } },
        { OP_REMAINDER, { -7, 2 }, { 1, 4 } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        double complex got[2];
        gradients_at(got, rows[i].op, rows[i].x, DT_FLOAT32);
        for (int k = 0; k < op_table[rows[i].op].least_in; k++) {
            double want = rows[i].want[k], g = creal(got[k]);
            if (!(g == want || fabs(g - want) < 1e-6 || (isnan(g) && isnan(want))))
                fail_msg("%s, operand %d of row %zu: %g", op_name(rows[i].op), k, i, g);
        }
    }
}

/* Gradients of half floats are half floats, and what those of single floats are. */
static void test_half_floats(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        const struct rule_subject *f = &subjects[i];
        double x[2] = { 0.75 * f->low + 0.25 * f->high, 0.5 * f->low + 0.5 * f->high };
        double complex want[2], got[2];
        if (f->make != make || f->dtype[0] != F || f->is_flat || f->no_vjp)
            continue;
        gradients_at(want, f->op, x, DT_FLOAT32);
        for (int t = 0; t < 2; t++) {
            gradients_at(got, f->op, x, t ? DT_BFLOAT16 : DT_FLOAT16);
            for (int k = 0; k < f->n_in; k++)
                if (!(cabs(got[k] - want[k]) <= 0.04 * (1 + cabs(want[k]))))
                    fail_msg("%s: %g instead of %g", f->name, creal(got[k]), creal(want[k]));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),     cmocka_unit_test(test_on_the_gpu),
        cmocka_unit_test(test_without_memory), cmocka_unit_test(test_all_are_tested),
        cmocka_unit_test(test_edges),          cmocka_unit_test(test_half_floats),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
