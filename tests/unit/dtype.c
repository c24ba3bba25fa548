#include "graph/dtype.h"

#include "support/testing.h"

#include <math.h>

/* ---- the table ---- */

/* What MLX 0.32 says of every pair: rows and columns in storage order, one hex digit per result. */
static const char *const promotion[] = {
    "0123456789ABCD", /* bool */
    "1123466789ABCD", /* uint8 */
    "2223477789ABCD", /* uint16 */
    "3333488889ABCD", /* uint32 */
    "44444AAAA9ABCD", /* uint64 */
    "5678A56789ABCD", /* int8 */
    "6678A66789ABCD", /* int16 */
    "7778A77789ABCD", /* int32 */
    "8888A88889ABCD", /* int64 */
    "9999999999ABAD", /* float16 */
    "AAAAAAAAAAABAD", /* float32 */
    "BBBBBBBBBBBBBD", /* float64 */
    "CCCCCCCCCAABCD", /* bfloat16 */
    "DDDDDDDDDDDDDD", /* complex64 */
};

static enum dtype promoted(int a, int b)
{
    char digit = promotion[a][b];

    return (enum dtype)(digit <= '9' ? digit - '0' : digit - 'A' + 10);
}

static void test_promotion_is_mlx_s(void **state)
{
    (void)state;
    assert_int_equal(ARRAY_LEN(promotion), DT_COUNT);
    for (int a = 0; a < DT_COUNT; a++)
        for (int b = 0; b < DT_COUNT; b++) {
            enum dtype got = dt_promote((enum dtype)a, (enum dtype)b);
            if (got != promoted(a, b))
                fail_msg("%s with %s is %s, should be %s", dt_name((enum dtype)a),
                         dt_name((enum dtype)b), dt_name(got), dt_name(promoted(a, b)));
        }
}

static void test_at_least_float(void **state)
{
    (void)state;
    for (int t = 0; t < DT_COUNT; t++)
        assert_int_equal(dt_at_least_float((enum dtype)t), t < DT_FLOAT16 ? DT_FLOAT32 : t);
}

static void test_sizes_and_kinds(void **state)
{
    static const struct {
        const char *name;
        size_t size;
        bool is_float, is_inexact, is_integer;
    } want[DT_COUNT] = {
        { "bool", 1, false, false, false },   { "uint8", 1, false, false, true },
        { "uint16", 2, false, false, true },  { "uint32", 4, false, false, true },
        { "uint64", 8, false, false, true },  { "int8", 1, false, false, true },
        { "int16", 2, false, false, true },   { "int32", 4, false, false, true },
        { "int64", 8, false, false, true },   { "float16", 2, true, true, false },
        { "float32", 4, true, true, false },  { "float64", 8, true, true, false },
        { "bfloat16", 2, true, true, false }, { "complex64", 8, false, true, false },
    };

    (void)state;
    for (int i = 0; i < DT_COUNT; i++) {
        enum dtype t = (enum dtype)i;
        assert_string_equal(dt_name(t), want[i].name);
        assert_int_equal(dt_size(t), want[i].size);
        assert_int_equal(dt_is_float(t), want[i].is_float);
        assert_int_equal(dt_is_inexact(t), want[i].is_inexact);
        assert_int_equal(dt_is_integer(t), want[i].is_integer);
    }
}

/* ---- 16-bit floats against a slow conversion written from the definition ---- */

struct half_format {
    int mantissa_bits, exponent_bits, bias;
};

static const struct half_format f16 = { 10, 5, 15 };
static const struct half_format bf16 = { 7, 8, 127 };

/* Value of a 16-bit pattern. */
static double decode(const struct half_format *f, unsigned bits)
{
    int exponent = (int)(bits >> f->mantissa_bits) & ((1 << f->exponent_bits) - 1);
    int mantissa = (int)bits & ((1 << f->mantissa_bits) - 1);
    double sign = bits & 0x8000u ? -1 : 1;

    if (exponent == (1 << f->exponent_bits) - 1)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
    return sign * ldexp((1 << f->mantissa_bits) + mantissa, exponent - f->bias - f->mantissa_bits);
}

/* Nearest pattern, ties to even; x is no NaN. */
static unsigned encode(const struct half_format *f, float x)
{
    unsigned sign = signbit(x) ? 0x8000u : 0;
    unsigned infinity = ((1u << f->exponent_bits) - 1) << f->mantissa_bits;
    int min_exponent = 1 - f->bias;

    if (isinf(x))
        return sign | infinity;
    if (x == 0)
        return sign;
    int exponent = ilogb(x) < min_exponent ? min_exponent : ilogb(x);
    double units = nearbyint(ldexp(fabs((double)x), f->mantissa_bits - exponent));
    /* Rounding may carry into the next exponent: as a pattern that is the next number. */
    unsigned pattern =
        (unsigned)(exponent + f->bias - 1) * (1u << f->mantissa_bits) + (unsigned)units;
    return sign | (pattern > infinity ? infinity : pattern);
}

static float from_bits(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t to_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void test_every_float16_goes_there_and_back(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float x = dt_f16_to_f32((uint16_t)h);
        double want = decode(&f16, h);
        if (isnan(want)) {
            assert_true(isnan(x));
            /* A quiet NaN keeps its bits, a signalling one becomes quiet. */
            assert_int_equal(dt_f32_to_f16(x), h | 0x200u);
            continue;
        }
        if ((double)x != want || !signbit(x) != !signbit(want))
            fail_msg("float16 %04x is %a, should be %a", h, (double)x, want);
        assert_int_equal(dt_f32_to_f16(x), h);
    }
}

static void test_every_bfloat16_goes_there_and_back(void **state)
{
    (void)state;
    for (unsigned h = 0; h < 65536; h++) {
        float x = dt_bf16_to_f32((uint16_t)h);
        double want = decode(&bf16, h);
        if (isnan(want)) {
            assert_true(isnan(x));
            assert_int_equal(dt_f32_to_bf16(x), h | 0x40u);
            continue;
        }
        if ((double)x != want || !signbit(x) != !signbit(want))
            fail_msg("bfloat16 %04x is %a, should be %a", h, (double)x, want);
        assert_int_equal(dt_f32_to_bf16(x), h);
    }
}

static void check_both(uint32_t bits)
{
    float x = from_bits(bits);

    if (isnan(x)) {
        assert_true(isnan(decode(&f16, dt_f32_to_f16(x))));
        assert_true(isnan(decode(&bf16, dt_f32_to_bf16(x))));
        assert_int_equal(dt_f32_to_f16(x) >> 15, bits >> 31);
        assert_int_equal(dt_f32_to_bf16(x) >> 15, bits >> 31);
        return;
    }
    if (dt_f32_to_f16(x) != encode(&f16, x))
        fail_msg("%a (%08x) to float16 is %04x, should be %04x", (double)x, bits, dt_f32_to_f16(x),
                 encode(&f16, x));
    if (dt_f32_to_bf16(x) != encode(&bf16, x))
        fail_msg("%a (%08x) to bfloat16 is %04x, should be %04x", (double)x, bits,
                 dt_f32_to_bf16(x), encode(&bf16, x));
}

/* Every sign, exponent and 10 bits of mantissa, with the rest around the middle between two float16
 * (below bit 13), and around the middle between two bfloat16 (below bit 16). */
static void test_rounding_around_every_middle(void **state)
{
    static const uint32_t low[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff };

    (void)state;
    for (uint32_t high = 0; high < 1u << 19; high++)
        for (size_t i = 0; i < ARRAY_LEN(low); i++)
            check_both(high << 13 | low[i]);
}

static void test_rounding_of_float16_subnormals(void **state)
{
    (void)state;
    /* Multiples of 2^-24 and the middles between them, and their neighbours. */
    for (int units = 0; units <= 2 * 1024 + 2; units++)
        for (int step = -2; step <= 2; step++) {
            uint32_t bits = to_bits((float)ldexp(units, -25)) + (uint32_t)step;
            if (units || step >= 0) {
                check_both(bits);
                check_both(bits | 0x80000000u);
            }
        }
}

static void test_rounding_of_random_patterns(void **state)
{
    struct rng rng = { 7 };

    (void)state;
    for (int i = 0; i < 3000000; i++)
        check_both((uint32_t)rng_next(&rng));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promotion_is_mlx_s),
        cmocka_unit_test(test_at_least_float),
        cmocka_unit_test(test_sizes_and_kinds),
        cmocka_unit_test(test_every_float16_goes_there_and_back),
        cmocka_unit_test(test_every_bfloat16_goes_there_and_back),
        cmocka_unit_test(test_rounding_around_every_middle),
        cmocka_unit_test(test_rounding_of_float16_subnormals),
        cmocka_unit_test(test_rounding_of_random_patterns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
