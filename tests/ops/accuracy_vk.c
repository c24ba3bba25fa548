/* float32 and complex64 functions on the GPU against libm in double precision, with NumPy's default
 * tolerances over the whole range of the arguments. */
#include <complex.h>
#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "support/testing.h"

#define RTOL 1e-5
#define ATOL 1e-8
#define N 60000

static struct strm *gpu;

/* ---- arguments ---- */

static float from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static const float special[] = {
    0.0f,       -0.0f,      1.0f,       -1.0f,   INFINITY, -INFINITY,  NAN,         0.5f,
    -0.5f,      2.0f,       -2.0f,      1e-40f,  -1e-40f,  FLT_MIN,    FLT_MAX,     -FLT_MAX,
    88.72283f,  88.8f,      -87.4f,     -103.9f, 89.4f,    1e6f,       -1e6f,       1e10f,
    3.1415927f, 1.5707964f, 6.2831855f, 8192.0f, 8193.0f,  1.0000001f, 0.99999994f, 16777217.0f,
};

/* Every exponent is met about as often as the others; odd steps reach all kinds of mantissas. */
static void fill_all(float *x)
{
    for (uint32_t i = 0; i < N; i++)
        x[i] = i < ARRAY_LEN(special) ? special[i] : from_bits(i * 71583u);
}

static void fill_range(float *x, struct rng *r, float low, float high)
{
    for (int i = 0; i < N; i++)
        x[i] = low + (high - low) * (float)((double)(rng_next(r) >> 11) * 0x1p-53);
}

static struct arr *array_of(const void *data, int32_t n, enum dtype t)
{
    struct shp shape = { 1, { n } };
    struct arr *a = NULL;

    assert_ok(arr_new_data(&a, data, &shape, t));
    return a;
}

/* Evaluates, and proves that the GPU did it. */
static const void *run(struct arr *out)
{
    uint64_t before = stat_get(STAT_DISPATCHES);
    const void *host = NULL;

    assert_ok(eval_arrays(&out, 1, false));
    assert_true(stat_get(STAT_DISPATCHES) > before);
    assert_ok(arr_host(&host, out));
    return host;
}

/* numpy.isclose with equal_nan; a result beyond float32 must be infinite, or nearly. */
static bool is_close(double got, double want)
{
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got);
    if (fabs(want) > FLT_MAX)
        return signbit(got) == signbit(want) && fabs(got) >= FLT_MAX * (1 - RTOL);
    return fabs(got - want) <= ATOL + RTOL * fabs(want) ||
           (isinf(got) && fabs(want) > FLT_MAX * (1 - RTOL) && signbit(got) == signbit(want));
}

/* ---- unary ---- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

/* Newton's method on erf, on erfc where that keeps more digits. */
static double erfinv(double x)
{
    double a = fabs(x), y, step = 1;

    if (!(a < 1))
        return a == 1 ? copysign(INFINITY, x) : NAN;
    y = sqrt(-log((1 - a) * (1 + a)));
    y = y < 2 ? a : y - 0.3;
    for (int i = 0; i < 100 && fabs(step) > 1e-15 * y; i++) {
        double f = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        step = f / (2 / sqrt(acos(-1)) * exp(-y * y));
        step /= 1 + y * step; /* Halley */
        y -= step;
    }
    return copysign(y, x);
}

static const struct unary {
    enum op_id op;
    double (*fn)(double);
    float low, high; /* a range to look at more closely */
} unaries[] = {
    { OP_ARCCOS, acos, -1, 1 },   { OP_ARCCOSH, acosh, 1, 3 },  { OP_ARCSIN, asin, -1, 1 },
    { OP_ARCSINH, asinh, -3, 3 }, { OP_ARCTAN, atan, -3, 3 },   { OP_ARCTANH, atanh, -1, 1 },
    { OP_CEIL, ceil, -9, 9 },     { OP_COS, cos, -30, 30 },     { OP_COSH, cosh, -90, 90 },
    { OP_ERF, erf, -4, 4 },       { OP_ERFINV, erfinv, -1, 1 }, { OP_EXP, exp, -104, 90 },
    { OP_EXPM1, expm1, -2, 2 },   { OP_FLOOR, floor, -9, 9 },   { OP_LOG, log, 0, 3 },
    { OP_LOG2, log2, 0, 3 },      { OP_LOG10, log10, 0, 3 },    { OP_LOG1P, log1p, -1, 2 },
    { OP_ROUND, rint, -9, 9 },    { OP_RSQRT, rsqrt, 0, 9 },    { OP_SIGMOID, sigmoid, -20, 20 },
    { OP_SIN, sin, -30, 30 },     { OP_SINH, sinh, -90, 90 },   { OP_SQRT, sqrt, 0, 9 },
    { OP_TAN, tan, -30, 30 },     { OP_TANH, tanh, -10, 10 },   { OP_ABS, fabs, -2, 2 },
};

static void check_unary(const struct unary *u, const float *x)
{
    struct arr *in = array_of(x, N, DT_FLOAT32), *out = NULL;

    assert_ok(ops_unary(&out, u->op, in, gpu));
    const float *got = run(out);
    for (int i = 0; i < N; i++)
        if (!is_close(got[i], u->fn(x[i])))
            fail_msg("%s(%.9g) gives %.9g, should be %.9g", op_name(u->op), x[i], got[i],
                     u->fn(x[i]));
    arr_unref(&in);
    arr_unref(&out);
}

static void test_unary(void **state)
{
    float *x = mem_alloc_array(N, sizeof *x);
    struct rng r = { 1 };

    (void)state;
    assert_non_null(x);
    for (size_t i = 0; i < ARRAY_LEN(unaries); i++) {
        fill_all(x);
        check_unary(&unaries[i], x);
        fill_range(x, &r, unaries[i].low, unaries[i].high);
        check_unary(&unaries[i], x);
    }
    mem_free(x);
}

/* Division and square root are what the CPU computes, bit for bit. */
static void test_correctly_rounded(void **state)
{
    float *x = mem_alloc_array(N, sizeof *x), *y = mem_alloc_array(N, sizeof *y);
    struct rng r = { 2 };

    (void)state;
    assert_true(x && y);
    fill_range(x, &r, -1000, 1000);
    fill_range(y, &r, -3, 3);
    struct arr *a = array_of(x, N, DT_FLOAT32), *b = array_of(y, N, DT_FLOAT32);
    struct arr *quotient = NULL, *square = NULL, *root = NULL;
    assert_ok(ops_binary(&quotient, OP_DIVIDE, a, b, gpu));
    assert_ok(ops_unary(&square, OP_ABS, a, gpu));
    assert_ok(ops_unary(&root, OP_SQRT, square, gpu));
    const float *q = run(quotient), *s = run(root);
    for (int i = 0; i < N; i++) {
        if (q[i] != x[i] / y[i])
            fail_msg("%.9g / %.9g gives %.9g", x[i], y[i], q[i]);
        if (s[i] != sqrtf(fabsf(x[i])))
            fail_msg("sqrt(%.9g) gives %.9g", fabsf(x[i]), s[i]);
    }
    arr_unref(&quotient);
    arr_unref(&square);
    arr_unref(&root);
    arr_unref(&a);
    arr_unref(&b);
    mem_free(x);
    mem_free(y);
}

/* ---- binary ---- */

static double log_add_exp(double a, double b)
{
    double hi = fmax(a, b), lo = fmin(a, b);

    if (isnan(a) || isnan(b))
        return NAN;
    return isinf(hi) || isinf(lo) ? hi : hi + log1p(exp(lo - hi));
}

static double floor_mod(double a, double b)
{
    double r = fmod(a, b);

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static double divide(double a, double b)
{
    return a / b;
}

static double maximum(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double minimum(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

static const struct binary {
    enum op_id op;
    double (*fn)(double, double);
} binaries[] = {
    { OP_ARCTAN2, atan2 },       { OP_DIVIDE, divide },   { OP_LOG_ADD_EXP, log_add_exp },
    { OP_MAXIMUM, maximum },     { OP_MINIMUM, minimum }, { OP_POWER, pow },
    { OP_REMAINDER, floor_mod },
};

/* A third: all exponents against each other; a third: powers that neither vanish nor overflow; the
 * rest: the special values in all pairs, and moderate numbers. */
static void fill_pairs(float *x, float *y, struct rng *r)
{
    int n = ARRAY_LEN(special);

    for (int i = 0; i < N; i++) {
        double u = (double)(rng_next(r) >> 11) * 0x1p-53;
        x[i] = from_bits((uint32_t)rng_next(r));
        y[i] = from_bits((uint32_t)rng_next(r));
        if (i < n * n) {
            x[i] = special[i / n];
            y[i] = special[i % n];
        } else if (i % 3 == 0) {
            x[i] = fabsf(x[i]);
            y[i] = (float)((u * 250 - 125) / log2((double)x[i]));
        } else if (i % 3 == 1) {
            x[i] = (float)(u * 40 - 20);
            y[i] = (float)(rng_below(r, 2000) - 1000) / 64;
        }
    }
}

static void test_binary(void **state)
{
    float *x = mem_alloc_array(N, sizeof *x), *y = mem_alloc_array(N, sizeof *y);
    struct rng r = { 3 };

    (void)state;
    assert_true(x && y);
    fill_pairs(x, y, &r);
    struct arr *a = array_of(x, N, DT_FLOAT32), *b = array_of(y, N, DT_FLOAT32);
    for (size_t k = 0; k < ARRAY_LEN(binaries); k++) {
        struct arr *out = NULL;

        assert_ok(ops_binary(&out, binaries[k].op, a, b, gpu));
        const float *got = run(out);
        for (int i = 0; i < N; i++)
            if (!is_close(got[i], binaries[k].fn(x[i], y[i])))
                fail_msg("%s(%.9g, %.9g) gives %.9g, should be %.9g", op_name(binaries[k].op), x[i],
                         y[i], got[i], binaries[k].fn(x[i], y[i]));
        arr_unref(&out);
    }
    arr_unref(&a);
    arr_unref(&b);
    mem_free(x);
    mem_free(y);
}

/* ---- complex ---- */

static double complex complex_log2(double complex z)
{
    return clog(z) / log(2);
}

static double complex complex_log10(double complex z)
{
    return clog(z) / log(10);
}

static double complex complex_log1p(double complex z)
{
    return clog(1 + z);
}

static double complex complex_rsqrt(double complex z)
{
    return 1 / csqrt(z);
}

static double complex complex_square(double complex z)
{
    return z * z;
}

static double complex complex_sign(double complex z)
{
    return z == 0 ? z : z / cabs(z);
}

static const struct complex_unary {
    enum op_id op;
    double complex (*fn)(double complex);
} complex_unaries[] = {
    { OP_ARCCOS, cacos },
    { OP_ARCCOSH, cacosh },
    { OP_ARCSIN, casin },
    { OP_ARCSINH, casinh },
    { OP_ARCTAN, catan },
    { OP_ARCTANH, catanh },
    { OP_CONJUGATE, conj },
    { OP_COS, ccos },
    { OP_COSH, ccosh },
    { OP_EXP, cexp },
    { OP_LOG, clog },
    { OP_LOG2, complex_log2 },
    { OP_LOG10, complex_log10 },
    { OP_LOG1P, complex_log1p },
    { OP_RSQRT, complex_rsqrt },
    { OP_SIGN, complex_sign },
    { OP_SIN, csin },
    { OP_SINH, csinh },
    { OP_SQRT, csqrt },
    { OP_SQUARE, complex_square },
    { OP_TAN, ctan },
    { OP_TANH, ctanh },
};

/* Small, moderate and large, and close to the branch points. */
static void fill_complex(float complex *z, struct rng *r)
{
    static const float complex near[] = { 0, 1, -1, I, -I };

    for (int i = 0; i < N; i++) {
        double u = (double)(rng_next(r) >> 11) * 0x1p-52 - 1,
               v = (double)(rng_next(r) >> 11) * 0x1p-52 - 1;

        switch (i % 4) {
        case 0:
            z[i] = (float)(u * 3) + (float)(v * 3) * I;
            break;
        case 1:
            z[i] = (float)(u * 30) + (float)(v * 30) * I;
            break;
        case 2:
            z[i] =
                (float)ldexp(u, rng_below(r, 80) - 40) + (float)ldexp(v, rng_below(r, 80) - 40) * I;
            break;
        default:
            z[i] = near[rng_below(r, ARRAY_LEN(near))] + (float)ldexp(u, -rng_below(r, 20)) +
                   (float)ldexp(v, -rng_below(r, 20)) * I;
        }
    }
}

/* numpy.isclose measures the distance in the plane. */
static void check_complex(enum op_id op, float complex got, double complex want, float complex z)
{
    if (!isfinite(creal(want)) || !isfinite(cimag(want)) || cabs(want) > FLT_MAX / 4)
        return; /* beyond float32, and the components of infinities are not specified */
    if (!(cabs((double complex)got - want) <= ATOL + RTOL * cabs(want)))
        fail_msg("%s(%.9g%+.9gi) gives %.9g%+.9gi, should be %.9g%+.9gi", op_name(op), crealf(z),
                 cimagf(z), crealf(got), cimagf(got), creal(want), cimag(want));
}

static void test_complex_unary(void **state)
{
    float complex *z = mem_alloc_array(N, sizeof *z);
    struct rng r = { 4 };

    (void)state;
    assert_non_null(z);
    fill_complex(z, &r);
    struct arr *a = array_of(z, N, DT_COMPLEX64);
    for (size_t k = 0; k < ARRAY_LEN(complex_unaries); k++) {
        const struct complex_unary *u = &complex_unaries[k];
        struct arr *out = NULL;

        assert_ok(ops_unary(&out, u->op, a, gpu));
        const float complex *got = run(out);
        for (int i = 0; i < N; i++)
            check_complex(u->op, got[i], u->fn(z[i]), z[i]);
        arr_unref(&out);
    }
    arr_unref(&a);
    mem_free(z);
}

static double complex complex_divide(double complex a, double complex b)
{
    return a / b;
}

static double complex complex_multiply(double complex a, double complex b)
{
    return a * b;
}

static const struct complex_binary {
    enum op_id op;
    double complex (*fn)(double complex, double complex);
    bool moderate; /* only arguments of moderate size: the conditioning is bad elsewhere */
} complex_binaries[] = {
    { OP_DIVIDE, complex_divide, false },
    { OP_MULTIPLY, complex_multiply, false },
    { OP_POWER, cpow, true },
};

static void test_complex_binary(void **state)
{
    float complex *z = mem_alloc_array(N, sizeof *z), *w = mem_alloc_array(N, sizeof *w);
    struct rng r = { 5 };

    (void)state;
    assert_true(z && w);
    fill_complex(z, &r);
    fill_complex(w, &r);
    struct arr *a = array_of(z, N, DT_COMPLEX64), *b = array_of(w, N, DT_COMPLEX64);
    for (size_t k = 0; k < ARRAY_LEN(complex_binaries); k++) {
        const struct complex_binary *f = &complex_binaries[k];
        struct arr *out = NULL;

        assert_ok(ops_binary(&out, f->op, a, b, gpu));
        const float complex *got = run(out);
        for (int i = 0; i < N; i++)
            if (!f->moderate || i % 4 == 0)
                check_complex(f->op, got[i], f->fn(z[i], w[i]), z[i]);
        arr_unref(&out);
    }
    arr_unref(&a);
    arr_unref(&b);
    mem_free(z);
    mem_free(w);
}

static int open_gpu(void **state)
{
    (void)state;
    return strm_new(&gpu, (struct dev){ DEV_GPU, 0 }) != ERR_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unary),          cmocka_unit_test(test_correctly_rounded),
        cmocka_unit_test(test_binary),         cmocka_unit_test(test_complex_unary),
        cmocka_unit_test(test_complex_binary),
    };

    return cmocka_run_group_tests_name("accuracy_vk", tests, open_gpu, NULL);
}
