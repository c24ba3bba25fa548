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
#include "support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t first_seed = 1;
static int n_graphs;

/* ---- random graphs ---- */

static void make_graph(struct graph *g, uint64_t seed, struct strm *s)
{
    graph_make_leaves(g, seed, s);
    graph_make_nodes(g);
}

/* Evaluates the last array and some held ones. */
static void eval_graph(struct graph *g, bool async)
{
    struct arr *outs[3] = { g->a[g->n - 1], graph_pick(g), graph_pick(g) };

    assert_ok(eval_arrays(outs, 3, async));
}

static void set_gates(bool fuse, bool reorder)
{
    gate_set_int(GATE_PLAN_FUSE, fuse);
    gate_set_int(GATE_PLAN_REORDER, reorder);
}

static void check_graph(uint64_t seed, struct strm *s)
{
    static struct graph apart, fused, again;
    char what[64];

    make_graph(&apart, seed, s);
    set_gates(false, false);
    eval_graph(&apart, false);
    set_gates(true, true);
    make_graph(&fused, seed, s);
    eval_graph(&fused, false);
    snprintf(what, sizeof what, "seed %llu, first time", (unsigned long long)seed);
    graph_compare(&fused, &apart, what);
    make_graph(&again, seed, s);
    eval_graph(&again, seed % 2); /* its plans come from the cache */
    snprintf(what, sizeof what, "seed %llu, from the cache", (unsigned long long)seed);
    graph_compare(&again, &apart, what);
    graph_drop(&apart);
    graph_drop(&fused);
    graph_drop(&again);
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
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        if (op_table[op].family != OP_FAMILY_UNARY || op_table[op].params != PARAMS_none ||
            op == OP_BITWISE_INVERT)
            continue;
        struct graph fused = { .n = 1, .a = { choice_of((enum op_id)op, s, true) } };
        struct graph apart = { .n = 1, .a = { choice_of((enum op_id)op, s, false) } };
        graph_compare(&fused, &apart, op_name((enum op_id)op));
        graph_drop(&fused);
        graph_drop(&apart);
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
    return cmocka_run_group_tests(tests, NULL, NULL);
}
