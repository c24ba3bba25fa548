/* Gradients and batches of packed matrices: packing, unpacking, products. */
#include <math.h>

#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define U DT_UINT32
#define B DT_UINT8

#define AFFINE                                                                                     \
    {                                                                                              \
        32, 4, QUANT_AFFINE                                                                        \
    }
static const struct quantize_params pack = { AFFINE, 0, F },
                                    pack_mxfp4 = { { 32, 4, QUANT_MXFP4 } },
                                    pack_nvfp4 = { { 16, 4, QUANT_NVFP4 } },
                                    unpack = { AFFINE, 1, F },
                                    unpack_3_bits = { { 32, 3, QUANT_AFFINE }, 1, F },
                                    unpack_mxfp4 = { { 32, 4, QUANT_MXFP4 }, 1, F },
                                    unpack_nvfp4 = { { 16, 4, QUANT_NVFP4 }, 1, F };

static const struct rule_subject subjects[] = {
    { "dequantize",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 8 } }, { 2, { 2, 2 } }, { 2, { 2, 2 } } },
      { U, F, F },
      3,
      .grads = 6,
      .is_single = true,
      .is_smooth = true,
      .with = &unpack },
    { "dequantize 3 bits of batches",
      OP_QUANTIZE,
      rules_node,
      { { 3, { 2, 1, 3 } }, { 3, { 2, 1, 1 } }, { 3, { 2, 1, 1 } } },
      { U, F, F },
      3,
      .grads = 6,
      .is_single = true,
      .with = &unpack_3_bits },
    { "dequantize mxfp4",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 8 } }, { 2, { 2, 2 } } },
      { U, B },
      2,
      .is_flat = true,
      .is_single = true,
      .with = &unpack_mxfp4 },
    { "dequantize nvfp4",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 4 } }, { 2, { 2, 2 } }, { 0 } },
      { U, B, F },
      3,
      .grads = 4,
      .whole = 4,
      .is_single = true,
      .with = &unpack_nvfp4 },
    { "quantize",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 64 } } },
      { F },
      1,
      .n_out = 3,
      .is_single = true,
      .with = &pack },
    { "quantize mxfp4",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 64 } } },
      { F },
      1,
      .n_out = 2,
      .is_flat = true,
      .is_single = true,
      .with = &pack_mxfp4 },
    { "quantize nvfp4",
      OP_QUANTIZE,
      rules_node,
      { { 2, { 2, 32 } }, { 0 } },
      { F, F },
      2,
      .n_out = 2,
      .whole = 2,
      .is_flat = true,
      .is_single = true,
      .with = &pack_nvfp4 },
};

TEST_RULES(subjects)

/* The words are not differentiated: such an op is tested below. */
static void test_packing_without_memory(void **state)
{
    struct rule_subject packing = subjects[4];

    (void)state;
    packing.grads = 1;
    rules_check_memory(&packing, 1);
}

/* ---- packing ---- */

#define GROUP 32
#define FIRST 3
#define SECOND (GROUP + 5)
#define OTHER (GROUP + 7)

/* Two groups of `rest`, but for some elements: of the first group, and two of the second. */
static struct arr *row(double rest, double first, double second, double other)
{
    double complex v[2 * GROUP];

    for (int i = 0; i < 2 * GROUP; i++)
        v[i] = rest;
    v[FIRST] = first;
    v[SECOND] = second;
    v[OTHER] = other;
    return arr_of(v, SHAPE(1, 2 * GROUP), F);
}

static struct arr *pair(double a, double b)
{
    return arr_of((double complex[]){ a, b }, SHAPE(1, 2), F);
}

static void check_near(struct arr *a, struct arr *want)
{
    double complex *v = arr_values(a), *w = arr_values(want);

    assert_true(arr_same_shape(a, want) && a->dtype == want->dtype);
    for (size_t i = 0; i < a->size; i++)
        if (!(cabs(v[i] - w[i]) <= 1e-6))
            fail_msg("element %zu is %g, not %g", i, creal(v[i]), creal(w[i]));
    mem_free(v);
    mem_free(w);
}

/* The element of largest magnitude is the bias, and the scale that by a whole number: -2 / -24 and
 * 4 / -13. One that is as large has half of what comes back. */
static void check_edges(bool tie, struct strm *s)
{
    double part = tie ? 0.5 : 1;
    struct arr *w = row(-0.75, -2, 4, tie ? 4 : 1), *cotan[3] = { NULL, pair(-48, 26), pair(1, 5) },
               *change = row(7, 3, 3, 0), *y[3], *g = NULL, *t[3] = { NULL };
    struct arr *want[3] = { row(0, 3, 3 * part, tie ? 1.5 : 0), pair(-3 / 24.0, -3 / 13.0 * part),
                            pair(3, 3 * part) };
    int first = 0;

    assert_ok(ops_make(y, OP_QUANTIZE, &pack, (struct arrs){ &w, 1 }, s));
    struct op_apply f = {
        .op = OP_QUANTIZE, .params = &pack, .in = &w, .n_in = 1, .n_out = 3, .strm = s
    };
    struct vjp_call v = { f, y, cotan, &first, 1, &g };
    struct jvp_call j = { f, y, &change, t };
    assert_ok(op_table[OP_QUANTIZE].vjp(&v));
    assert_ok(op_table[OP_QUANTIZE].jvp(&j));
    assert_null(t[0]);
    check_near(g, want[0]);
    check_near(t[1], want[1]);
    check_near(t[2], want[2]);
    arr_unref_all((struct arr *[]){ w, change, g, cotan[1], cotan[2], t[1], t[2] }, 7);
    arr_unref_all(y, 3);
    arr_unref_all(want, 3);
}

static void test_packing(void **state)
{
    (void)state;
    check_edges(false, test_stream());
    check_edges(true, test_stream());
}

/* ---- what there is no rule for ---- */

/* A scale of eight bits has no gradient: MLX's error. */
static void test_scales_of_modes(void **state)
{
    static const struct quantized_matmul_params p = { { 32, 4, QUANT_MXFP4 }, true, false, false };
    struct strm *s = test_stream();
    struct arr *in[3] = { NULL }, *y = NULL, *result = NULL;
    int scales = 2;

    (void)state;
    assert_ok(ops_fill(&in[0], (struct ints){ (int32_t[]){ 2, 32 }, 2 }, 1, F, s));
    assert_ok(ops_fill(&in[1], (struct ints){ (int32_t[]){ 2, 4 }, 2 }, 1, U, s));
    assert_ok(ops_fill(&in[2], (struct ints){ (int32_t[]){ 2, 1 }, 2 }, 1, B, s));
    assert_ok(ops_make(&y, OP_QUANTIZED_MATMUL, &p, (struct arrs){ in, 3 }, s));
    struct op_apply apply = {
        .op = OP_QUANTIZED_MATMUL, .params = &p, .in = in, .n_in = 3, .n_out = 1, .strm = s
    };
    struct vjp_call v = { apply, &y, &y, &scales, 1, &result };
    assert_fails(ERR_ARG, op_table[OP_QUANTIZED_MATMUL].vjp(&v));
    assert_null(result);
    arr_unref_all(in, 3);
    arr_unref(&y);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_packing_without_memory),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_scales_of_modes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
