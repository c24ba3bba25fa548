/* Fused evaluation gives the same bits as op-by-op evaluation: random graphs over all fusable ops,
 * dtypes, broadcasts and views, with random intermediates held by the caller. Only the bits of a
 * NaN are left open: which operand's NaN a sum takes over is the compiler's choice.
 *
 * usage: unit_fusion [seed [graphs]]; a failure prints the seed of its graph. */
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/gpu.h"
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 40, LEAVES = 5 };

static uint64_t first_seed = 1;
static int n_graphs;

/* ---- random graphs ---- */

struct graph {
    struct rng rng;
    struct strm *strm;
    int32_t rows, columns;         /* of everything, after broadcasting */
    struct arr *a[LEAVES + NODES]; /* NULL where nobody holds it any more */
    int n;
};

static enum op_id fusable[OP_COUNT];
static int n_fusable;

static void list_fusable(void)
{
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        if (op_table[op].flags & OPF_FUSE)
            fusable[n_fusable++] = (enum op_id)op;
}

static enum dtype random_dtype(struct graph *g)
{
    for (;;) {
        enum dtype t = (enum dtype)rng_below(&g->rng, DT_COUNT);
        if (t != DT_FLOAT64 || g->strm->dev.type == DEV_CPU)
            return t;
    }
}

/* Small ones, one that is no multiple of anything, one that counts as large on a device. */
static void choose_size(struct graph *g)
{
    static const int32_t sizes[][2] = { { 6, 5 }, { 4, 8 }, { 1, 30 }, { 33, 129 }, { 300, 301 } };
    int i = rng_one_in(&g->rng, 20) ? 4 : rng_one_in(&g->rng, 8) ? 3 : rng_below(&g->rng, 3);

    g->rows = sizes[i][0];
    g->columns = sizes[i][1];
}

static struct shp leaf_shape(struct graph *g)
{
    struct shp s = { .ndim = 2, .d = { g->rows, g->columns } };

    switch (rng_below(&g->rng, 7)) {
    case 0:
        return (struct shp){ .ndim = 1, .d = { g->columns } };
    case 1:
        s.d[1] = 1;
        return s;
    case 2:
        return (struct shp){ .ndim = rng_below(&g->rng, 2), .d = { 1 } };
    default:
        return s;
    }
}

/* Small integers, or numbers in [-2, 2). */
static void random_element(struct rng *r, enum dtype t, char *at)
{
    float f[2] = { (float)rng_below(r, 1024) / 256 - 2, (float)rng_below(r, 1024) / 256 - 2 };
    double d = f[0];
    int64_t i = rng_below(r, 9) - (dt_table[t].kind == DT_KIND_I ? 4 : 0);
    uint16_t half = t == DT_FLOAT16 ? dt_f32_to_f16(f[0]) : dt_f32_to_bf16(f[0]);
    const void *value = &i; /* little endian: the low bytes of an integer come first */

    i = t == DT_BOOL ? i & 1 : i;
    if (t == DT_FLOAT32 || t == DT_COMPLEX64)
        value = f;
    else if (t == DT_FLOAT64)
        value = &d;
    else if (dt_is_inexact(t))
        value = &half;
    memcpy(at, value, dt_size(t));
}

static struct arr *random_dense(struct graph *g, enum dtype t, const struct shp *s)
{
    size_t n = shp_size(s);
    char *bytes = mem_alloc_array(n, dt_size(t));
    struct arr *a = NULL;

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        random_element(&g->rng, t, bytes + i * dt_size(t));
    assert_ok(arr_new_data(&a, bytes, s, t));
    mem_free(bytes);
    return a;
}

/* Some of a larger dense array, steps[i] apart, the last element first where a step is negative. */
static struct arr *stepped(struct graph *g, enum dtype t, struct shp s, const int32_t *steps)
{
    struct arr *dense, *a = NULL;
    int32_t start[SHP_MAX], stop[SHP_MAX];
    size_t n = (size_t)s.ndim;

    for (size_t i = 0; i < n; i++)
        s.d[i] *= abs(steps[i]);
    for (size_t i = 0; i < n; i++) {
        start[i] = steps[i] < 0 ? s.d[i] - 1 : 0;
        stop[i] = steps[i] < 0 ? -s.d[i] - 1 : s.d[i];
    }
    dense = random_dense(g, t, &s);
    assert_ok(ops_slice(&a, dense, &(struct ops_slice){ { start, n }, { stop, n }, { steps, n } },
                        g->strm));
    arr_unref(&dense);
    return a;
}

static struct arr *transposed(struct graph *g, enum dtype t, struct shp s)
{
    struct arr *dense, *a = NULL;

    for (int i = 0, j = s.ndim - 1; i < j; i++, j--) {
        int32_t d = s.d[i];
        s.d[i] = s.d[j];
        s.d[j] = d;
    }
    dense = random_dense(g, t, &s);
    assert_ok(ops_transpose(&a, dense, INTS_ALL, g->strm));
    arr_unref(&dense);
    return a;
}

static struct arr *random_leaf(struct graph *g)
{
    static const int32_t steps[][2] = { { 2, 3 }, { -1, -1 }, { 1, -2 }, { -3, 1 } };
    struct shp s = leaf_shape(g);
    enum dtype t = random_dtype(g);
    int layout = rng_below(&g->rng, 7);

    if (layout < 2)
        return random_dense(g, t, &s);
    if (layout == 2)
        return transposed(g, t, s);
    return stepped(g, t, s, steps[layout - 3]);
}

static struct arr *pick(struct graph *g)
{
    for (;;) {
        int reach = rng_one_in(&g->rng, 2) ? g->n : MIN(g->n, 4);
        struct arr *a = g->a[g->n - 1 - rng_below(&g->rng, reach)];
        if (a)
            return a;
    }
}

/* A view of the same shape, or of a shape that still broadcasts. */
static enum err random_view(struct graph *g, struct arr **out, struct arr *a)
{
    int32_t start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
    size_t n = a->ndim;

    if (rng_one_in(&g->rng, 3))
        return ops_broadcast_to(out, a, (struct ints){ (int32_t[]){ g->rows, g->columns }, 2 },
                                g->strm);
    for (size_t i = 0; i < n; i++) {
        bool backwards = rng_one_in(&g->rng, 2);
        start[i] = backwards ? a->shape[i] - 1 : 0;
        stop[i] = backwards ? -a->shape[i] - 1 : a->shape[i];
        step[i] = backwards ? -1 : 1;
    }
    return ops_slice(out, a, &(struct ops_slice){ { start, n }, { stop, n }, { step, n } },
                     g->strm);
}

static enum err random_op(struct graph *g, struct arr **out)
{
    enum op_id op = fusable[rng_below(&g->rng, n_fusable)];
    struct arr *a = pick(g), *b = pick(g), *c = pick(g);

    if (rng_one_in(&g->rng, 12))
        return random_view(g, out, a);
    if (op == OP_ASTYPE)
        return ops_astype(out, a, random_dtype(g), g->strm);
    switch (op_table[op].family) {
    case OP_FAMILY_UNARY:
        return ops_unary(out, op, a, g->strm);
    case OP_FAMILY_BINARY:
        return ops_binary(out, op, a, b, g->strm);
    default:
        return ops_where(out, a, b, c, g->strm);
    }
}

/* The same seed gives the same graph. */
static void make_graph(struct graph *g, uint64_t seed, struct strm *s)
{
    *g = (struct graph){ .rng = { seed }, .strm = s };
    choose_size(g);
    while (g->n < LEAVES)
        g->a[g->n++] = random_leaf(g);
    for (int i = 4 + rng_below(&g->rng, NODES - 4); i > 0; i--) {
        struct arr *out = NULL;
        if (random_op(g, &out) == ERR_OK) /* else the op refuses the dtype */
            g->a[g->n++] = out;
    }
    for (int i = 0; i < g->n - 1; i++)
        if (!rng_one_in(&g->rng, 5))
            arr_unref(&g->a[i]);
}

static void drop_graph(struct graph *g)
{
    for (int i = 0; i < g->n; i++)
        arr_unref(&g->a[i]);
}

/* Evaluates the last array and some held ones. */
static void eval_graph(struct graph *g, bool async)
{
    struct arr *outs[3] = { g->a[g->n - 1], pick(g), pick(g) };

    assert_ok(eval_arrays(outs, 3, async));
}

/* ---- comparing ---- */

static const char *element(const struct arr *a, const char *first, size_t number)
{
    int64_t at = 0;

    for (int i = a->ndim - 1; i >= 0; i--) {
        at += (int64_t)(number % (size_t)a->shape[i]) * a->strides[i];
        number /= (size_t)a->shape[i];
    }
    return first + at * (int64_t)dt_size((enum dtype)a->dtype);
}

/* One component of a floating element is a NaN. */
static bool is_nan(enum dtype t, const char *at, int component)
{
    uint64_t bits = 0;

    memcpy(&bits, at + component * 4, t == DT_COMPLEX64 ? 4 : dt_size(t));
    switch (t) {
    case DT_FLOAT16:
        return (bits & 0x7fff) > 0x7c00;
    case DT_BFLOAT16:
        return (bits & 0x7fff) > 0x7f80;
    case DT_FLOAT64:
        return (bits & INT64_MAX) > 0x7ffull << 52;
    default:
        return (bits & 0x7fffffff) > 0x7f800000;
    }
}

static bool same_bits(enum dtype t, const char *x, const char *y)
{
    int components = t == DT_COMPLEX64 ? 2 : 1;
    size_t size = dt_size(t) / (size_t)components;

    for (int c = 0; c < components; c++)
        if (memcmp(x + (size_t)c * size, y + (size_t)c * size, size) != 0 &&
            !(dt_is_inexact(t) && is_nan(t, x, c) && is_nan(t, y, c)))
            return false;
    return true;
}

static void compare(struct graph *one, struct graph *other, uint64_t seed, const char *what)
{
    assert_int_equal(one->n, other->n);
    for (int i = 0; i < one->n; i++) {
        struct arr *a = one->a[i], *b = other->a[i];
        const void *pa = NULL, *pb = NULL;
        if (!a || !arr_is_scheduled(a))
            continue;
        assert_true(b && arr_is_scheduled(b));
        assert_ok(arr_host(&pa, a));
        assert_ok(arr_host(&pb, b));
        for (size_t k = 0; k < a->size; k++) {
            const char *x = element(a, pa, k), *y = element(b, pb, k);
            if (same_bits((enum dtype)a->dtype, x, y))
                continue;
            uint64_t u = 0, v = 0;
            memcpy(&u, x, dt_size((enum dtype)a->dtype));
            memcpy(&v, y, dt_size((enum dtype)a->dtype));
            fail_msg("seed %llu, %s: array %d (%s) element %zu: bits %llx fused, %llx apart",
                     (unsigned long long)seed, what, i, dt_name((enum dtype)a->dtype), k,
                     (unsigned long long)u, (unsigned long long)v);
        }
    }
}

static void set_gates(bool fuse, bool reorder)
{
    gate_set_int(GATE_PLAN_FUSE, fuse);
    gate_set_int(GATE_PLAN_REORDER, reorder);
}

static void check_graph(uint64_t seed, struct strm *s)
{
    static struct graph apart, fused, again;

    make_graph(&apart, seed, s);
    set_gates(false, false);
    eval_graph(&apart, false);
    set_gates(true, true);
    make_graph(&fused, seed, s);
    eval_graph(&fused, false);
    compare(&fused, &apart, seed, "first time");
    make_graph(&again, seed, s);
    eval_graph(&again, seed % 2); /* its plans come from the cache */
    compare(&again, &apart, seed, "from the cache");
    drop_graph(&apart);
    drop_graph(&fused);
    drop_graph(&again);
}

static void check_device(enum dev_type type, int graphs)
{
    struct strm *s = NULL;
    uint64_t groups = stat_get(STAT_FUSED_GROUPS), dispatches = stat_get(STAT_DISPATCHES);

    assert_ok(strm_default(&s, (struct dev){ type, 0 }));
    print_message("seeds %llu to %llu\n", (unsigned long long)first_seed,
                  (unsigned long long)first_seed + (unsigned long long)graphs - 1);
    for (int i = 0; i < graphs; i++)
        check_graph(first_seed + (uint64_t)i, s);
    assert_true(stat_get(STAT_FUSED_GROUPS) - groups >= (uint64_t)graphs);
    if (type == DEV_GPU)
        assert_true(stat_get(STAT_DISPATCHES) > dispatches);
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    check_device(DEV_CPU, n_graphs ? n_graphs : 600);
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    if (gpu_is_tested())
        check_device(DEV_GPU, n_graphs ? n_graphs : 150);
}

/* ---- f(x) or x itself ----
 * Compilers join such a choice with what f does to the bits of x, and have done so wrongly. */

#define CHOICES 64

static struct arr *choice_of(enum op_id op, struct strm *s, bool is_fused)
{
    struct arr *x = NULL, *where = NULL, *y = NULL, *z = NULL;
    float values[CHOICES];
    uint8_t is_taken[CHOICES];

    for (int i = 0; i < CHOICES; i++) {
        values[i] = (float)(i - CHOICES / 2) * 0.37f;
        is_taken[i] = i % 3 != 0;
    }
    const struct shp shape = { 1, { CHOICES } };
    assert_ok(arr_new_data(&x, values, &shape, DT_FLOAT32));
    assert_ok(arr_new_data(&where, is_taken, &shape, DT_BOOL));
    assert_ok(ops_unary(&y, op, x, s));
    if (!is_fused)
        assert_ok(eval_arrays(&y, 1, false));
    assert_ok(ops_where(&z, where, y, x, s));
    arr_unref(&x);
    arr_unref(&where);
    arr_unref(&y);
    assert_ok(eval_arrays(&z, 1, false));
    return z;
}

static void check_choices(enum dev_type type)
{
    struct strm *s = NULL;

    assert_ok(strm_default(&s, (struct dev){ type, 0 }));
    for (int i = 0; i < n_fusable; i++) {
        if (op_table[fusable[i]].family != OP_FAMILY_UNARY || fusable[i] == OP_ASTYPE ||
            fusable[i] == OP_BITWISE_INVERT)
            continue;
        struct graph fused = { .n = 1, .a = { choice_of(fusable[i], s, true) } };
        struct graph apart = { .n = 1, .a = { choice_of(fusable[i], s, false) } };
        compare(&fused, &apart, 0, op_name(fusable[i]));
        drop_graph(&fused);
        drop_graph(&apart);
    }
}

static void test_choices(void **state)
{
    (void)state;
    check_choices(DEV_CPU);
    if (gpu_is_tested())
        check_choices(DEV_GPU);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        n_graphs = atoi(argv[2]);
    list_fusable();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
