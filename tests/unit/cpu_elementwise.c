/* Elementwise programs on the CPU against the C library in float64, for every op, dtype and layout
 * that the backend has. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/kernels.h"
#include "base/gate.h"
#include "eval/eval.h"
#include "support/arrays.h"

#include <math.h>

typedef double complex (*unary_ref)(double complex);
typedef double complex (*binary_ref)(double complex, double complex);

/* ---- references over the reals ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double sign(double x)
{
    return (x > 0) - (x < 0);
}

static double square(double x)
{
    return x * x;
}

static double negative(double x)
{
    return -x;
}

static double mod(double x, double y)
{
    double r = fmod(x, y);

    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static double divide(double x, double y)
{
    return x / y;
}

static double add(double x, double y)
{
    return x + y;
}

static double subtract(double x, double y)
{
    return x - y;
}

static double multiply(double x, double y)
{
    return x * y;
}

static double maximum(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : fmax(x, y);
}

static double minimum(double x, double y)
{
    return isnan(x) || isnan(y) ? NAN : fmin(x, y);
}

static double logaddexp(double x, double y)
{
    return fmax(x, y) + log1p(exp(-fabs(x - y)));
}

/* By bisection on erfc, which keeps its digits in the tails. */
static double erfinv(double a)
{
    double low = 0, high = 7, b = fabs(a);

    if (!(b < 1))
        return b == 1 ? copysign(INFINITY, a) : NAN;
    if (b < 1e-7)
        return a * 0.88622692545275801; /* sqrt(pi) / 2 */
    for (int i = 0; i < 200; i++) {
        double mid = (low + high) / 2;
        if (1 - b < erfc(mid))
            low = mid;
        else
            high = mid;
    }
    return copysign(low, a);
}

/* Largest distance to the reference in units of the last place of float32. */
static double ulps(float got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : INFINITY;
    if (isinf((float)want) || isinf(got))
        return (float)want == got ? 0 : INFINITY;
    double unit = want == 0 ? 0x1p-149 : ldexp(1, (int)fmax(ilogb(want) - 23, -149));
    return fabs((double)got - want) / unit;
}

/* ---- accuracy of float32 functions ---- */

struct real_case {
    enum op_id op;
    double (*ref)(double);
    double low, high;
    double max_ulps;
};

static const struct real_case real_cases[] = {
    { OP_EXP, exp, -110, 90, 1 },        { OP_EXPM1, expm1, -30, 90, 1 },
    { OP_EXPM1, expm1, -1e-3, 1e-3, 1 }, { OP_SIGMOID, sigmoid, -80, 80, 3 },
    { OP_LOG, log, 1e-3, 30, 1 },        { OP_LOG, log, 1e-44, 1e-37, 1 },
    { OP_LOG2, log2, 1e-3, 30, 1 },      { OP_LOG10, log10, 1e-3, 30, 1 },
    { OP_LOG1P, log1p, -0.99, 30, 1 },   { OP_LOG1P, log1p, -1e-3, 1e-3, 1 },
    { OP_SIN, sin, -200, 200, 1 },       { OP_SIN, sin, -1e8, 1e8, 1 },
    { OP_COS, cos, -200, 200, 1 },       { OP_COS, cos, -1e8, 1e8, 1 },
    { OP_TAN, tan, -10, 10, 1 },         { OP_ARCSIN, asin, -1, 1, 1 },
    { OP_ARCCOS, acos, -1, 1, 1 },       { OP_ARCTAN, atan, -20, 20, 1 },
    { OP_SINH, sinh, -95, 95, 1 },       { OP_COSH, cosh, -95, 95, 1 },
    { OP_TANH, tanh, -12, 12, 1 },       { OP_TANH, tanh, -1e-3, 1e-3, 1 },
    { OP_ARCSINH, asinh, -100, 100, 1 }, { OP_ARCCOSH, acosh, 1, 100, 1 },
    { OP_ARCTANH, atanh, -1, 1, 1 },     { OP_ERF, erf, -5, 5, 1 },
    { OP_ERFINV, erfinv, -1, 1, 1 },     { OP_ERFINV, erfinv, 0.9999, 1, 1 },
    { OP_SQRT, sqrt, 0, 1e6, 0.51 },     { OP_RSQRT, rsqrt, 1e-3, 1e6, 2 },
};

#define POINTS 4000

/* The vector loop of every instruction set, in place too: all give the same bits. */
static void run_sets(float *out, const struct real_case *c, const float *x)
{
    float again[POINTS];

    cpu_kernels()->op[c->op][CPU_F32].fn(out, x, NULL, NULL, POINTS);
    cpu_kernels_base.op[c->op][CPU_F32].fn(again, x, NULL, NULL, POINTS);
    assert_memory_equal(again, out, sizeof again);
    memcpy(again, x, sizeof again);
    cpu_kernels()->op[c->op][CPU_F32].fn(again, again, NULL, NULL, POINTS);
    assert_memory_equal(again, out, sizeof again);
}

static void test_accuracy(void **state)
{
    static float x[POINTS], out[POINTS];
    static const float edges[] = { 0.0f, -0.0f, 1.0f, -1.0f, 1e-40f, -1e-40f, 3.4e38f, -3.4e38f };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(real_cases); k++) {
        const struct real_case *c = &real_cases[k];
        for (int i = 0; i < POINTS; i++)
            x[i] = (float)(c->low + (c->high - c->low) * i / (POINTS - 1));
        memcpy(x, edges, sizeof edges);
        x[8] = INFINITY;
        x[9] = -INFINITY;
        x[10] = NAN;
        run_sets(out, c, x);
        for (int i = 0; i < POINTS; i++) {
            double want = c->ref((double)x[i]), off = ulps(out[i], want);
            if (off > c->max_ulps || (want == 0 && !signbit(want) != !signbit(out[i])))
                fail_msg("%s(%.9g) = %.9g, not %.9g", op_name(c->op), (double)x[i], (double)out[i],
                         want);
        }
    }
}

/* ---- every op, dtype and layout ---- */

#define NO_COMPLEX NULL
static const struct {
    enum op_id op;
    double (*real)(double);
    unary_ref complex_ref;
} unary_rows[] = {
    { OP_ABS, fabs, NO_COMPLEX },    { OP_NEGATIVE, negative, NO_COMPLEX },
    { OP_SIGN, sign, NO_COMPLEX },   { OP_SQUARE, square, NO_COMPLEX },
    { OP_CEIL, ceil, NO_COMPLEX },   { OP_FLOOR, floor, NO_COMPLEX },
    { OP_ROUND, rint, NO_COMPLEX },  { OP_SQRT, sqrt, csqrt },
    { OP_RSQRT, rsqrt, NO_COMPLEX }, { OP_EXP, exp, cexp },
    { OP_EXPM1, expm1, NO_COMPLEX }, { OP_SIGMOID, sigmoid, NO_COMPLEX },
    { OP_LOG, log, clog },           { OP_LOG2, log2, NO_COMPLEX },
    { OP_LOG10, log10, NO_COMPLEX }, { OP_LOG1P, log1p, NO_COMPLEX },
    { OP_SIN, sin, csin },           { OP_COS, cos, ccos },
    { OP_TAN, tan, ctan },           { OP_ARCSIN, asin, casin },
    { OP_ARCCOS, acos, cacos },      { OP_ARCTAN, atan, catan },
    { OP_SINH, sinh, csinh },        { OP_COSH, cosh, ccosh },
    { OP_TANH, tanh, ctanh },        { OP_ARCSINH, asinh, casinh },
    { OP_ARCCOSH, acosh, cacosh },   { OP_ARCTANH, atanh, catanh },
    { OP_ERF, erf, NO_COMPLEX },     { OP_ERFINV, erfinv, NO_COMPLEX },
    { OP_CONJUGATE, NULL, conj },
};

static const struct {
    enum op_id op;
    double (*real)(double, double);
    binary_ref complex_ref;
} binary_rows[] = {
    { OP_ADD, add, NO_COMPLEX },           { OP_SUBTRACT, subtract, NO_COMPLEX },
    { OP_MULTIPLY, multiply, NO_COMPLEX }, { OP_DIVIDE, divide, NO_COMPLEX },
    { OP_MAXIMUM, maximum, NO_COMPLEX },   { OP_MINIMUM, minimum, NO_COMPLEX },
    { OP_REMAINDER, mod, NO_COMPLEX },     { OP_POWER, pow, cpow },
    { OP_ARCTAN2, atan2, NO_COMPLEX },     { OP_LOG_ADD_EXP, logaddexp, NO_COMPLEX },
};

static bool close_parts(double got, double want, double tol)
{
    if (isnan(want) || isinf(want) || isnan(got) || isinf(got))
        return (isnan(want) && isnan(got)) || got == want;
    return fabs(got - want) <= tol * (1 + fabs(want));
}

static bool close_to(double complex got, double complex want, enum dtype t)
{
    double tol = tolerance_of(t);

    if (t == DT_COMPLEX64 && isfinite(creal(want)) && isfinite(cimag(want)))
        return cabs(got - want) <= tol * (1 + cabs(want));
    return close_parts(creal(got), creal(rounded_to(want, t)), tol) &&
           (t != DT_COMPLEX64 || close_parts(cimag(got), cimag(want), tol));
}

/* One node over evaluated inputs; the op's own rules for dtypes are the op layer's business. */
static struct arr *run_op(enum op_id op, enum dtype t, struct arr *const *in, size_t n_in)
{
    struct out_desc d = { .dtype = t };
    struct arr *out = NULL;

    arr_shape(&d.shape, in[0]);
    assert_ok(arr_new_op(&out, .op = (uint16_t)op, .strm = test_stream(), .in = in, .n_in = n_in,
                         .out = &d));
    assert_ok(eval_arrays(&out, 1, false));
    return out;
}

static bool supported(enum op_id op, enum dtype t)
{
    const struct cpu_kernel_row *row = &cpu_kernels()->op[op][cpu_class_of[t]];

    return row->fn && row->result == cpu_class_of[t];
}

static void check_values(struct arr *out, const double complex *want, const char *what)
{
    double complex *got = arr_values(out);

    for (size_t i = 0; i < out->size; i++)
        if (!close_to(got[i], want[i], (enum dtype)out->dtype))
            fail_msg("%s %s: element %zu is %g%+gi, not %g%+gi", what,
                     dt_name((enum dtype)out->dtype), i, creal(got[i]), cimag(got[i]),
                     creal(want[i]), cimag(want[i]));
    mem_free(got);
}

static const struct shp shapes[] = {
    { .ndim = 0 },
    { .ndim = 1, .d = { 1 } },
    { .ndim = 1, .d = { 37 } },
    { .ndim = 2, .d = { 7, 5 } },
    { .ndim = 3, .d = { 3, 4, 5 } },
    { .ndim = 2, .d = { 3, 1500 } },
};

static struct arr *case_input(struct rng *r, const struct shp *s, enum dtype t, enum layout layout)
{
    double complex *v = random_values(r, shp_size(s), t);
    struct arr *a = arr_of_layout(v, s, t, layout);

    mem_free(v);
    return a;
}

static void unary_case(struct rng *r, size_t row, enum dtype t, const struct shp *s,
                       enum layout layout)
{
    struct arr *a = case_input(r, s, t, layout);
    double complex *want = arr_values(a);
    struct arr *out = run_op(unary_rows[row].op, t, &a, 1);

    for (size_t i = 0; i < a->size; i++)
        want[i] = t == DT_COMPLEX64 ? unary_rows[row].complex_ref(want[i])
                                    : unary_rows[row].real(creal(want[i]));
    check_values(out, want, op_name(unary_rows[row].op));
    mem_free(want);
    arr_unref(&out);
    arr_unref(&a);
}

static void test_unary(void **state)
{
    struct rng r = { 1 };

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(unary_rows); row++)
        for (int t = 0; t < DT_COUNT; t++) {
            bool has_ref = t == DT_COMPLEX64 ? unary_rows[row].complex_ref != NULL
                                             : unary_rows[row].real != NULL;
            /* Unsigned and bool arithmetic wraps; its own test below. */
            if (!has_ref || !supported(unary_rows[row].op, (enum dtype)t) || t <= DT_UINT64)
                continue;
            for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
                for (int l = 0; l < LAY_COUNT; l++)
                    unary_case(&r, row, (enum dtype)t, &shapes[s], (enum layout)l);
        }
}

/* What the references do not say: integers divide and take remainders by zero to 0, powers with
 * negative exponents are 0. */
static double complex binary_want(size_t row, double complex x, double complex y, enum dtype t)
{
    enum op_id op = binary_rows[row].op;

    if (t == DT_COMPLEX64)
        return op == OP_ADD        ? x + y
               : op == OP_SUBTRACT ? x - y
               : op == OP_MULTIPLY ? x * y
               : op == OP_DIVIDE   ? x / y
                                   : binary_rows[row].complex_ref(x, y);
    if (!dt_is_inexact(t)) {
        if (op == OP_POWER)
            return creal(y) < 0 ? 0 : rounded_to(pow(creal(x), creal(y)), t);
        if (op == OP_DIVIDE)
            return y == 0 ? 0 : floor(creal(x) / creal(y));
        if (op == OP_REMAINDER && y == 0)
            return 0;
    }
    return binary_rows[row].real(creal(x), creal(y));
}

static bool has_binary_ref(size_t row, enum dtype t)
{
    enum op_id op = binary_rows[row].op;

    return t != DT_COMPLEX64 || binary_rows[row].complex_ref || op == OP_ADD || op == OP_SUBTRACT ||
           op == OP_MULTIPLY;
}

static void binary_case(struct rng *r, size_t row, enum dtype t, const struct shp *s,
                        const enum layout layouts[2])
{
    struct arr *in[2] = { case_input(r, s, t, layouts[0]), case_input(r, s, t, layouts[1]) };
    double complex *x = arr_values(in[0]), *y = arr_values(in[1]);
    struct arr *out = run_op(binary_rows[row].op, t, in, 2);

    for (size_t i = 0; i < out->size; i++)
        x[i] = binary_want(row, x[i], y[i], t);
    check_values(out, x, op_name(binary_rows[row].op));
    mem_free(x);
    mem_free(y);
    arr_unref(&out);
    arr_unref(&in[0]);
    arr_unref(&in[1]);
}

static void test_binary(void **state)
{
    struct rng r = { 2 };

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(binary_rows); row++)
        for (int t = DT_UINT8; t < DT_COUNT; t++) {
            bool wraps = binary_rows[row].op == OP_SUBTRACT && dt_table[t].kind == DT_KIND_U;
            if (wraps || !supported(binary_rows[row].op, (enum dtype)t) ||
                !has_binary_ref(row, (enum dtype)t))
                continue;
            for (size_t s = 0; s < ARRAY_LEN(shapes); s++)
                for (int l = 0; l < LAY_COUNT * LAY_COUNT; l++)
                    binary_case(&r, row, (enum dtype)t, &shapes[s],
                                (enum layout[]){ (enum layout)(l % LAY_COUNT),
                                                 (enum layout)(l / LAY_COUNT) });
        }
}

/* ---- integers, bools, comparisons, casts: exact cases ---- */

struct exact_case {
    enum op_id op;
    enum dtype in, out;
    int n_in;
    double complex x, y, want;
};

static const struct exact_case exact_cases[] = {
    { OP_ADD, DT_UINT8, DT_UINT8, 2, 200, 100, 44 },
    { OP_ADD, DT_INT8, DT_INT8, 2, 100, 100, -56 },
    { OP_SUBTRACT, DT_UINT16, DT_UINT16, 2, 1, 2, 65535 },
    { OP_MULTIPLY, DT_UINT16, DT_UINT16, 2, 65535, 65535, 1 },
    { OP_MULTIPLY, DT_INT32, DT_INT32, 2, 65536, 65536, 0 },
    { OP_NEGATIVE, DT_UINT16, DT_UINT16, 1, 3, 0, 65533 },
    { OP_NEGATIVE, DT_INT32, DT_INT32, 1, -2147483648.0, 0, -2147483648.0 },
    { OP_ABS, DT_INT8, DT_INT8, 1, -128, 0, -128 },
    { OP_ABS, DT_COMPLEX64, DT_COMPLEX64, 1, 3 + 4 * I, 0, 5 },
    { OP_DIVIDE, DT_INT32, DT_INT32, 2, -7, 2, -4 },
    { OP_DIVIDE, DT_INT32, DT_INT32, 2, -2147483648.0, -1, -2147483648.0 },
    { OP_DIVIDE, DT_INT8, DT_INT8, 2, 5, 0, 0 },
    { OP_REMAINDER, DT_INT32, DT_INT32, 2, -7, 2, 1 },
    { OP_REMAINDER, DT_INT64, DT_INT64, 2, 7, -2, -1 },
    { OP_REMAINDER, DT_INT32, DT_INT32, 2, -2147483648.0, -1, 0 },
    { OP_REMAINDER, DT_FLOAT32, DT_FLOAT32, 2, 5.5, INFINITY, 5.5 },
    { OP_REMAINDER, DT_FLOAT32, DT_FLOAT32, 2, 0x1p100, 7, 2 },
    { OP_POWER, DT_INT8, DT_INT8, 2, -2, 7, -128 },
    { OP_POWER, DT_INT32, DT_INT32, 2, 3, -1, 0 },
    { OP_POWER, DT_FLOAT32, DT_FLOAT32, 2, -2, 3, -8 },
    { OP_POWER, DT_FLOAT32, DT_FLOAT32, 2, 0, 0, 1 },
    { OP_ADD, DT_BOOL, DT_BOOL, 2, 1, 1, 1 },
    { OP_SUBTRACT, DT_BOOL, DT_BOOL, 2, 0, 1, 1 },
    { OP_MULTIPLY, DT_BOOL, DT_BOOL, 2, 1, 0, 0 },
    { OP_POWER, DT_BOOL, DT_BOOL, 2, 0, 0, 1 },
    { OP_SIGN, DT_UINT16, DT_UINT16, 1, 3, 0, 1 },
    { OP_SIGN, DT_FLOAT32, DT_FLOAT32, 1, NAN, 0, 0 },
    { OP_BITWISE_INVERT, DT_BOOL, DT_BOOL, 1, 1, 0, 0 },
    { OP_BITWISE_INVERT, DT_INT8, DT_INT8, 1, -3, 0, 2 },
    { OP_BITWISE_AND, DT_UINT8, DT_UINT8, 2, 12, 10, 8 },
    { OP_BITWISE_OR, DT_INT64, DT_INT64, 2, 12, 10, 14 },
    { OP_BITWISE_XOR, DT_UINT32, DT_UINT32, 2, 12, 10, 6 },
    { OP_LEFT_SHIFT, DT_UINT8, DT_UINT8, 2, 1, 7, 128 },
    { OP_LEFT_SHIFT, DT_INT32, DT_INT32, 2, 1, 40, 0 },
    { OP_RIGHT_SHIFT, DT_INT32, DT_INT32, 2, -8, 1, -4 },
    { OP_RIGHT_SHIFT, DT_INT32, DT_INT32, 2, -8, 40, -1 },
    { OP_RIGHT_SHIFT, DT_UINT64, DT_UINT64, 2, 8, 64, 0 },
    { OP_LOGICAL_NOT, DT_FLOAT16, DT_BOOL, 1, 0, 0, 1 },
    { OP_LOGICAL_AND, DT_FLOAT32, DT_BOOL, 2, 0.5, 2, 1 },
    { OP_LOGICAL_OR, DT_BOOL, DT_BOOL, 2, 0, 1, 1 },
    { OP_EQUAL, DT_FLOAT32, DT_BOOL, 2, NAN, NAN, 0 },
    { OP_NAN_EQUAL, DT_FLOAT32, DT_BOOL, 2, NAN, NAN, 1 },
    { OP_NAN_EQUAL, DT_BFLOAT16, DT_BOOL, 2, NAN, 1, 0 },
    { OP_NOT_EQUAL, DT_INT8, DT_BOOL, 2, 1, 2, 1 },
    { OP_LESS, DT_UINT64, DT_BOOL, 2, 1, 2, 1 },
    { OP_LESS_EQUAL, DT_FLOAT16, DT_BOOL, 2, 2, 2, 1 },
    { OP_GREATER, DT_COMPLEX64, DT_BOOL, 2, 1 + 2 * I, 1 + 1 * I, 1 },
    { OP_GREATER_EQUAL, DT_COMPLEX64, DT_BOOL, 2, 1 + 1 * I, 1 + 1 * I, 1 },
    { OP_MAXIMUM, DT_FLOAT32, DT_FLOAT32, 2, NAN, 1, NAN },
    { OP_MAXIMUM, DT_FLOAT32, DT_FLOAT32, 2, 1, NAN, NAN },
    { OP_MINIMUM, DT_FLOAT16, DT_FLOAT16, 2, 1, NAN, NAN },
    { OP_MAXIMUM, DT_COMPLEX64, DT_COMPLEX64, 2, 1 + 2 * I, 1 + 3 * I, 1 + 3 * I },
    { OP_LOG_ADD_EXP, DT_FLOAT32, DT_FLOAT32, 2, -INFINITY, -INFINITY, -INFINITY },
    { OP_LOG_ADD_EXP, DT_FLOAT32, DT_FLOAT32, 2, INFINITY, 1, INFINITY },
    { OP_REAL, DT_COMPLEX64, DT_FLOAT32, 1, 3 + 4 * I, 0, 3 },
    { OP_IMAG, DT_COMPLEX64, DT_FLOAT32, 1, 3 + 4 * I, 0, 4 },
    { OP_ASTYPE, DT_FLOAT32, DT_UINT8, 1, 300.7, 0, 44 },
    { OP_ASTYPE, DT_FLOAT32, DT_UINT8, 1, -1.5, 0, 255 },
    { OP_ASTYPE, DT_FLOAT32, DT_UINT32, 1, 3e9, 0, 3e9 },
    { OP_ASTYPE, DT_FLOAT32, DT_INT64, 1, -3e9, 0, -3e9 },
    { OP_ASTYPE, DT_FLOAT32, DT_BOOL, 1, NAN, 0, 1 },
    { OP_ASTYPE, DT_COMPLEX64, DT_BOOL, 1, 2 * I, 0, 1 },
    { OP_ASTYPE, DT_COMPLEX64, DT_INT32, 1, 7.9 + 2 * I, 0, 7 },
    { OP_ASTYPE, DT_INT64, DT_FLOAT16, 1, 70000, 0, INFINITY },
    { OP_ASTYPE, DT_INT32, DT_BFLOAT16, 1, 257, 0, 256 },
    { OP_ASTYPE, DT_BFLOAT16, DT_FLOAT16, 1, 3.140625, 0, 3.140625 },
    { OP_ASTYPE, DT_FLOAT16, DT_FLOAT64, 1, 0.1, 0, 0.0999755859375 },
    { OP_ASTYPE, DT_FLOAT64, DT_FLOAT32, 1, 0.1, 0, 0.100000001490116 },
};

static void test_exact(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(exact_cases); k++) {
        const struct exact_case *c = &exact_cases[k];
        double complex x[5], y[5], want[5];
        for (int i = 0; i < 5; i++) {
            x[i] = c->x;
            y[i] = c->y;
            want[i] = c->want;
        }
        struct arr *in[2] = { arr_of(x, SHAPE(5), c->in), arr_of(y, SHAPE(5), c->in) };
        struct arr *out = run_op(c->op, c->out, in, (size_t)c->n_in);
        check_values(out, want, op_name(c->op));
        arr_unref(&out);
        arr_unref(&in[0]);
        arr_unref(&in[1]);
    }
}

static void test_casts_between_all(void **state)
{
    struct rng r = { 3 };

    (void)state;
    for (int from = 0; from < DT_COUNT; from++)
        for (int to = 0; to < DT_COUNT; to++)
            for (int l = 0; l < LAY_COUNT; l++) {
                struct arr *a = case_input(&r, SHAPE(5, 7), (enum dtype)from, (enum layout)l);
                double complex *want = arr_values(a);
                struct arr *out = run_op(OP_ASTYPE, (enum dtype)to, &a, 1);
                check_values(out, want, "AsType");
                mem_free(want);
                arr_unref(&out);
                arr_unref(&a);
            }
}

static void test_select(void **state)
{
    struct rng r = { 4 };

    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        for (int l = 0; l < LAY_COUNT; l++) {
            struct arr *in[3] = { case_input(&r, SHAPE(9, 130), DT_BOOL, (enum layout)l),
                                  case_input(&r, SHAPE(9, 130), (enum dtype)t, LAY_DENSE),
                                  case_input(&r, SHAPE(9, 130), (enum dtype)t, (enum layout)l) };
            double complex *c = arr_values(in[0]), *x = arr_values(in[1]), *y = arr_values(in[2]);
            struct arr *out = run_op(OP_SELECT, (enum dtype)t, in, 3);
            for (size_t i = 0; i < out->size; i++)
                x[i] = c[i] != 0 ? x[i] : y[i];
            check_values(out, x, "Select");
            mem_free(c);
            mem_free(x);
            mem_free(y);
            arr_unref(&out);
            for (int i = 0; i < 3; i++)
                arr_unref(&in[i]);
        }
}

static void test_divmod(void **state)
{
    static const enum dtype types[] = { DT_INT32, DT_UINT8, DT_FLOAT32, DT_FLOAT16, DT_FLOAT64 };
    struct rng r = { 5 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++) {
        struct arr *a = case_input(&r, SHAPE(300), types[k], LAY_STEPPED);
        struct arr *b = case_input(&r, SHAPE(300), types[k], LAY_DENSE);
        double complex *x = arr_values(a), *y = arr_values(b);
        struct arr *outs[2];
        assert_ok(ops_divmod(outs, a, b, test_stream()));
        double complex *q = arr_values(outs[0]), *m = arr_values(outs[1]);
        for (size_t i = 0; i < 300; i++) {
            if (y[i] == 0)
                continue;
            assert_true(close_to(q[i], floor(creal(x[i]) / creal(y[i])), types[k]));
            assert_true(close_to(m[i], mod(creal(x[i]), creal(y[i])), types[k]));
        }
        double complex *all[] = { x, y, q, m };
        for (int i = 0; i < 4; i++)
            mem_free(all[i]);
        struct arr *arrays[] = { a, b, outs[0], outs[1] };
        for (int i = 0; i < 4; i++)
            arr_unref(&arrays[i]);
    }
}

/* ---- programs ---- */

static const enum op_id chain_unary[] = { OP_EXP,  OP_SIN,     OP_ABS,   OP_NEGATIVE, OP_SQUARE,
                                          OP_TANH, OP_SIGMOID, OP_FLOOR, OP_SQRT,     OP_ERF };
static const enum op_id chain_binary[] = { OP_ADD, OP_SUBTRACT, OP_MULTIPLY, OP_MAXIMUM,
                                           OP_DIVIDE };

/* The same random graph for the same seed; every fourth node stays an output. */
static size_t random_graph(struct rng *r, struct arr **kept, enum dtype t, const struct shp *s)
{
    struct arr *pool[24];
    size_t n = 0, n_kept = 0;

    for (; n < 4; n++)
        pool[n] = case_input(r, s, t, (enum layout)rng_below(r, LAY_BROADCAST));
    while (n < ARRAY_LEN(pool)) {
        struct arr *x = pool[rng_below(r, (int)n)], *y = pool[rng_below(r, (int)n)];
        if (rng_below(r, 2))
            assert_ok(ops_unary(&pool[n], chain_unary[rng_below(r, ARRAY_LEN(chain_unary))], x,
                                test_stream()));
        else
            assert_ok(ops_binary(&pool[n], chain_binary[rng_below(r, ARRAY_LEN(chain_binary))], x,
                                 y, test_stream()));
        n++;
    }
    for (size_t i = 4; i < n; i++)
        if (i % 4 == 3)
            kept[n_kept++] = arr_ref(pool[i]);
    for (size_t i = 0; i < n; i++)
        arr_unref(&pool[i]);
    assert_ok(eval_arrays(kept, n_kept, false));
    return n_kept;
}

/* Fused and unfused evaluation give the same bits. */
static void test_fusion_keeps_bits(void **state)
{
    static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_FLOAT64 };
    const struct shp *s = SHAPE(3, 701);

    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        enum dtype t = types[seed % ARRAY_LEN(types)];
        struct arr *fused[8], *single[8];
        int64_t gate = gate_set_int(GATE_PLAN_FUSE, 1);
        size_t n = random_graph(&(struct rng){ seed }, fused, t, s);
        gate_set_int(GATE_PLAN_FUSE, 0);
        assert_int_equal(random_graph(&(struct rng){ seed }, single, t, s), n);
        gate_set_int(GATE_PLAN_FUSE, gate);
        for (size_t i = 0; i < n; i++) {
            void *a = arr_bytes(fused[i]), *b = arr_bytes(single[i]);
            assert_memory_equal(a, b, arr_nbytes(fused[i]));
            mem_free(a);
            mem_free(b);
            arr_unref(&fused[i]);
            arr_unref(&single[i]);
        }
    }
}

/* Large enough for several threads and many tiles. */
static void test_large(void **state)
{
    size_t n = 300001;
    struct rng r = { 6 };
    double complex *v = random_values(&r, n, DT_FLOAT32);
    struct arr *a = arr_of(v, SHAPE((int32_t)n), DT_FLOAT32), *b = NULL, *c = NULL;

    (void)state;
    assert_ok(ops_unary(&b, OP_EXP, a, test_stream()));
    assert_ok(ops_binary(&c, OP_ADD, a, b, test_stream()));
    for (size_t i = 0; i < n; i++)
        v[i] += exp(creal(v[i]));
    check_values(c, v, "large");
    mem_free(v);
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
}

static void test_unsupported(void **state)
{
    struct arr *a = arr_of((double complex[]){ 1 }, SHAPE(1), DT_COMPLEX64), *out = NULL;

    (void)state;
    assert_ok(arr_new_op(&out, .op = OP_FLOOR, .strm = test_stream(), .in = &a, .n_in = 1,
                         .out = &(struct out_desc){ *SHAPE(1), DT_COMPLEX64 }));
    assert_fails(ERR_UNSUPPORTED, eval_arrays(&out, 1, false));
    arr_unref(&out);
    arr_unref(&a);
}

/* Half values: the vector loops agree with the scalar definition. */
static void test_half_loops(void **state)
{
    const struct cpu_kernels *sets[] = { cpu_kernels(), &cpu_kernels_base };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sets); k++) {
        for (uint32_t h = 0; h < 65536; h++) {
            uint16_t in = (uint16_t)h;
            float wide;
            sets[k]->load_f16(&wide, &in, 1);
            float want = dt_f16_to_f32(in);
            assert_true(wide == want || (isnan(wide) && isnan(want)));
        }
        for (uint64_t bits = 0; bits < 1ull << 32; bits += 39119) {
            uint32_t low = (uint32_t)bits;
            uint16_t f16, bf16;
            float f;
            memcpy(&f, &low, sizeof f);
            sets[k]->store_f16(&f16, &f, 1);
            sets[k]->store_bf16(&bf16, &f, 1);
            if (!isnan(f))
                assert_int_equal(f16, dt_f32_to_f16(f));
            assert_int_equal(bf16, dt_f32_to_bf16(f));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy),
        cmocka_unit_test(test_half_loops),
        cmocka_unit_test(test_unary),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_casts_between_all),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_divmod),
        cmocka_unit_test(test_fusion_keeps_bits),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
