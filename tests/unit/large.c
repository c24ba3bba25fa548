/* More than 2^31 elements: add, sum, copy, a slice at the far end; on every device that has the
 * memory. Slow: run where the label slow is asked for. */
#include "backend/backend.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/room.h"
#include "support/testing.h"

#include <unistd.h>

#define GIB ((size_t)1 << 30)
/* 2.4 GiB of bytes; the rows' length is no multiple of anything. */
#define ROWS 3
#define LENGTH 805306871
#define SIZE ((size_t)ROWS * LENGTH)
/* Four arrays of that size exist at once. */
#define NEEDED (11 * GIB)
#define PROBES 20000

static const struct shp shape = { .ndim = 2, .d = { ROWS, LENGTH } };

/* A pattern without a period that divides 2^31 or 2^32. */
static uint8_t pattern(size_t i)
{
    return (uint8_t)(i % 251 + i / LENGTH * 3);
}

static struct arr *make_large(enum dtype t)
{
    struct arr *a = NULL;

    assert_ok(arr_new_data(&a, NULL, &shape, t));
    uint8_t *bytes = a->buf->host;
    assert_non_null(bytes);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = t == DT_BOOL ? pattern(i) & 1 : pattern(i);
    return a;
}

/* Both ends, both sides of 2^31, and places at random. */
static size_t probe(struct rng *r, int n)
{
    static const size_t fixed[] = { 0, 1, (1u << 31) - 1, 1u << 31, SIZE - 1, SIZE - 2, LENGTH };

    return n < (int)ARRAY_LEN(fixed) ? fixed[n] : rng_next(r) % SIZE;
}

static const uint8_t *bytes_of(struct arr *a)
{
    const void *first = NULL;

    assert_ok(arr_host(&first, a));
    return first;
}

/* out holds, at i, what want says of i. */
static void check(struct arr *out, uint8_t (*want)(size_t i))
{
    const uint8_t *got = bytes_of(out);
    struct rng rng = { 1 };

    for (int n = 0; n < PROBES; n++) {
        size_t i = probe(&rng, n);
        if (got[i] != want(i))
            fail_msg("element %zu is %d, should be %d", i, got[i], want(i));
    }
}

static uint8_t doubled(size_t i)
{
    return (uint8_t)(2 * pattern(i));
}

static uint8_t row_backwards(size_t i)
{
    return pattern(i / LENGTH * LENGTH + (LENGTH - 1 - i % LENGTH));
}

static uint8_t inverted_bit(size_t i)
{
    return !(pattern(i) & 1);
}

static void check_add(struct arr *a, struct strm *s)
{
    struct arr *sum = NULL;

    assert_ok(ops_binary(&sum, OP_ADD, a, a, s));
    check(sum, doubled);
    arr_unref(&sum);
}

static void check_sums(struct arr *a, struct strm *s)
{
    int32_t last_axis = 1;
    struct arr *all = NULL, *rows = NULL;
    uint32_t want[ROWS] = { 0 };

    for (size_t i = 0; i < SIZE; i++)
        want[i / LENGTH] += pattern(i);
    assert_ok(ops_reduce(&all, REDUCE_SUM, a, &(struct ops_axes){ INTS_ALL, false }, s));
    assert_ok(ops_reduce(&rows, REDUCE_SUM, a, &(struct ops_axes){ { &last_axis, 1 }, false }, s));
    assert_int_equal(*(const uint32_t *)(const void *)bytes_of(all), want[0] + want[1] + want[2]);
    assert_memory_equal(bytes_of(rows), want, sizeof want);
    arr_unref(&all);
    arr_unref(&rows);
}

/* Rows backwards: a copy with negative strides. */
static void check_copy(struct arr *a, struct strm *s)
{
    int32_t start[] = { 0, LENGTH - 1 }, stop[] = { ROWS, -LENGTH - 1 }, step[] = { 1, -1 };
    struct arr *view = NULL, *copy = NULL;

    assert_ok(
        ops_slice(&view, a, &(struct ops_slice){ { start, 2 }, { stop, 2 }, { step, 2 } }, s));
    assert_ok(ops_contiguous(&copy, view, false, s));
    check(copy, row_backwards);
    arr_unref(&view);
    arr_unref(&copy);
}

static void check_end(struct arr *a, struct strm *s)
{
    int32_t start[] = { ROWS - 1, LENGTH - 9 }, stop[] = { ROWS, LENGTH }, step[] = { 1, 1 };
    struct arr *view = NULL, *sum = NULL;

    assert_ok(
        ops_slice(&view, a, &(struct ops_slice){ { start, 2 }, { stop, 2 }, { step, 2 } }, s));
    assert_ok(ops_binary(&sum, OP_ADD, view, view, s));
    const uint8_t *got = bytes_of(sum);
    for (size_t i = 0; i < 9; i++)
        assert_int_equal(got[i], doubled(SIZE - 9 + i));
    arr_unref(&view);
    arr_unref(&sum);
}

static void check_bool(struct strm *s)
{
    struct arr *a = make_large(DT_BOOL), *inverse = NULL, *any = NULL;

    assert_ok(ops_unary(&inverse, OP_LOGICAL_NOT, a, s));
    check(inverse, inverted_bit);
    assert_ok(ops_reduce(&any, REDUCE_AND, a, &(struct ops_axes){ INTS_ALL, false }, s));
    assert_int_equal(*bytes_of(any), 0);
    arr_unref(&a);
    arr_unref(&inverse);
    arr_unref(&any);
}

static void check_device(enum dev_type type)
{
    struct strm *s = NULL;

    assert_ok(strm_default(&s, (struct dev){ type, 0 }));
    struct arr *a = make_large(DT_UINT8);
    check_add(a, s);
    check_sums(a, s);
    check_copy(a, s);
    check_end(a, s);
    arr_unref(&a);
    check_bool(s);
    memory_clear_cache();
}

static bool has_host_memory(void)
{
    long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    size_t free = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;

    if (free < NEEDED)
        print_message("not run: %zu GiB of memory asked for, %zu are free\n", NEEDED / GIB,
                      free / GIB);
    return free >= NEEDED;
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    if (!has_host_memory())
        skip();
    check_device(DEV_CPU);
}

static void test_on_the_gpu(void **state)
{
    const struct be *gpu = dev_backend(DEV_GPU);

    (void)state;
    if (!gpu || !dev_is_available((struct dev){ DEV_GPU, 0 })) {
        print_message("not run: there is no GPU\n");
        skip();
    }
    if (!room_on(gpu, SIZE, NEEDED) || !has_host_memory())
        skip();
    check_device(DEV_GPU);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
