/* Pipelines that a new recording misses are built ahead, in several threads: all of them and no
 * others, with nothing encoded, allocated, read or counted on the way. Each case in a process of
 * its own, so that no pipeline is there. */
#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/rt/pipeline.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "graph/load.h"
#include "graph/memory.h"
#include "ops/ops.h"
#include "plan/plan.h"
#include "support/child.h"
#include "support/testing.h"
#include "support/vk.h"

#include <math.h>
#include <stdatomic.h>

#define PROGRAMS 16
#define N 64

static struct arr *leaf(int32_t rows, int32_t columns, float first)
{
    struct shp s = { 2, { rows, columns } };
    size_t n = (size_t)rows * (size_t)columns;
    float *v = mem_alloc_array(n, sizeof *v);
    struct arr *a = NULL;

    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = first + (float)(i % 17) / 32;
    assert_ok(arr_new_data(&a, v, &s, DT_FLOAT32));
    mem_free(v);
    return a;
}

struct counts {
    uint64_t built, ahead, emitted, dispatches, recordings;
};

static struct counts counts_now(void)
{
    return (struct counts){ stat_get(STAT_PIPELINE_BUILDS), stat_get(STAT_PIPELINES_AHEAD),
                            stat_get(STAT_MODULES_EMITTED), stat_get(STAT_DISPATCHES),
                            stat_get(STAT_RECORDINGS) };
}

static struct counts counts_since(struct counts c)
{
    struct counts now = counts_now();

    return (struct counts){ now.built - c.built, now.ahead - c.ahead, now.emitted - c.emitted,
                            now.dispatches - c.dispatches, now.recordings - c.recordings };
}

/* ---- many elementwise programs ---- */

/* 16 results, each by a program of its own. */
static void make_programs(struct arr **out, struct arr *x, struct strm *s)
{
    static const enum op_id first[4] = { OP_EXP, OP_SIN, OP_TANH, OP_SQUARE };
    static const enum op_id then[4] = { OP_COS, OP_ABS, OP_NEGATIVE, OP_SIGMOID };

    for (int i = 0; i < PROGRAMS; i++) {
        struct arr *a = NULL, *b = NULL;
        assert_ok(ops_unary(&a, first[i / 4], x, s));
        assert_ok(ops_unary(&b, then[i % 4], a, s));
        assert_ok(ops_binary(&out[i], OP_ADD, b, x, s));
        arr_unref(&a);
        arr_unref(&b);
    }
}

static struct counts run_programs(float *values)
{
    struct strm *s = vkt_stream();
    size_t active = memory_active();
    struct arr *x = leaf(3, N, 0.25f), *out[PROGRAMS];
    struct counts before = counts_now();
    const void *host;

    make_programs(out, x, s);
    assert_ok(eval_arrays(out, PROGRAMS, false));
    struct counts c = counts_since(before);
    for (int i = 0; i < PROGRAMS; i++) {
        assert_ok(arr_host(&host, out[i]));
        values[i] = ((const float *)host)[3 * N - 1];
        arr_unref(&out[i]);
    }
    arr_unref(&x);
    assert_int_equal(memory_active(), active);
    return c;
}

static void programs(void)
{
    float ahead[PROGRAMS], alone[PROGRAMS];

    gate_set_int(GATE_VK_BUILD_THREADS, 2);
    struct counts c = run_programs(ahead);
    assert_int_equal(c.recordings, 1);
    assert_int_equal(c.ahead, PROGRAMS);
    assert_int_equal(c.built, PROGRAMS);
    assert_int_equal(c.emitted, PROGRAMS);
    assert_int_equal(c.dispatches, PROGRAMS);
    c = run_programs(alone); /* a new stream and plan, but nothing new in it */
    assert_int_equal(c.recordings, 1);
    assert_int_equal(c.ahead + c.built, 0);
    assert_memory_equal(ahead, alone, sizeof ahead);
}

static void programs_in_one_thread(void)
{
    float values[PROGRAMS];

    gate_set_int(GATE_VK_BUILD_THREADS, 1);
    struct counts c = run_programs(values);
    assert_int_equal(c.recordings, 1);
    assert_int_equal(c.ahead, 0);
    assert_int_equal(c.built, PROGRAMS);
    assert_int_equal(c.dispatches, PROGRAMS);
}

/* What could not be built ahead is built when it is needed. */
static void failed_builds(void)
{
    float values[PROGRAMS];

    gate_set_int(GATE_VK_BUILD_THREADS, 2);
    vk_fault_set(VK_FAULT_PIPELINE, 5);
    struct counts c = run_programs(values);
    assert_int_equal(c.ahead, PROGRAMS);
    assert_int_equal(c.built, PROGRAMS);
    assert_int_equal(c.dispatches, PROGRAMS);
}

/* ---- failures of the driver: the same arrays can be evaluated when they are over ---- */

static void check_programs(struct arr **out, struct arr **want)
{
    const void *x, *y;

    for (int i = 0; i < PROGRAMS; i++) {
        assert_ok(arr_host(&x, out[i]));
        assert_ok(arr_host(&y, want[i]));
        assert_memory_equal(x, y, arr_nbytes(want[i]));
        arr_unref(&out[i]);
        arr_unref(&want[i]);
    }
}

static void assert_not_evaluated(struct arr *const *out)
{
    for (int i = 0; i < PROGRAMS; i++) {
        assert_false(arr_is_scheduled(out[i]));
        assert_null(out[i]->buf);
    }
}

/* No pipeline can be built, or the first one cannot. */
static void failed_pipelines(void)
{
    struct strm *s = vkt_stream();
    struct arr *x = leaf(3, N, 0.25f), *out[PROGRAMS], *want[PROGRAMS];
    size_t active = memory_active();

    make_programs(out, x, s);
    make_programs(want, x, s);
    for (int threads = 2; threads > 0; threads--) {
        gate_set_int(GATE_VK_BUILD_THREADS, threads);
        vk_fault_set(VK_FAULT_PIPELINE, threads == 2 ? -1 : 1);
        struct counts before = counts_now();
        assert_fails(ERR_DEVICE, eval_arrays(out, PROGRAMS, false));
        assert_int_equal(counts_since(before).dispatches, 0);
        assert_not_evaluated(out);
        assert_int_equal(memory_active(), active);
    }
    vk_fault_set(VK_FAULT_PIPELINE, 0);
    assert_ok(eval_arrays(out, PROGRAMS, false));
    assert_ok(eval_arrays(want, PROGRAMS, false));
    check_programs(out, want);
    arr_unref(&x);
}

/* The sums of the rows of a softmax that needs 128 MB. */
static struct arr *big_run(struct arr *row, struct strm *s)
{
    struct arr *rows = NULL, *y = NULL, *sums = NULL;
    int32_t shape[] = { 1 << 14, 1 << 11 }, last = -1;

    assert_ok(ops_broadcast_to(&rows, row, (struct ints){ shape, 2 }, s));
    assert_ok(ops_softmax(&y, rows, (struct ints){ &last, 1 }, true, s));
    assert_ok(ops_reduce(&sums, REDUCE_SUM, y, &(struct ops_axes){ .axes = { &last, 1 } }, s));
    arr_unref(&rows);
    arr_unref(&y);
    return sums;
}

/* No memory of the device, for a run that is new and for one that was recorded. */
static void failed_memory(void)
{
    struct strm *s = vkt_stream();
    struct arr *row = leaf(1, 1 << 11, 0.25f);
    const void *host;

    for (int i = 0; i < 2; i++) {
        struct arr *sums = big_run(row, s);
        uint64_t hits = stat_get(STAT_RECORDING_HITS);
        be_vulkan.cache_clear();
        size_t active = memory_active();
        vk_fault_set(VK_FAULT_MEMORY, -1);
        assert_fails(ERR_NO_MEMORY, eval_arrays(&sums, 1, false));
        vk_fault_set(VK_FAULT_MEMORY, 0);
        assert_false(arr_is_scheduled(sums));
        assert_int_equal(memory_active(), active);
        assert_ok(eval_arrays(&sums, 1, false));
        assert_true(i == 0 || stat_get(STAT_RECORDING_HITS) > hits);
        assert_ok(arr_host(&host, sums));
        assert_true(fabsf(((const float *)host)[(1 << 14) - 1] - 1) < 1e-4f);
        arr_unref(&sums);
    }
    arr_unref(&row);
}

/* What was recorded is as good as before when its work was not taken. */
static void failed_submission(void)
{
    struct strm *s = vkt_stream();
    struct arr *x = leaf(3, N, 0.25f), *out[PROGRAMS], *want[PROGRAMS];

    make_programs(want, x, s);
    assert_ok(eval_arrays(want, PROGRAMS, false));
    make_programs(out, x, s);
    uint64_t hits = stat_get(STAT_RECORDING_HITS), recordings = stat_get(STAT_RECORDINGS);
    vk_fault_set(VK_FAULT_SUBMIT, 1);
    assert_fails(ERR_NO_MEMORY, eval_arrays(out, PROGRAMS, false));
    for (int i = 0; i < PROGRAMS; i++)
        arr_unref(&out[i]);
    make_programs(out, x, s);
    assert_ok(eval_arrays(out, PROGRAMS, false));
    assert_int_equal(stat_get(STAT_RECORDING_HITS) - hits, 2);
    assert_int_equal(stat_get(STAT_RECORDINGS), recordings);
    check_programs(out, want);
    arr_unref(&x);
}

/* A device that is lost is lost for recordings that are there, and for new ones. */
static void lost_device(void)
{
    struct strm *s = vkt_stream();
    struct arr *x = leaf(3, N, 0.25f), *out[PROGRAMS], *other = NULL;

    for (int i = 0; i < 3; i++) {
        make_programs(out, x, s);
        vk_fault_set(VK_FAULT_LOST, i == 1);
        if (i == 0)
            assert_ok(eval_arrays(out, PROGRAMS, false));
        else
            assert_fails(ERR_DEVICE, eval_arrays(out, PROGRAMS, false));
        for (int k = 0; k < PROGRAMS; k++)
            arr_unref(&out[k]);
    }
    assert_ok(ops_unary(&other, OP_ERF, x, s));
    assert_fails(ERR_DEVICE, eval_arrays(&other, 1, false));
    arr_unref(&other);
    arr_unref(&x);
    plan_cache_clear(s);
}

/* ---- kernels of all sorts, in layouts that come about on the way ---- */

static void make_mixture(struct arr **out, struct strm *s)
{
    struct arr *x = leaf(N, N, 0.5f), *y = leaf(N, N, 1), *t = NULL, *m = NULL, *key = NULL;
    int32_t start[2] = { 1, 2 }, stop[2] = { N, N - 1 }, step[2] = { 2, 3 }, last = -1;
    struct ops_slice every = { { start, 2 }, { stop, 2 }, { step, 2 } };
    struct ops_axes rows = { .axes = { &last, 1 } }, all = { .axes = INTS_ALL };

    assert_ok(ops_random_key(&key, 7));
    assert_ok(ops_matmul(&m, x, y, s));
    assert_ok(ops_transpose(&t, m, INTS_ALL, s));
    assert_ok(ops_contiguous(&out[0], t, false, s));
    assert_ok(ops_softmax(&out[1], t, (struct ints){ &last, 1 }, true, s));
    assert_ok(ops_reduce(&out[2], REDUCE_SUM, out[1], &rows, s));
    assert_ok(ops_reduce(&out[3], REDUCE_MAX, t, &all, s));
    assert_ok(ops_slice(&out[4], m, &every, s));
    assert_ok(ops_unary(&out[5], OP_EXP, out[4], s));
    assert_ok(ops_arg_reduce(&out[6], true, out[5], &rows, s));
    assert_ok(ops_sort(&out[7], t, 0, s));
    assert_ok(ops_random_bits(&out[8], (struct ints){ start, 2 }, 4, key, s));
    assert_ok(ops_matmul(&out[9], out[0], t, s));
    arr_unref(&x);
    arr_unref(&y);
    arr_unref(&t);
    arr_unref(&m);
    arr_unref(&key);
}

static void mixture(void)
{
    struct strm *s = vkt_stream();
    struct arr *out[10];
    struct counts before = counts_now();

    gate_set_int(GATE_VK_BUILD_THREADS, 2);
    make_mixture(out, s);
    assert_ok(eval_arrays(out, ARRAY_LEN(out), true));
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        assert_ok(arr_wait(out[i]));
    struct counts c = counts_since(before);
    assert_int_equal(c.recordings, 1);
    assert_in_range(c.ahead, 8, 40);
    assert_int_equal(c.built, c.ahead); /* none was missed, none was needless */
    for (size_t i = 0; i < ARRAY_LEN(out); i++)
        arr_unref(&out[i]);
}

/* ---- nothing else happens ---- */

static atomic_int n_reads;

static enum err read_zeros(void *self, void *dst, size_t n, uint64_t offset)
{
    (void)self;
    (void)offset;
    n_reads++;
    memset(dst, 0, n);
    return ERR_OK;
}

static void free_nothing(void *self)
{
    (void)self;
}

/* A file is read once, and its error is told once. */
static void loads(void)
{
    struct strm *s = vkt_stream();
    struct source_reader reader = { NULL, read_zeros, free_nothing, N * sizeof(float) };
    struct load_part part = { .codec = CODEC_RAW, .name = "" };
    struct arr *a = NULL, *b = NULL, *short_of = NULL;
    const void *host;

    gate_set_int(GATE_VK_BUILD_THREADS, 2);
    assert_ok(source_new_reader(&part.source, &reader, "zeros"));
    assert_ok(ops_load(&a, &part, &(struct shp){ 1, { N } }, DT_FLOAT32, s));
    assert_ok(ops_unary(&b, OP_EXP, a, s));
    assert_ok(eval_arrays(&b, 1, false));
    assert_int_equal(stat_get(STAT_RECORDINGS), 1);
    assert_int_equal(n_reads, 1);
    assert_ok(arr_host(&host, b));
    assert_true(((const float *)host)[N - 1] == 1);
    assert_ok(ops_load(&short_of, &part, &(struct shp){ 1, { N + 1 } }, DT_FLOAT32, s));
    assert_fails(ERR_RUNTIME, eval_arrays(&short_of, 1, false));
    assert_false(arr_is_scheduled(short_of));
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&short_of);
    source_unref(&part.source);
}

static void test_cases(void **state)
{
    static const struct {
        const char *name;
        void (*fn)(void);
        const char *memory;
    } cases[] = {
        { "programs", programs, "unified" },
        { "programs, staged", programs, "staged" },
        { "one thread", programs_in_one_thread, "bar" },
        { "failed builds", failed_builds, "bar" },
        { "failed pipelines", failed_pipelines, "unified" },
        { "failed pipelines, staged", failed_pipelines, "staged" },
        { "failed memory", failed_memory, "unified" },
        { "failed memory, staged", failed_memory, "staged" },
        { "failed submission", failed_submission, "bar" },
        { "lost device", lost_device, "unified" },
        { "lost device, staged", lost_device, "staged" },
        { "mixture", mixture, "unified" },
        { "mixture, bar", mixture, "bar" },
        { "mixture, staged", mixture, "staged" },
        { "loads", loads, "unified" },
        { "loads, staged", loads, "staged" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const char *settings[] = { "MLX_VK_MEMORY",
                                   cases[i].memory,
                                   "MLX_VK_ENABLE_PIPELINE_CACHE",
                                   "0",
                                   "MLX_VK_VALIDATE",
                                   "1",
                                   NULL };
        if (!test_in_child(cases[i].fn, settings))
            fail_msg("%s", cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
