/* Results that come to the host along with the work. Where host and GPU share memory there is
 * nothing to copy. */
#include "eval/wait.h"
#include "support/testing.h"
#include "support/vk.h"

#include <stdatomic.h>
#include <string.h>

#include "backend/vulkan/rt/alloc.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "graph/array.h"
#include "ops/ops.h"

#define N 16384 /* 64 KiB */

static struct strm *gpu;

static int open_gpu(void **state)
{
    (void)state;
    gpu = vkt_stream();
    return dev_set_default((struct dev){ DEV_GPU, 0 }) != ERR_OK;
}

static bool is_unified(void)
{
    return vk_alloc_strategy() == VK_UNIFIED;
}

/* Element i is i + add. */
static struct arr *leaf(int32_t n, uint32_t add)
{
    uint32_t *data = mem_alloc_array((size_t)n, sizeof *data);
    struct shp shape = { 1, { n } };
    struct arr *a = NULL;

    assert_non_null(data);
    for (int32_t i = 0; i < n; i++)
        data[i] = (uint32_t)i + add;
    assert_ok(arr_new_data(&a, data, &shape, DT_UINT32));
    mem_free(data);
    return a;
}

static struct arr *sum(struct arr *a, struct arr *b)
{
    struct arr *out = NULL;

    assert_ok(ops_binary(&out, OP_ADD, a, b, gpu));
    return out;
}

static void check(struct arr *a, uint32_t mul, uint32_t add)
{
    const uint32_t *v = NULL;

    assert_ok(arr_host((const void **)&v, a));
    for (uint32_t i = 0; i < a->size; i++)
        assert_int_equal(v[i], i * mul + add);
}

static void eval_one(struct arr *a)
{
    assert_ok(eval_arrays(&a, 1, false));
}

static bool has_mirror(const struct arr *a)
{
    return atomic_load(&a->buf->mirror) != NULL;
}

static void test_result_comes_along(void **state)
{
    struct arr *a = leaf(N, 0), *out = sum(a, a);
    uint64_t submits;

    (void)state;
    eval_one(out);
    assert_int_equal(has_mirror(out), !is_unified());
    submits = stat_get(STAT_SUBMITS);
    check(out, 2, 0);
    assert_int_equal(stat_get(STAT_SUBMITS), submits); /* reading it is no work for the GPU */
    arr_unref(&out);
    arr_unref(&a);
}

static void test_views_and_odd_sizes(void **state)
{
    static const int32_t start = 3, end = 2006, step = 1;
    struct ops_slice middle = { { &start, 1 }, { &end, 1 }, { &step, 1 } };
    struct arr *a = leaf(N, 0), *all = sum(a, a), *part = NULL, *bytes = NULL;
    const uint8_t *v = NULL;

    (void)state;
    assert_ok(ops_slice(&part, all, &middle, gpu));
    assert_ok(ops_astype(&bytes, part, DT_UINT8, gpu));
    eval_one(bytes);
    assert_int_equal(has_mirror(bytes), !is_unified());
    assert_ok(arr_host((const void **)&v, bytes));
    for (int i = 0; i < end - start; i++)
        assert_int_equal(v[i], (uint8_t)(2 * (i + start)));
    arr_unref(&a);
    arr_unref(&all);
    arr_unref(&part);
    arr_unref(&bytes);
}

/* Large results, results of asynchronous evals and many at once are not copied before somebody
 * asks for them. */
static void test_what_does_not_come_along(void **state)
{
    int64_t old = gate_set_int(GATE_VK_EAGER_READ, 32);
    struct arr *a = leaf(N, 1), *b = leaf(1000, 1), *out[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        out[i] = i ? sum(b, b) : sum(a, a);
    eval_one(out[0]);
    assert_ok(eval_arrays(out + 1, 5, false));
    for (int i = 0; i < 6; i++) {
        assert_false(has_mirror(out[i]));
        check(out[i], 2, 2);
        arr_unref(&out[i]);
    }
    out[0] = sum(b, b);
    assert_ok(eval_arrays(out, 1, true));
    assert_false(has_mirror(out[0]));
    check(out[0], 2, 2);
    arr_unref(&out[0]);
    gate_set_int(GATE_VK_EAGER_READ, old);
    arr_unref(&a);
    arr_unref(&b);
}

/* Results that nobody reads are no longer copied after a while, until somebody reads one again. */
static void test_unread_results(void **state)
{
    struct arr *a = leaf(N, 0);
    uint64_t before = stat_get(STAT_BYTES_READ_BACK);

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct arr *out = sum(a, a);
        eval_one(out);
        if (i == 99) {
            assert_false(has_mirror(out));
            check(out, 2, 0);
        }
        arr_unref(&out);
    }
    assert_true(stat_get(STAT_BYTES_READ_BACK) - before < 50 * 4 * N);
    struct arr *out = sum(a, a);
    eval_one(out);
    assert_int_equal(has_mirror(out), !is_unified());
    arr_unref(&out);
    arr_unref(&a);
}

/* A result whose buffer the next op takes over: the copy of the old bytes goes. */
static void test_copy_does_not_outlive_its_bytes(void **state)
{
    struct arr *a = leaf(N, 0), *x = sum(a, a);
    uint64_t donations = stat_get(STAT_DONATIONS);

    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        eval_one(x);
        struct arr *next = sum(x, a);
        arr_unref(&x);
        x = next;
    }
    check(x, 7, 0);
    assert_true(stat_get(STAT_DONATIONS) > donations);
    arr_unref(&x);
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_comes_along),
        cmocka_unit_test(test_views_and_odd_sizes),
        cmocka_unit_test(test_what_does_not_come_along),
        cmocka_unit_test(test_unread_results),
        cmocka_unit_test(test_copy_does_not_outlive_its_bytes),
    };

    return cmocka_run_group_tests(tests, open_gpu, NULL);
}
