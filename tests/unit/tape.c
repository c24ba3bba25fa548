#include "eval/tape.h"
#include "graph/tracing.h"

#include "base/gate.h"
#include "graph/op.h"
#include "support/sim.h"
#include "support/testing.h"

static const struct shp vector = { .ndim = 1, .d = { 4 } };

static struct arr *new_node(struct strm *s, enum op_id op, struct arr *const *in, size_t n)
{
    struct arr *a = NULL;

    assert_ok(arr_new_op(&a, .op = (uint16_t)op, .strm = s, .in = in, .n_in = n,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    return a;
}

static struct arr *add(struct strm *s, struct arr *a, struct arr *b)
{
    return new_node(s, OP_ADD, (struct arr *[]){ a, b }, 2);
}

static size_t position(const struct tape *t, const struct node *n)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->node[i] == n)
            return i;
    return SIZE_MAX;
}

/* Every node once, and every input that has to run stands before it. */
static void check_order(const struct tape *t)
{
    for (size_t i = 0; i < t->n; i++) {
        assert_int_equal(position(t, t->node[i]), i);
        for (int k = 0; k < t->node[i]->n_in; k++)
            if (!arr_is_scheduled(t->node[i]->in[k]))
                assert_true(position(t, t->node[i]->in[k]->node) < i);
    }
}

static void drop_all(struct arr **a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        arr_unref(&a[i]);
}

/* ---- ---- */

static void test_nothing_to_do(void **state)
{
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct tape t = { 0 };

    (void)state;
    assert_ok(tape_build(&t, NULL, 0, false));
    assert_int_equal(t.n, 0);
    assert_ok(tape_build(&t, &leaf.a, 1, false));
    assert_int_equal(t.n, 0);
    tape_fini(&t);
    sim_drop(&leaf);
}

static void test_diamond(void **state)
{
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *top = new_node(NULL, OP_EXP, &leaf.a, 1);
    struct arr *left = new_node(NULL, OP_SIN, &top, 1), *right = new_node(NULL, OP_COS, &top, 1);
    struct arr *bottom = add(NULL, left, right);
    struct arr *outs[] = { bottom, left, bottom }; /* named twice, and an inner one as well */
    struct tape t = { 0 };

    (void)state;
    assert_ok(tape_build(&t, outs, 3, false));
    assert_int_equal(t.n, 4);
    check_order(&t);
    assert_ptr_equal(t.node[0], top->node);
    assert_ptr_equal(t.node[3], bottom->node);
    tape_fini(&t);
    drop_all((struct arr *[]){ bottom, left, right, top }, 4);
    sim_drop(&leaf);
}

static void test_node_with_several_outputs_enters_once(void **state)
{
    struct strm *s = sim_strm_new();
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1), parts[2];
    struct tape t = { 0 };

    (void)state;
    sim_node(parts, &(struct sim_node){ OP_DIVMOD, s, vector, DT_FLOAT32, 2 },
             (struct sim_arr[]){ leaf, leaf }, 2);
    struct arr *sum = add(s, parts[0].a, parts[1].a);
    struct arr *outs[] = { parts[1].a, sum, parts[0].a };
    assert_ok(tape_build(&t, outs, 3, false));
    assert_int_equal(t.n, 2);
    check_order(&t);
    tape_fini(&t);
    arr_unref(&sum);
    sim_drop(&parts[0]);
    sim_drop(&parts[1]);
    sim_drop(&leaf);
    sim_strm_free(&s);
}

/* ---- random graphs ---- */

enum { POOL = 120 };

/* Nodes over random earlier ones; some are evaluated already. Returns how many must run for all. */
static void random_graph(struct rng *r, struct arr **pool, struct strm *const *streams)
{
    for (int i = 0; i < POOL; i++) {
        struct strm *s = streams[rng_below(r, 2)];
        if (i < 3 || rng_one_in(r, 10)) {
            pool[i] = sim_leaf(&vector, DT_FLOAT32, (uint64_t)i).a;
            continue;
        }
        int reach = rng_one_in(r, 3) ? i : MIN(i, 4);
        struct arr *a = pool[i - 1 - rng_below(r, reach)], *b = pool[i - 1 - rng_below(r, reach)];
        pool[i] = add(s, a, b);
    }
}

/* Marks what `a` needs, by following inputs until nothing changes. */
static size_t count_needed(struct arr *const *outs, size_t n, struct arr *const *pool)
{
    bool needed[POOL] = { false };
    size_t count = 0;

    for (int i = POOL - 1; i >= 0; i--) {
        for (size_t o = 0; o < n; o++)
            needed[i] |= outs[o] == pool[i];
        needed[i] &= !arr_is_scheduled(pool[i]);
        count += needed[i];
        for (int k = 0; needed[i] && k < pool[i]->node->n_in; k++)
            for (int j = 0; j < i; j++)
                needed[j] |= pool[j] == pool[i]->node->in[k];
    }
    return count;
}

static bool has_foreign_consumer(const struct tape *t, const struct node *producer)
{
    for (size_t i = 0; i < t->n; i++)
        for (int k = 0; k < t->node[i]->n_in; k++)
            if (t->node[i]->in[k]->node == producer && t->node[i]->strm != producer->strm)
                return true;
    return false;
}

static void test_random_graphs_for_every_width(void **state)
{
    static const int widths[] = { 1, 2, 5, 20, 100000 };
    struct strm *streams[2] = { sim_strm_new(), sim_strm_new() };
    struct rng rng = { 21 };

    (void)state;
    for (int round = 0; round < 60; round++) {
        struct arr *pool[POOL], *outs[3];
        random_graph(&rng, pool, streams);
        for (size_t w = 0; w < ARRAY_LEN(widths); w++) {
            struct tape t = { 0 };
            int64_t old = gate_set_int(GATE_BFS_MAX_WIDTH, widths[w]);
            for (int o = 0; o < 3; o++)
                outs[o] = pool[POOL - 1 - rng_below(&rng, POOL / 2)];
            assert_ok(tape_build(&t, outs, 3, false));
            gate_set_int(GATE_BFS_MAX_WIDTH, old);
            assert_int_equal(t.n, count_needed(outs, 3, pool));
            check_order(&t);
            for (size_t i = 0; i < t.n; i++)
                assert_int_equal(t.crosses[i], has_foreign_consumer(&t, t.node[i]));
            tape_fini(&t);
        }
        drop_all(pool, POOL);
    }
    sim_strm_free(&streams[0]);
    sim_strm_free(&streams[1]);
}

/* Many independent branches: with a small width a branch runs to its end before most others
 * begin, which is what bounds memory. */
static void test_width_bounds_what_is_open(void **state)
{
    enum { BRANCHES = 50, LENGTH = 4 };
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *end[BRANCHES], *first[BRANCHES];
    struct tape t = { 0 };

    (void)state;
    for (int b = 0; b < BRANCHES; b++) {
        struct arr *a = arr_ref(leaf.a);
        for (int i = 0; i < LENGTH; i++) {
            struct arr *next = new_node(NULL, OP_EXP, &a, 1);
            arr_unref(&a);
            a = next;
            if (i == 0)
                first[b] = arr_ref(a);
        }
        end[b] = a;
    }
    int64_t old = gate_set_int(GATE_BFS_MAX_WIDTH, 5);
    assert_ok(tape_build(&t, end, BRANCHES, false));
    gate_set_int(GATE_BFS_MAX_WIDTH, old);
    assert_int_equal(t.n, BRANCHES * LENGTH);
    check_order(&t);
    size_t open = 0, most = 0;
    for (size_t i = 0; i < t.n; i++)
        for (int b = 0; b < BRANCHES; b++) {
            open += t.node[i] == first[b]->node;
            most = MAX(most, open);
            open -= t.node[i] == end[b]->node;
        }
    assert_true(most <= 10);
    tape_fini(&t);
    drop_all(end, BRANCHES);
    drop_all(first, BRANCHES);
    sim_drop(&leaf);
}

static void test_long_chain(void **state)
{
    enum { LENGTH = 200000 };
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct arr *a = arr_ref(leaf.a);
    struct tape t = { 0 };

    (void)state;
    for (int i = 0; i < LENGTH; i++) {
        struct arr *next = add(NULL, a, a);
        arr_unref(&a);
        a = next;
    }
    assert_ok(tape_build(&t, &a, 1, false));
    assert_int_equal(t.n, LENGTH);
    assert_ptr_equal(t.node[LENGTH - 1], a->node);
    for (size_t i = 1; i < t.n; i++)
        assert_ptr_equal(t.node[i]->in[0]->node, t.node[i - 1]);
    tape_fini(&t);
    arr_unref(&a);
    sim_drop(&leaf);
}

/* ---- refusals ---- */

static void test_placeholders_are_refused(void **state)
{
    struct arr *empty = NULL, *a;
    struct tape t = { 0 };

    (void)state;
    assert_ok(arr_new_empty(&empty, &vector, DT_FLOAT32));
    a = new_node(NULL, OP_EXP, &empty, 1);
    assert_fails(ERR_RUNTIME, tape_build(&t, &a, 1, false));
    tape_fini(&t);
    arr_unref(&a);
    empty->tracer = true;
    tracing_begin(TRACE_PLAIN);
    a = new_node(NULL, OP_EXP, &empty, 1);
    assert_true(a->tracer);
    assert_fails(ERR_ARG, tape_build(&t, &a, 1, false));
    tape_fini(&t);
    tracing_end(TRACE_PLAIN);
    assert_fails(ERR_RUNTIME, tape_build(&t, &a, 1, false)); /* the flag means nothing any more */
    tape_fini(&t);
    arr_unref(&a);
    arr_unref(&empty);
}

static void test_async_refuses_tracers(void **state)
{
    struct sim_arr leaf = sim_leaf(&vector, DT_FLOAT32, 1);
    struct tape t = { 0 };

    (void)state;
    leaf.a->tracer = true;
    tracing_begin(TRACE_GRAD);
    struct arr *a = new_node(NULL, OP_EXP, &leaf.a, 1);
    assert_fails(ERR_ARG, tape_build(&t, &a, 1, true));
    tape_fini(&t);
    assert_ok(tape_build(&t, &a, 1, false));
    assert_int_equal(t.n, 1);
    assert_true(t.is_traced);
    tape_fini(&t);
    tracing_end(TRACE_GRAD);
    t = (struct tape){ 0 };
    assert_ok(tape_build(&t, &a, 1, true));
    assert_false(t.is_traced);
    tape_fini(&t);
    arr_unref(&a);
    sim_drop(&leaf);
}

static void test_no_memory_leaves_nothing_behind(void **state)
{
    struct strm *streams[2] = { sim_strm_new(), sim_strm_new() };
    struct rng rng = { 5 };
    struct arr *pool[POOL];

    (void)state;
    random_graph(&rng, pool, streams);
    for (size_t n = 1;; n++) {
        struct tape t = { 0 };
        mem_fail_after(n);
        enum err err = tape_build(&t, &pool[POOL - 1], 1, false);
        mem_fail_after(0);
        tape_fini(&t);
        if (!err)
            break;
        assert_int_equal(err, ERR_NO_MEMORY);
        assert_true(n < 100);
    }
    drop_all(pool, POOL);
    sim_strm_free(&streams[0]);
    sim_strm_free(&streams[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sim_setup, sim_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_to_do),
        TEST(test_diamond),
        TEST(test_node_with_several_outputs_enters_once),
        TEST(test_random_graphs_for_every_width),
        TEST(test_width_bounds_what_is_open),
        TEST(test_long_chain),
        TEST(test_placeholders_are_refused),
        TEST(test_async_refuses_tracers),
        TEST(test_no_memory_leaves_nothing_behind),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
