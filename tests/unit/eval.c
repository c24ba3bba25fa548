#include "eval/eval.h"

#include "base/gate.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "graph/tracing.h"
#include "plan/plan.h"
#include "support/sim.h"
#include "support/testing.h"

#include <pthread.h>

static const struct shp vector = { .ndim = 1, .d = { 4 } };

static struct strm *s1, *s2, *s3;

static struct sim_arr leaf(uint64_t seed)
{
    return sim_leaf(&vector, DT_FLOAT32, seed);
}

static struct sim_arr op1(struct strm *s, enum op_id op, struct sim_arr a)
{
    return sim_op(&(struct sim_node){ op, s, vector, DT_FLOAT32, 1 }, &a, 1);
}

static struct sim_arr op2(struct strm *s, enum op_id op, struct sim_arr a, struct sim_arr b)
{
    return sim_op(&(struct sim_node){ op, s, vector, DT_FLOAT32, 1 }, (struct sim_arr[]){ a, b },
                  2);
}

/* Drops the argument's reference. */
static struct sim_arr then(struct strm *s, enum op_id op, struct sim_arr a)
{
    struct sim_arr out = op1(s, op, a);

    sim_drop(&a);
    return out;
}

static enum err eval1(struct sim_arr a, bool async)
{
    return eval_arrays(&a.a, 1, async);
}

static enum arr_status status_of(struct sim_arr a)
{
    return (enum arr_status)atomic_load(&a.a->status);
}

static void check_right(struct sim_arr a)
{
    assert_ok(arr_wait(a.a));
    assert_true(sim_is_right(&a));
}

/* ---- one stream ---- */

static void test_nothing_to_evaluate(void **state)
{
    struct sim_arr x = leaf(1);

    (void)state;
    assert_ok(eval_arrays(NULL, 0, false));
    assert_ok(eval_arrays(NULL, 0, true));
    assert_ok(eval1(x, false));
    assert_ok(eval1(x, true));
    assert_int_equal(sim_count(SIM_STEP) + sim_count(SIM_FLUSH) + sim_count(SIM_SYNC), 0);
    sim_drop(&x);
}

static void test_result_is_there_and_a_leaf(void **state)
{
    struct sim_arr x = leaf(1), a = op1(s1, OP_EXP, x);

    (void)state;
    assert_ok(eval1(a, false));
    assert_int_equal(sim_pending(s1), 0);
    assert_int_equal(status_of(a), ARR_AVAILABLE);
    assert_true(sim_is_right(&a));
    assert_int_equal(a.a->node->op, OP_NONE);
    assert_int_equal(a.a->node->n_in, 0);
    assert_int_equal(ref_get(&x.a->rc), 1);
    sim_log_clear();
    assert_ok(eval1(a, false));
    assert_int_equal(sim_count(SIM_STEP), 0);
    sim_drop(&a);
    sim_drop(&x);
}

/* Step, holds and end of step for each, then the hand-over. */
static void test_order_of_calls(void **state)
{
    static const enum sim_call want[] = { SIM_STEP,     SIM_HOLD, SIM_STEP_END, SIM_STEP, SIM_HOLD,
                                          SIM_STEP_END, SIM_HOLD, SIM_FLUSH,    SIM_SYNC };
    struct sim_arr x = leaf(1);
    struct sim_arr first = op1(s1, OP_REDUCE, x), a = op1(s1, OP_REDUCE, first);
    const struct sim_entry *log;

    (void)state;
    const struct node *nodes[] = { first.a->node, a.a->node };
    assert_ok(eval1(a, false));
    assert_int_equal(sim_log(&log), ARRAY_LEN(want));
    for (size_t i = 0; i < ARRAY_LEN(want); i++)
        assert_int_equal(log[i].call, want[i]);
    assert_ptr_equal(log[0].node, nodes[0]);
    assert_ptr_equal(log[3].node, nodes[1]);
    sim_drop(&a);
    sim_drop(&first);
    sim_drop(&x);
}

static void test_chain_runs_as_one_step(void **state)
{
    struct sim_arr a = then(s1, OP_COS, then(s1, OP_SIN, then(s1, OP_EXP, leaf(1))));
    const struct sim_entry *log;

    (void)state;
    assert_ok(eval1(a, false));
    assert_int_equal(sim_count(SIM_STEP), 1);
    (void)sim_log(&log);
    assert_int_equal(log[0].n_ins, 3);
    check_right(a);
    sim_drop(&a);
}

static void test_unneeded_input_gives_its_buffer(void **state)
{
    struct sim_arr x = leaf(1);
    struct sim_arr a = op1(s1, OP_EXP, x);
    struct buf *b = x.a->buf;

    (void)state;
    sim_drop(&x);
    assert_ok(eval1(a, false));
    assert_ptr_equal(a.a->buf, b);
    check_right(a);
    sim_drop(&a);
}

static void test_tape_longer_than_a_run(void **state)
{
    struct sim_arr a = leaf(1);

    (void)state;
    for (int i = 0; i < 3 * PLAN_MAX_NODES + 7; i++)
        a = then(s1, i % 2 ? OP_REDUCE : OP_EXP, a);
    assert_ok(eval1(a, false));
    check_right(a);
    sim_drop(&a);
}

static void test_empty_arrays_need_no_work(void **state)
{
    struct shp none = { .ndim = 2, .d = { 0, 3 } };
    struct sim_arr x = sim_leaf(&none, DT_FLOAT32, 1);
    struct sim_arr a = sim_op(&(struct sim_node){ OP_EXP, s1, none, DT_FLOAT32, 1 }, &x, 1);
    struct sim_arr b = sim_op(&(struct sim_node){ OP_RESHAPE, s1, none, DT_FLOAT32, 1 }, &a, 1);

    (void)state;
    assert_ok(eval1(b, false));
    assert_int_equal(sim_count(SIM_STEP), 0);
    assert_int_equal(status_of(b), ARR_AVAILABLE);
    assert_null(b.a->buf);
    sim_drop(&a);
    sim_drop(&b);
    sim_drop(&x);
}

static void test_tracers_keep_their_graph(void **state)
{
    struct sim_arr x = leaf(1);

    (void)state;
    x.a->tracer = true;
    tracing_begin(TRACE_GRAD);
    struct sim_arr a = op1(s1, OP_EXP, x), b = op1(s1, OP_SIN, a);
    assert_ok(eval1(b, false));
    assert_int_equal(b.a->node->op, OP_SIN);
    assert_ptr_equal(b.a->node->in[0], a.a);
    check_right(a);
    check_right(b);
    tracing_end(TRACE_GRAD); /* what was kept for the transformation goes with it */
    assert_int_equal(b.a->node->op, OP_NONE);
    assert_false(b.a->tracer);
    check_right(b);
    sim_drop(&a);
    sim_drop(&b);
    sim_drop(&x);
}

/* ---- several outputs ---- */

static void test_sibling_that_nobody_holds(void **state)
{
    for (int keep = 0; keep < 2; keep++)
        for (int async = 0; async < 2; async++) {
            struct sim_arr x = leaf(1), parts[2];
            sim_node(parts, &(struct sim_node){ OP_DIVMOD, s1, vector, DT_FLOAT32, 2 },
                     (struct sim_arr[]){ x, x }, 2);
            sim_drop(&parts[!keep]);
            assert_ok(eval1(parts[keep], async));
            check_right(parts[keep]);
            sim_drop(&parts[keep]);
            sim_drop(&x);
        }
    (void)state;
}

static void test_both_outputs_feed_one_node(void **state)
{
    struct sim_arr x = leaf(1), parts[2];

    (void)state;
    sim_node(parts, &(struct sim_node){ OP_DIVMOD, s1, vector, DT_FLOAT32, 2 },
             (struct sim_arr[]){ x, x }, 2);
    struct sim_arr a = op2(s1, OP_SUBTRACT, parts[1], parts[0]);
    sim_drop(&parts[0]);
    assert_ok(eval1(a, false));
    check_right(a);
    check_right(parts[1]);
    sim_drop(&parts[1]);
    sim_drop(&a);
    sim_drop(&x);
}

/* ---- asynchronous ---- */

static void test_async_returns_before_the_work(void **state)
{
    struct sim_arr x = leaf(1), a = op1(s1, OP_EXP, x);
    bool available = true;

    (void)state;
    assert_ok(eval1(a, true));
    assert_true(sim_pending(s1) > 0);
    assert_int_equal(sim_count(SIM_SYNC), 0);
    assert_int_equal(sim_count(SIM_FLUSH), 1);
    assert_int_equal(status_of(a), ARR_EVALUATED);
    assert_non_null(a.a->ev);
    assert_ok(arr_is_available(&available, a.a));
    assert_false(available);
    check_right(a);
    assert_int_equal(status_of(a), ARR_AVAILABLE);
    assert_null(a.a->ev);
    sim_drop(&a);
    sim_drop(&x);
}

/* Whatever the caller drops while the work is pending, the device finds its memory. */
static void test_handles_dropped_while_work_is_pending(void **state)
{
    struct sim_arr x = leaf(1);
    struct sim_arr middle = op1(s1, OP_EXP, x), end = op1(s1, OP_SIN, middle);
    struct sim_arr other = op1(s1, OP_REDUCE, x);

    (void)state;
    assert_ok(eval_arrays((struct arr *[]){ end.a, other.a }, 2, true));
    sim_drop(&x);
    sim_drop(&middle); /* written by the fused step, asked for by nobody */
    sim_drop(&end);
    sim_drop(&other);
    assert_true(sim_pending(s1) > 0);
    assert_ok(strm_synchronize(s1));
    assert_int_equal(sim_violations(), 0);
}

static void test_async_results_feed_the_next_eval(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1));

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_ok(eval1(a, true));
        a = then(s1, i % 2 ? OP_SIN : OP_REDUCE, a);
    }
    assert_ok(eval1(a, false));
    check_right(a);
    sim_drop(&a);
}

/* ---- several streams ---- */

static bool waits_for(const struct strm *s, const struct strm *producer)
{
    const struct sim_entry *log;
    size_t n = sim_log(&log);

    for (size_t i = 0; i < n; i++)
        if (log[i].call == SIM_WAIT && log[i].strm == s && log[i].producer == producer)
            return true;
    return false;
}

static void test_streams_wait_for_each_other(void **state)
{
    struct sim_arr x = leaf(1);
    struct sim_arr a = op1(s1, OP_EXP, x), b = op2(s2, OP_ADD, a, x),
                   c = op2(s1, OP_MULTIPLY, b, a);

    (void)state;
    assert_ok(eval1(c, false));
    assert_true(waits_for(s2, s1));
    assert_true(waits_for(s1, s2));
    assert_false(waits_for(s1, s1));
    check_right(a);
    check_right(b);
    check_right(c);
    sim_drop(&a);
    sim_drop(&b);
    sim_drop(&c);
    sim_drop(&x);
}

static void test_input_of_an_earlier_async_eval(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1));

    (void)state;
    assert_ok(eval1(a, true));
    struct sim_arr same = op1(s1, OP_SIN, a), other = op1(s2, OP_COS, a);
    sim_log_clear();
    assert_ok(eval1(same, true));
    assert_int_equal(sim_count(SIM_WAIT), 0); /* a stream keeps its own order */
    assert_ok(eval1(other, true));
    assert_true(waits_for(s2, s1));
    sim_drop(&a);
    check_right(other);
    check_right(same);
    sim_drop(&same);
    sim_drop(&other);
}

/* The producer's event may be gone by the time the consumer runs: its work is then complete. */
static void test_input_that_became_available(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1)), b;

    (void)state;
    assert_ok(eval1(a, true));
    check_right(a);
    b = op1(s2, OP_SIN, a);
    assert_ok(eval1(b, false));
    assert_int_equal(sim_count(SIM_WAIT), 0);
    check_right(b);
    sim_drop(&a);
    sim_drop(&b);
}

static void *synchronize_elsewhere(void *arg)
{
    static enum err err;

    err = strm_synchronize(arg);
    return &err;
}

/* Graphs of its nodes are evaluated on other streams (unit/shared.c). */
static void test_stream_of_another_thread_is_refused(void **state)
{
    pthread_t thread;
    void *result;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, synchronize_elsewhere, s1), 0);
    pthread_join(thread, &result);
    assert_int_equal(*(enum err *)result, ERR_RUNTIME);
    assert_ok(strm_synchronize(s1));
}

/* ---- failures ---- */

/* Six steps on two streams, none of which fuse. */
struct six {
    struct sim_arr a[6];
};

static struct six six_steps(void)
{
    struct six g;
    struct sim_arr x = leaf(1);

    for (int i = 0; i < 6; i++)
        g.a[i] = op1(i % 3 == 2 ? s2 : s1, OP_REDUCE, i ? g.a[i - 1] : x);
    sim_drop(&x);
    return g;
}

static void drop_six(struct six *g)
{
    for (int i = 0; i < 6; i++)
        sim_drop(&g->a[i]);
}

static void test_failed_step_leaves_the_rest_usable(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++)
        for (int fail = 1; fail <= 6; fail++) {
            struct six g = six_steps();
            sim_fail_step(fail);
            assert_fails(ERR_RUNTIME, eval1(g.a[5], async));
            assert_string_equal(err_text(), "[sim] Step failed.");
            assert_int_equal(sim_pending(s1) + sim_pending(s2), 0);
            for (int i = 0; i < 6; i++) {
                bool ran = i < fail - 1;
                assert_int_equal(status_of(g.a[i]) != ARR_UNSCHEDULED, ran);
                if (ran)
                    check_right(g.a[i]);
            }
            assert_ok(eval1(g.a[5], async));
            for (int i = 0; i < 6; i++)
                check_right(g.a[i]);
            drop_six(&g);
        }
}

/* A hold that cannot be remembered must not cost the result, nor an input that gave its buffer. */
static void test_failed_hold_does_no_harm(void **state)
{
    (void)state;
    for (int fail = 1; fail <= 8; fail++) {
        struct six g = six_steps();
        struct sim_arr last = op2(s1, OP_ADD, g.a[5], g.a[2]);
        drop_six(&g);
        sim_fail_hold(fail);
        if (eval1(last, true) != ERR_OK)
            assert_ok(eval1(last, false));
        sim_fail_hold(0);
        check_right(last);
        sim_drop(&last);
    }
}

static void test_unsupported_op_is_named(void **state)
{
    struct sim_arr x = leaf(1), a = op1(s1, OP_SOFTMAX, x), b = op1(s1, OP_EXP, x);

    (void)state;
    assert_fails(ERR_UNSUPPORTED, eval1(a, false));
    assert_non_null(strstr(err_text(), "Softmax"));
    assert_non_null(strstr(err_text(), "float32"));
    assert_non_null(strstr(err_text(), "sim"));
    assert_ok(eval1(b, false));
    check_right(b);
    sim_drop(&a);
    sim_drop(&b);
    sim_drop(&x);
}

static void test_device_failure_surfaces_at_the_wait(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1)), b;

    (void)state;
    sim_fail_task(1);
    assert_ok(eval1(a, true));
    assert_fails(ERR_DEVICE, arr_wait(a.a));
    assert_string_equal(err_text(), "[sim] The device failed.");
    b = then(s1, OP_SIN, leaf(2));
    assert_ok(eval1(b, false)); /* raised once, then the stream works again */
    check_right(b);
    sim_drop(&a);
    sim_drop(&b);
}

static void test_device_failure_in_a_sync_eval(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1));

    (void)state;
    sim_fail_task(1);
    assert_fails(ERR_DEVICE, eval1(a, false));
    sim_drop(&a);
}

/* A stream that waited for failed work has failed too. */
static void test_failure_travels_to_waiting_streams(void **state)
{
    struct sim_arr a = then(s1, OP_EXP, leaf(1)), b = op1(s2, OP_SIN, a);

    (void)state;
    sim_fail_task(1);
    assert_ok(eval1(b, true));
    sim_drop(&a);
    assert_fails(ERR_DEVICE, arr_wait(b.a));
    assert_ok(strm_synchronize(s2));
    assert_fails(ERR_DEVICE, strm_synchronize(s1)); /* the failure was its own, too */
    assert_ok(strm_synchronize(s1));
    sim_drop(&b);
}

/* An event is poisoned by what it covers, for everybody who waits for it. */
static void test_events_cover_failures(void **state)
{
    struct sim_arr before = then(s1, OP_EXP, leaf(1)), one = then(s1, OP_SIN, leaf(2));
    struct sim_arr other, after = then(s1, OP_COS, leaf(3));
    bool available;

    (void)state;
    assert_ok(eval1(before, true));
    sim_fail_task(2);
    other = op1(s1, OP_ABS, one);
    assert_ok(eval1(other, true));
    assert_ok(arr_wait(before.a)); /* what was recorded before is fine */
    assert_fails(ERR_DEVICE, arr_wait(one.a));
    assert_fails(ERR_DEVICE, arr_is_available(&available, other.a));
    assert_ok(eval1(after, true)); /* the owner was told */
    assert_ok(arr_wait(after.a));
    check_right(after);
    sim_drop(&before);
    sim_drop(&one);
    sim_drop(&other);
    sim_drop(&after);
}

/* ---- no memory: every allocation of an eval fails once ---- */

static struct sim_arr small_graph(void)
{
    struct sim_arr x = leaf(1), parts[2], y, z, sum;

    sim_node(parts, &(struct sim_node){ OP_DIVMOD, s1, vector, DT_FLOAT32, 2 },
             (struct sim_arr[]){ x, x }, 2);
    y = op1(s2, OP_REDUCE, parts[0]);
    z = op2(s1, OP_ADD, y, parts[1]);
    sum = op2(s1, OP_MULTIPLY, z, z);
    sim_drop(&x);
    sim_drop(&y);
    sim_drop(&z);
    sim_drop(&parts[0]);
    sim_drop(&parts[1]);
    return sum;
}

static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++)
        for (size_t n = 1;; n++) {
            struct sim_arr a = small_graph();
            plan_cache_clear(s1);
            plan_cache_clear(s2);
            mem_fail_after(n);
            enum err err = eval1(a, async);
            mem_fail_after(0);
            if (err) {
                assert_int_equal(err, ERR_NO_MEMORY);
                assert_ok(eval1(a, async));
            }
            check_right(a);
            sim_drop(&a);
            assert_true(n < 300);
            if (!err)
                break;
        }
}

/* ---- back-pressure ---- */

static void test_memory_limit_makes_eval_wait(void **state)
{
    struct sim_arr a = leaf(1);
    size_t old = memory_set_limit(memory_active() + 3 * 16);

    (void)state;
    for (int i = 0; i < 50; i++)
        a = then(s1, OP_REDUCE, a);
    assert_ok(eval1(a, true));
    memory_set_limit(old);
    assert_true(sim_pending(s1) < 20);
    check_right(a);
    sim_drop(&a);
}

/* ---- random graphs, streams, drops ---- */

enum { POOL = 60 };

struct pool {
    struct sim_arr a[POOL];
    struct rng *rng;
};

static struct sim_arr *pick(struct pool *p)
{
    for (;;) {
        struct sim_arr *a = &p->a[rng_below(p->rng, POOL)];
        if (a->a)
            return a;
    }
}

static void put(struct pool *p, struct sim_arr a)
{
    struct sim_arr *at = &p->a[rng_below(p->rng, POOL)];

    sim_drop(at);
    *at = a;
}

static void random_node(struct pool *p)
{
    static const enum op_id ops[] = { OP_EXP,     OP_SIN,    OP_ADD,    OP_MULTIPLY, OP_SELECT,
                                      OP_RESHAPE, OP_REDUCE, OP_DIVMOD, OP_ADD,      OP_SPLIT };
    struct strm *streams[] = { s1, s1, s2, s3 };
    enum op_id op = ops[rng_below(p->rng, (int)ARRAY_LEN(ops))];
    size_t n_in = op == OP_SELECT                                              ? 3
                  : op_table[op].family == OP_FAMILY_BINARY || op == OP_DIVMOD ? 2
                                                                               : 1;
    struct sim_node n = { op, streams[rng_below(p->rng, 4)], vector, DT_FLOAT32,
                          op == OP_DIVMOD || op == OP_SPLIT ? 2 : 1 };
    struct sim_arr in[3], outs[2];

    for (size_t i = 0; i < n_in; i++)
        in[i] = *pick(p);
    sim_node(outs, &n, in, n_in);
    for (size_t o = 0; o < n.n_out; o++) {
        if (n.n_out > 1 && rng_one_in(p->rng, 3))
            sim_drop(&outs[o]);
        else
            put(p, outs[o]);
    }
}

static void random_eval(struct pool *p)
{
    struct sim_arr *want[3];
    struct arr *outs[3];
    int n = 1 + rng_below(p->rng, 3);
    bool async = rng_one_in(p->rng, 2);

    for (int i = 0; i < n; i++) {
        want[i] = pick(p);
        outs[i] = want[i]->a;
    }
    if (rng_one_in(p->rng, 10)) { /* sometimes a step fails, and the eval is repeated */
        sim_fail_step(1 + rng_below(p->rng, 6));
        (void)!eval_arrays(outs, (size_t)n, async);
        sim_fail_step(0);
    }
    assert_ok(eval_arrays(outs, (size_t)n, async));
    for (int i = 0; i < n; i++)
        if (!async || rng_one_in(p->rng, 4))
            check_right(*want[i]);
}

static void check_pool(struct pool *p)
{
    for (int i = 0; i < POOL; i++)
        if (p->a[i].a && arr_is_scheduled(p->a[i].a))
            check_right(p->a[i]);
}

static void random_session(uint64_t seed)
{
    struct rng rng = { seed };
    struct pool p = { .rng = &rng };

    for (int i = 0; i < 5; i++)
        put(&p, leaf((uint64_t)i));
    for (int step = 0; step < 300; step++) {
        if (rng_one_in(&rng, 12))
            random_eval(&p);
        else if (rng_one_in(&rng, 12))
            put(&p, leaf(rng_next(&rng)));
        else
            random_node(&p);
        if (rng_one_in(&rng, 60))
            check_pool(&p);
    }
    for (int i = 0; i < POOL; i++)
        if (p.a[i].a) {
            assert_ok(eval1(p.a[i], rng_one_in(&rng, 2)));
            if (sim_violations())
                fail_msg("seed %llu: %s", (unsigned long long)seed, sim_violation_text());
        }
    check_pool(&p);
    for (int i = 0; i < POOL; i++)
        sim_drop(&p.a[i]);
}

static void test_random_sessions(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        gate_set_int(GATE_PLAN_FUSE, seed % 4 != 0);
        gate_set_int(GATE_PLAN_REORDER, seed % 3 != 0);
        random_session(seed);
    }
    gate_set_int(GATE_PLAN_FUSE, 1);
    gate_set_int(GATE_PLAN_REORDER, 1);
}

/* ---- ---- */

static int begin(void **state)
{
    (void)state;
    sim_begin();
    s1 = sim_strm_new();
    s2 = sim_strm_new();
    s3 = sim_strm_new();
    return 0;
}

static int end(void **state)
{
    (void)state;
    mem_fail_after(0);
    sim_strm_free(&s1);
    sim_strm_free(&s2);
    sim_strm_free(&s3);
    sim_end();
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_nothing_to_evaluate),
        TEST(test_result_is_there_and_a_leaf),
        TEST(test_order_of_calls),
        TEST(test_chain_runs_as_one_step),
        TEST(test_unneeded_input_gives_its_buffer),
        TEST(test_tape_longer_than_a_run),
        TEST(test_empty_arrays_need_no_work),
        TEST(test_tracers_keep_their_graph),
        TEST(test_sibling_that_nobody_holds),
        TEST(test_both_outputs_feed_one_node),
        TEST(test_async_returns_before_the_work),
        TEST(test_handles_dropped_while_work_is_pending),
        TEST(test_async_results_feed_the_next_eval),
        TEST(test_streams_wait_for_each_other),
        TEST(test_input_of_an_earlier_async_eval),
        TEST(test_input_that_became_available),
        TEST(test_stream_of_another_thread_is_refused),
        TEST(test_failed_step_leaves_the_rest_usable),
        TEST(test_failed_hold_does_no_harm),
        TEST(test_unsupported_op_is_named),
        TEST(test_device_failure_surfaces_at_the_wait),
        TEST(test_device_failure_in_a_sync_eval),
        TEST(test_failure_travels_to_waiting_streams),
        TEST(test_events_cover_failures),
        TEST(test_every_allocation_may_fail),
        TEST(test_memory_limit_makes_eval_wait),
        TEST(test_random_sessions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
