/* Scheduler races: many threads, each with several streams on the CPU and on the GPU, evaluate at
 * the same time, synchronously and not, and pass arrays to other streams, devices and threads.
 * Integers, so that every value can be checked.
 *
 * usage: unit_races [iterations [cpu|long]]; with cpu the GPU is left out (for the thread
 * sanitizer, which does not see what a driver does), as it is where there is none; with long arrays
 * are so long that results come to the host ahead of its asking. */
#include "eval/eval.h"
#include "eval/sched.h"
#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/array.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/testing.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 6, STREAMS = 4, POOL = 24, STEPS = 400, MAX_LENGTH = 5000, SHARED = 8 };

static int iterations = 20;
static int32_t length = 37;
static bool use_gpu;

/* Threads report the first thing that went wrong; asserts are for the main thread only. */
static pthread_mutex_t report_lock = PTHREAD_MUTEX_INITIALIZER;
static char report[512];

static void complain(const char *what, int thread, int step)
{
    pthread_mutex_lock(&report_lock);
    if (!report[0])
        snprintf(report, sizeof report, "thread %d, step %d: %s (%s)", thread, step, what,
                 err_text());
    pthread_mutex_unlock(&report_lock);
}

/* ---- arrays whose values are known: element i is base + i * slope, modulo 2^32 ---- */

struct known {
    struct arr *a;
    uint32_t base, slope;
};

struct thread {
    int number, step;
    struct rng rng;
    struct strm *stream[STREAMS];
    struct known pool[POOL];
    bool failed;
};

/* Evaluated arrays that any thread may take from and put to. */
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static struct known shared[SHARED];

static bool check(struct thread *t, enum err err, const char *what)
{
    if (err != ERR_OK && !t->failed) {
        t->failed = true;
        complain(what, t->number, t->step);
    }
    return err == ERR_OK;
}

static struct known new_leaf(struct thread *t)
{
    struct known k = { NULL, (uint32_t)rng_next(&t->rng), (uint32_t)rng_next(&t->rng) };
    struct shp s = { .ndim = 1, .d = { length } };
    uint32_t data[MAX_LENGTH];

    for (uint32_t i = 0; i < (uint32_t)length; i++)
        data[i] = k.base + i * k.slope;
    check(t, arr_new_data(&k.a, data, &s, DT_UINT32), "new array");
    return k;
}

static bool is_right(struct thread *t, struct known k)
{
    const void *first = NULL;

    if (!check(t, arr_host(&first, k.a), "reading"))
        return false;
    for (uint32_t i = 0; i < (uint32_t)length; i++) {
        uint32_t v;
        memcpy(&v, (const char *)first + (int64_t)i * k.a->strides[0] * 4, 4);
        if (v != k.base + i * k.slope)
            return false;
    }
    return true;
}

static void verify(struct thread *t, struct known k)
{
    if (!t->failed && !is_right(t, k))
        check(t, err_set(ERR_RUNTIME, "element differs"), "a wrong value");
}

/* ---- steps ---- */

static struct known *pick(struct thread *t)
{
    return &t->pool[rng_below(&t->rng, POOL)];
}

static struct strm *any_stream(struct thread *t)
{
    return t->stream[rng_below(&t->rng, STREAMS)];
}

static void put(struct thread *t, struct known k)
{
    struct known *at = pick(t);

    if (!k.a)
        return;
    arr_unref(&at->a);
    *at = k;
}

/* sum, difference, the same backwards, or a copy: all of them keep the form base + i * slope. */
static void make_node(struct thread *t)
{
    struct known a = *pick(t), b = *pick(t), k = { 0 };
    struct strm *s = any_stream(t);
    int32_t last = length - 1, before = -length - 1, back = -1;
    struct ops_slice reversed = { { &last, 1 }, { &before, 1 }, { &back, 1 } };

    switch (rng_below(&t->rng, 5)) {
    case 0:
        k = (struct known){ NULL, a.base - b.base, a.slope - b.slope };
        check(t, ops_binary(&k.a, OP_SUBTRACT, a.a, b.a, s), "subtract");
        break;
    case 1:
        k = (struct known){ NULL, a.base + (uint32_t)last * a.slope, 0 - a.slope };
        check(t, ops_slice(&k.a, a.a, &reversed, s), "slice");
        break;
    case 2:
        k = (struct known){ NULL, a.base, a.slope };
        check(t, ops_contiguous(&k.a, a.a, false, s), "contiguous");
        break;
    default:
        k = (struct known){ NULL, a.base + b.base, a.slope + b.slope };
        check(t, ops_binary(&k.a, OP_ADD, a.a, b.a, s), "add");
        break;
    }
    put(t, k);
}

static void evaluate(struct thread *t)
{
    struct known want[3];
    struct arr *outs[3];
    bool async = rng_one_in(&t->rng, 2);

    for (int i = 0; i < 3; i++) {
        want[i] = *pick(t);
        outs[i] = arr_ref(want[i].a);
    }
    check(t, eval_arrays(outs, 3, async), "eval");
    for (int i = 0; i < 3; i++) {
        if (!async || rng_one_in(&t->rng, 3))
            verify(t, want[i]);
        arr_unref(&outs[i]);
    }
}

/* Hands an array to whoever takes it; its work may still be in flight. */
static void give(struct thread *t)
{
    struct known k = *pick(t);
    struct known *at = &shared[rng_below(&t->rng, SHARED)], old;

    if (!check(t, eval_arrays(&k.a, 1, true), "async eval"))
        return;
    arr_ref(k.a);
    pthread_mutex_lock(&shared_lock);
    old = *at;
    *at = k;
    pthread_mutex_unlock(&shared_lock);
    arr_unref(&old.a);
}

static void receive(struct thread *t)
{
    struct known *at = &shared[rng_below(&t->rng, SHARED)], k;

    pthread_mutex_lock(&shared_lock);
    k = *at;
    if (k.a)
        arr_ref(k.a);
    pthread_mutex_unlock(&shared_lock);
    if (k.a && rng_one_in(&t->rng, 3))
        verify(t, k);
    put(t, k);
}

static void do_step(struct thread *t)
{
    int what = rng_below(&t->rng, 20);

    if (what < 12)
        make_node(t);
    else if (what < 15)
        evaluate(t);
    else if (what < 17)
        give(t);
    else if (what < 19)
        receive(t);
    else if (rng_one_in(&t->rng, 2))
        check(t, strm_synchronize(any_stream(t)), "synchronize");
    else
        put(t, new_leaf(t));
}

static void open_streams(struct thread *t)
{
    for (int i = 0; i < STREAMS; i++) {
        struct dev d = { use_gpu && i % 2 ? DEV_GPU : DEV_CPU, 0 };
        if (i < 2)
            check(t, strm_default(&t->stream[i], d), "default stream");
        else
            check(t, strm_new(&t->stream[i], d), "new stream");
    }
}

static void *run_thread(void *arg)
{
    struct thread *t = arg;

    open_streams(t);
    for (int i = 0; i < POOL && !t->failed; i++)
        t->pool[i] = new_leaf(t);
    for (t->step = 0; t->step < STEPS && !t->failed; t->step++)
        do_step(t);
    for (int i = 0; i < POOL && !t->failed; i++) {
        check(t, eval_arrays(&t->pool[i].a, 1, i % 2), "last eval");
        verify(t, t->pool[i]);
    }
    for (int i = 0; i < POOL; i++)
        arr_unref(&t->pool[i].a);
    for (int i = 0; i < STREAMS && !t->failed; i++)
        check(t, strm_synchronize(t->stream[i]), "last synchronize");
    return NULL;
}

static void one_iteration(uint64_t seed)
{
    static struct thread thread[THREADS];
    pthread_t id[THREADS];
    size_t before = memory_active();

    for (int i = 0; i < THREADS; i++) {
        thread[i] = (struct thread){ .number = i, .rng = { seed * THREADS + (uint64_t)i } };
        assert_int_equal(pthread_create(&id[i], NULL, run_thread, &thread[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(id[i], NULL);
    for (int i = 0; i < SHARED; i++)
        arr_unref(&shared[i].a);
    if (report[0])
        fail_msg("seed %llu: %s", (unsigned long long)seed, report);
    assert_int_equal(memory_active(), before);
    assert_int_equal(sched_active(), 0);
}

static void test_threads_and_streams(void **state)
{
    (void)state;
    for (int i = 0; i < iterations; i++)
        one_iteration((uint64_t)i + 1);
}

/* ---- many readers of one array that is still being computed ---- */

static struct known waited_for;

static void *wait_for_it(void *arg)
{
    struct thread *t = arg;
    bool available = false;

    if (t->number % 2)
        check(t, arr_is_available(&available, waited_for.a), "is available");
    verify(t, waited_for);
    return NULL;
}

/* Another thread computes with it while others wait for it. */
static void *compute_with_it(void *arg)
{
    struct thread *t = arg;
    struct known k = { NULL, waited_for.base * 2, waited_for.slope * 2 };

    open_streams(t);
    check(t, ops_binary(&k.a, OP_ADD, waited_for.a, waited_for.a, t->stream[t->number % STREAMS]),
          "add");
    check(t, eval_arrays(&k.a, 1, false), "eval");
    verify(t, k);
    arr_unref(&k.a);
    return NULL;
}

static void test_many_wait_for_one(void **state)
{
    struct thread self = { .rng = { 99 } };

    (void)state;
    open_streams(&self);
    for (int round = 0; round < 3 * iterations; round++) {
        struct thread thread[THREADS];
        struct known a = new_leaf(&self);
        pthread_t id[THREADS];
        waited_for = (struct known){ NULL, a.base * 2, a.slope * 2 };
        assert_ok(ops_binary(&waited_for.a, OP_ADD, a.a, a.a, self.stream[round % STREAMS]));
        assert_ok(eval_arrays(&waited_for.a, 1, true));
        for (int i = 0; i < THREADS; i++) {
            thread[i] = (struct thread){ .number = i };
            assert_int_equal(
                pthread_create(&id[i], NULL, i < 4 ? wait_for_it : compute_with_it, &thread[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(id[i], NULL);
        if (report[0])
            fail_msg("%s", report);
        arr_unref(&waited_for.a);
        arr_unref(&a.a);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_and_streams),
        cmocka_unit_test(test_many_wait_for_one),
    };

    if (argc > 1)
        iterations = atoi(argv[1]);
    bool is_cpu = argc > 2 && strcmp(argv[2], "cpu") == 0;
    if (argc > 2 && !is_cpu)
        length = MAX_LENGTH;
    use_gpu = !is_cpu && dev_is_available((struct dev){ DEV_GPU, 0 });
    print_message("%s\n", use_gpu ? "CPU and GPU streams" : "CPU streams only");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
