/* Command encoding: results, barriers only for hazards, thresholds, what a command keeps alive. */
#include "support/testing.h"
#include "support/vk.h"

#include "backend/vulkan/check/hazard_check.h"
#include "backend/vulkan/check/record.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/rt/stream.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/sched.h"
#include "graph/memory.h"

#define N 1000

/* ---- results ---- */

static void test_one_dispatch(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    uint64_t before = stat_get(STAT_DISPATCHES);

    (void)state;
    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 3, .add = 7 });
    const uint32_t *v = vkt_read(s, a);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(v[i], i * 3 + 7);
    assert_int_equal(stat_get(STAT_DISPATCHES) - before, 1);
    arr_unref(&a);
}

static void keep(void *arg)
{
    (void)arg; /* the bytes are the test's */
}

static void test_host_array_is_uploaded(void **state)
{
    const uint32_t data[4] = { 5, 6, 7, 8 };
    struct strm *s = vkt_stream();
    struct arr *out = vkt_array(s, 4), *in = NULL;
    struct shp shape = { 1, { 4 } };

    (void)state;
    assert_ok(arr_new_empty(&in, &shape, DT_UINT32));
    in->flags = LAYOUT_ALL;
    in->data_size = 4;
    assert_ok(memory_adopt(&in->buf, (void *)(uintptr_t)data, sizeof data, keep, NULL));
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = 2 });
    const uint32_t *v = vkt_read(s, out);
    for (int i = 0; i < 4; i++)
        assert_int_equal(v[i], data[i] * 2);
    arr_unref(&in);
    arr_unref(&out);
}

/* A block beyond the push constants, read as the kernel's input. */
static void test_large_arguments(void **state)
{
    enum { WORDS = 20000 }; /* more than one chunk */
    struct strm *s = vkt_stream();
    struct arr *out[3];
    uint32_t *words = mem_alloc_array(WORDS, sizeof *words);

    (void)state;
    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = i * 31;
    for (int k = 0; k < 3; k++) {
        out[k] = vkt_array(s, WORDS);
        vkt_encode(s, &(struct vkt_probe){ .out = out[k],
                                           .mul = 1,
                                           .add = (uint32_t)k,
                                           .block = words,
                                           .block_size = WORDS * sizeof *words });
    }
    for (int k = 0; k < 3; k++) {
        const uint32_t *v = vkt_read(s, out[k]);
        for (uint32_t i = 0; i < WORDS; i++)
            assert_int_equal(v[i], i * 31 + (uint32_t)k);
        arr_unref(&out[k]);
    }
    mem_free(words);
}

static void test_scratch(void **state)
{
    const uint32_t spec[3] = { 64, 1, 1 };
    struct strm *s = vkt_stream();
    struct arr *out = vkt_array(s, 64);
    struct vk_kernel kernel = { .variant = VARIANT_COUNT };
    struct probe_args args = { .n = 64, .mul = 1, .add = 5 };
    struct vk_grid grid = { 1, 1, 1 };
    struct vk_enc *e;
    uint64_t scratch;
    size_t active = memory_active();

    (void)state;
    assert_ok(kern_pipe(&kernel.pipe, KERN_PROBE, -1, spec, 3));
    assert_ok(vk_enc_get(&e, s));
    assert_ok(vk_enc_scratch(e, &scratch, 256));
    args.out_addr = scratch;
    assert_ok(vk_enc_dispatch(e, kernel, &args, sizeof args, grid));
    vk_enc_scratch_read(e, scratch, 256);
    args.in_addr = scratch;
    assert_ok(vk_enc_write(e, &args.out_addr, out));
    assert_ok(vk_enc_dispatch(e, kernel, &args, sizeof args, grid));
    assert_int_equal(memory_active(), active + 256);
    const uint32_t *v = vkt_read(s, out);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(v[i], i + 10);
    assert_int_equal(memory_active(), active);
    arr_unref(&out);
}

static void test_bad_dispatches(void **state)
{
    const uint32_t spec[3] = { 64, 1, 1 };
    struct strm *s = vkt_stream();
    struct vk_kernel kernel = { .variant = VARIANT_COUNT };
    char push[VK_PUSH_MAX + 4] = { 0 };
    struct vk_enc *e;
    uint64_t before = stat_get(STAT_DISPATCHES);

    (void)state;
    assert_ok(kern_pipe(&kernel.pipe, KERN_PROBE, -1, spec, 3));
    assert_ok(vk_enc_get(&e, s));
    struct vk_grid too_large = { 1, vk_limits_get()->max_groups[1] + 1, 1 };
    assert_fails(ERR_RUNTIME,
                 vk_enc_dispatch(e, kernel, push, sizeof push, (struct vk_grid){ 1, 1, 1 }));
    assert_fails(ERR_RUNTIME, vk_enc_dispatch(e, kernel, push, 32, too_large));
    assert_ok(vk_enc_dispatch(e, kernel, push, 32, (struct vk_grid){ 0, 1, 1 }));
    assert_int_equal(stat_get(STAT_DISPATCHES), before);
    assert_ok(strm_synchronize(s));
}

/* ---- barriers ---- */

/* Checks the record of everything since vkt_record_begin. */
static struct hazard_report record_end(void)
{
    struct hazard_report r;
    size_t n;
    const struct vk_rec *rec = vk_rec_get(&n);

    assert_ok(hazard_check(&r, rec, n));
    gate_set_int(GATE_VK_RECORD, 0);
    return r;
}

static void record_begin(void)
{
    vk_rec_reset();
    gate_set_int(GATE_VK_RECORD, 1);
}

static void assert_clean(const struct hazard_report *r)
{
    if (hazard_count(r) || r->needless)
        fail_msg("%s", r->text);
}

static void test_dependent_chain(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);

    (void)state;
    record_begin();
    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
    for (int i = 0; i < 500; i++) {
        vkt_encode(s, &(struct vkt_probe){ .in = a, .out = a, .mul = 1, .add = 1 });
        assert_ok(s->be->step_end(s));
    }
    const uint32_t *v = vkt_read(s, a);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(v[i], i + 500);
    struct hazard_report r = record_end();
    assert_clean(&r);
    assert_int_equal(r.dispatches, 501);
    /* One per dependent dispatch, except where everything before had been waited for. */
    assert_in_range(r.barriers, 400, 500);
    arr_unref(&a);
}

static void test_independent_need_no_barrier(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a[300];

    (void)state;
    record_begin();
    for (uint32_t k = 0; k < ARRAY_LEN(a); k++) {
        a[k] = vkt_array(s, 16);
        vkt_encode(s, &(struct vkt_probe){ .out = a[k], .mul = k });
        assert_ok(s->be->step_end(s));
    }
    for (uint32_t k = 0; k < ARRAY_LEN(a); k++) {
        const uint32_t *v = vkt_read(s, a[k]);
        for (uint32_t i = 0; i < 16; i++)
            assert_int_equal(v[i], i * k);
        arr_unref(&a[k]);
    }
    struct hazard_report r = record_end();
    assert_clean(&r);
    assert_int_equal(r.barriers, 0);
}

/* A view of n elements at an element offset. */
static struct arr *view(struct arr *base, int64_t offset, int32_t n)
{
    const int64_t strides[1] = { 1 };
    struct shp shape = { 1, { n } };
    struct arr *a = NULL;

    assert_ok(arr_new_empty(&a, &shape, DT_UINT32));
    arr_share(a, base, strides, LAYOUT_ALL, (size_t)n, offset);
    return a;
}

/* More separate ranges than the tracking holds: a barrier now and then, still no hazard. */
static void test_many_ranges(void **state)
{
    enum { RANGES = 3000 };
    struct strm *s = vkt_stream();
    struct arr *base = vkt_array(s, 2 * RANGES);
    struct rng rng = { 5 };

    (void)state;
    record_begin();
    vkt_encode(s, &(struct vkt_probe){ .out = base });
    for (int k = 0; k < RANGES; k++) { /* every other element, in a scattered order */
        struct arr *one = view(base, 2 * ((k * 1009) % RANGES), 1);
        vkt_encode(s, &(struct vkt_probe){ .out = one, .add = (uint32_t)rng_below(&rng, 9) + 1 });
        arr_unref(&one);
        assert_ok(s->be->step_end(s));
    }
    const uint32_t *v = vkt_read(s, base);
    for (int k = 0; k < RANGES; k++) {
        assert_in_range(v[2 * k], 1, 9);
        assert_int_equal(v[2 * k + 1], 0);
    }
    struct hazard_report r = record_end();
    assert_clean(&r);
    assert_in_range(r.barriers, 1, 20);
    arr_unref(&base);
}

static uint64_t barriers_for(struct strm *s, const struct vkt_probe *first,
                             const struct vkt_probe *second)
{
    assert_ok(strm_synchronize(s));
    vkt_encode(s, first);
    uint64_t before = stat_get(STAT_BARRIERS);
    vkt_encode(s, second);
    return stat_get(STAT_BARRIERS) - before;
}

static void test_byte_ranges(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *base = vkt_array(s, 256), *other = vkt_array(s, 64), *third = vkt_array(s, 64);
    struct arr *lo = view(base, 0, 64), *hi = view(base, 64, 64), *mid = view(base, 63, 64);
    struct vkt_probe fill_lo = { .out = lo, .mul = 1 }, fill_hi = { .out = hi, .mul = 1 };
    struct vkt_probe fill_mid = { .out = mid, .mul = 1 };
    struct vkt_probe read_lo = { .in = lo, .out = other, .mul = 1 };
    struct vkt_probe read_mid = { .in = mid, .out = other, .mul = 1 };
    struct vkt_probe read_lo_too = { .in = lo, .out = third, .mul = 1 };

    (void)state;
    record_begin();
    assert_int_equal(barriers_for(s, &fill_lo, &fill_hi), 0);  /* neighbours */
    assert_int_equal(barriers_for(s, &fill_lo, &fill_mid), 1); /* WAW, one element */
    assert_int_equal(barriers_for(s, &fill_lo, &read_mid), 1); /* RAW */
    assert_int_equal(barriers_for(s, &fill_hi, &read_lo), 0);
    assert_int_equal(barriers_for(s, &read_lo, &fill_mid), 1); /* WAR */
    assert_int_equal(barriers_for(s, &read_lo, &fill_hi), 0);
    assert_int_equal(barriers_for(s, &read_lo, &read_lo_too), 0);
    assert_ok(strm_synchronize(s));
    struct hazard_report r = record_end();
    assert_clean(&r);
    arr_unref(&lo);
    arr_unref(&hi);
    arr_unref(&mid);
    arr_unref(&base);
    arr_unref(&other);
    arr_unref(&third);
}

/* An array that walks its buffer backwards touches the bytes below its first element. */
static void test_negative_strides(void **state)
{
    const int64_t backwards[1] = { -1 };
    struct strm *s = vkt_stream();
    struct arr *base = vkt_array(s, 64), *out = vkt_array(s, 1), *reversed = NULL;
    struct arr *first = view(base, 0, 1);
    struct shp shape = { 1, { 64 } };

    (void)state;
    assert_ok(arr_new_empty(&reversed, &shape, DT_UINT32));
    arr_share(reversed, base, backwards, 0, 64, 63);
    record_begin();
    assert_int_equal(barriers_for(s, &(struct vkt_probe){ .out = first, .mul = 1 },
                                  &(struct vkt_probe){ .in = reversed, .out = out, .mul = 1 }),
                     1);
    assert_ok(strm_synchronize(s));
    struct hazard_report r = record_end();
    assert_clean(&r);
    arr_unref(&first);
    arr_unref(&reversed);
    arr_unref(&base);
    arr_unref(&out);
}

static void test_groups(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *all = vkt_array(s, 64), *out = vkt_array(s, 64);
    struct vkt_probe part = { .out = all, .mul = 1, .group = 7 };
    struct vkt_probe other = { .out = all, .mul = 1, .group = 8 };
    struct vkt_probe whole = { .out = all, .mul = 1 };
    struct vkt_probe reader = { .in = all, .out = out, .mul = 1 };

    (void)state;
    record_begin();
    assert_int_equal(barriers_for(s, &part, &part), 0);
    assert_int_equal(barriers_for(s, &part, &other), 1);
    assert_int_equal(barriers_for(s, &part, &whole), 1);
    assert_int_equal(barriers_for(s, &whole, &part), 1);
    assert_int_equal(barriers_for(s, &part, &reader), 1);
    assert_int_equal(barriers_for(s, &reader, &part), 1);
    assert_ok(strm_synchronize(s));
    struct hazard_report r = record_end();
    assert_clean(&r);
    arr_unref(&all);
    arr_unref(&out);
}

#define POOL 12
#define POOL_N 128

/* Random dispatches over views of a few arrays, against the same steps on the host. Without a
 * needed barrier (racy) a real GPU gives other results than the host. */
static void run_random(struct strm *s, struct rng *rng, int steps, bool racy)
{
    static uint32_t host[POOL][POOL_N];
    struct arr *pool[POOL];

    for (int k = 0; k < POOL; k++) {
        pool[k] = vkt_array(s, POOL_N);
        vkt_encode(s, &(struct vkt_probe){ .out = pool[k], .mul = 1, .add = (uint32_t)k });
        for (uint32_t i = 0; i < POOL_N; i++)
            host[k][i] = i + (uint32_t)k;
    }
    for (int t = 0; t < steps; t++) {
        int n = 1 + rng_below(rng, 40), a = rng_below(rng, POOL), b = rng_below(rng, POOL);
        int from = rng_below(rng, POOL_N - n), to = rng_below(rng, POOL_N - n);
        uint32_t mul = (uint32_t)rng_below(rng, 9), add = (uint32_t)rng_below(rng, 99);
        if (a == b && from != to) /* one dispatch must not race with itself */
            continue;
        struct arr *in = view(pool[a], from, n), *out = view(pool[b], to, n);
        vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = mul, .add = add });
        for (int i = 0; i < n; i++)
            host[b][to + i] = host[a][from + i] * mul + add;
        arr_unref(&in);
        arr_unref(&out);
        assert_ok(s->be->step_end(s));
        if (rng_one_in(rng, 50))
            assert_ok(strm_synchronize(s));
    }
    for (int k = 0; k < POOL; k++) {
        const uint32_t *v = vkt_read(s, pool[k]);
        if (!racy)
            assert_memory_equal(v, host[k], sizeof host[k]);
        arr_unref(&pool[k]);
    }
}

static void test_random_dispatches(void **state)
{
    struct rng rng = { 42 };
    int64_t max_ops = gate_set_int(GATE_VK_MAX_OPS, 13);

    (void)state;
    record_begin();
    for (int k = 0; k < 4; k++)
        run_random(vkt_stream(), &rng, 400, false);
    struct hazard_report r = record_end();
    assert_clean(&r);
    assert_in_range(r.dispatches, 1000, 2000);
    gate_set_int(GATE_VK_MAX_OPS, max_ops);
}

/* The checker must see every barrier that is left out, whichever it is. */
static void test_missing_barrier_is_found(void **state)
{
    (void)state;
    for (int n = 1; n <= 40; n += 3) {
        struct rng rng = { 7 };
        record_begin();
        vk_rec_drop_barrier(n);
        run_random(vkt_stream(), &rng, 300, true);
        struct hazard_report r = record_end();
        assert_true(r.raw + r.war + r.waw > 0);
        assert_true(r.text[0]);
    }
    vk_rec_drop_barrier(0);
}

/* One barrier too many is reported as well. */
static void test_needless_barrier_is_found(void **state)
{
    const struct vk_rec rec[] = {
        { VK_REC_WRITE, 0, 0, 1000, 16, 0, 1 }, { VK_REC_DISPATCH, 0, 0, 0, 0, 0, 1 },
        { VK_REC_WRITE, 0, 0, 2000, 16, 1, 1 }, { VK_REC_BARRIER, 0, 0, 0, 0, 1, 1 },
        { VK_REC_DISPATCH, 0, 0, 0, 0, 1, 1 },
    };
    struct hazard_report r;

    (void)state;
    assert_ok(hazard_check(&r, rec, ARRAY_LEN(rec)));
    assert_int_equal(r.needless, 1);
    assert_int_equal(hazard_count(&r), 0);
}

/* ---- commits and lifetimes ---- */

/* How often n small dispatches are committed on the way. */
static uint64_t commits_of(struct strm *s, struct arr *a, int n)
{
    uint64_t submits = stat_get(STAT_SUBMITS);

    for (int i = 0; i < n; i++) {
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
        assert_ok(s->be->step_end(s));
    }
    submits = stat_get(STAT_SUBMITS) - submits;
    assert_ok(strm_synchronize(s));
    return submits;
}

static void test_op_threshold(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 16);
    int64_t max_ops = gate_set_int(GATE_VK_MAX_OPS, 10);
    int64_t factor = gate_set_int(GATE_VK_BUSY_FACTOR, 1);

    (void)state;
    assert_int_equal(commits_of(s, a, 33), 3); /* after 11, 22 and 33 */
    /* After 11, and then after 31 more at the latest: sooner if the device was found idle. */
    gate_set_int(GATE_VK_BUSY_FACTOR, 3);
    assert_int_equal(commits_of(s, a, 11), 1);
    assert_in_range(commits_of(s, a, 60), 2, 5);
    gate_set_int(GATE_VK_BUSY_FACTOR, factor);
    gate_set_int(GATE_VK_MAX_OPS, max_ops);
    arr_unref(&a);
}

static void test_byte_threshold(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 16);
    struct arr *big = vkt_array(s, 1 << 18); /* 1 MiB */
    int64_t max_mb = gate_set_int(GATE_VK_MAX_MB, 1);
    uint64_t submits = stat_get(STAT_SUBMITS);

    (void)state;
    for (int i = 0; i < 3; i++) { /* counted once per command buffer */
        vkt_encode(s, &(struct vkt_probe){ .out = big, .mul = 1 });
        assert_ok(s->be->step_end(s));
    }
    assert_int_equal(stat_get(STAT_SUBMITS), submits);
    vkt_encode(s, &(struct vkt_probe){ .in = a, .out = big, .mul = 1 });
    struct arr *more = vkt_array(s, 1 << 18);
    vkt_encode(s, &(struct vkt_probe){ .out = more, .mul = 1 });
    assert_ok(s->be->step_end(s));
    assert_int_equal(stat_get(STAT_SUBMITS), submits + 1);
    assert_ok(strm_synchronize(s));
    assert_int_equal(sched_active(), 0);
    gate_set_int(GATE_VK_MAX_MB, max_mb);
    arr_unref(&a);
    arr_unref(&big);
    arr_unref(&more);
}

static void test_inflight_limit(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, 16);
    int64_t max = gate_set_int(GATE_VK_MAX_INFLIGHT, 2);

    (void)state;
    for (int i = 0; i < 50; i++) {
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1, .add = (uint32_t)i });
        assert_ok(s->be->flush(s));
        assert_true(vk_strm_of(s)->n_inflight <= 2);
    }
    assert_int_equal(vkt_read(s, a)[0], 49);
    gate_set_int(GATE_VK_MAX_INFLIGHT, max);
    arr_unref(&a);
}

static void test_hold(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *out = vkt_array(s, 16), *in = vkt_array(s, 1 << 16);
    size_t active = memory_active();

    (void)state;
    vkt_encode(s, &(struct vkt_probe){ .out = in, .mul = 1 });
    vkt_encode(s, &(struct vkt_probe){ .in = in, .out = out, .mul = 1 });
    assert_ok(s->be->hold(s, &in->buf, 1));
    arr_unref(&in);
    assert_int_equal(memory_active(), active); /* still held by the command */
    assert_int_equal(vkt_read(s, out)[15], 15);
    assert_int_equal(memory_active(), active - (sizeof(uint32_t) << 16));
    assert_ok(s->be->hold(s, &out->buf, 1)); /* nothing in flight: nothing to keep it for */
    assert_int_equal(buf_refs(out->buf), 1);
    arr_unref(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_dispatch),
        cmocka_unit_test(test_host_array_is_uploaded),
        cmocka_unit_test(test_large_arguments),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_bad_dispatches),
        cmocka_unit_test(test_dependent_chain),
        cmocka_unit_test(test_independent_need_no_barrier),
        cmocka_unit_test(test_many_ranges),
        cmocka_unit_test(test_byte_ranges),
        cmocka_unit_test(test_negative_strides),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_random_dispatches),
        cmocka_unit_test(test_missing_barrier_is_found),
        cmocka_unit_test(test_needless_barrier_is_found),
        cmocka_unit_test(test_op_threshold),
        cmocka_unit_test(test_byte_threshold),
        cmocka_unit_test(test_inflight_limit),
        cmocka_unit_test(test_hold),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
