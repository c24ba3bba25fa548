/* The cache of freed buffers: MLX's reuse window, age, limits. Buffers here have no memory. */
#include "backend/common/buffer_cache.h"

#include "support/testing.h"

#include "graph/memory.h"

#define PAGE ((size_t)BUF_CACHE_PAGE)

static int n_released;
static size_t last_released;

static void release(struct buf *b)
{
    n_released++;
    last_released = b->size;
    mem_free(b);
}

static struct buf *make(size_t size)
{
    struct buf *b = mem_alloc(sizeof *b);

    b->size = size;
    return b;
}

static struct buf_cache cache = BUF_CACHE_INIT(release, 0);

static size_t take_size(size_t size)
{
    struct buf *b = buf_cache_take(&cache, size);
    size_t got = b ? b->size : 0;

    mem_free(b);
    return got;
}

static int reset(void **state)
{
    (void)state;
    buf_cache_clear(&cache);
    n_released = 0;
    return 0;
}

static void test_rounding(void **state)
{
    (void)state;
    assert_int_equal(buf_cache_round(1), 1);
    assert_int_equal(buf_cache_round(PAGE), PAGE);
    assert_int_equal(buf_cache_round(PAGE + 1), 2 * PAGE);
}

static void test_window(void **state)
{
    (void)state;
    buf_cache_put(&cache, make(100));
    assert_int_equal(take_size(101), 0); /* too small */
    assert_int_equal(take_size(50), 0);  /* 100 is not below 2 * 50 */
    assert_int_equal(take_size(51), 100);
    buf_cache_put(&cache, make(12 * PAGE));
    assert_int_equal(take_size(10 * PAGE), 0); /* not below size + 2 pages */
    assert_int_equal(take_size(11 * PAGE), 12 * PAGE);
}

static void test_smallest_that_fits(void **state)
{
    const size_t sizes[] = { 120, 100, 150, 110, 100 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        buf_cache_put(&cache, make(sizes[i]));
    assert_int_equal(buf_cache_bytes(&cache), 580);
    assert_int_equal(take_size(105), 110);
    assert_int_equal(take_size(105), 120);
    assert_int_equal(take_size(80), 100);
    assert_int_equal(take_size(80), 100);
    assert_int_equal(take_size(80), 150);
    assert_int_equal(buf_cache_bytes(&cache), 0);
}

static void test_oldest_goes_first(void **state)
{
    size_t old_cache = memory_set_cache_limit(100000), old = memory_set_limit(100000);
    size_t cached = memory_cache();

    (void)state;
    for (size_t size = 10001; size <= 10005; size++)
        buf_cache_put(&cache, make(size));
    assert_int_equal(memory_cache(), cached + 50015);
    /* 95,000 may be in use: 5,016 bytes too many, so the oldest buffer goes. */
    buf_cache_make_room(&cache, 50000 - memory_active());
    assert_int_equal(n_released, 1);
    assert_int_equal(last_released, 10001);
    assert_int_equal(take_size(10001), 10002);
    memory_set_limit(old);
    memory_set_cache_limit(old_cache);
}

static void test_nearly_all_is_all(void **state)
{
    size_t old_cache = memory_set_cache_limit(100000), old = memory_set_limit(100000);

    (void)state;
    for (int i = 0; i < 10; i++)
        buf_cache_put(&cache, make(1000));
    buf_cache_make_room(&cache, 95000 - memory_active() - 900); /* asks for 9,100 of 10,000 */
    assert_int_equal(n_released, 10);
    memory_set_limit(old);
    memory_set_cache_limit(old_cache);
}

static void test_cache_limit(void **state)
{
    size_t old = memory_set_cache_limit(250);

    (void)state;
    for (int i = 0; i < 4; i++)
        buf_cache_put(&cache, make(100));
    assert_int_equal(n_released, 1); /* kept while below the limit */
    assert_int_equal(buf_cache_bytes(&cache), 300);
    buf_cache_enforce_limit(&cache);
    assert_int_equal(buf_cache_bytes(&cache), 200);
    memory_set_cache_limit(0);
    buf_cache_enforce_limit(&cache);
    buf_cache_put(&cache, make(100));
    assert_int_equal(buf_cache_bytes(&cache), 0);
    memory_set_cache_limit(old);
}

static void test_own_limit(void **state)
{
    struct buf_cache own = BUF_CACHE_INIT(release, 150);
    size_t cached = memory_cache();

    (void)state;
    buf_cache_put(&own, make(100));
    buf_cache_put(&own, make(100));
    buf_cache_put(&own, make(100));
    assert_int_equal(n_released, 1);
    assert_int_equal(memory_cache(), cached); /* not the memory API's business */
    buf_cache_clear(&own);
    assert_int_equal(n_released, 3);
    VEC_FINI(&own.bins);
}

static void test_no_host_memory(void **state)
{
    struct buf *b = make(100);

    (void)state;
    VEC_FINI(&cache.bins); /* empty now; the next put must allocate */
    mem_fail_after(1);
    buf_cache_put(&cache, b);
    mem_fail_after(0);
    assert_int_equal(n_released, 1);
    assert_int_equal(buf_cache_bytes(&cache), 0);
}

/* Against a plain list. */
static void test_random(void **state)
{
    enum { MAX = 200 };
    size_t list[MAX];
    int n = 0;
    struct rng rng = { 1 };

    (void)state;
    for (int step = 0; step < 20000; step++) {
        size_t size = 1 + (size_t)rng_below(&rng, rng_one_in(&rng, 3) ? 100000 : 300);
        if (n < MAX && rng_one_in(&rng, 2)) {
            buf_cache_put(&cache, make(size));
            list[n++] = size;
            continue;
        }
        int best = -1;
        size_t below = MIN(2 * size, size + 2 * PAGE);
        for (int i = 0; i < n; i++)
            if (list[i] >= size && list[i] < below && (best < 0 || list[i] < list[best]))
                best = i;
        assert_int_equal(take_size(size), best < 0 ? 0 : list[best]);
        if (best >= 0)
            list[best] = list[--n];
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_rounding, reset),
        cmocka_unit_test_setup(test_window, reset),
        cmocka_unit_test_setup(test_smallest_that_fits, reset),
        cmocka_unit_test_setup(test_oldest_goes_first, reset),
        cmocka_unit_test_setup(test_nearly_all_is_all, reset),
        cmocka_unit_test_setup(test_cache_limit, reset),
        cmocka_unit_test_setup(test_own_limit, reset),
        cmocka_unit_test_setup(test_no_host_memory, reset),
        cmocka_unit_test_setup(test_random, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
