/* The Hadamard transform on the GPU: every split into passes gives the bits of the CPU, which goes
 * through the stages in the same order. */
#include "base/mem.h"
#include "ops/ops.h"
#include "support/arrays.h"
#include "support/nd.h"

static struct rng rng = { 7 };

static struct arr *transformed(struct arr *a, struct strm *s)
{
    struct arr *y = NULL;

    assert_ok(ops_hadamard_transform(&y, a, NULL, s));
    return y;
}

static void check(int32_t rows, int32_t n, enum dtype t, enum layout layout)
{
    struct arr *a = arr_random(&rng, SHAPE(rows, n), t, layout);
    struct arr *want = transformed(a, test_stream()), *got = transformed(a, nd_gpu);
    void *expected = arr_bytes(want);

    if (memcmp(expected, nd_run(got), arr_nbytes(want)) != 0)
        fail_msg("%s, %d rows of %d, layout %d", dt_name(t), rows, n, layout);
    mem_free(expected);
    arr_unref(&a);
    arr_unref(&want);
    arr_unref(&got);
}

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };

static void test_sizes(void **state)
{
    static const int32_t bases[] = { 1, 12, 20, 28 };

    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bases); b++)
        for (int k = b == 0; k <= 14; k++)
            check(k < 8 ? 37 : 2, bases[b] << k, types[(size_t)k % ARRAY_LEN(types)], LAY_DENSE);
}

/* Two and three passes, and sums behind them. */
static void test_long_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        check(2, 1 << 18, types[i], LAY_DENSE);
        check(1, 1 << 20, types[i], LAY_DENSE);
        check(1, 1 << 21, types[i], LAY_DENSE);
        check(2, 12 << 15, types[i], LAY_DENSE);
        check(1, 28 << 16, types[i], LAY_DENSE);
    }
}

static void test_layouts(void **state)
{
    (void)state;
    for (int layout = 0; layout < LAY_COUNT; layout++)
        for (size_t i = 0; i < ARRAY_LEN(types); i++) {
            check(5, 64, types[i], (enum layout)layout);
            check(3, 20 << 9, types[i], (enum layout)layout);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_long_rows),
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
