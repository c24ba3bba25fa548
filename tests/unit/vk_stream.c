/* Streams and events: completion, waits within and across streams, threads. */
#include "support/testing.h"
#include "support/vk.h"

#include <pthread.h>
#include <stdatomic.h>

#include "backend/vulkan/fault.h"
#include "backend/vulkan/hazard_check.h"
#include "backend/vulkan/record.h"
#include "backend/vulkan/stream.h"
#include "core/gate.h"
#include "core/memory.h"
#include "core/sched.h"
#include "core/stat.h"

#define N 4096

static struct ev *record_event(struct strm *s)
{
    struct ev *e = NULL;

    assert_ok(ev_new(&e, s));
    assert_ok(ev_record(e));
    return e;
}

static void test_event_of_an_idle_stream(void **state)
{
    struct strm *s = vkt_stream();
    struct ev *e = record_event(s);
    bool done = false;

    (void)state;
    assert_ok(ev_query(&done, e));
    assert_true(done);
    assert_ok(ev_wait(e));
    ev_unref(&e);
}

static void test_event_waits_for_work(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    const void *host;
    bool done = true;

    (void)state;
    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 2 });
    struct ev *e = record_event(s);
    assert_ok(ev_query(&done, e));
    assert_false(done); /* not even committed */
    assert_ok(s->be->flush(s));
    assert_ok(ev_wait(e));
    assert_true(atomic_load(&e->done));
    assert_ok(buf_host(&host, a->buf));
    assert_int_equal(((const uint32_t *)host)[N - 1], 2 * (N - 1));
    ev_unref(&e);
    arr_unref(&a);
}

/* The owner need not flush by hand before it waits. */
static void test_wait_commits(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);

    (void)state;
    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
    struct ev *e = record_event(s);
    assert_ok(ev_wait(e));
    ev_unref(&e);
    arr_unref(&a);
}

static void test_no_signal_without_a_waiting_stream(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    uint64_t before = stat_get(STAT_TIMELINE_SIGNALS);

    (void)state;
    for (int i = 0; i < 20; i++) {
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
        struct ev *e = record_event(s);
        assert_ok(s->be->flush(s));
        assert_ok(ev_wait(e));
        ev_unref(&e);
    }
    assert_int_equal(stat_get(STAT_TIMELINE_SIGNALS), before);
    arr_unref(&a);
}

/* Two streams hand one array back and forth. */
static void ping_pong(int rounds)
{
    struct strm *s[2] = { vkt_stream(), vkt_stream() };
    struct arr *a = vkt_array(s[0], N);

    vkt_encode(s[0], &(struct vkt_probe){ .out = a, .mul = 1 });
    for (int i = 0; i < rounds; i++) {
        struct strm *from = s[i % 2], *to = s[(i + 1) % 2];
        struct ev *e = record_event(from);
        assert_ok(from->be->flush(from));
        assert_ok(ev_wait_on(to, e));
        ev_unref(&e);
        vkt_encode(to, &(struct vkt_probe){ .in = a, .out = a, .mul = 1, .add = 1 });
    }
    const uint32_t *v = vkt_read(s[rounds % 2], a);
    for (uint32_t i = 0; i < N; i++)
        assert_int_equal(v[i], i + (uint32_t)rounds);
    arr_unref(&a);
}

static void test_streams_of_one_queue(void **state)
{
    struct hazard_report r;
    size_t n;

    (void)state;
    vk_rec_reset();
    gate_set_int(GATE_VK_RECORD, 1);
    ping_pong(50);
    gate_set_int(GATE_VK_RECORD, 0);
    const struct vk_rec *rec = vk_rec_get(&n);
    assert_ok(hazard_check(&r, rec, n));
    assert_int_equal(r.raw + r.war + r.waw + r.needless, 0);
}

static void test_streams_through_semaphores(void **state)
{
    uint64_t before = stat_get(STAT_TIMELINE_SIGNALS);

    (void)state;
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    ping_pong(50);
    vk_fault_set(VK_FAULT_TIMELINE, 0);
    assert_in_range(stat_get(STAT_TIMELINE_SIGNALS) - before, 1, 50);
}

/* An event recorded after a wait, with no work in between, covers what was waited for. */
static void wait_alone(void)
{
    struct strm *from = vkt_stream(), *to = vkt_stream();
    struct arr *a = vkt_array(from, 1 << 20);
    bool done = false;

    vkt_encode(from, &(struct vkt_probe){ .out = a, .mul = 1 });
    struct ev *first = record_event(from);
    assert_ok(from->be->flush(from));
    assert_ok(ev_wait_on(to, first));
    struct ev *second = record_event(to);
    assert_ok(to->be->flush(to));
    assert_ok(ev_wait(second));
    assert_ok(from->be->ev_query(&done, first));
    assert_true(done);
    ev_unref(&first);
    ev_unref(&second);
    arr_unref(&a);
}

static void test_wait_without_work(void **state)
{
    (void)state;
    wait_alone();
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    wait_alone();
    vk_fault_set(VK_FAULT_TIMELINE, 0);
}

/* ---- threads ---- */

struct waiter {
    struct ev *ev;
    enum err err;
};

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;

    w->err = ev_wait(w->ev);
    return NULL;
}

/* Waiters in other threads may come before the commit, and several for one fence. */
static void test_waiting_threads(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    pthread_t threads[4];
    struct waiter w[4];

    (void)state;
    for (int round = 0; round < 10; round++) {
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
        struct ev *e = record_event(s);
        for (int i = 0; i < 4; i++) {
            w[i] = (struct waiter){ .ev = ev_ref(e), .err = ERR_RUNTIME };
            assert_int_equal(pthread_create(&threads[i], NULL, wait_in_thread, &w[i]), 0);
        }
        assert_ok(s->be->flush(s));
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
            assert_int_equal(w[i].err, ERR_OK);
            ev_unref(&w[i].ev);
        }
        ev_unref(&e);
    }
    arr_unref(&a);
}

static void *work_in_thread(void *arg)
{
    struct strm *s = NULL;
    struct arr *a = NULL;
    uintptr_t seed = (uintptr_t)arg;

    s = vkt_stream();
    for (uint32_t round = 0; round < 8; round++) {
        a = vkt_array(s, 256);
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1, .add = (uint32_t)seed });
        for (int i = 0; i < 150; i++) {
            vkt_encode(s, &(struct vkt_probe){ .in = a, .out = a, .mul = 1, .add = 1 });
            assert_ok(s->be->step_end(s));
        }
        assert_int_equal(vkt_read(s, a)[200], 200 + 150 + (uint32_t)seed);
        arr_unref(&a);
    }
    s->be->strm_close(s);
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t threads[6];
    size_t active = memory_active();

    (void)state;
    for (uintptr_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work_in_thread, (void *)i), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(memory_active(), active);
    assert_int_equal(sched_active(), 0);
}

/* Closed streams are used again: threads that come and go do not pile up semaphores. */
static void test_streams_are_recycled(void **state)
{
    struct strm *s = vkt_stream();
    void *priv = s->priv;

    (void)state;
    s->be->strm_close(s);
    bool seen = false;
    for (int i = 0; i < 16 && !seen; i++)
        seen = vkt_stream()->priv == priv;
    assert_true(seen);
}

/* With nobody waiting on the stream itself, the scheduler's waiter still sees its tasks end. */
static void test_scheduler_reaps(void **state)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    int64_t max_ops = gate_set_int(GATE_VK_MAX_OPS, 1);

    (void)state;
    for (int i = 0; i < 8; i++) {
        vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 1 });
        assert_ok(s->be->step_end(s));
    }
    while (sched_active() > 1)
        sched_wait_for_one();
    while (s->be->retire(s, true))
        ;
    assert_int_equal(sched_active(), 0);
    gate_set_int(GATE_VK_MAX_OPS, max_ops);
    assert_ok(strm_synchronize(s));
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_event_of_an_idle_stream),
        cmocka_unit_test(test_event_waits_for_work),
        cmocka_unit_test(test_wait_commits),
        cmocka_unit_test(test_no_signal_without_a_waiting_stream),
        cmocka_unit_test(test_streams_of_one_queue),
        cmocka_unit_test(test_streams_through_semaphores),
        cmocka_unit_test(test_wait_without_work),
        cmocka_unit_test(test_waiting_threads),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_streams_are_recycled),
        cmocka_unit_test(test_scheduler_reaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
