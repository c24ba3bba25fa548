/* Rows of packed tables on the GPU: taken and unpacked in one dispatch, or one op after the other.
 */
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "plan/rewrite.h"
#include "support/nd.h"

static struct rng rng = { 3 };
static struct strm *cpu;

/* ---- tables ---- */

struct table {
    struct quant_params q;
    struct arr *w, *scales, *biases, *global_scale; /* NULL: none */
};

/* Any words; scales of the fp modes whose products are no subnormals, which devices may flush. */
static struct arr *random_bits(int32_t rows, int32_t cols, enum dtype t)
{
    size_t size = (size_t)rows * (size_t)cols * dt_size(t);
    uint8_t *bytes = mem_alloc(size);
    struct arr *a = NULL;

    for (size_t i = 0; i < size; i++)
        bytes[i] =
            t == DT_UINT32 ? (uint8_t)rng_next(&rng) & 0xbf : (uint8_t)(80 + rng_below(&rng, 47));
    assert_ok(arr_new_data(&a, bytes, &(struct shp){ 2, { rows, cols } }, t));
    mem_free(bytes);
    return a;
}

static struct arr *random_numbers(int32_t rows, int32_t cols, enum dtype t)
{
    struct shp shape = { 2, { rows, cols } };
    struct arr *a = NULL;
    struct nd n;

    nd_make(&n, &rng, t, &shape, ND_ROW);
    assert_ok(arr_new_data(&a, nd_at(&n, 0), &shape, t));
    nd_free(&n);
    return a;
}

static struct table table_new(struct quant_params q, int32_t rows, int32_t cols, enum dtype t)
{
    bool is_affine = q.mode == QUANT_AFFINE;
    int32_t groups = cols / q.group_size;

    return (struct table){ .q = q,
                           .w = random_bits(rows, cols * q.bits / 32, DT_UINT32),
                           .scales = is_affine ? random_numbers(rows, groups, t)
                                               : random_bits(rows, groups, DT_UINT8),
                           .biases = is_affine ? random_numbers(rows, groups, t) : NULL };
}

static void table_free(struct table *t)
{
    arr_unref(&t->w);
    arr_unref(&t->scales);
    arr_unref(&t->biases);
    arr_unref(&t->global_scale);
}

static struct arr *few_ids(const int32_t *v, int32_t n)
{
    struct arr *ids = NULL;

    assert_ok(arr_new_data(&ids, v, &(struct shp){ 1, { n } }, DT_INT32));
    return ids;
}

/* ---- embeddings ---- */

static struct arr *unpacked(const struct table *t, struct arr **rows, struct strm *s)
{
    static const char *const modes[] = { "affine", "mxfp4", "mxfp8", "nvfp4" };
    struct ops_packed w = {
        rows[0], rows[1], rows[2], { &t->q.group_size, &t->q.bits, modes[t->q.mode] }
    };
    struct arr *out = NULL;

    assert_ok(
        ops_dequantize(&out, &w, &(struct ops_dequantize){ .global_scale = t->global_scale }, s));
    for (int i = 0; i < 3; i++)
        arr_unref(&rows[i]);
    return out;
}

static struct arr *embedding(const struct table *t, struct arr *ids, struct strm *s)
{
    struct arr *rows[3] = { NULL, NULL, NULL };

    assert_ok(ops_take(&rows[0], t->w, ids, 0, s));
    assert_ok(ops_take(&rows[1], t->scales, ids, 0, s));
    if (t->biases)
        assert_ok(ops_take(&rows[2], t->biases, ids, 0, s));
    return unpacked(t, rows, s);
}

/* Dispatches of the evaluation. */
static uint64_t run(struct arr *a)
{
    uint64_t before = stat_get(STAT_DISPATCHES);

    assert_ok(eval_arrays(&a, 1, false));
    return stat_get(STAT_DISPATCHES) - before;
}

static void assert_same(struct arr *a, struct arr *b)
{
    const void *x, *y;

    assert_int_equal(a->size, b->size);
    assert_ok(arr_host(&x, a));
    assert_ok(arr_host(&y, b));
    assert_memory_equal(x, y, arr_nbytes(a));
}

/* Takes both arrays: the second, made node by node, has the bits of the first. Gives the dispatches
 * of the first. */
static uint64_t compare(struct arr *whole, struct arr *apart)
{
    uint64_t n = run(whole);

    gate_set_int(GATE_PLAN_EMBEDDING, 0);
    assert_true(run(apart) > 2);
    gate_set_int(GATE_PLAN_EMBEDDING, 1);
    assert_same(whole, apart);
    arr_unref(&whole);
    arr_unref(&apart);
    return n;
}

/* The same bits in one dispatch, one by one, and on the CPU. */
static void check(const struct table *t, struct arr *ids)
{
    struct arr *host = embedding(t, ids, cpu), *whole = embedding(t, ids, nd_gpu);

    assert_ok(eval_arrays(&ids, 1, false));
    run(host);
    assert_int_equal(run(whole), 1);
    assert_same(whole, host);
    arr_unref(&whole);
    arr_unref(&host);
    assert_int_equal(compare(embedding(t, ids, nd_gpu), embedding(t, ids, nd_gpu)), 1);
}

/* ---- what the group takes ---- */

static const enum dtype types[] = { DT_BFLOAT16, DT_FLOAT16, DT_FLOAT32 };

static void test_formats(void **state)
{
    static const struct quant_params formats[] = {
        { 32, 2, QUANT_AFFINE }, { 64, 3, QUANT_AFFINE }, { 128, 4, QUANT_AFFINE },
        { 32, 5, QUANT_AFFINE }, { 64, 6, QUANT_AFFINE }, { 32, 8, QUANT_AFFINE },
        { 32, 4, QUANT_MXFP4 },  { 32, 8, QUANT_MXFP8 },  { 16, 4, QUANT_NVFP4 },
    };
    static const int32_t v[] = { 3, 0, 10, 10, 7 };
    struct arr *ids = few_ids(v, ARRAY_LEN(v));

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(formats); i++)
        for (size_t k = 0; k < ARRAY_LEN(types); k++) {
            struct table t = table_new(formats[i], 11, 384, types[k]);
            check(&t, ids);
            table_free(&t);
        }
    arr_unref(&ids);
}

static void test_global_scale(void **state)
{
    static const int32_t v[] = { 5, 2 };
    struct table t = table_new((struct quant_params){ 16, 4, QUANT_NVFP4 }, 7, 64, DT_FLOAT32);
    struct arr *ids = few_ids(v, ARRAY_LEN(v));

    (void)state;
    assert_ok(arr_new_data(&t.global_scale, &(float){ 3.5f }, &(struct shp){ 0 }, DT_FLOAT32));
    check(&t, ids);
    arr_unref(&ids);
    table_free(&t);
}

/* Some negative, some out of range. */
static void fill_ids(struct nd *ids, enum dtype t, int from, int to)
{
    for (size_t i = 0; i < ids->n; i++)
        num_store(t, ids->bytes + i * dt_size(t),
                  (struct num){ .i = from + rng_below(&rng, to - from) });
    nd_view(ids);
}

static void test_indices(void **state)
{
    static const enum dtype index_types[] = { DT_UINT8, DT_UINT16, DT_UINT32, DT_UINT64,
                                              DT_INT8,  DT_INT16,  DT_INT32,  DT_INT64 };
    static const struct shp shapes[] = {
        { 1, { 1 } }, { 2, { 1, 1 } }, { 2, { 1, 37 } }, { 3, { 3, 2, 5 } }
    };
    struct table t = table_new((struct quant_params){ 64, 4, QUANT_AFFINE }, 19, 128, DT_FLOAT16);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(index_types); i++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
            for (int layout = 0; layout < ND_LAYOUTS; layout++) {
                struct nd ids;
                nd_make(&ids, &rng, index_types[i], &shapes[k], (enum nd_layout)layout);
                fill_ids(&ids, index_types[i], -40, 40);
                check(&t, ids.arr);
                nd_free(&ids);
            }
    table_free(&t);
}

/* A prompt; rows of which many share a workgroup, or which begin anywhere in one. */
static void test_many_ids(void **state)
{
    static const int32_t widths[] = { 32, 96, 1056 };
    static const struct shp shape = { 2, { 1, 512 } };
    int64_t old = gate_int(GATE_VK_WORKGROUP);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        struct table t =
            table_new((struct quant_params){ 32, 4, QUANT_AFFINE }, 300, widths[i], DT_BFLOAT16);
        struct nd ids;
        nd_make(&ids, &rng, DT_UINT32, &shape, ND_ROW);
        fill_ids(&ids, DT_UINT32, 0, 300);
        check(&t, ids.arr);
        gate_set_int(GATE_VK_WORKGROUP, 256);
        check(&t, ids.arr);
        gate_set_int(GATE_VK_WORKGROUP, old);
        nd_free(&ids);
        table_free(&t);
    }
}

static void test_no_ids(void **state)
{
    struct table t = table_new((struct quant_params){ 32, 4, QUANT_AFFINE }, 5, 32, DT_FLOAT16);
    struct arr *ids = few_ids(NULL, 0), *out = embedding(&t, ids, nd_gpu);

    (void)state;
    assert_int_equal(run(out), 0);
    assert_int_equal(out->size, 0);
    arr_unref(&out);
    arr_unref(&ids);
    table_free(&t);
}

/* ---- what it does not take ---- */

static void check_refused(const struct table *t, enum group_reason why)
{
    static const int32_t v[] = { 6, -1, 8 };
    struct arr *ids = few_ids(v, ARRAY_LEN(v));

    rewrite_reset();
    assert_true(compare(embedding(t, ids, nd_gpu), embedding(t, ids, nd_gpu)) > 1);
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 0);
    assert_int_equal(rewrite_rejects(REWRITE_EMBEDDING, why), 1);
    arr_unref(&ids);
}

/* Tables of different lengths end in different places. */
static void test_other_length(void **state)
{
    struct table t = table_new((struct quant_params){ 32, 4, QUANT_AFFINE }, 9, 64, DT_FLOAT16);

    (void)state;
    arr_unref(&t.scales);
    t.scales = random_numbers(7, 2, DT_FLOAT16);
    check_refused(&t, GROUP_SIZE);
    table_free(&t);
}

static void test_strided_table(void **state)
{
    static const int32_t start[] = { 0, 0 }, stop[] = { 10, 2 }, step[] = { 2, 1 };
    struct table t = table_new((struct quant_params){ 32, 8, QUANT_AFFINE }, 5, 64, DT_FLOAT32);
    struct arr *wide = random_numbers(10, 2, DT_FLOAT32);

    (void)state;
    arr_unref(&t.biases);
    assert_ok(ops_slice(&t.biases, wide,
                        &(struct ops_slice){ { start, 2 }, { stop, 2 }, { step, 2 } }, nd_gpu));
    check_refused(&t, GROUP_LAYOUT);
    arr_unref(&wide);
    table_free(&t);
}

/* ---- plans: the same structure, other params ---- */

/* Rows or columns, in the nodes of an embedding. */
static struct arr *gather(struct arr *a, struct arr *ids, int axis)
{
    int32_t n = ids->shape[0], length = a->shape[!axis];
    struct gather_params p = { .n_axes = 1, .n = 2, .d = { { axis, 1 }, { 0, 1 } } };
    struct out_desc d = { .dtype = (enum dtype)a->dtype, .shape = { 3, { n, 1, 1 } } };
    struct arr *rows = NULL, *out = NULL;

    p.d[!axis].size = d.shape.d[1 + !axis] = length;
    assert_ok(arr_new_op(&rows, .op = OP_GATHER, .strm = nd_gpu, .in = (struct arr *[]){ a, ids },
                         .n_in = 2, .params = &p, .out = &d));
    assert_ok(ops_reshape(&out, rows, (struct ints){ (int32_t[]){ n, length }, 2 }, nd_gpu));
    arr_unref(&rows);
    return out;
}

static struct arr *along(const struct table *t, struct arr *ids, int axis)
{
    struct arr *rows[3] = { gather(t->w, ids, axis), gather(t->scales, ids, axis),
                            gather(t->biases, ids, axis) };

    return unpacked(t, rows, nd_gpu);
}

static void test_plan_with_other_params(void **state)
{
    static const int32_t v[] = { 1, 3, 2 };
    struct table t[] = {
        table_new((struct quant_params){ 32, 8, QUANT_AFFINE }, 9, 64, DT_FLOAT32),
        { .q = { 64, 4, QUANT_AFFINE }, /* its columns are packed */
          .w = random_bits(8, 9, DT_UINT32),
          .scales = random_numbers(1, 9, DT_FLOAT32),
          .biases = random_numbers(1, 9, DT_FLOAT32) },
        table_new((struct quant_params){ 64, 3, QUANT_AFFINE }, 5, 128, DT_FLOAT32),
    };
    struct arr *ids = few_ids(v, ARRAY_LEN(v));

    (void)state;
    rewrite_reset();
    for (int i = 0; i < 3; i++)
        compare(along(&t[i], ids, i & 1), along(&t[i], ids, i & 1));
    assert_int_equal(rewrite_hits(REWRITE_EMBEDDING), 2);
    assert_int_equal(rewrite_rejects(REWRITE_EMBEDDING, GROUP_PARAMS), 1);
    arr_unref(&ids);
    for (int i = 0; i < 3; i++)
        table_free(&t[i]);
}

static int open_streams(void **state)
{
    return nd_open_for_counts(state) != 0 || strm_new(&cpu, (struct dev){ DEV_CPU, 0 }) != ERR_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_global_scale),
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_many_ids),
        cmocka_unit_test(test_no_ids),
        cmocka_unit_test(test_other_length),
        cmocka_unit_test(test_strided_table),
        cmocka_unit_test(test_plan_with_other_params),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, open_streams, NULL);
}
