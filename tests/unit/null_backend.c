/* The null backend records what the evaluator asks for. */
#include "backend/null/null.h"
#include "base/gate.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "ops/ops.h"
#include "support/arrays.h"

static struct strm *stream;

static int setup(void **state)
{
    (void)state;
    null_record_clear();
    return null_strm_new(&stream) == ERR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    null_strm_free(&stream);
    null_record_clear();
    return 0;
}

static struct arr *leaf(int n)
{
    double complex v[64] = { 0 };

    return arr_of(v, SHAPE(n), DT_FLOAT32);
}

/* The i-th record of a kind. */
static struct null_record nth(enum null_call call, size_t i)
{
    struct null_record r;

    for (size_t k = 0; null_record_get(&r, k); k++)
        if (r.call == call && i-- == 0)
            return r;
    fail_msg("there is no such record");
    return r;
}

static size_t count(enum null_call call)
{
    struct null_record r;
    size_t n = 0;

    for (size_t k = 0; null_record_get(&r, k); k++)
        n += r.call == call;
    return n;
}

/* exp(a + b), reduced. */
static struct arr *small_graph(struct strm *s)
{
    struct arr *a = leaf(8), *b = leaf(8), *sum = NULL, *e = NULL, *out = NULL;

    assert_ok(ops_binary(&sum, OP_ADD, a, b, s));
    assert_ok(ops_unary(&e, OP_EXP, sum, s));
    assert_ok(ops_reduce(&out, REDUCE_SUM, e, &(struct ops_axes){ INTS_ALL, false }, s));
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&sum);
    arr_unref(&e);
    return out;
}

static void test_steps_in_order(void **state)
{
    struct arr *out = small_graph(stream);
    int64_t gate = gate_set_int(GATE_PLAN_FUSE, 0);

    (void)state;
    assert_ok(eval_arrays(&out, 1, false));
    gate_set_int(GATE_PLAN_FUSE, gate);
    assert_int_equal(nth(NULL_STEP, 0).op, OP_ADD);
    assert_int_equal(nth(NULL_STEP, 0).n_in, 2);
    assert_int_equal(nth(NULL_STEP, 0).shape.d[0], 8);
    assert_int_equal(nth(NULL_STEP, 1).op, OP_EXP);
    assert_true(nth(NULL_STEP, 1).donated); /* nobody else holds the sum */
    assert_int_equal(nth(NULL_STEP, 2).op, OP_REDUCE);
    assert_int_equal(count(NULL_STEP_END), count(NULL_STEP));
    assert_int_equal(count(NULL_SYNC), 1);
    arr_unref(&out);
}

static void test_chain_is_one_step(void **state)
{
    struct arr *out = small_graph(stream);
    int64_t gate = gate_set_int(GATE_PLAN_FUSE, 1);

    (void)state;
    assert_ok(eval_arrays(&out, 1, false));
    gate_set_int(GATE_PLAN_FUSE, gate);
    assert_int_equal(nth(NULL_STEP, 0).op, OP_EXP);
    assert_int_equal(nth(NULL_STEP, 0).n_ins, 2);
    assert_int_equal(nth(NULL_STEP, 1).op, OP_REDUCE);
    arr_unref(&out);
}

/* Buffers stay until the work that reads them is finished. */
static void test_hold_and_finish(void **state)
{
    struct arr *out = small_graph(stream);
    size_t before = memory_active();

    (void)state;
    assert_ok(eval_arrays(&out, 1, true));
    assert_true(null_in_flight(stream) > 0);
    assert_true(null_held(stream) > 0);
    bool available = true;
    assert_ok(arr_is_available(&available, out));
    assert_false(available);
    null_finish(stream);
    assert_int_equal(null_held(stream), 0);
    assert_ok(arr_is_available(&available, out));
    assert_true(available);
    arr_unref(&out);
    assert_true(memory_active() <= before);
}

/* The consumer's stream waits for the producer's event. */
static void test_wait_between_streams(void **state)
{
    struct strm *second = NULL;
    struct arr *a = leaf(4), *b = NULL, *c = NULL;

    (void)state;
    assert_ok(null_strm_new(&second));
    assert_ok(ops_unary(&b, OP_EXP, a, stream));
    assert_ok(ops_unary(&c, OP_SIN, b, second));
    assert_ok(eval_arrays(&c, 1, false));
    struct null_record wait = nth(NULL_STRM_WAIT, 0);
    assert_ptr_equal(wait.strm, second);
    assert_ptr_equal(wait.producer, stream);
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
    null_strm_free(&second);
}

/* A failing step is reported, later reads do not hang, the array can be evaluated again. */
static void test_failing_step(void **state)
{
    struct arr *out = small_graph(stream);

    (void)state;
    null_fail_step(2);
    assert_fails(ERR_DEVICE, eval_arrays(&out, 1, false));
    null_fail_step(0);
    assert_ok(eval_arrays(&out, 1, false));
    arr_unref(&out);
}

static void test_copies_of_one_op_share_a_group(void **state)
{
    struct arr *in[2] = { leaf(4), leaf(4) }, *out = NULL;

    (void)state;
    assert_ok(ops_concatenate(&out, (struct arrs){ in, 2 }, 0, stream));
    assert_ok(eval_arrays(&out, 1, false));
    assert_int_equal(count(NULL_COPY), 2);
    assert_true(nth(NULL_COPY, 0).group != 0);
    assert_int_equal(nth(NULL_COPY, 0).group, nth(NULL_COPY, 1).group);
    arr_unref(&out);
    arr_unref(&in[0]);
    arr_unref(&in[1]);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_steps_in_order),  TEST(test_chain_is_one_step),
        TEST(test_hold_and_finish), TEST(test_wait_between_streams),
        TEST(test_failing_step),    TEST(test_copies_of_one_op_share_a_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
