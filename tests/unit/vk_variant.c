/* Kernel variants: they are counted, can be switched off, and one that cannot be built gives way to
 * the next without a change of the result. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/pipeline.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/times.h"
#include "graph/op.h"
#include "support/nd.h"

#define ROWS 6
#define COLS 128

/* ---- what is computed ---- */

/* A sum, a product or a softmax of matrices of small integers. */
struct task {
    enum op_id op;
    enum dtype dtype;
    int32_t rows; /* of the first operand */
};

static const struct task sums = { OP_REDUCE, DT_INT32, ROWS };
static const struct task vectors = { OP_MATMUL, DT_FLOAT32, 1 };
static const struct task softmax = { OP_SOFTMAX, DT_FLOAT32, ROWS };

static void make_operand(struct nd *a, const struct task *t, int32_t rows)
{
    struct rng r = { 3 };

    nd_make(a, &r, DT_INT8, &(struct shp){ 2, { rows, COLS } }, ND_ROW);
    for (size_t i = 0; i < a->n; i++)
        *(int8_t *)nd_at(a, i) = (int8_t)(rng_below(&r, 7) - 3);
    nd_view(a);
    if (t->dtype != DT_INT8) {
        struct nd wide = *a;
        size_t item = dt_size(t->dtype);

        wide.dtype = t->dtype;
        wide.bytes = mem_alloc(a->n * item);
        wide.arr = NULL;
        assert_non_null(wide.bytes);
        for (size_t i = 0; i < a->n; i++)
            num_store(t->dtype, wide.bytes + i * item, nd_get(a, i));
        nd_view(&wide);
        nd_free(a);
        *a = wide;
    }
}

static struct arr *node_of(const struct task *t, struct arr *const *in)
{
    struct reduce_params sum = { .kind = REDUCE_SUM, .axis = { 1 }, .n = 1 };
    struct softmax_params precise = { .precise = 1 };
    struct out_desc out = { .dtype = t->dtype };
    struct arr *r = NULL;

    arr_shape(&out.shape, in[0]);
    if (t->op == OP_REDUCE) {
        out.shape.d[1] = 1;
        out.dtype = dt_is_inexact(t->dtype) ? t->dtype : DT_INT32;
        assert_ok(arr_new_op(&r, .op = t->op, .strm = nd_gpu, .in = in, .n_in = 1, .params = &sum,
                             .out = &out));
    } else if (t->op == OP_SOFTMAX) {
        assert_ok(arr_new_op(&r, .op = t->op, .strm = nd_gpu, .in = in, .n_in = 1,
                             .params = &precise, .out = &out));
    } else {
        assert_ok(arr_new_op(&r, .op = t->op, .strm = nd_gpu, .in = in, .n_in = 2, .out = &out));
    }
    return r;
}

#define MAX_RESULT (ROWS * COLS)

struct result {
    size_t n;
    double v[MAX_RESULT];
};

static struct result run(const struct task *t)
{
    struct result r = { 0 };
    struct nd a, b;

    make_operand(&a, t, t->rows);
    make_operand(&b, t, COLS);
    struct arr *out = node_of(t, (struct arr *[]){ a.arr, b.arr });
    const char *got = nd_run(out);
    enum dtype dtype = (enum dtype)out->dtype;
    r.n = out->size;
    assert_true(r.n <= MAX_RESULT);
    for (size_t i = 0; i < r.n; i++)
        r.v[i] = num_load(dtype, got + i * dt_size(dtype)).re;
    arr_unref(&out);
    nd_free(&a);
    nd_free(&b);
    return r;
}

static void assert_same(const struct result *got, const struct result *want)
{
    assert_int_equal(got->n, want->n);
    for (size_t i = 0; i < got->n; i++)
        assert_float_equal(got->v[i], want->v[i], 1e-6);
}

/* The variant of [from, to] that ran last: the only one with a hit since the reset. */
static enum variant_id taken(enum variant_id from, enum variant_id to)
{
    enum variant_id found = VARIANT_COUNT;

    for (int i = (int)from; i <= (int)to; i++) {
        if (!variant_hits((enum variant_id)i))
            continue;
        assert_int_equal(found, VARIANT_COUNT);
        found = (enum variant_id)i;
    }
    assert_int_not_equal(found, VARIANT_COUNT);
    return found;
}

static enum variant_id matmul_taken(void)
{
    return taken(VARIANT_GEMV_K_SHORT, VARIANT_TILED_32X32_K8);
}

/* The setting MLX_VK_ENABLE_<name>. */
static enum gate gate_of(enum variant_id id)
{
    static const char prefix[] = "MLX_VK_ENABLE_";

    for (int i = 0; i < GATE_COUNT; i++)
        if (strncmp(gate_table[i].variable, prefix, sizeof prefix - 1) == 0 &&
            strcmp(gate_table[i].variable + sizeof prefix - 1, variant_name(id)) == 0)
            return (enum gate)i;
    fail_msg("%s has no setting", variant_name(id));
    return GATE_COUNT;
}

/* ---- log lines ---- */

static int n_lines;
static const char *line_part;

static void count_line(enum log_level level, const char *line, void *data)
{
    (void)level;
    (void)data;
    n_lines += strstr(line, line_part) != NULL;
}

static void count_lines_with(const char *part)
{
    n_lines = 0;
    line_part = part;
    log_set_sink(count_line, NULL);
}

static int begin(void **state)
{
    (void)state;
    variant_reset();
    return 0;
}

static int end(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    vk_fault_set(VK_FAULT_PIPELINE, 0);
    return 0;
}

/* ---- tests ---- */

static void test_counts(void **state)
{
    (void)state;
    run(&sums);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS_WIDE), 1);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS), 0);
    run(&sums);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS_WIDE), 2);
    run(&vectors);
    assert_true(matmul_taken() <= VARIANT_GEMV_X);
}

static void test_shared_setting(void **state)
{
    struct result want = run(&sums), got;
    int64_t old = gate_set_int(GATE_VK_REDUCE_WIDE, 0);

    (void)state;
    variant_reset();
    got = run(&sums);
    gate_set_int(GATE_VK_REDUCE_WIDE, old);
    assert_same(&got, &want);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS_WIDE), 0);
    assert_int_equal(variant_rejects(VARIANT_REDUCE_ROWS_WIDE, VARIANT_OFF), 1);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS), 1);
}

/* Row by row, until only the last one is left. */
static void test_own_settings(void **state)
{
    struct result want = run(&vectors), got;
    enum variant_id id;

    (void)state;
    while ((id = matmul_taken()) != VARIANT_TILED_32X32) {
        gate_set_int(gate_of(id), 0);
        variant_reset();
        got = run(&vectors);
        assert_same(&got, &want);
        assert_int_equal(variant_rejects(id, VARIANT_OFF), 1);
        assert_true(matmul_taken() > id);
    }
    for (int i = VARIANT_GEMV_K_SHORT; i < VARIANT_TILED_32X32; i++)
        gate_set_int(gate_of((enum variant_id)i), 1);
}

static void test_softmax_setting(void **state)
{
    struct result want = run(&softmax), got;

    (void)state;
    assert_int_equal(variant_hits(VARIANT_SOFTMAX_ROW), 1);
    gate_set_int(GATE_VK_SOFTMAX_ROW, 0);
    got = run(&softmax);
    gate_set_int(GATE_VK_SOFTMAX_ROW, 1);
    assert_same(&got, &want);
    assert_int_equal(variant_rejects(VARIANT_SOFTMAX_ROW, VARIANT_OFF), 1);
    assert_int_equal(variant_hits(VARIANT_SOFTMAX_PARTS), 1);
}

/* The dtypes of the next two have no pipelines yet, so that the driver is asked: ahead of the first
 * use, and again for it. */
static void fail_pipeline(void)
{
    vk_fault_set(VK_FAULT_PIPELINE, vk_pipe_builders() > 1 ? 2 : 1);
}

static void test_reduce_gives_way(void **state)
{
    struct task t = { OP_REDUCE, DT_INT16, ROWS };
    struct result want = run(&sums), got;

    (void)state;
    variant_reset();
    count_lines_with("REDUCE_ROWS_WIDE is off");
    fail_pipeline();
    for (int i = 0; i < 2; i++) {
        got = run(&t);
        assert_same(&got, &want);
    }
    assert_int_equal(n_lines, 1);
    assert_int_equal(variant_rejects(VARIANT_REDUCE_ROWS_WIDE, VARIANT_FAILED), 2);
    assert_int_equal(variant_hits(VARIANT_REDUCE_ROWS), 2);
}

static void test_matmul_gives_way(void **state)
{
    struct task t = { OP_MATMUL, DT_FLOAT16, 1 };
    struct result want = run(&vectors), got;
    enum variant_id first = matmul_taken();

    (void)state;
    variant_reset();
    count_lines_with("is off from here on");
    fail_pipeline();
    for (int i = 0; i < 2; i++) {
        got = run(&t);
        assert_same(&got, &want);
    }
    assert_int_equal(n_lines, 1);
    assert_int_equal(variant_rejects(first, VARIANT_FAILED), 2);
}

static void test_what_gives_way(void **state)
{
    (void)state;
    count_lines_with("is off from here on");
    assert_false(variant_gives_way(VARIANT_REDUCE_ROWS, ERR_DEVICE));
    assert_false(variant_gives_way(VARIANT_COUNT, ERR_DEVICE));
    assert_false(variant_gives_way(VARIANT_GEMV_X, ERR_NO_MEMORY));
    assert_int_equal(n_lines, 0);
    assert_true(variant_gives_way(VARIANT_GEMV_X, ERR_UNSUPPORTED));
    assert_true(variant_gives_way(VARIANT_GEMV_X, ERR_RUNTIME));
    assert_int_equal(n_lines, 1);
}

static void test_rejects_are_logged_once(void **state)
{
    struct task smaller = sums;
    int64_t old = gate_set_int(GATE_VK_REDUCE_WIDE, 0);

    (void)state;
    smaller.rows--;
    count_lines_with("REDUCE_ROWS_WIDE refused (switched off): int32");
    run(&sums);
    assert_int_equal(n_lines, 0);
    gate_set_int(GATE_VK_DEBUG_REJECT, 1 << FAMILY_REDUCE);
    run(&sums);
    run(&sums);
    assert_int_equal(n_lines, 1);
    run(&smaller);
    assert_int_equal(n_lines, 2);
    gate_set_int(GATE_VK_DEBUG_REJECT, 0);
    gate_set_int(GATE_VK_REDUCE_WIDE, old);
}

static void test_print(void **state)
{
    char text[4096] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    (void)state;
    assert_non_null(f);
    run(&sums);
    variant_print(f, NULL);
    fclose(f);
    assert_non_null(strstr(text,
                           "1  REDUCE: REDUCE_ROWS_WIDE taken, by outputs x elements of each\n"
                           "           1      4-7 x 128-255\n"));
    assert_null(strstr(text, "REDUCE_COLS"));
}

static void test_print_one_family(void **state)
{
    char text[4096] = "";
    FILE *f = fmemopen(text, sizeof text, "w");

    (void)state;
    assert_non_null(f);
    run(&sums);
    run(&softmax);
    variant_print(f, "SOFT");
    fclose(f);
    assert_non_null(strstr(text, "1  SOFTMAX: SOFTMAX_ROW taken, by rows x row length\n"));
    assert_null(strstr(text, "REDUCE"));
}

/* GPU times are kept by kernel and by the variant that ran. */
static uint64_t timed_calls(const char *name, const char *variant)
{
    struct times_key key = { .device = "gpu", .name = name, .variant = variant };
    uint64_t calls, ns;

    times_get(&calls, &ns, &key);
    assert_true(!calls || ns > 0);
    return calls;
}

static void run_timed(const struct task *t)
{
    times_reset();
    gate_set_int(GATE_VK_TIMING, 1);
    gate_set_int(GATE_VK_STATS, FAMILIES_ALL);
    run(t);
    gate_set_int(GATE_VK_STATS, 0);
    gate_set_int(GATE_VK_TIMING, 0);
}

static void test_times(void **state)
{
    (void)state;
    run_timed(&sums);
    assert_int_equal(timed_calls("reduce_row_int32", "REDUCE_ROWS_WIDE"), 1);
}

/* Two dispatches of one op, each by what it runs. */
static void test_times_of_parts(void **state)
{
    (void)state;
    gate_set_int(GATE_VK_SOFTMAX_ROW, 0);
    run_timed(&softmax);
    gate_set_int(GATE_VK_SOFTMAX_ROW, 1);
    assert_int_equal(timed_calls("logsumexp_row_float32", "REDUCE_ROWS_WIDE"), 1);
    assert_int_equal(timed_calls("softmax_float32", "SOFTMAX_PARTS"), 1);
}

/* ---- shapes ---- */

#define THREADS 4
#define HITS 20000

/* Sizes from 1 to 2^40 in three dimensions, the same order of them in every thread. */
static void *take_many(void *arg)
{
    struct rng r = { 7 };

    for (int i = 0; i < HITS; i++) {
        struct variant_problem p = { .sizes = "a x b x c" };
        for (int k = 0; k < 3; k++)
            p.size[k] = (int64_t)1 << rng_below(&r, *(int *)arg);
        assert_true(variant_takes(VARIANT_TILED_32X32, VARIANT_FITS, &p));
    }
    return NULL;
}

static void take_in_threads(int max_log2)
{
    pthread_t thread[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, take_many, &max_log2), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(variant_hits(VARIANT_TILED_32X32), THREADS * HITS);
}

static void test_shapes(void **state)
{
    (void)state;
    run(&sums);
    run(&sums);
    assert_int_equal(variant_hits_of(VARIANT_REDUCE_ROWS_WIDE, (int64_t[]){ 6, 128, 0, 0 }), 2);
    assert_int_equal(variant_hits_of(VARIANT_REDUCE_ROWS_WIDE, (int64_t[]){ 4, 255, 0, 0 }), 2);
    assert_int_equal(variant_hits_of(VARIANT_REDUCE_ROWS_WIDE, (int64_t[]){ 8, 128, 0, 0 }), 0);
    assert_int_equal(variant_hits_of(VARIANT_REDUCE_ROWS, (int64_t[]){ 6, 128, 0, 0 }), 0);
}

static void test_shapes_of_many_threads(void **state)
{
    uint64_t sum = 0;

    (void)state;
    take_in_threads(8);
    for (int i = 0; i < 8 * 8 * 8; i++)
        sum += variant_hits_of(
            VARIANT_TILED_32X32,
            (int64_t[]){ (int64_t)1 << i / 64, (int64_t)1 << i / 8 % 8, (int64_t)1 << i % 8, 0 });
    assert_int_equal(sum, THREADS * HITS);
}

/* More shapes than there is room for: the rest is counted together. */
static void test_too_many_shapes(void **state)
{
    static char text[1 << 18];
    FILE *f = fmemopen(text, sizeof text, "w");
    unsigned long long n, sum = 0;

    (void)state;
    assert_non_null(f);
    take_in_threads(41);
    variant_print(f, "MATMUL");
    fclose(f);
    char *line = strchr(text, '\n');
    assert_non_null(strstr(text, "hits of further shapes"));
    for (; line && sscanf(line, "%llu", &n) == 1; line = strchr(line + 1, '\n'))
        sum += n;
    assert_int_equal(sum, THREADS * HITS);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_counts),
        CASE(test_shared_setting),
        CASE(test_own_settings),
        CASE(test_softmax_setting),
        CASE(test_reduce_gives_way),
        CASE(test_matmul_gives_way),
        CASE(test_what_gives_way),
        CASE(test_rejects_are_logged_once),
        CASE(test_print),
        CASE(test_print_one_family),
        CASE(test_times),
        CASE(test_times_of_parts),
        CASE(test_shapes),
        CASE(test_shapes_of_many_threads),
        CASE(test_too_many_shapes),
    };

    return cmocka_run_group_tests_name("vk_variant", tests, nd_open, NULL);
}
