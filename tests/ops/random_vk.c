/* Random bits on the GPU: the vectors of MLX, and Threefry written out on the host. */
#include "base/mem.h"
#include "eval/eval.h"
#include "graph/op.h"
#include "support/nd.h"

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

struct pair {
    uint32_t x, y;
};

static struct pair threefry(struct pair key, struct pair counter)
{
    static const int by[2][4] = { { 13, 15, 26, 6 }, { 17, 29, 16, 24 } };
    uint32_t ks[3] = { key.x, key.y, key.x ^ key.y ^ 0x1bd11bdau };
    struct pair v = { counter.x + key.x, counter.y + key.y };

    for (uint32_t i = 0; i < 5; i++) {
        for (int k = 0; k < 4; k++) {
            v.x += v.y;
            v.y = rotate(v.y, by[i % 2][k]) ^ v.x;
        }
        v.x += ks[(i + 1) % 3];
        v.y += ks[(i + 2) % 3] + i + 1;
    }
    return v;
}

/* n bytes from one key. */
static void bits_on_host(uint8_t *out, struct pair key, size_t n)
{
    size_t words = (n + 3) / 4, half = words / 2, odd = words % 2;
    uint32_t *w = mem_alloc_array(words + 1, sizeof *w);

    assert_non_null(w);
    for (size_t i = 0; i < half; i++) {
        struct pair v = threefry(key, (struct pair){ (uint32_t)i, (uint32_t)(i + half + odd) });
        w[i] = v.x;
        w[i + half + odd] = v.y;
    }
    if (odd)
        w[half] = threefry(key, (struct pair){ (uint32_t)half, 0 }).x;
    memcpy(out, w, n);
    mem_free(w);
}

static struct arr *bits_node(struct arr *keys, int32_t n, int width)
{
    static const enum dtype types[] = { [1] = DT_UINT8, [2] = DT_UINT16, [4] = DT_UINT32 };
    struct random_bits_params p = { .width = width };
    struct out_desc out = { .dtype = types[width] };
    struct arr *r = NULL;

    arr_shape(&out.shape, keys);
    out.shape.d[out.shape.ndim - 1] = n;
    assert_ok(arr_new_op(&r, .op = OP_RANDOM_BITS, .strm = nd_gpu, .in = &keys, .n_in = 1,
                         .params = &p, .out = &out));
    return r;
}

static void check_keys(const struct nd *keys, int32_t n, int width)
{
    struct arr *out = bits_node(keys->arr, n, width);
    size_t per_key = (size_t)n * (size_t)width, n_keys = shp_size(&keys->shape) / 2;
    uint8_t *want = mem_alloc(per_key + 1);
    const uint8_t *got = nd_run(out);

    assert_non_null(want);
    for (size_t k = 0; k < n_keys; k++) {
        struct pair key = { (uint32_t)nd_get(keys, 2 * k).i, (uint32_t)nd_get(keys, 2 * k + 1).i };
        bits_on_host(want, key, per_key);
        assert_memory_equal(got + k * per_key, want, per_key);
    }
    mem_free(want);
    arr_unref(&out);
}

static void random_keys(struct nd *keys, struct rng *r, const struct shp *shape,
                        enum nd_layout layout)
{
    nd_make(keys, r, DT_UINT32, shape, layout);
    for (size_t i = 0; i < keys->n; i++)
        num_store(DT_UINT32, keys->bytes + 4 * i, (struct num){ .i = (int64_t)rng_next(r) });
    nd_view(keys);
}

static void check_vector(int32_t n, int width, const uint32_t *want)
{
    static const uint32_t zero[2] = { 0, 0 };
    struct arr *key = NULL;

    assert_ok(arr_new_data(&key, zero, &(struct shp){ 1, { 2 } }, DT_UINT32));
    struct arr *out = bits_node(key, n, width);
    const char *got = nd_run(out);
    for (int i = 0; i < n; i++)
        assert_int_equal((uint32_t)num_load((enum dtype)out->dtype, got + i * width).i, want[i]);
    arr_unref(&out);
    arr_unref(&key);
}

static void test_vectors_of_mlx(void **state)
{
    (void)state;
    check_vector(1, 4, (uint32_t[]){ 1797259609u });
    check_vector(2, 4, (uint32_t[]){ 928981903u, 3453687069u });
    check_vector(3, 4, (uint32_t[]){ 4146024105u, 1351547692u, 2718843009u });
    check_vector(4, 4, (uint32_t[]){ 4146024105u, 967050713u, 2718843009u, 1272950319u });
    check_vector(5, 2, (uint32_t[]){ 20137, 63263, 64300, 20622, 16513 });
    check_vector(1, 1, (uint32_t[]){ 89 });
}

static void test_lengths_and_widths(void **state)
{
    static const int32_t lengths[] = { 1, 2, 3, 4, 5, 7, 64, 255, 256, 257, 1001, 100003 };
    static const int widths[] = { 1, 2, 4 };
    struct rng r = { 1 };
    struct nd keys;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
            random_keys(&keys, &r, &(struct shp){ 1, { 2 } }, ND_ROW);
            check_keys(&keys, lengths[i], widths[w]);
            nd_free(&keys);
        }
}

static void test_many_keys(void **state)
{
    static const struct shp shapes[] = { { 2, { 3, 2 } }, { 3, { 5, 7, 2 } }, { 2, { 1000, 2 } } };
    struct rng r = { 2 };
    struct nd keys;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int layout = 0; layout < ND_LAYOUTS; layout++) {
            random_keys(&keys, &r, &shapes[i], (enum nd_layout)layout);
            check_keys(&keys, 5, 1);
            check_keys(&keys, 3, 2);
            check_keys(&keys, 17, 4);
            nd_free(&keys);
        }
}

static void test_nothing_asked(void **state)
{
    static const uint32_t zero[2] = { 0, 0 };
    struct arr *key = NULL;

    (void)state;
    assert_ok(arr_new_data(&key, zero, &(struct shp){ 1, { 2 } }, DT_UINT32));
    struct arr *out = bits_node(key, 0, 4);
    assert_ok(eval_arrays(&out, 1, false));
    assert_int_equal(out->size, 0);
    arr_unref(&out);
    arr_unref(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_of_mlx),
        cmocka_unit_test(test_lengths_and_widths),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_nothing_asked),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
