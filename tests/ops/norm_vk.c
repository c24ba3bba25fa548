/* Norms on the GPU against double precision on the host, and merged with an addition. */
#include <math.h>

#include "backend/vulkan/ops/norm.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "support/nd.h"

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };

#define EPS 1e-5f

struct inputs {
    struct nd x, weight, bias;
    bool is_centred;
};

static void inputs_make(struct inputs *in, struct rng *r, enum dtype t, const struct shp *shape,
                        enum nd_layout layout)
{
    struct shp last = { 1, { shape->d[shape->ndim - 1] } };

    nd_make(&in->x, r, t, shape, layout);
    nd_make(&in->weight, r, t, &last, layout == ND_SHIFTED ? ND_SHIFTED : ND_ROW);
    nd_make(&in->bias, r, t, &last, layout == ND_SLICED ? ND_SLICED : ND_ROW);
}

static void inputs_free(struct inputs *in)
{
    nd_free(&in->x);
    nd_free(&in->weight);
    nd_free(&in->bias);
}

static struct arr *norm_of(const struct inputs *in)
{
    struct arr *out = NULL;

    if (in->is_centred)
        assert_ok(ops_layer_norm(&out, in->x.arr,
                                 &(struct ops_layer_norm){ in->weight.arr, in->bias.arr, EPS },
                                 nd_gpu));
    else
        assert_ok(ops_rms_norm(&out, in->x.arr, in->weight.arr, EPS, nd_gpu));
    return out;
}

static double rounded(enum dtype t, double v)
{
    char bytes[8];

    num_store(t, bytes, (struct num){ .re = v });
    return num_load(t, bytes).re;
}

static void check_row(const struct inputs *in, const char *got, size_t row)
{
    enum dtype t = in->x.dtype;
    size_t n = (size_t)in->weight.shape.d[0];
    double mean = 0, squares = 0;

    for (size_t i = 0; in->is_centred && i < n; i++)
        mean += nd_get(&in->x, row * n + i).re / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += pow(nd_get(&in->x, row * n + i).re - mean, 2);
    double factor = 1 / sqrt(squares / (double)n + (double)EPS);
    for (size_t i = 0; i < n; i++) {
        double v = rounded(t, (nd_get(&in->x, row * n + i).re - mean) * factor);
        v *= nd_get(&in->weight, i).re;
        if (in->is_centred)
            v = rounded(t, v) + nd_get(&in->bias, i).re;
        nd_check(t, num_load(t, got + i * dt_size(t)), (struct num){ .re = v }, 2 * fabs(v) + 2,
                 shp_text(&in->x.shape));
    }
}

static void check(struct rng *r, enum dtype t, const struct shp *shape, enum nd_layout layout)
{
    struct inputs in;

    inputs_make(&in, r, t, shape, layout);
    for (int centred = 0; centred < 2; centred++) {
        in.is_centred = centred;
        struct arr *out = norm_of(&in);
        const char *got = nd_run(out);
        size_t n = (size_t)in.weight.shape.d[0];
        for (size_t row = 0; row < out->size / n; row++)
            check_row(&in, got + row * n * dt_size(t), row);
        arr_unref(&out);
    }
    inputs_free(&in);
}

static void test_lengths(void **state)
{
    static const int32_t lengths[] = { 1,   2,   7,    8,    64,   100,   128,  255,
                                       256, 511, 1024, 2048, 4097, 16384, 70003 };
    struct rng r = { 1 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        check(&r, types[i % ARRAY_LEN(types)], &(struct shp){ 2, { 3, lengths[i] } }, ND_ROW);
}

/* Workgroups of many subgroups, which a software device does not choose by itself. */
static void test_large_workgroups(void **state)
{
    static const int32_t lengths[] = { 5, 64, 513, 1024, 4095, 8192, 33000 };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    struct rng r = { 2 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        check(&r, types[i % ARRAY_LEN(types)], &(struct shp){ 2, { 5, lengths[i] } },
              i % 2 ? ND_SHIFTED : ND_ROW);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static void test_layouts(void **state)
{
    static const struct shp shapes[] = { { 1, { 77 } },
                                         { 3, { 4, 5, 64 } },
                                         { 4, { 2, 3, 4, 40 } } };
    struct rng r = { 3 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int layout = 0; layout < ND_LAYOUTS; layout++)
            check(&r, types[layout % 3], &shapes[i], (enum nd_layout)layout);
}

static void test_walk(void **state)
{
    struct rng r = { 4 };
    uint64_t before = variant_hits(VARIANT_NORM_WALK);

    (void)state;
    gate_set_int(GATE_VK_NORM_ROW, 0);
    check(&r, DT_BFLOAT16, &(struct shp){ 2, { 6, 96 } }, ND_ROW);
    gate_set_int(GATE_VK_NORM_ROW, 1);
    assert_int_equal(variant_hits(VARIANT_NORM_WALK) - before, 2);
}

/* NaN and infinities among the values, or in the weights. */
static void test_not_finite(void **state)
{
    static const double odd[] = { (double)NAN, (double)INFINITY, -(double)INFINITY };
    struct rng r = { 9 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types) * ARRAY_LEN(odd); k++)
        for (int in_weight = 0; in_weight < 2; in_weight++) {
            struct inputs in = { .is_centred = k % 2 };
            enum dtype t = types[k % ARRAY_LEN(types)];
            inputs_make(&in, &r, t, &(struct shp){ 2, { 2, 32 } }, ND_ROW);
            struct nd *a = in_weight ? &in.weight : &in.x;
            num_store(t, nd_at(a, 5), (struct num){ .re = odd[k / ARRAY_LEN(types)] });
            nd_view(a);
            struct arr *out = norm_of(&in);
            const char *got = nd_run(out);
            for (size_t row = 0; row < 2; row++)
                check_row(&in, got + row * 32 * dt_size(t), row);
            arr_unref(&out);
            inputs_free(&in);
        }
}

static void test_many_rows(void **state)
{
    struct rng r = { 5 };

    (void)state;
    check(&r, DT_FLOAT16, &(struct shp){ 2, { 5000, 16 } }, ND_ROW);
}

static void test_without_kernels(void **state)
{
    struct rng r = { 6 };

    (void)state;
    gate_set_int(GATE_VK_NORM_NATIVE, 0);
    check(&r, DT_FLOAT32, &(struct shp){ 2, { 3, 20 } }, ND_ROW);
    gate_set_int(GATE_VK_NORM_NATIVE, 1);
}

/* A result that is normed again is written over itself. */
static void test_in_place(void **state)
{
    struct rng r = { 7 };
    struct inputs in = { .is_centred = false };
    struct arr *twice = NULL;

    (void)state;
    inputs_make(&in, &r, DT_FLOAT32, &(struct shp){ 2, { 3, 2000 } }, ND_ROW);
    struct arr *once = norm_of(&in);
    assert_ok(ops_rms_norm(&twice, once, in.weight.arr, EPS, nd_gpu));
    arr_unref(&once);
    uint64_t before = stat_get(STAT_DONATIONS);
    (void)nd_run(twice);
    assert_true(stat_get(STAT_DONATIONS) > before);
    arr_unref(&twice);
    inputs_free(&in);
}

/* ---- merged with an addition ---- */

static struct arr *new_output(const struct arr *like)
{
    struct shp shape;
    struct arr *a = NULL;

    arr_shape(&shape, like);
    assert_ok(arr_new_empty(&a, &shape, (enum dtype)like->dtype));
    assert_ok(arr_alloc(a, nd_gpu->be));
    return a;
}

static void assert_same_bits(struct arr *a, struct arr *b)
{
    const void *x, *y;

    assert_ok(buf_host(&x, a->buf));
    assert_ok(arr_host(&y, b));
    assert_memory_equal((const char *)x + a->offset, y, arr_nbytes(b));
}

/* The same bits as an addition and a norm on their own. */
static void check_merged(enum dtype t, int32_t length, enum nd_layout layout)
{
    struct rng r = { 8 };
    struct shp shape = { 3, { 2, 3, length } };
    struct nd addend;
    struct inputs in = { .is_centred = false };
    struct arr *sum = NULL, *norm = NULL;
    struct vk_enc *e;

    inputs_make(&in, &r, t, &shape, layout);
    nd_make(&addend, &r, t, &shape, ND_ROW);
    assert_ok(eval_arrays(&in.x.arr, 1, false));
    assert_ok(ops_binary(&sum, OP_ADD, in.x.arr, addend.arr, nd_gpu));
    assert_ok(ops_rms_norm(&norm, sum, in.weight.arr, EPS, nd_gpu));
    assert_ok(eval_arrays((struct arr *[]){ sum, norm }, 2, false));

    struct arr *dst = new_output(norm), *total = new_output(norm);
    assert_ok(vk_enc_get(&e, nd_gpu));
    assert_ok(vk_norm_encode(e, &(struct vk_norm){ .x = in.x.arr,
                                                   .addend = addend.arr,
                                                   .weight = in.weight.arr,
                                                   .eps = EPS,
                                                   .dst = dst,
                                                   .sum = total }));
    assert_ok(nd_gpu->be->sync(nd_gpu));
    assert_same_bits(total, sum);
    assert_same_bits(dst, norm);
    arr_unref(&dst);
    arr_unref(&total);
    arr_unref(&norm);
    arr_unref(&sum);
    nd_free(&addend);
    inputs_free(&in);
}

static void test_merged(void **state)
{
    static const int32_t lengths[] = { 24, 128, 1000, 1024, 5000 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        check_merged(types[i % ARRAY_LEN(types)], lengths[i], ND_ROW);
    check_merged(DT_BFLOAT16, 128, ND_SHIFTED);
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    check_merged(DT_BFLOAT16, 1024, ND_ROW);
    check_merged(DT_FLOAT16, 3000, ND_ROW);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),         cmocka_unit_test(test_large_workgroups),
        cmocka_unit_test(test_layouts),         cmocka_unit_test(test_walk),
        cmocka_unit_test(test_not_finite),      cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_without_kernels), cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_merged),          cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("norm_vk", tests, nd_open, NULL);
}
