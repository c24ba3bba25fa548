/* Fourier transforms on the GPU: each variant left alone, passes that are made short, lengths that
 * take several, and what the device says of arrays that are too large. */
#include <math.h>

#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/mem.h"
#include "eval/eval.h"
#include "ops/build.h"
#include "support/arrays.h"
#include "support/nd.h"

struct fft_case {
    struct shp shape;
    int32_t n, axis;
    bool inverse, real;
};

static const struct fft_case cases[] = {
    { { 2, { 3, 16 } }, 16, 1, false, false },
    { { 2, { 40, 64 } }, 64, 1, true, false },
    { { 2, { 5, 128 } }, 128, 1, false, false },
    { { 2, { 3, 4096 } }, 4096, 1, true, false },
    { { 2, { 1, 8192 } }, 8192, 1, false, false },
    { { 2, { 1, 65536 } }, 65536, 1, false, false },
    { { 3, { 2, 512, 6 } }, 512, 1, false, false },
    { { 3, { 2, 4096, 3 } }, 4096, 1, true, false },
    /* Real, in one pass and in several. */
    { { 2, { 3, 64 } }, 64, 1, false, true },
    { { 2, { 2, 16384 } }, 16384, 1, false, true },
    { { 2, { 512, 3 } }, 512, 0, false, true },
    { { 2, { 16384, 2 } }, 16384, 0, false, true },
    { { 2, { 3, 33 } }, 64, 1, true, true },
    { { 2, { 2, 8193 } }, 16384, 1, true, true },
    { { 2, { 257, 3 } }, 512, 0, true, true },
    { { 2, { 8193, 3 } }, 16384, 0, true, true },
    /* Other factors, odd numbers, primes. */
    { { 2, { 3, 1 } }, 1, 1, false, false },
    { { 2, { 7, 12 } }, 12, 1, false, false },
    { { 2, { 3, 1001 } }, 1001, 1, true, false },
    { { 2, { 2, 15625 } }, 15625, 1, false, false },
    { { 2, { 2, 6000 } }, 6000, 1, false, true },
    { { 2, { 2, 3000 } }, 5999, 1, true, true },
    { { 2, { 3, 17 } }, 17, 1, false, false },
    { { 3, { 2, 1009, 3 } }, 1009, 1, true, false },
    { { 2, { 2, 4099 } }, 4099, 1, false, true },
    { { 2, { 2, 2018 } }, 2018, 1, false, true },
    { { 2, { 2, 1010 } }, 2018, 1, true, true },
};

static struct rng rng = { 5 };

static struct arr *operand(const struct fft_case *c)
{
    return arr_random(&rng, &c->shape, c->real && !c->inverse ? DT_FLOAT32 : DT_COMPLEX64,
                      LAY_DENSE);
}

static struct arr *transformed(const struct fft_case *c, struct arr *x, struct strm *s)
{
    struct ops_fft v = { { &c->n, 1 }, { &c->axis, 1 }, c->inverse, c->real, FFT_NORM_BACKWARD };
    struct arr *y = NULL;

    assert_ok(ops_fft(&y, x, &v, s));
    return y;
}

/* The root of the mean square of the difference, as a part of that of the numbers. */
static double distance(const double complex *a, const double complex *b, size_t n)
{
    double of_gap = 0, of_a = 0;

    for (size_t i = 0; i < n; i++) {
        of_gap += creal(a[i] - b[i]) * creal(a[i] - b[i]) + cimag(a[i] - b[i]) * cimag(a[i] - b[i]);
        of_a += creal(a[i]) * creal(a[i]) + cimag(a[i]) * cimag(a[i]);
    }
    return of_a > 0 ? sqrt(of_gap / of_a) : sqrt(of_gap);
}

static void check(const struct fft_case *c)
{
    struct arr *x = operand(c), *want = transformed(c, x, test_stream());
    struct arr *got = transformed(c, x, nd_gpu);
    size_t n = want->size;

    nd_run(got);
    double complex *a = arr_values(want), *b = arr_values(got);
    double gap = distance(a, b, n);
    if (!(gap < 1e-6))
        fail_msg("%s, axis %d of %d: %g apart", shp_text(&c->shape), c->axis, c->n, gap);
    mem_free(a);
    mem_free(b);
    arr_unref(&x);
    arr_unref(&want);
    arr_unref(&got);
}

static void check_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i]);
}

static void test_mixed(void **state)
{
    (void)state;
    gate_set_int(GATE_VK_FFT_WIDE, 0);
    variant_reset();
    check_all();
    assert_true(variant_hits(VARIANT_FFT_MIXED) >= ARRAY_LEN(cases));
    assert_int_equal(variant_hits(VARIANT_FFT_WIDE), 0);
    gate_set_int(GATE_VK_FFT_WIDE, 1);
}

/* With workgroups as hardware has them. */
static void test_wide(void **state)
{
    (void)state;
    gate_set_int(GATE_VK_WORKGROUP, 128);
    variant_reset();
    check_all();
    assert_true(variant_hits(VARIANT_FFT_WIDE) > 0);
    assert_true(variant_hits(VARIANT_FFT_MIXED) > 0);
    gate_set_int(GATE_VK_WORKGROUP, 0);
}

/* Three passes and more, of either kind. */
static void test_short_lines(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        gate_set_int(GATE_VK_WORKGROUP, k * 64);
        gate_set_int(GATE_VK_FFT_LINE, 16);
        variant_reset();
        check_all();
        gate_set_int(GATE_VK_FFT_LINE, 32);
        check_all();
        assert_true(k == 0 || variant_hits(VARIANT_FFT_WIDE) > 0);
    }
    gate_set_int(GATE_VK_FFT_LINE, 0);
    gate_set_int(GATE_VK_WORKGROUP, 0);
}

/* Several axes, the first of which may be written where the second is read. */
static void test_axes(void **state)
{
    static const struct {
        struct shp shape;
        int32_t n[3], axis[3];
        size_t n_axes;
        bool inverse, real;
    } many[] = {
        { { 3, { 16, 5, 64 } }, { 16, 64 }, { 0, 2 }, 2, false, false },
        { { 3, { 64, 32, 16 } }, { 32, 16, 64 }, { 1, 2, 0 }, 3, true, false },
        { { 3, { 20, 7, 64 } }, { 20, 7, 64 }, { 0, 1, 2 }, 3, false, true },
        { { 3, { 64, 17, 10 } }, { 10, 17, 64 }, { 2, 1, 0 }, 3, false, true },
        { { 3, { 20, 7, 33 } }, { 20, 7, 64 }, { 0, 1, 2 }, 3, true, true },
        { { 3, { 33, 17, 10 } }, { 10, 17, 64 }, { 2, 1, 0 }, 3, true, true },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(many); i++) {
        struct ops_fft v = { { many[i].n, many[i].n_axes },
                             { many[i].axis, many[i].n_axes },
                             many[i].inverse,
                             many[i].real,
                             FFT_NORM_ORTHO };
        bool is_float = v.real && !v.inverse;
        struct arr *x =
            arr_random(&rng, &many[i].shape, is_float ? DT_FLOAT32 : DT_COMPLEX64, LAY_TRANSPOSED);
        struct arr *want = NULL, *got = NULL;
        assert_ok(ops_fft(&want, x, &v, test_stream()));
        assert_ok(ops_fft(&got, x, &v, nd_gpu));
        nd_run(got);
        double complex *a = arr_values(want), *b = arr_values(got);
        assert_true(distance(a, b, want->size) < 1e-6);
        mem_free(a);
        mem_free(b);
        arr_unref(&x);
        arr_unref(&want);
        arr_unref(&got);
    }
}

/* ---- a million numbers, against the definition ---- */

#define MANY (1 << 20)
#define SAMPLES 6

/* Frequency k by the definition, in double precision: the angle's step is exact in integers. */
static double complex frequency(const double complex *x, int64_t n, int64_t k, int sign)
{
    double complex sum = 0;

    for (int64_t j = 0, at = 0; j < n; j++, at = (at + k) % n) {
        double angle = 2 * M_PI * (double)at / (double)n;
        sum += x[j] * (cos(angle) + sign * sin(angle) * I);
    }
    return sum;
}

static void check_many(struct strm *s, const struct fft_case *c, double complex *x, struct arr *in)
{
    struct arr *y = transformed(c, in, s);
    double complex want[SAMPLES], got[SAMPLES], *all = arr_values(y);

    for (int i = 0; i < SAMPLES; i++) {
        int64_t k = rng_below(&rng, MANY);
        want[i] = frequency(x, c->n, k, c->inverse ? 1 : -1) / (c->inverse ? c->n : 1);
        got[i] = all[k];
    }
    assert_true(distance(want, got, SAMPLES) < 1e-6);
    mem_free(all);
    arr_unref(&y);
}

static void test_a_million(void **state)
{
    struct fft_case c = { { 1, { MANY } }, MANY, 0, false, false };
    struct arr *in = operand(&c);
    double complex *x = arr_values(in);

    (void)state;
    check_many(test_stream(), &c, x, in);
    check_many(nd_gpu, &c, x, in);
    c.inverse = true;
    gate_set_int(GATE_VK_WORKGROUP, 64);
    check_many(nd_gpu, &c, x, in);
    gate_set_int(GATE_VK_WORKGROUP, 0);
    mem_free(x);
    arr_unref(&in);
}

/* Refused before there is memory for the result. */
static void test_too_large(void **state)
{
    struct fft_case c = { { 1, { (1 << 27) + 1 } }, (1 << 27) + 1, 0, false, false };
    struct arr *one = NULL, *x = NULL, *y;

    (void)state;
    assert_ok(arr_new_number(&one, 1, DT_COMPLEX64));
    assert_ok(ops_broadcast_to(&x, one, (struct ints){ c.shape.d, 1 }, nd_gpu));
    y = transformed(&c, x, nd_gpu);
    assert_fails(ERR_UNSUPPORTED, eval_arrays(&y, 1, false));
    arr_unref(&y);
    arr_unref(&x);
    arr_unref(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_short_lines),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_a_million),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
