/* Graphs that share nodes which nobody has evaluated yet, in many threads at a time: all of them
 * evaluate, synchronously and not, on streams of their own on the CPU and on the GPU; some nodes
 * belong to streams of other threads, or of threads that have ended. Integers, so that every value
 * can be checked.
 *
 * usage: unit_shared [iterations [cpu]]; with cpu the GPU is left out (for the thread sanitizer,
 * which does not see what a driver does), as it is where there is none. */
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include "eval/eval.h"
#include "eval/sched.h"
#include "eval/stream.h"
#include "eval/tape.h"
#include "eval/wait.h"
#include "graph/array.h"
#include "graph/memory.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/testing.h"

#define THREADS 6
#define SHARED 24  /* nodes of the graph that all know */
#define PRIVATE 12 /* nodes of each thread on top of it */
#define LENGTH 600

static int iterations = 20;
static bool use_gpu;

/* A lazy array all of whose elements are known. */
struct known {
    struct arr *a;
    int32_t value;
};

static struct strm *a_stream(struct rng *r)
{
    enum dev_type type = use_gpu && rng_below(r, 2) ? DEV_GPU : DEV_CPU;
    struct strm *s = NULL;

    assert_ok(rng_below(r, 2) ? strm_new(&s, (struct dev){ type, 0 })
                              : strm_default(&s, (struct dev){ type, 0 }));
    return s;
}

/* Adds, multiplies, views: values stay small enough for exact 32 bits by wrapping alike. */
static struct known combine(struct rng *r, struct known x, struct known y, struct strm *s)
{
    struct known out = { NULL, 0 };

    if (rng_below(r, 3)) {
        out.value = (int32_t)((uint32_t)x.value + (uint32_t)y.value);
        assert_ok(ops_binary(&out.a, OP_ADD, x.a, y.a, s));
    } else {
        out.value = (int32_t)((uint32_t)x.value * (uint32_t)y.value);
        assert_ok(ops_binary(&out.a, OP_MULTIPLY, x.a, y.a, s));
    }
    return out;
}

static struct known leaf(int32_t value)
{
    int32_t data[LENGTH];
    struct known k = { NULL, value };

    for (int i = 0; i < LENGTH; i++)
        data[i] = value;
    assert_ok(arr_new_data(&k.a, data, &(struct shp){ 1, { LENGTH } }, DT_INT32));
    return k;
}

static _Atomic int n_wrong;

static void verify(struct known k)
{
    const void *p = NULL;

    if (arr_host(&p, k.a) != ERR_OK) {
        print_error("%s\n", err_text());
        n_wrong++;
        return;
    }
    for (int i = 0; i < LENGTH; i++)
        if (((const int32_t *)p)[i] != k.value) {
            print_error("element %d is %d instead of %d\n", i, ((const int32_t *)p)[i], k.value);
            n_wrong++;
            return;
        }
}

/* ---- the graph that all know ---- */

static struct known shared[SHARED];

static void build_shared(struct rng *r)
{
    struct strm *stream[4];

    for (int i = 0; i < 4; i++)
        stream[i] = a_stream(r);
    for (int i = 0; i < SHARED; i++) {
        if (i < 2) {
            shared[i] = leaf(rng_below(r, 100));
            continue;
        }
        int recent = i - 1 - rng_below(r, 2);
        shared[i] = combine(r, shared[rng_below(r, i)], shared[recent], stream[rng_below(r, 4)]);
    }
}

static void *build_and_end(void *arg)
{
    build_shared(arg);
    return NULL;
}

/* ---- what each thread does with it ---- */

struct worker {
    struct rng rng;
    pthread_t id;
};

static void check(enum err err)
{
    if (!err)
        return;
    print_error("%s\n", err_text());
    n_wrong++;
}

static void *work(void *arg)
{
    struct rng *r = &((struct worker *)arg)->rng;
    struct strm *stream[2] = { a_stream(r), a_stream(r) };
    struct known mine[PRIVATE];

    for (int i = 0; i < PRIVATE; i++) {
        struct known x =
            i && rng_below(r, 2) ? mine[rng_below(r, i)] : shared[rng_below(r, SHARED)];
        mine[i] = combine(r, x, shared[rng_below(r, SHARED)], stream[rng_below(r, 2)]);
        switch (rng_below(r, 6)) {
        case 0:
            check(eval_arrays(&mine[i].a, 1, true));
            break;
        case 1:
            check(eval_arrays(&mine[i].a, 1, false));
            break;
        case 2: /* one of those that others are at */
            verify(shared[rng_below(r, SHARED)]);
            break;
        case 3: {
            struct arr *both[2] = { mine[i].a, shared[rng_below(r, SHARED)].a };
            bool is_there;
            check(eval_arrays(both, 2, true));
            check(arr_is_available(&is_there, both[1]));
            break;
        }
        default:
            break;
        }
    }
    for (int i = 0; i < PRIVATE; i++) {
        if (rng_below(r, 2))
            verify(mine[i]);
        arr_unref(&mine[i].a);
    }
    return NULL;
}

static void one_iteration(uint64_t seed)
{
    struct worker worker[THREADS];
    struct rng r = { seed * 2654435761u + 1 };
    pthread_t builder;

    n_wrong = 0;
    if (seed % 2) {
        build_shared(&r);
    } else { /* the streams of what they build are nobody's */
        assert_int_equal(pthread_create(&builder, NULL, build_and_end, &r), 0);
        pthread_join(builder, NULL);
    }
    for (int i = 0; i < THREADS; i++) {
        worker[i].rng.state = seed * 7919 + (uint64_t)i;
        assert_int_equal(pthread_create(&worker[i].id, NULL, work, &worker[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(worker[i].id, NULL);
    for (int i = 0; i < SHARED; i++) {
        verify(shared[i]);
        arr_unref(&shared[i].a);
    }
    if (n_wrong)
        fail_msg("seed %llu", (unsigned long long)seed);
    assert_int_equal(sched_active(), 0);
}

static void test_shared_graphs(void **state)
{
    size_t before = memory_active();

    (void)state;
    for (int i = 0; i < iterations; i++)
        one_iteration((uint64_t)i + 1);
    assert_int_equal(memory_active(), before);
}

/* ---- one array, evaluated by all at once ---- */

static struct known wanted;
static pthread_barrier_t ready;

static void *evaluate_it(void *arg)
{
    struct worker *w = arg;

    pthread_barrier_wait(&ready);
    check(eval_arrays(&wanted.a, 1, w->rng.state % 2));
    verify(wanted);
    return NULL;
}

static void test_all_evaluate_one(void **state)
{
    (void)state;
    n_wrong = 0;
    pthread_barrier_init(&ready, NULL, THREADS);
    for (int round = 0; round < 4 * iterations; round++) {
        struct worker worker[THREADS];
        struct rng r = { (uint64_t)round };
        struct strm *s = a_stream(&r);
        struct known before = leaf(1);
        for (int i = 0; i < 20; i++) {
            wanted = combine(&r, before, before, s);
            arr_unref(&before.a);
            before = wanted;
        }
        for (int i = 0; i < THREADS; i++) {
            worker[i].rng.state = (uint64_t)i;
            assert_int_equal(pthread_create(&worker[i].id, NULL, evaluate_it, &worker[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(worker[i].id, NULL);
        arr_unref(&wanted.a);
        assert_int_equal(n_wrong, 0);
    }
    pthread_barrier_destroy(&ready);
}

/* ---- a pause while others evaluate ---- */

/* The tape of one thread, which lasts until an array of another one is there. */
struct holder {
    struct arr *lazy, *awaited;
    sem_t has_tape;
    _Atomic bool is_over;
};

static void *hold_tape(void *arg)
{
    struct holder *h = arg;
    struct tape t = { 0 };

    check(tape_build(&t, &h->lazy, 1, false));
    sem_post(&h->has_tape);
    check(arr_wait(h->awaited));
    usleep(20000);
    atomic_store(&h->is_over, true);
    tape_fini(&t);
    return NULL;
}

/* Whoever pauses has begun work that the other thread waits for, and may have a tape of its own
 * that is newer. */
static void check_pause(bool owns_one)
{
    struct holder h = { 0 };
    struct known x = leaf(1);
    struct arr *mine = NULL;
    struct tape t = { 0 };
    struct strm *s = NULL;
    pthread_t thread;

    assert_ok(strm_default(&s, (struct dev){ use_gpu ? DEV_GPU : DEV_CPU, 0 }));
    sem_init(&h.has_tape, 0, 0);
    assert_ok(ops_binary(&h.lazy, OP_ADD, x.a, x.a, s));
    assert_ok(ops_binary(&h.awaited, OP_ADD, x.a, x.a, s));
    assert_ok(ops_binary(&mine, OP_ADD, x.a, x.a, s));
    assert_ok(eval_arrays(&h.awaited, 1, true));
    assert_int_equal(pthread_create(&thread, NULL, hold_tape, &h), 0);
    sem_wait(&h.has_tape);
    if (owns_one)
        assert_ok(tape_build(&t, &mine, 1, false));
    tape_pause();
    assert_true(h.is_over);
    tape_resume();
    tape_fini(&t);
    pthread_join(thread, NULL);
    arr_unref(&h.lazy);
    arr_unref(&h.awaited);
    arr_unref(&mine);
    arr_unref(&x.a);
    sem_destroy(&h.has_tape);
}

static void test_pause(void **state)
{
    (void)state;
    n_wrong = 0;
    alarm(60); /* before a hang is noticed from outside */
    check_pause(false);
    check_pause(true);
    alarm(0);
    assert_int_equal(n_wrong, 0);
}

/* ---- a random sequence that outlives its thread ---- */

static struct arr *numbers;

static void *draw_numbers(void *unused)
{
    struct arr *key = NULL;
    struct strm *s;

    assert_ok(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    assert_ok(ops_random_key(&key, 7));
    assert_ok(ops_random_bits(&numbers, (struct ints){ (int[]){ 4 }, 1 }, 4, key, s));
    arr_unref(&key);
    return unused;
}

static void test_key_of_an_ended_thread(void **state)
{
    pthread_t thread;
    const void *there, *here;
    struct arr *first;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, draw_numbers, NULL), 0);
    pthread_join(thread, NULL);
    first = numbers;
    assert_ok(arr_host(&there, first));
    draw_numbers(NULL);
    assert_ok(arr_host(&here, numbers));
    assert_memory_equal(there, here, 16);
    arr_unref(&first);
    arr_unref(&numbers);
}

/* ---- threads that come and go ---- */

static void *compute_once(void *index)
{
    struct known a = leaf(2), b = { NULL, 4 };
    struct strm *s = NULL;

    assert_ok(strm_default(&s, (struct dev){ use_gpu ? DEV_GPU : DEV_CPU, 0 }));
    assert_ok(ops_binary(&b.a, OP_ADD, a.a, a.a, s));
    verify(b);
    arr_unref(&a.a);
    arr_unref(&b.a);
    *(int *)index = MAX(*(int *)index, s->index);
    return NULL;
}

static int run_threads(int n)
{
    int newest = 0;

    for (int i = 0; i < n; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, compute_once, &newest), 0);
        pthread_join(thread, NULL);
    }
    return newest;
}

/* glibc's figures say nothing under a sanitizer, which has an allocator of its own. */
static void check_short_lived(size_t most)
{
    int newest = run_threads(50);
    size_t before = mallinfo2().uordblks;

    assert_int_equal(run_threads(500), newest); /* the streams of those before are used again */
    assert_in_range(mallinfo2().uordblks, 0, before + most);
}

static void test_short_lived_threads(void **state)
{
    bool has_gpu = use_gpu;
    size_t most = has_gpu ? 500 * 512 : 16384; /* NVIDIA's driver keeps 290 bytes for each */

    (void)state;
    n_wrong = 0;
    use_gpu = false;
    check_short_lived(most);
    use_gpu = has_gpu;
    if (has_gpu)
        check_short_lived(most);
    assert_int_equal(n_wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_graphs),
        cmocka_unit_test(test_all_evaluate_one),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_key_of_an_ended_thread),
        cmocka_unit_test(test_short_lived_threads),
    };

    if (argc > 1)
        iterations = atoi(argv[1]);
    use_gpu =
        !(argc > 2 && strcmp(argv[2], "cpu") == 0) && dev_is_available((struct dev){ DEV_GPU, 0 });
    print_message("%s\n", use_gpu ? "CPU and GPU streams" : "CPU streams only");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
