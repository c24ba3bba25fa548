/* Variants of the kernels for convolutions: each one runs where it is left alone, and gives what
 * the CPU gives. Operands are small integers, whose sums are exact in float32 in any order, so that
 * results agree to the last bit, rounding to 16 bits included. */
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "ops/build.h"
#include "support/arrays.h"
#include "support/nd.h"

struct conv_case {
    struct shp x, w;
    int32_t stride, pad_lo, pad_hi, kernel_dilation, input_dilation, groups;
    bool flip;
    bool is_offset; /* the input begins at its second element in memory */
};

static const struct conv_case cases[] = {
    { { 4, { 2, 9, 8, 16 } }, { 4, { 24, 3, 3, 16 } }, 1, 1, 1, 1, 1, 1 },
    { { 4, { 2, 9, 8, 16 } }, { 4, { 24, 3, 3, 16 } }, 1, 1, 1, 1, 1, 1, .is_offset = true },
    { { 4, { 1, 16, 17, 16 } }, { 4, { 128, 3, 3, 16 } }, 1, 1, 1, 1, 1, 1 },
    { { 4, { 1, 12, 12, 64 } }, { 4, { 64, 3, 3, 64 } }, 2, 1, 0, 1, 1, 1 },
    { { 3, { 2, 70, 24 } }, { 3, { 40, 5, 24 } }, 1, 2, 2, 2, 1, 1, .flip = true },
    { { 5, { 1, 5, 6, 7, 8 } }, { 5, { 32, 3, 2, 3, 8 } }, 1, 1, 0, 1, 2, 1, .flip = true },
    { { 4, { 2, 8, 9, 64 } }, { 4, { 96, 3, 3, 32 } }, 1, 1, 1, 1, 1, 2 },
    { { 4, { 2, 9, 8, 17 } }, { 4, { 19, 3, 2, 17 } }, 2, 0, 2, 1, 3, 1 },
    /* Few channels. */
    { { 4, { 2, 16, 17, 3 } }, { 4, { 32, 5, 5, 3 } }, 2, 2, 2, 1, 1, 1 },
    { { 4, { 2, 9, 8, 20 } }, { 4, { 20, 3, 3, 1 } }, 1, 1, 1, 1, 1, 20 },
    { { 4, { 2, 9, 8, 20 } }, { 4, { 20, 3, 3, 1 } }, 1, 1, 1, 1, 1, 20, .is_offset = true },
    { { 4, { 2, 9, 8, 20 } }, { 4, { 40, 3, 3, 1 } }, 2, 1, 1, 2, 1, 20 },
    { { 3, { 3, 50, 7 } }, { 3, { 7, 4, 1 } }, 1, 3, 0, 1, 2, 7, .flip = true },
    { { 3, { 3, 50, 12 } }, { 3, { 6, 4, 4 } }, 1, 3, 0, 1, 1, 3 },
    { { 4, { 1, 30, 30, 24 } }, { 4, { 72, 3, 3, 2 } }, 1, 1, 1, 1, 1, 12 },
    /* Long sums, which are split: of tiles, of a channel per group, of several groups. */
    { { 4, { 1, 14, 15, 24 } }, { 4, { 32, 13, 12, 24 } }, 1, 0, 0, 1, 1, 1 },
    { { 3, { 1, 1100, 8 } }, { 3, { 8, 1098, 1 } }, 1, 0, 0, 1, 1, 8 },
    { { 3, { 1, 300, 32 } }, { 3, { 40, 298, 16 } }, 1, 0, 0, 1, 1, 2 },
};

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_COMPLEX64 };

static struct rng rng = { 11 };

/* Integers from -2 to 2; fewer of them where many are added up. */
static struct arr *operand(const struct shp *shape, enum dtype t, bool is_offset)
{
    size_t n = shp_size(shape);
    float *v = mem_alloc_array(n + 1, sizeof *v);
    struct arr *a = NULL;
    enum err err;
    int32_t first = is_offset, stop = (int32_t)n + first, one = 1;
    struct strm *s = test_stream();

    assert_non_null(v);
    for (size_t i = 0; i <= n; i++)
        v[i] = (float)rng_below(&rng, 5) - 2;
    TRY(arr_new_data(&a, v, &(struct shp){ 1, { (int32_t)n + 1 } }, DT_FLOAT32));
    STEP(a, ops_astype(&next, a, t, s));
    STEP(a,
         ops_slice(&next, a, &(struct ops_slice){ { &first, 1 }, { &stop, 1 }, { &one, 1 } }, s));
    STEP(a, ops_reshape(&next, a, (struct ints){ shape->d, (size_t)shape->ndim }, s));
out:
    assert_ok(err);
    mem_free(v);
    return a;
}

static struct arr *result(const struct conv_case *c, struct arr *x, struct arr *w, struct strm *s)
{
    struct ops_conv v = { .x = x,
                          .w = w,
                          .stride = { &c->stride, 1 },
                          .pad_lo = { &c->pad_lo, 1 },
                          .pad_hi = { &c->pad_hi, 1 },
                          .kernel_dilation = { &c->kernel_dilation, 1 },
                          .input_dilation = { &c->input_dilation, 1 },
                          .groups = c->groups,
                          .flip = c->flip };
    struct arr *y = NULL;

    assert_ok(ops_conv(&y, &v, s));
    return y;
}

static void check(const struct conv_case *c, enum dtype t)
{
    enum dtype in = t == DT_COMPLEX64 ? DT_FLOAT32 : t;
    struct arr *x = operand(&c->x, in, c->is_offset), *w = operand(&c->w, t, false);
    struct arr *want = result(c, x, w, test_stream()), *got = result(c, x, w, nd_gpu);
    void *expected = arr_bytes(want);
    const void *bytes = nd_run(got);

    if (memcmp(expected, bytes, arr_nbytes(want)) != 0)
        fail_msg("%s, input %s, weights %s, %d groups", dt_name(t), shp_text(&c->x),
                 shp_text(&c->w), c->groups);
    mem_free(expected);
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&want);
    arr_unref(&got);
}

/* ---- */

static const struct {
    enum variant_id id;
    enum gate gate;
} optional[] = {
    { VARIANT_CONV_DIRECT, GATE_VK_CONV_DIRECT },
    { VARIANT_CONV_COOP_128X128, GATE_VK_CONV_COOP_128X128 },
    { VARIANT_CONV_COOP_64X64, GATE_VK_CONV_COOP_64X64 },
    { VARIANT_CONV_COOP_32X64, GATE_VK_CONV_COOP_32X64 },
    { VARIANT_CONV_TILED_128X128, GATE_VK_CONV_TILED_128X128 },
    { VARIANT_CONV_TILED_64X64, GATE_VK_CONV_TILED_64X64 },
};

static void set_all(int64_t value)
{
    for (size_t i = 0; i < ARRAY_LEN(optional); i++)
        gate_set_int(optional[i].gate, value);
}

static void check_all(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check(&cases[i], types[i % 3]);
    for (size_t k = 0; k < ARRAY_LEN(types); k++)
        check(&cases[0], types[k]);
}

/* As the table chooses. Complex numbers have a row of their own. */
static void test_choice(void **state)
{
    (void)state;
    variant_reset();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t k = 0; k < ARRAY_LEN(types); k++)
            check(&cases[i], types[k]);
    assert_true(variant_hits(VARIANT_CONV_DIRECT) > 0);
    assert_true(variant_hits(VARIANT_CONV_TILED_32X32_K8) > 0);
}

/* One after the other is the only optional one: it runs unless the device cannot. */
static void test_each_variant(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(optional); i++) {
        enum variant_id id = optional[i].id;
        set_all(0);
        gate_set_int(optional[i].gate, 1);
        variant_reset();
        check_all();
        set_all(1);
        assert_true(variant_hits(id) > 0 || variant_rejects(id, VARIANT_DEVICE) > 0);
        for (size_t k = 0; k < ARRAY_LEN(optional); k++)
            assert_true(k == i || variant_hits(optional[k].id) == 0);
    }
}

static void test_last_variants(void **state)
{
    (void)state;
    set_all(0);
    variant_reset();
    check_all();
    set_all(1);
    assert_int_equal(variant_hits(VARIANT_CONV_TILED_32X32), ARRAY_LEN(cases) + 3);
    assert_int_equal(variant_hits(VARIANT_CONV_TILED_32X32_K8), 1);
}

/* More than kernels count with 31 bits. */
static void test_too_large(void **state)
{
    struct conv_case c = { { 3, { 1, 2, 1 } }, { 3, { 1, 2, 1 } }, 1, 0, 0, 1, 1, 1 };
    struct arr *x = operand(&c.x, DT_FLOAT32, false), *w = operand(&c.w, DT_FLOAT32, false), *y;

    (void)state;
    c.kernel_dilation = 1 << 30;
    c.input_dilation = 1 << 30;
    y = result(&c, x, w, nd_gpu);
    assert_fails(ERR_UNSUPPORTED, eval_arrays(&y, 1, false));
    arr_unref(&y);
    arr_unref(&x);
    arr_unref(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_each_variant),
        cmocka_unit_test(test_last_variants),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
