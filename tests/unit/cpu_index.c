/* Gather and random bits on the CPU. */
#include "eval/eval.h"
#include "support/arrays.h"

/* ---- gather ---- */

static void test_take(void **state)
{
    static const enum dtype index_types[] = { DT_INT32, DT_INT8, DT_INT64, DT_UINT8, DT_UINT32 };
    struct rng r = { 1 };
    const struct shp *s = SHAPE(5, 6, 7);

    (void)state;
    for (int axis = 0; axis < 3; axis++)
        for (int l = 0; l < LAY_COUNT; l++)
            for (size_t t = 0; t < ARRAY_LEN(index_types); t++) {
                double complex *v = random_values(&r, 210, DT_FLOAT32), ix[8];
                struct arr *a = arr_of_layout(v, s, DT_FLOAT32, (enum layout)l), *out = NULL;
                bool is_signed = dt_table[index_types[t]].kind == DT_KIND_I;
                for (int i = 0; i < 8; i++)
                    ix[i] = is_signed ? rng_below(&r, 2 * s->d[axis]) - s->d[axis]
                                      : rng_below(&r, s->d[axis]);
                struct arr *index = arr_of_layout(ix, SHAPE(2, 4), index_types[t],
                                                  l == LAY_BROADCAST ? LAY_DENSE : (enum layout)l);
                double complex *src = arr_values(a);
                assert_ok(ops_take(&out, a, index, axis, test_stream()));
                double complex *got = arr_values(out);
                size_t inner = axis == 0 ? 42 : axis == 1 ? 7 : 1, n = (size_t)s->d[axis];
                for (size_t i = 0; i < out->size; i++) {
                    int at = (int)creal(ix[i / inner % 8]);
                    size_t from =
                        (i / (inner * 8) * n + (size_t)(at < 0 ? at + (int)n : at)) * inner;
                    assert_true(got[i] == src[from + i % inner]);
                }
                mem_free(v);
                mem_free(src);
                mem_free(got);
                arr_unref(&out);
                arr_unref(&index);
                arr_unref(&a);
            }
}

/* Rows of a large table, every item size, long rows. */
static void test_take_rows(void **state)
{
    static const enum dtype types[] = { DT_BOOL, DT_BFLOAT16, DT_FLOAT32, DT_COMPLEX64 };
    struct rng r = { 2 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        double complex *v = random_values(&r, 20 * 1500, types[t]), ix[40];
        struct arr *a = arr_of(v, SHAPE(20, 1500), types[t]), *out = NULL;
        for (int i = 0; i < 40; i++)
            ix[i] = rng_below(&r, 20);
        struct arr *index = arr_of(ix, SHAPE(40), DT_UINT16);
        double complex *src = arr_values(a);
        assert_ok(ops_take(&out, a, index, 0, test_stream()));
        double complex *got = arr_values(out);
        for (size_t i = 0; i < out->size; i++)
            assert_true(got[i] == src[(size_t)creal(ix[i / 1500]) * 1500 + i % 1500]);
        mem_free(v);
        mem_free(src);
        mem_free(got);
        arr_unref(&out);
        arr_unref(&index);
        arr_unref(&a);
    }
}

/* MLX reads outside the array; we stay inside. */
static void test_indices_out_of_range(void **state)
{
    struct arr *a = arr_of((double complex[]){ 10, 11, 12 }, SHAPE(3), DT_INT32), *out = NULL;
    struct arr *index =
        arr_of((double complex[]){ 3, -4, 2000000000, -2000000000 }, SHAPE(4), DT_INT32);

    (void)state;
    assert_ok(ops_take(&out, a, index, 0, test_stream()));
    double complex *v = arr_values(out);
    assert_true(v[0] == 12 && v[1] == 10 && v[2] == 12 && v[3] == 10);
    mem_free(v);
    arr_unref(&out);
    arr_unref(&index);
    arr_unref(&a);
}

/* Two index arrays and slices wider than one. */
static void test_gather_slices(void **state)
{
    struct arr *in[3] = { NULL, arr_of((double complex[]){ 0, 2 }, SHAPE(2), DT_INT32),
                          arr_of((double complex[]){ 1, -4 }, SHAPE(2), DT_INT32) };
    struct gather_params p = { .n_axes = 2, .n = 2, .d = { { 0, 2 }, { 1, 3 } } };
    double complex v[24], want[12];
    struct arr *out = NULL;

    (void)state;
    for (int i = 0; i < 24; i++)
        v[i] = i;
    in[0] = arr_of_layout(v, SHAPE(4, 6), DT_FLOAT32, LAY_STEPPED);
    for (int i = 0; i < 12; i++) {
        int row = (i < 6 ? 0 : 2) + i / 3 % 2, col = (i < 6 ? 1 : 2) + i % 3;
        want[i] = row * 6 + col;
    }
    assert_ok(arr_new_op(&out, .op = OP_GATHER, .strm = test_stream(), .in = in, .n_in = 3,
                         .params = &p, .out = &(struct out_desc){ *SHAPE(2, 2, 3), DT_FLOAT32 }));
    double complex *got = arr_values(out);
    for (int i = 0; i < 12; i++)
        assert_true(got[i] == want[i]);
    mem_free(got);
    arr_unref(&out);
    for (int i = 0; i < 3; i++)
        arr_unref(&in[i]);
}

/* ---- random bits: the vectors of the contract ---- */

static void check_bits(const struct shp *s, int width, const uint32_t *want)
{
    struct arr *key = NULL, *out = NULL;

    assert_ok(ops_random_key(&key, 0));
    assert_ok(
        ops_random_bits(&out, (struct ints){ s->d, (size_t)s->ndim }, width, key, test_stream()));
    double complex *v = arr_values(out);
    for (size_t i = 0; i < out->size; i++)
        assert_int_equal((uint32_t)creal(v[i]), want[i]);
    mem_free(v);
    arr_unref(&out);
    arr_unref(&key);
}

static void test_bits(void **state)
{
    (void)state;
    check_bits(SHAPE(1), 4, (uint32_t[]){ 1797259609u });
    check_bits(SHAPE(2), 4, (uint32_t[]){ 928981903u, 3453687069u });
    check_bits(SHAPE(3), 4, (uint32_t[]){ 4146024105u, 1351547692u, 2718843009u });
    check_bits(SHAPE(5), 2, (uint32_t[]){ 20137, 63263, 64300, 20622, 16513 });
    check_bits(SHAPE(1), 1, (uint32_t[]){ 89 });
    check_bits(SHAPE(2, 2), 4, (uint32_t[]){ 4146024105u, 967050713u, 2718843009u, 1272950319u });
}

/* Several keys, strided: each one's bits are those of the key alone. */
static void test_many_keys(void **state)
{
    struct arr *keys = NULL, *flipped = NULL, *out = NULL;
    int32_t start[] = { 3, 0 }, stop[] = { -5, 2 }, step[] = { -1, 1 };
    struct random_bits_params p = { 1 };

    (void)state;
    assert_ok(ops_random_key(&keys, 42));
    struct arr *many = NULL;
    assert_ok(ops_random_split_num(&many, keys, 4, test_stream()));
    assert_ok(ops_slice(&flipped, many,
                        &(struct ops_slice){ { start, 2 }, { stop, 2 }, { step, 2 } },
                        test_stream()));
    assert_ok(arr_new_op(&out, .op = OP_RANDOM_BITS, .strm = test_stream(), .in = &flipped,
                         .n_in = 1, .params = &p,
                         .out = &(struct out_desc){ *SHAPE(4, 7), DT_UINT8 }));
    double complex *got = arr_values(out);
    for (int k = 0; k < 4; k++) {
        struct arr *row = NULL, *key = NULL, *alone = NULL;
        int32_t from[] = { 3 - k, 0 }, to[] = { 4 - k, 2 }, one[] = { 1, 1 }, seven[] = { 7 };
        assert_ok(ops_slice(&row, many, &(struct ops_slice){ { from, 2 }, { to, 2 }, { one, 2 } },
                            test_stream()));
        assert_ok(ops_reshape(&key, row, (struct ints){ (int32_t[]){ 2 }, 1 }, test_stream()));
        assert_ok(ops_random_bits(&alone, (struct ints){ seven, 1 }, 1, key, test_stream()));
        double complex *v = arr_values(alone);
        for (int i = 0; i < 7; i++)
            assert_true(got[k * 7 + i] == v[i]);
        mem_free(v);
        arr_unref(&alone);
        arr_unref(&key);
        arr_unref(&row);
    }
    mem_free(got);
    arr_unref(&out);
    arr_unref(&flipped);
    arr_unref(&many);
    arr_unref(&keys);
}

/* Many threads agree with one: word i does not depend on the partition. */
static void test_many_words(void **state)
{
    struct arr *key = NULL, *out = NULL, *bytes = NULL;
    int32_t words[] = { 100001 }, narrow[] = { 400003 };

    (void)state;
    assert_ok(ops_random_key(&key, 7));
    assert_ok(ops_random_bits(&out, (struct ints){ words, 1 }, 4, key, test_stream()));
    assert_ok(ops_random_bits(&bytes, (struct ints){ narrow, 1 }, 1, key, test_stream()));
    uint32_t *w = arr_bytes(out);
    uint8_t *b = arr_bytes(bytes);
    /* 400003 bytes are the same 100001 words, cut off. */
    assert_memory_equal(w, b, 400003);
    mem_free(w);
    mem_free(b);
    arr_unref(&bytes);
    arr_unref(&out);
    arr_unref(&key);
}

static void test_uniform(void **state)
{
    struct arr *key = NULL, *out = NULL;
    struct arr *low = arr_of((double complex[]){ 0 }, &(struct shp){ 0 }, DT_FLOAT32);
    struct arr *high = arr_of((double complex[]){ 1 }, &(struct shp){ 0 }, DT_FLOAT32);
    int32_t three[] = { 3 };
    static const float want[] = { 0.96532148f, 0.31468171f, 0.63303000f };

    (void)state;
    assert_ok(ops_random_key(&key, 0));
    assert_ok(ops_random_uniform(
        &out,
        &(struct ops_random){
            .shape = { three, 1 }, .dtype = DT_FLOAT32, .low = low, .high = high, .key = key },
        test_stream()));
    double complex *v = arr_values(out);
    for (int i = 0; i < 3; i++)
        assert_true((float)creal(v[i]) == want[i]);
    mem_free(v);
    arr_unref(&out);
    arr_unref(&key);
    arr_unref(&low);
    arr_unref(&high);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_take_rows),
        cmocka_unit_test(test_indices_out_of_range),
        cmocka_unit_test(test_gather_slices),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_many_words),
        cmocka_unit_test(test_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
