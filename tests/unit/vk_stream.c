/* Streams and events: completion, waits within and across streams, threads. */
#include "support/testing.h"
#include "support/vk.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backend/cpu/cpu.h"
#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/check/hazard_check.h"
#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/stream.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/sched.h"
#include "graph/memory.h"

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

static atomic_bool gate_is_open;

static enum err run_gate(void *payload)
{
    (void)payload;
    while (!gate_is_open)
        usleep(100);
    return ERR_OK;
}

/* Work of s does not begin before the gate is open. */
static void hold_back(struct strm *s)
{
    struct strm *cpu = NULL;

    gate_is_open = false;
    assert_ok(strm_default(&cpu, (struct dev){ DEV_CPU, 0 }));
    assert_ok(cpu_enqueue(cpu, run_gate, NULL, 0));
    struct ev *e = record_event(cpu);
    assert_ok(ev_wait_on(s, e));
    ev_unref(&e);
}

/* Opens the gate. Nobody waits for work before all of it is with the device: what the host has seen
 * end comes before what it submits. */
static void let_go(struct strm *const *s, int n)
{
    for (int i = 0; i < n; i++)
        assert_ok(s[i]->be->flush(s[i]));
    gate_is_open = true;
    for (int i = 0; i < n; i++) {
        const struct vk_strm *v = vk_strm_of(s[i]);
        while (atomic_load(&v->submitted) < atomic_load(&v->committed))
            usleep(100);
    }
}

#define STREAMS 3

static bool share_queue(const struct strm *a, const struct strm *b)
{
    return vk_strm_of(a)->queue == vk_strm_of(b)->queue;
}

/* Streams whose work goes to one queue. Where a device has several, new streams take them in turn.
 */
static struct strm *const *of_one_queue(void)
{
    static struct strm *s[STREAMS];

    for (int i = 0; i < STREAMS; i++)
        while (!s[i] || !share_queue(s[i], s[0]))
            s[i] = vkt_stream();
    return s;
}

/* Streams as they come: each has its own queue where there are that many. */
static struct strm *const *of_any_queue(void)
{
    static struct strm *s[STREAMS];

    for (int i = 0; i < STREAMS; i++)
        s[i] = vkt_stream();
    return s;
}

struct round {
    struct strm *const *s;
    int n_streams, rounds;
    /* A wait or barrier is missing: a real GPU gives other results. Nothing is complete before
     * everything is encoded, so that all of them are needed. */
    bool racy;
};

/* Streams hand one array round. */
static void hand_round(const struct round *r)
{
    struct strm *const *s = r->s;
    struct arr *a = vkt_array(s[0], N);
    int n_streams = r->n_streams, rounds = r->rounds;

    if (r->racy)
        hold_back(s[0]);
    vkt_encode(s[0], &(struct vkt_probe){ .out = a, .mul = 1 });
    for (int i = 0; i < rounds; i++) {
        struct strm *from = s[i % n_streams], *to = s[(i + 1) % n_streams];
        struct ev *e = record_event(from);
        assert_ok(from->be->flush(from));
        assert_ok(ev_wait_on(to, e));
        ev_unref(&e);
        vkt_encode(to, &(struct vkt_probe){ .in = a, .out = a, .mul = 1, .add = 1 });
    }
    if (r->racy)
        let_go(s, n_streams);
    const uint32_t *v = vkt_read(s[rounds % n_streams], a);
    for (uint32_t i = 0; i < N && !r->racy; i++)
        assert_int_equal(v[i], i + (uint32_t)rounds);
    for (int i = 0; i < n_streams; i++)
        assert_ok(strm_synchronize(s[i]));
    arr_unref(&a);
}

static void begin_record(void)
{
    vk_rec_reset();
    gate_set_int(GATE_VK_RECORD, 1);
}

static struct hazard_report end_record(void)
{
    struct hazard_report r;
    size_t n;

    gate_set_int(GATE_VK_RECORD, 0);
    const struct vk_rec *rec = vk_rec_get(&n);
    assert_ok(hazard_check(&r, rec, n));
    return r;
}

static struct hazard_report recorded(const struct round *round)
{
    begin_record();
    hand_round(round);
    return end_record();
}

static void check_clean(struct hazard_report r)
{
    if (hazard_count(&r) + r.needless)
        fail_msg("%s", r.text);
}

static void check_round(const struct round *round)
{
    check_clean(recorded(round));
}

static void test_streams_of_one_queue(void **state)
{
    (void)state;
    for (int n_streams = 2; n_streams <= 3; n_streams++) {
        uint64_t before = stat_get(STAT_TIMELINE_SIGNALS);
        check_round(&(struct round){ of_one_queue(), n_streams, 50, false });
        assert_int_equal(stat_get(STAT_TIMELINE_SIGNALS), before);
    }
}

static void test_streams_of_any_queue(void **state)
{
    struct round r = { of_any_queue(), 2, 50, false };
    uint64_t before = stat_get(STAT_TIMELINE_SIGNALS);

    (void)state;
    check_round(&r);
    uint64_t signals = stat_get(STAT_TIMELINE_SIGNALS) - before;
    assert_int_equal(signals == 0, share_queue(r.s[0], r.s[1]));
    assert_in_range(signals, 0, 50);
}

static void test_streams_through_semaphores(void **state)
{
    uint64_t before = stat_get(STAT_TIMELINE_SIGNALS);

    (void)state;
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    check_round(&(struct round){ of_one_queue(), 2, 50, false });
    vk_fault_set(VK_FAULT_TIMELINE, 0);
    assert_in_range(stat_get(STAT_TIMELINE_SIGNALS) - before, 1, 50);
}

static void check_missing_wait(struct round r)
{
    for (int n = 1; n <= r.rounds; n++) {
        vk_rec_drop_wait(n);
        struct hazard_report report = recorded(&r);
        vk_rec_drop_wait(0);
        assert_true(report.cross > 0);
        assert_non_null(strstr(report.text, "no wait between streams"));
    }
}

/* The checker sees every wait that is left out, and the barrier that a wait in one queue needs. */
static void test_missing_wait_is_found(void **state)
{
    struct round one = { of_one_queue(), 2, 12, true };

    (void)state;
    check_missing_wait(one);
    check_missing_wait((struct round){ of_any_queue(), 3, 12, true });
    vk_fault_set(VK_FAULT_TIMELINE, -1);
    check_missing_wait((struct round){ of_one_queue(), 3, 12, true });
    vk_fault_set(VK_FAULT_TIMELINE, 0);
    for (int n = 1; n <= 12; n++) {
        vk_rec_drop_barrier(n);
        struct hazard_report r = recorded(&one);
        vk_rec_drop_barrier(0);
        assert_true(r.cross > 0);
    }
}

#define ACCESS(what, s, t, d)                                                                      \
    { .kind = VK_REC_##what, .stream = s, .addr = 100, .size = 8, .dispatch = d, .ticket = t },    \
    {                                                                                              \
        .kind = VK_REC_DISPATCH, .stream = s, .dispatch = d, .ticket = t                           \
    }
#define COMMIT(what, s, t)                                                                         \
    {                                                                                              \
        .kind = VK_REC_##what, .stream = s, .ticket = t                                            \
    }
#define AFTER(what, s, t, o, u)                                                                    \
    {                                                                                              \
        .kind = VK_REC_##what, .stream = s, .ticket = t, .other = o, .other_ticket = u             \
    }
#define WAIT(s, t, o, u) AFTER(WAIT, s, t, o, u)
#define OVER(s, t, o, u) AFTER(OVER, s, t, o, u)
#define ALLOC                                                                                      \
    {                                                                                              \
        .kind = VK_REC_ALLOC, .addr = 96, .size = 64                                               \
    }
#define STEPS 12

/* Made-up records: what puts two streams in order, and what does not. */
static const struct order_case {
    const char *name;
    size_t cross, reused;
    struct vk_rec rec[STEPS];
} order_cases[] = {
    { "nothing",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "reads",
      0,
      0,
      { ACCESS(READ, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "a wait",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), WAIT(1, 1, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "a wait for too little",
      1,
      0,
      { ACCESS(WRITE, 0, 2, 0), COMMIT(SUBMIT, 0, 2), WAIT(1, 1, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "a wait too late",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0), WAIT(1, 2, 0, 1),
        COMMIT(SUBMIT, 1, 1), COMMIT(SUBMIT, 1, 2) } },
    { "waits in a row",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), WAIT(1, 1, 0, 1), COMMIT(SUBMIT, 1, 1),
        WAIT(2, 1, 1, 1), ACCESS(READ, 2, 1, 0), COMMIT(SUBMIT, 2, 1) } },
    { "the host",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(SEEN, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "the host, between encoding and submission",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0), COMMIT(SEEN, 0, 1),
        COMMIT(SUBMIT, 1, 1) } },
    { "the host, too late",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0), COMMIT(SUBMIT, 1, 1),
        COMMIT(SEEN, 0, 1) } },
    { "an end that nobody waited for",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), ACCESS(READ, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "an end that the stream found",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), OVER(1, 1, 0, 1),
        ACCESS(READ, 1, 1, 0), COMMIT(SUBMIT, 1, 1) } },
    { "an end found too late",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(READ, 1, 1, 0), COMMIT(RETIRE, 0, 1),
        OVER(1, 1, 0, 1), COMMIT(SUBMIT, 1, 1) } },
    { "a wait for who found an end and had nothing to do",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), OVER(1, 1, 0, 1),
        WAIT(2, 1, 1, 0), ACCESS(READ, 2, 1, 0), COMMIT(SUBMIT, 2, 1) } },
    { "the host waits for who found an end and had nothing to do",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), OVER(1, 1, 0, 1),
        COMMIT(SEEN, 1, 0), ACCESS(READ, 2, 1, 0), COMMIT(SUBMIT, 2, 1) } },
    { "an end that another stream found",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), OVER(1, 1, 0, 1),
        ACCESS(READ, 2, 1, 0), COMMIT(SUBMIT, 2, 1) } },
    { "an end that another stream found after the wait for it",
      1,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), WAIT(2, 1, 1, 0), ACCESS(READ, 2, 1, 0),
        COMMIT(SUBMIT, 2, 1), COMMIT(RETIRE, 0, 1), OVER(1, 1, 0, 1) } },
    { "readers that have ended",
      0,
      0,
      { ACCESS(READ, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), ACCESS(WRITE, 1, 1, 0),
        COMMIT(SUBMIT, 1, 1) } },
    { "readers that have not",
      1,
      0,
      { ACCESS(READ, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ACCESS(WRITE, 1, 1, 0), COMMIT(RETIRE, 0, 1),
        COMMIT(SUBMIT, 1, 1) } },
    { "memory given out after the end",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), COMMIT(RETIRE, 0, 1), ALLOC,
        ACCESS(WRITE, 1, 1, 0), COMMIT(SUBMIT, 1, 1) } },
    { "memory given out before the end",
      0,
      1,
      { ACCESS(WRITE, 0, 1, 0), COMMIT(SUBMIT, 0, 1), ALLOC, COMMIT(RETIRE, 0, 1),
        ACCESS(WRITE, 1, 1, 0), COMMIT(SUBMIT, 1, 1) } },
    { "a commit that failed",
      0,
      0,
      { ACCESS(WRITE, 0, 1, 0), ACCESS(WRITE, 1, 1, 0), COMMIT(SUBMIT, 1, 1) } },
};

static void test_order_of_streams(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(order_cases); i++) {
        const struct order_case *c = &order_cases[i];
        struct hazard_report r;
        size_t n = STEPS;
        while (c->rec[n - 1].kind == VK_REC_READ && !c->rec[n - 1].size)
            n--; /* unused entries are zero */
        assert_ok(hazard_check(&r, c->rec, n));
        if (r.cross != c->cross || r.reused != c->reused)
            fail_msg("%s: %zu and %zu", c->name, r.cross, r.reused);
    }
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

/* A stream that is to wait for what has ended has nothing to do, and so its event no commit of its
 * own (a view of another stream's array). What comes after that event is still in order. */
static void test_wait_for_what_is_over(void **state)
{
    (void)state;
    for (int is_host = 0; is_host < 2; is_host++) {
        struct strm *from = vkt_stream(), *via = vkt_stream(), *to = vkt_stream();
        struct arr *a = vkt_array(from, N);

        begin_record();
        vkt_encode(from, &(struct vkt_probe){ .out = a, .mul = 1 });
        struct ev *first = record_event(from);
        assert_ok(from->be->flush(from));
        while (from->be->retire(from, true)) /* it ends without anybody asking for the event */
            ;
        assert_ok(ev_wait_on(via, first));
        struct ev *second = record_event(via);
        assert_int_equal(second->ticket, 0);
        assert_ok(is_host ? ev_wait(second) : ev_wait_on(to, second));
        vkt_encode(to, &(struct vkt_probe){ .in = a, .out = a, .mul = 1, .add = 1 });
        assert_int_equal(vkt_read(to, a)[1], 2);
        check_clean(end_record());
        ev_unref(&first);
        ev_unref(&second);
        arr_unref(&a);
    }
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

static void *leave_work_behind(void *arg)
{
    struct strm *s = vkt_stream();
    struct arr *a = vkt_array(s, N);
    struct ev **e = arg;

    vkt_encode(s, &(struct vkt_probe){ .out = a, .mul = 7 });
    assert_ok(s->be->hold(s, &a->buf, 1));
    *e = record_event(s);
    arr_unref(&a);
    return s->priv;
}

/* A thread that ends finishes its work, and its streams are used again: threads that come and go do
 * not pile up semaphores. */
static void test_streams_are_recycled(void **state)
{
    struct ev *e = NULL;
    pthread_t thread;
    void *priv;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, leave_work_behind, &e), 0);
    assert_int_equal(pthread_join(thread, &priv), 0);
    assert_fails(ERR_RUNTIME, strm_synchronize(e->strm));
    assert_non_null(strstr(err_text(), "has ended"));
    assert_ptr_equal(vkt_stream()->priv, priv);
    assert_ok(ev_wait_on(vkt_stream(), e));
    assert_ok(ev_wait(e));
    ev_unref(&e);
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
        cmocka_unit_test(test_streams_of_any_queue),
        cmocka_unit_test(test_streams_through_semaphores),
        cmocka_unit_test(test_missing_wait_is_found),
        cmocka_unit_test(test_order_of_streams),
        cmocka_unit_test(test_wait_without_work),
        cmocka_unit_test(test_wait_for_what_is_over),
        cmocka_unit_test(test_waiting_threads),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_streams_are_recycled),
        cmocka_unit_test(test_scheduler_reaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
