/* More elements than 32 bits count. Without much memory a row is seen many times; on a device that
 * has it, 2 GiB of random bytes are made and read back. */
#include "backend/backend.h"
#include "base/mem.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/nd.h"
#include "support/room.h"

#define GIB ((size_t)1 << 30)
/* Rows whose elements together do not fit an int32, and whose 32-bit sums fit one allocation of the
 * device. No power of two divides their length. */
#define ROWS 3
#define ROW_BYTES 805306869

/* Runs on the GPU; the rest is as for node_new. */
static struct arr *make(struct node_params p)
{
    struct arr *r = NULL;

    p.strm = nd_gpu;
    p.n_out = 1;
    assert_ok(node_new(&r, &p));
    return r;
}

static struct arr *sum_over(struct arr *in, int axis, enum dtype t)
{
    struct reduce_params p = { .kind = REDUCE_SUM, .n = 1, .axis = { axis } };
    struct out_desc out = { .dtype = t };

    arr_shape(&out.shape, in);
    out.shape.d[axis] = 1;
    return make(
        (struct node_params){ .op = OP_REDUCE, .in = &in, .n_in = 1, .params = &p, .out = &out });
}

/* One row that is seen again and again. */
static void test_sum_past_32_bits(void **state)
{
    enum { TIMES = 65537, LENGTH = 65539 };
    struct ops_as_strided view = { .shape = { (int32_t[]){ TIMES, LENGTH }, 2 },
                                   .strides = (int64_t[]){ 0, 1 },
                                   .n_strides = 2 };
    struct reduce_params p = { .kind = REDUCE_SUM, .n = 2, .axis = { 0, 1 } };
    struct out_desc out = { { 2, { 1, 1 } }, DT_UINT32 };
    uint8_t *bytes = mem_alloc(LENGTH);
    struct rng r = { 1 };
    struct arr *row = NULL, *in = NULL;
    uint32_t want = 0;

    (void)state;
    assert_non_null(bytes);
    for (int i = 0; i < LENGTH; i++)
        want += bytes[i] = (uint8_t)rng_below(&r, 256);
    assert_ok(arr_new_data(&row, bytes, &(struct shp){ 1, { LENGTH } }, DT_UINT8));
    assert_ok(ops_as_strided(&in, row, &view, nd_gpu));
    struct arr *sum = make(
        (struct node_params){ .op = OP_REDUCE, .in = &in, .n_in = 1, .params = &p, .out = &out });
    assert_int_equal(*(const uint32_t *)nd_run(sum), want * TIMES);
    arr_unref(&sum);
    arr_unref(&in);
    arr_unref(&row);
    mem_free(bytes);
}

/* ---- with memory ---- */

static struct arr *random_rows(void)
{
    static const uint32_t words[2] = { 7, 8 };
    struct random_bits_params p = { .width = 1 };
    struct out_desc out = { { 2, { ROWS, ROW_BYTES } }, DT_UINT8 };
    struct arr *key = NULL;

    assert_ok(arr_new_data(&key, words, &(struct shp){ 1, { 2 } }, DT_UINT32));
    struct arr *a = make((struct node_params){
        .op = OP_RANDOM_BITS, .in = &key, .n_in = 1, .params = &p, .out = &out });
    arr_unref(&key);
    return a;
}

static void check_row_sums(struct arr *a, const uint8_t *bytes)
{
    struct arr *sums = sum_over(a, 1, DT_UINT32);
    const uint32_t *got = nd_run(sums);

    for (int row = 0; row < ROWS; row++) {
        uint32_t want = 0;
        for (int32_t i = 0; i < ROW_BYTES; i++)
            want += bytes[(size_t)row * ROW_BYTES + (size_t)i];
        assert_int_equal(got[row], want);
    }
    arr_unref(&sums);
}

static void check_column_sums(struct arr *a, const uint8_t *bytes)
{
    struct arr *sums = sum_over(a, 0, DT_UINT32);
    const uint32_t *got = nd_run(sums);

    for (size_t i = 0; i < ROW_BYTES; i++) {
        uint32_t want = 0;
        for (size_t row = 0; row < ROWS; row++)
            want += bytes[row * ROW_BYTES + i];
        if (got[i] != want)
            fail_msg("sum of column %zu is %u, should be %u", i, got[i], want);
    }
    arr_unref(&sums);
}

/* Rows in another order: the first comes from the far end, the last goes there. */
static void check_gather(struct arr *a, const uint8_t *bytes)
{
    static const int32_t rows[ROWS] = { -1, 1, 0 };
    struct gather_params p = { .n_axes = 1, .n = 2, .d = { { 0, 1 }, { 0, ROW_BYTES } } };
    struct out_desc out = { { 3, { ROWS, 1, ROW_BYTES } }, DT_UINT8 };
    struct arr *in[2] = { a, NULL };

    assert_ok(arr_new_data(&in[1], rows, &(struct shp){ 1, { ROWS } }, DT_INT32));
    struct arr *taken = make(
        (struct node_params){ .op = OP_GATHER, .in = in, .n_in = 2, .params = &p, .out = &out });
    const uint8_t *got = nd_run(taken);
    for (size_t i = 0; i < ROWS; i++) {
        size_t row = (size_t)(rows[i] + ROWS) % ROWS;
        assert_memory_equal(got + i * ROW_BYTES, bytes + row * ROW_BYTES, (size_t)ROW_BYTES);
    }
    arr_unref(&taken);
    arr_unref(&in[1]);
}

static void test_large_arrays(void **state)
{
    const void *bytes = NULL;

    (void)state;
    if (!nd_gpu->be->is_hardware()) {
        print_message("not run: minutes on a software device, for which unit_large is there\n");
        skip();
    }
    /* The 32-bit sums of columns are the largest. */
    if (!room_on(nd_gpu->be, (size_t)ROW_BYTES * sizeof(uint32_t), 16 * GIB))
        skip();
    struct arr *a = random_rows();
    assert_ok(eval_arrays(&a, 1, false));
    assert_ok(arr_host(&bytes, a));
    check_row_sums(a, bytes);
    check_column_sums(a, bytes);
    check_gather(a, bytes);
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_past_32_bits),
        cmocka_unit_test(test_large_arrays),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
