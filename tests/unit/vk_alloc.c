/* GPU memory: splitting of blocks, the three strategies, the cache, exhaustion. */
#include "eval/wait.h"
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/suballoc.h"
#include "base/stat.h"
#include "graph/memory.h"

/* ---- splitting ---- */

#define BLOCK ((uint64_t)1 << 20)

static void test_suballoc_fills_and_merges(void **state)
{
    struct suballoc *s = NULL;
    uint64_t offset;
    uint32_t range[4096];
    int n = 0;

    (void)state;
    assert_ok(suballoc_create(&s, BLOCK));
    while (suballoc_take(s, 200, &offset, &range[n]))
        n++;
    assert_int_equal(n, BLOCK / SUBALLOC_GRANULE);
    for (int i = 0; i < n; i += 2)
        suballoc_give(s, range[i]);
    assert_false(suballoc_take(s, 2 * SUBALLOC_GRANULE, &offset, &range[0])); /* only holes */
    for (int i = 1; i < n; i += 2)
        suballoc_give(s, range[i]);
    assert_true(suballoc_is_empty(s));
    assert_true(suballoc_take(s, BLOCK, &offset, &range[0])); /* one piece again */
    assert_int_equal(offset, 0);
    assert_false(suballoc_take(s, 1, &offset, &range[1]));
    suballoc_give(s, range[0]);
    suballoc_destroy(&s);
}

struct piece {
    uint64_t offset, size;
    uint32_t range;
};

static bool overlap(const struct piece *a, const struct piece *b)
{
    return a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

static void test_suballoc_random(void **state)
{
    enum { MAX = 100 };
    struct piece live[MAX];
    struct suballoc *s = NULL;
    struct rng rng = { 3 };
    int n = 0, taken = 0;

    (void)state;
    assert_ok(suballoc_create(&s, BLOCK));
    for (int step = 0; step < 20000; step++) {
        if (n == MAX || (n && rng_one_in(&rng, 2))) {
            int i = rng_below(&rng, n);
            suballoc_give(s, live[i].range);
            live[i] = live[--n];
            continue;
        }
        struct piece p = { .size = 1 + (uint64_t)rng_below(&rng, 30000) };
        if (!suballoc_take(s, p.size, &p.offset, &p.range))
            continue;
        taken++;
        assert_int_equal(p.offset % SUBALLOC_GRANULE, 0);
        assert_true(p.offset + p.size <= BLOCK);
        for (int i = 0; i < n; i++)
            assert_false(overlap(&p, &live[i]));
        live[n++] = p;
    }
    assert_in_range(taken, 5000, 20000);
    while (n)
        suballoc_give(s, live[--n].range);
    uint64_t offset;
    uint32_t range;
    assert_true(suballoc_take(s, BLOCK, &offset, &range));
    suballoc_destroy(&s);
}

/* ---- strategies, each in a process of its own ---- */

static void keep(void *arg)
{
    (void)arg;
}

/* Bytes to the GPU and back: upload, a kernel, read-back. */
static void round_trip(struct strm *s, int32_t n)
{
    struct arr *in = NULL, *out = vkt_array(s, n);
    struct shp shape = { 1, { n } };
    uint32_t *data = mem_alloc_array((size_t)n, sizeof *data);

    for (int32_t i = 0; i < n; i++)
        data[i] = (uint32_t)i * 2654435761u;
    assert_ok(arr_new_empty(&in, &shape, DT_UINT32));
    in->flags = LAYOUT_ALL;
    in->data_size = (size_t)n;
    assert_ok(memory_adopt(&in->buf, data, (size_t)n * sizeof *data, keep, NULL));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = 3, .add = 1 });
    const uint32_t *v = vkt_read(s, out);
    for (int32_t i = 0; i < n; i++)
        if (v[i] != data[i] * 3 + 1)
            fail_msg("element %d of %d", i, n);
    arr_unref(&in);
    arr_unref(&out);
    mem_free(data);
}

static void run_strategy(enum vk_strategy want)
{
    static const int32_t sizes[] = { 1, 255, 256, 257, 5000, 1 << 20, (20 << 20) + 3 };
    struct strm *s = vkt_stream();
    uint64_t up = stat_get(STAT_BYTES_UPLOADED), back = stat_get(STAT_BYTES_READ_BACK);

    assert_int_equal(vk_alloc_strategy(), want);
    assert_int_equal(be_vulkan.is_unified(), want == VK_UNIFIED);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        round_trip(s, sizes[i]);
    assert_true(stat_get(STAT_BYTES_UPLOADED) > up);
    assert_int_equal(stat_get(STAT_BYTES_READ_BACK) > back, want != VK_UNIFIED);
    struct arr *a = vkt_array(s, 100);
    assert_int_equal(a->buf->host != NULL, want == VK_UNIFIED);
    assert_true(a->buf->addr != 0);
    arr_unref(&a);
    assert_int_equal(stat_get(STAT_VALIDATION_MESSAGES), 0);
}

static void unified_child(void)
{
    run_strategy(VK_UNIFIED);
}

static void bar_child(void)
{
    run_strategy(VK_BAR);
}

static void staged_child(void)
{
    run_strategy(VK_STAGED);
}

static void test_strategies(void **state)
{
    (void)state;
    assert_true(test_in_child(unified_child, (const char *[]){ "MLX_VK_MEMORY", "unified", NULL }));
    assert_true(test_in_child(bar_child, (const char *[]){ "MLX_VK_MEMORY", "bar", NULL }));
    assert_true(test_in_child(staged_child, (const char *[]){ "MLX_VK_MEMORY", "staged", NULL }));
}

static void unknown_child(void)
{
    assert_ok(be_vulkan.open()); /* warned about and ignored */
}

static void test_unknown_strategy(void **state)
{
    (void)state;
    assert_true(test_in_child(unknown_child, (const char *[]){ "MLX_VK_MEMORY", "magic", NULL }));
}

/* A copy made by several threads at once. */
static void mirrors_child(void)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 10000);
    const void *host = NULL;

    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
    assert_int_equal(vkt_read(s, a)[9999], 9999);
    struct buf *mirror = atomic_load(&a->buf->mirror);
    assert_non_null(mirror);
    assert_ok(buf_host(&host, a->buf));
    assert_ptr_equal(host, mirror->host); /* made once */
    buf_drop_mirror(a->buf);
    vkt_encode(s, &(struct vkt_probe){ .in = a, .out = a, .mul = 2 });
    assert_int_equal(vkt_read(s, a)[9999], 2 * 9999);
    arr_unref(&a);
}

/* Slices of a large array: what is read back is what is asked for, and little more when somebody
 * goes through it piece by piece. */
static void slices_child(void)
{
    enum { SIZE = 1 << 22 };
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, SIZE), *one[64];
    const int64_t stride = 1, back_to_front = -1;
    const void *host, *again;

    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 3 });
    assert_ok(strm_synchronize(s));
    uint64_t before = stat_get(STAT_BYTES_READ_BACK);
    for (int i = 0; i < 64; i++) { /* single elements, far apart */
        int64_t at = (int64_t)i * 65536 + i;
        assert_ok(arr_new_empty(&one[i], &(struct shp){ 1, { 1 } }, DT_UINT32));
        arr_share(one[i], a, &stride, LAYOUT_ALL, 1, at);
        atomic_store(&one[i]->status, ARR_AVAILABLE);
        assert_ok(arr_host(&host, one[i]));
        assert_int_equal(*(const uint32_t *)host, 3 * (uint32_t)at);
        if (i == 0)
            assert_int_equal(stat_get(STAT_BYTES_READ_BACK) - before, 4);
    }
    assert_true(stat_get(STAT_BYTES_READ_BACK) - before <= 2 * SIZE * sizeof(uint32_t));
    assert_ok(arr_host(&host, one[0]));
    assert_int_equal(*(const uint32_t *)host, 0); /* what was lent stays */
    for (int i = 0; i < 64; i++)
        arr_unref(&one[i]);
    buf_drop_mirror(a->buf);
    before = stat_get(STAT_BYTES_READ_BACK);
    struct arr *part = NULL; /* 1000 elements, the last one first */
    assert_ok(arr_new_empty(&part, &(struct shp){ 1, { 1000 } }, DT_UINT32));
    arr_share(part, a, &back_to_front, 0, 1000, 70999);
    atomic_store(&part->status, ARR_AVAILABLE);
    assert_ok(arr_host(&host, part));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(*((const uint32_t *)host - i), 3 * (70999 - i));
    assert_int_equal(stat_get(STAT_BYTES_READ_BACK) - before, 4000);
    assert_ok(arr_host(&again, part));
    assert_ptr_equal(host, again);
    assert_int_equal(stat_get(STAT_BYTES_READ_BACK) - before, 4000);
    assert_int_equal(vkt_read(s, a)[SIZE - 1], 3 * (SIZE - 1));
    arr_unref(&part);
    arr_unref(&a);
}

static void test_mirrors(void **state)
{
    (void)state;
    assert_true(test_in_child(mirrors_child, (const char *[]){ "MLX_VK_MEMORY", "staged", NULL }));
    assert_true(test_in_child(slices_child, (const char *[]){ "MLX_VK_MEMORY", "staged", NULL }));
    assert_true(test_in_child(slices_child, (const char *[]){ "MLX_VK_MEMORY", "bar", NULL }));
}

/* ---- cache, limits, exhaustion: in this process, from here on with the device open ---- */

static void test_sizes_and_addresses(void **state)
{
    struct buf *b[50];

    (void)state;
    assert_ok(be_vulkan.open());
    for (size_t i = 0; i < ARRAY_LEN(b); i++) {
        size_t size = (size_t)1 << (i % 20);
        assert_ok(be_vulkan.buf_alloc(&b[i], size));
        assert_true(b[i]->size >= size);
        assert_int_equal(b[i]->addr % SUBALLOC_GRANULE, 0);
        for (size_t j = 0; j < i; j++)
            assert_true(b[j]->addr + b[j]->size <= b[i]->addr ||
                        b[i]->addr + b[i]->size <= b[j]->addr);
    }
    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        buf_unref(&b[i]);
}

static void test_freed_memory_is_reused(void **state)
{
    struct buf *a, *b;
    size_t active = memory_active();

    (void)state;
    be_vulkan.cache_clear();
    assert_ok(be_vulkan.buf_alloc(&a, 100000));
    assert_int_equal(memory_active() - active, 114688); /* whole pages */
    uint64_t addr = a->addr, hits = stat_get(STAT_ALLOC_CACHE_HITS);
    buf_unref(&a);
    assert_int_equal(memory_active(), active);
    assert_int_equal(memory_cache(), 114688);
    assert_ok(be_vulkan.buf_alloc(&b, 100001));
    assert_int_equal(b->addr, addr);
    assert_int_equal(stat_get(STAT_ALLOC_CACHE_HITS), hits + 1);
    assert_int_equal(memory_cache(), 0);
    buf_unref(&b);
    be_vulkan.cache_clear();
    assert_int_equal(memory_cache(), 0);
}

static void test_blocks_are_shared(void **state)
{
    struct buf *b[500];

    (void)state;
    be_vulkan.cache_clear();
    uint64_t blocks = stat_get(STAT_BLOCK_ALLOCS);
    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        assert_ok(be_vulkan.buf_alloc(&b[i], 50000));
    assert_true(stat_get(STAT_BLOCK_ALLOCS) - blocks <= 1);
    for (size_t i = 0; i < ARRAY_LEN(b); i++)
        buf_unref(&b[i]);
}

static void test_too_large(void **state)
{
    struct buf *b = NULL;

    (void)state;
    assert_fails(ERR_RUNTIME, be_vulkan.buf_alloc(&b, vk_memory_max_buffer() + 1));
    assert_null(b);
}

#define LARGE ((size_t)100 << 20)

static void test_exhaustion(void **state)
{
    struct buf *a, *b = NULL;

    (void)state;
    be_vulkan.cache_clear();
    assert_ok(be_vulkan.buf_alloc(&a, LARGE));
    buf_unref(&a); /* cached */
    assert_int_equal(memory_cache(), LARGE);
    vk_fault_set(VK_FAULT_MEMORY, 1);
    assert_ok(be_vulkan.buf_alloc(&b, 3 * LARGE)); /* the second try succeeds... */
    assert_int_equal(memory_cache(), 0);           /* ...because the cache was given back */
    buf_unref(&b);
    be_vulkan.cache_clear();
    vk_fault_set(VK_FAULT_MEMORY, -1);
    assert_fails(ERR_NO_MEMORY, be_vulkan.buf_alloc(&b, LARGE));
    assert_non_null(strstr(err_text(), "104857600"));
    vk_fault_set(VK_FAULT_MEMORY, 0);
    assert_ok(be_vulkan.buf_alloc(&b, LARGE));
    buf_unref(&b);
}

#define MANY 17
#define HALF_BLOCK ((size_t)2 << 20) /* of memory for reading back: two fill a block */

/* After eight blocks the next one is to be twice as large; where there is no memory for that, a
 * smaller one does. */
static void test_smaller_blocks(void **state)
{
    struct vk_buf *b[MANY + 1] = { NULL };

    (void)state;
    be_vulkan.cache_clear();
    for (int i = 0; i < MANY - 1; i++)
        assert_ok(vk_mem_alloc(&b[i], VK_MEM_READBACK, HALF_BLOCK));
    uint64_t blocks = stat_get(STAT_BLOCK_ALLOCS);
    vk_fault_set(VK_FAULT_MEMORY, 1); /* twice the size: no; the size: yes */
    assert_ok(vk_mem_alloc(&b[MANY - 1], VK_MEM_READBACK, HALF_BLOCK));
    assert_int_equal(stat_get(STAT_BLOCK_ALLOCS) - blocks, 2);
    assert_ok(vk_mem_alloc(&b[MANY], VK_MEM_READBACK, HALF_BLOCK)); /* its other half */
    assert_int_equal(stat_get(STAT_BLOCK_ALLOCS) - blocks, 2);
    for (int i = 0; i <= MANY; i++)
        buf_unref(&(struct buf *){ &b[i]->base });
    be_vulkan.cache_clear();
    vk_fault_set(VK_FAULT_MEMORY, 5); /* two tries with 4 MiB, then 4, 2, 1 and half of one */
    blocks = stat_get(STAT_BLOCK_ALLOCS);
    assert_ok(vk_mem_alloc(&b[0], VK_MEM_READBACK, 5000));
    assert_int_equal(stat_get(STAT_BLOCK_ALLOCS) - blocks, 6);
    vk_fault_set(VK_FAULT_MEMORY, 0);
    buf_unref(&(struct buf *){ &b[0]->base });
    be_vulkan.cache_clear();
}

/* Whatever host allocation fails, the call fails cleanly and the next one works. */
static void test_no_host_memory(void **state)
{
    struct buf *b = NULL;

    (void)state;
    for (size_t n = 1; n < 20; n++) {
        be_vulkan.cache_clear();
        mem_fail_after(n);
        enum err err = be_vulkan.buf_alloc(&b, 5000);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
        if (err == ERR_OK)
            buf_unref(&b);
    }
    assert_ok(be_vulkan.buf_alloc(&b, 5000));
    buf_unref(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suballoc_fills_and_merges),
        cmocka_unit_test(test_suballoc_random),
        cmocka_unit_test(test_strategies),
        cmocka_unit_test(test_unknown_strategy),
        cmocka_unit_test(test_mirrors),
        cmocka_unit_test(test_sizes_and_addresses),
        cmocka_unit_test(test_freed_memory_is_reused),
        cmocka_unit_test(test_blocks_are_shared),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_exhaustion),
        cmocka_unit_test(test_smaller_blocks),
        cmocka_unit_test(test_no_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
