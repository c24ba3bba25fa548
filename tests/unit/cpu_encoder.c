/* Streams of the CPU backend: order, events, lifetime of buffers, failures, the pool. */
#include "backend/cpu/cpu.h"
#include "eval/eval.h"
#include "eval/sched.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "ops/ops.h"
#include "support/arrays.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static struct strm *new_stream(void)
{
    struct strm *s = NULL;

    assert_ok(strm_new(&s, (struct dev){ DEV_CPU, 0 }));
    return s;
}

/* ---- tasks ---- */

static int order[1000];
static int n_order;

static enum err run_append(void *payload)
{
    memcpy(&order[n_order++], payload, sizeof order[0]);
    return ERR_OK;
}

static void test_tasks_run_in_order(void **state)
{
    struct strm *s = new_stream();

    (void)state;
    n_order = 0;
    for (int i = 0; i < 1000; i++)
        assert_ok(cpu_enqueue(s, run_append, &i, sizeof i));
    assert_ok(strm_synchronize(s));
    assert_int_equal(n_order, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(order[i], i);
}

/* A gate that a task waits for. */
static atomic_bool open_gate, at_gate;

static enum err run_gate(void *payload)
{
    (void)payload;
    at_gate = true;
    while (!open_gate)
        usleep(100);
    return ERR_OK;
}

static void block(struct strm *s)
{
    open_gate = at_gate = false;
    assert_ok(cpu_enqueue(s, run_gate, NULL, 0));
    while (!at_gate)
        usleep(100);
}

static void test_event_follows_the_queue(void **state)
{
    struct strm *s = new_stream();
    struct ev *e = NULL;
    bool done = true;

    (void)state;
    block(s);
    assert_ok(ev_new(&e, s));
    assert_ok(ev_record(e));
    assert_ok(ev_query(&done, e));
    assert_false(done);
    open_gate = true;
    assert_ok(ev_wait(e));
    assert_ok(ev_query(&done, e));
    assert_true(done);
    ev_unref(&e);
}

static void test_stream_waits_for_another(void **state)
{
    struct strm *a = new_stream(), *b = new_stream();
    struct ev *e = NULL;
    int one = 1;

    (void)state;
    n_order = 0;
    block(a);
    assert_ok(ev_new(&e, a));
    assert_ok(ev_record(e));
    assert_ok(ev_wait_on(b, e));
    assert_ok(cpu_enqueue(b, run_append, &one, sizeof one));
    usleep(20000);
    assert_int_equal(n_order, 0);
    open_gate = true;
    assert_ok(strm_synchronize(b));
    assert_int_equal(n_order, 1);
    ev_unref(&e);
}

static void test_retire(void **state)
{
    struct strm *s = new_stream();

    (void)state;
    assert_false(be_cpu.retire(s, true));
    block(s);
    assert_true(be_cpu.retire(s, false));
    open_gate = true;
    while (be_cpu.retire(s, true))
        ;
    assert_false(be_cpu.retire(s, false));
}

/* ---- buffers ---- */

static void test_hold_outlasts_the_work(void **state)
{
    struct strm *s = new_stream();
    struct buf *b = NULL;
    size_t before = memory_active();

    (void)state;
    assert_ok(be_cpu.buf_alloc(&b, 1 << 20));
    assert_true((uintptr_t)b->host % 64 == 0);
    block(s);
    assert_ok(be_cpu.hold(s, &b, 1));
    buf_unref(&b);
    assert_true(memory_active() > before);
    open_gate = true;
    assert_ok(strm_synchronize(s));
    assert_int_equal(memory_active(), before);
}

static void test_hold_without_memory(void **state)
{
    struct strm *s = new_stream();
    struct buf *b = NULL;
    int value = 7;

    (void)state;
    n_order = 0;
    assert_ok(be_cpu.buf_alloc(&b, 64));
    assert_ok(cpu_enqueue(s, run_append, &value, sizeof value));
    mem_fail_after(1);
    enum err err = be_cpu.hold(s, &b, 1);
    mem_fail_after(0);
    assert_int_equal(err, ERR_OK);
    assert_int_equal(n_order, 1); /* nothing is in flight any more */
    buf_unref(&b);
}

static void test_buffers_are_reused(void **state)
{
    struct buf *b = NULL;

    (void)state;
    assert_ok(be_cpu.buf_alloc(&b, 100000));
    void *host = b->host;
    buf_unref(&b);
    assert_true(memory_cache() > 0);
    assert_ok(be_cpu.buf_alloc(&b, 99000));
    assert_ptr_equal(b->host, host);
    buf_unref(&b);
    be_cpu.cache_clear();
    assert_int_equal(memory_cache(), 0);
}

/* ---- failures ---- */

static enum err run_fail(void *payload)
{
    (void)payload;
    return err_set(ERR_RUNTIME, "[test] The task failed.");
}

static void test_failure_surfaces_once(void **state)
{
    struct strm *s = new_stream();

    (void)state;
    assert_ok(cpu_enqueue(s, run_fail, NULL, 0));
    assert_fails(ERR_RUNTIME, strm_synchronize(s));
    assert_string_equal(err_text(), "[test] The task failed.");
    assert_ok(strm_synchronize(s));
}

static void test_failure_reaches_the_waiting_stream(void **state)
{
    struct strm *a = new_stream(), *b = new_stream();
    struct ev *e = NULL;

    (void)state;
    assert_ok(cpu_enqueue(a, run_fail, NULL, 0));
    assert_ok(ev_new(&e, a));
    assert_ok(ev_record(e));
    assert_ok(ev_wait_on(b, e));
    assert_fails(ERR_RUNTIME, strm_synchronize(b));
    ev_unref(&e);
}

static void test_out_of_memory_leaves_nothing_in_flight(void **state)
{
    struct strm *s = new_stream();
    int value = 7;

    (void)state;
    n_order = 0;
    assert_ok(cpu_enqueue(s, run_append, &value, sizeof value));
    mem_fail_after(1);
    enum err err = cpu_enqueue(s, run_append, &value, sizeof value);
    mem_fail_after(0);
    assert_int_equal(err, ERR_NO_MEMORY);
    assert_int_equal(n_order, 1);
    assert_ok(strm_synchronize(s));
}

/* ---- throttle ---- */

static void test_every_tenth_dispatch_counts(void **state)
{
    struct strm *s = new_stream();
    int value = 0;

    (void)state;
    n_order = 0;
    block(s); /* the first dispatch */
    assert_int_equal(sched_active(), 0);
    for (int i = 0; i < 19; i++)
        assert_ok(cpu_enqueue(s, run_append, &value, sizeof value));
    assert_int_equal(sched_active(), 2);
    open_gate = true;
    assert_ok(strm_synchronize(s));
    assert_int_equal(sched_active(), 0);
}

/* ---- the pool ---- */

static _Atomic unsigned char touched[1 << 20];

static void touch(void *arg, size_t begin, size_t end)
{
    size_t *smallest = arg;

    if (end - begin < *smallest)
        *smallest = end - begin;
    for (size_t i = begin; i < end; i++)
        touched[i]++;
}

static void touch_quietly(void *arg, size_t begin, size_t end)
{
    (void)arg;
    for (size_t i = begin; i < end; i++)
        touched[i]++;
}

static void test_parallel_for_covers_all_once(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 1000, 65537, 1 << 20 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        memset((void *)touched, 0, sizeof touched);
        cpu_parallel_for(sizes[k], 1000, touch_quietly, NULL);
        for (size_t i = 0; i < ARRAY_LEN(touched); i++)
            assert_int_equal(touched[i], i < sizes[k]);
    }
}

static void test_small_ranges_stay_whole(void **state)
{
    size_t smallest = SIZE_MAX;

    (void)state;
    cpu_parallel_for(1500, 1000, touch, &smallest);
    assert_int_equal(smallest, 1500);
}

/* Several streams use the pool at once. */
struct shared_range {
    size_t base;
};

static void touch_part(void *arg, size_t begin, size_t end)
{
    const struct shared_range *r = arg;

    for (size_t i = begin; i < end; i++)
        touched[r->base + i]++;
}

static enum err run_shared(void *payload)
{
    cpu_parallel_for(1 << 18, 4096, touch_part, payload);
    return ERR_OK;
}

static void test_streams_share_the_pool(void **state)
{
    struct strm *s[4];

    (void)state;
    memset((void *)touched, 0, sizeof touched);
    for (size_t i = 0; i < 4; i++)
        s[i] = new_stream();
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < 4; i++) {
            struct shared_range r = { i << 18 };
            assert_ok(cpu_enqueue(s[i], run_shared, &r, sizeof r));
        }
    for (int i = 0; i < 4; i++)
        assert_ok(strm_synchronize(s[i]));
    for (size_t i = 0; i < ARRAY_LEN(touched); i++)
        assert_int_equal(touched[i], 20);
}

/* ---- evaluation over several streams ---- */

static void test_graph_over_two_streams(void **state)
{
    struct strm *s[2] = { new_stream(), new_stream() };
    struct arr *x = arr_of((double complex[]){ 1, 2, 3 }, SHAPE(3), DT_FLOAT32);

    (void)state;
    for (int i = 0; i < 200; i++) {
        struct arr *next = NULL;
        assert_ok(ops_binary(&next, OP_ADD, x, x, s[i % 2]));
        arr_unref(&x);
        x = next;
        if (i % 20 == 19) { /* keep the numbers small */
            assert_ok(ops_binary(&next, OP_DIVIDE, x, x, s[i % 2]));
            arr_unref(&x);
            x = next;
        }
        if (i % 7 == 0)
            assert_ok(eval_arrays(&x, 1, true));
    }
    double complex *v = arr_values(x);
    assert_true(v[0] == 1 && v[1] == 1 && v[2] == 1);
    mem_free(v);
    arr_unref(&x);
}

/* ---- threads that end ---- */

static int count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

/* A thread that has been joined stays on the list for a moment. */
static void expect_threads(int most)
{
    for (int i = 0; i < 5000 && count_threads() > most; i++)
        nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    assert_true(count_threads() <= most);
}

/* Starts work on two streams and ends without waiting for it. */
static void *leave_work_behind(void *arg)
{
    struct strm *s = NULL, *own = new_stream();
    struct arr **out = arg, *one = NULL, *two = NULL;

    assert_ok(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    assert_ok(arr_new_number(&one, 1, DT_INT32));
    assert_ok(ops_binary(&two, OP_ADD, one, one, s));
    assert_ok(ops_binary(out, OP_ADD, two, one, own));
    assert_ok(eval_arrays(out, 1, true));
    arr_unref(&one);
    arr_unref(&two);
    return own;
}

static void test_streams_end_with_their_thread(void **state)
{
    struct arr *a[8] = { NULL };
    int before = count_threads();
    const void *host;
    void *own = NULL;

    (void)state;
    for (int i = 0; i < 8; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, leave_work_behind, &a[i]), 0);
        assert_int_equal(pthread_join(thread, &own), 0);
    }
    expect_threads(before);
    assert_fails(ERR_RUNTIME, strm_synchronize(own));
    assert_non_null(strstr(err_text(), "has ended"));
    for (int i = 0; i < 8; i++) {
        assert_ok(arr_host(&host, a[i]));
        assert_int_equal(*(const int32_t *)host, 3);
        arr_unref(&a[i]);
    }
}

static pthread_key_t late_key;

/* A destructor that runs after the library's, or before it: both must do. */
static void late_eval(void *arg)
{
    struct arr *one = NULL, *two = NULL, **out = arg;
    struct strm *s = NULL;

    assert_ok(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    assert_ok(arr_new_number(&one, 1, DT_INT32));
    assert_ok(ops_binary(&two, OP_ADD, one, one, s));
    assert_ok(eval_arrays(&two, 1, true));
    arr_unref(&one);
    *out = two;
}

static void *work_at_exit(void *arg)
{
    struct strm *s = NULL;

    assert_ok(strm_default(&s, (struct dev){ DEV_CPU, 0 }));
    assert_int_equal(pthread_setspecific(late_key, arg), 0);
    return NULL;
}

static void test_work_in_a_later_destructor(void **state)
{
    struct arr *out = NULL;
    pthread_t thread;
    const void *host;
    int before = count_threads();

    (void)state;
    assert_int_equal(pthread_key_create(&late_key, late_eval), 0);
    assert_int_equal(pthread_create(&thread, NULL, work_at_exit, &out), 0);
    pthread_join(thread, NULL);
    expect_threads(before);
    assert_ok(arr_host(&host, out));
    assert_int_equal(*(const int32_t *)host, 2);
    arr_unref(&out);
    pthread_key_delete(late_key);
}

static void test_device_info(void **state)
{
    const struct be_info_row *rows;
    size_t n;

    (void)state;
    assert_ok(be_cpu.device_info(&rows, &n, 0));
    assert_int_equal(n, 2);
    assert_string_equal(rows[0].key, "device_name");
    assert_true(rows[0].text[0] != '\0');
    assert_string_equal(rows[1].key, "architecture");
    assert_true(rows[1].text[0] != '\0');
    assert_ok(be_cpu.device_info(&rows, &n, 1));
    assert_int_equal(n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks_run_in_order),
        cmocka_unit_test(test_event_follows_the_queue),
        cmocka_unit_test(test_stream_waits_for_another),
        cmocka_unit_test(test_retire),
        cmocka_unit_test(test_hold_outlasts_the_work),
        cmocka_unit_test(test_hold_without_memory),
        cmocka_unit_test(test_buffers_are_reused),
        cmocka_unit_test(test_failure_surfaces_once),
        cmocka_unit_test(test_failure_reaches_the_waiting_stream),
        cmocka_unit_test(test_out_of_memory_leaves_nothing_in_flight),
        cmocka_unit_test(test_every_tenth_dispatch_counts),
        cmocka_unit_test(test_parallel_for_covers_all_once),
        cmocka_unit_test(test_small_ranges_stay_whole),
        cmocka_unit_test(test_streams_share_the_pool),
        cmocka_unit_test(test_graph_over_two_streams),
        cmocka_unit_test(test_streams_end_with_their_thread),
        cmocka_unit_test(test_work_in_a_later_destructor),
        cmocka_unit_test(test_device_info),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
