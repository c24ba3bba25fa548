#include "eval/sched.h"

#include "support/testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static void test_count(void **state)
{
    (void)state;
    assert_int_equal(sched_active(), 0);
    sched_task_begin();
    sched_task_begin();
    assert_int_equal(sched_active(), 2);
    sched_task_end();
    sched_task_end();
    assert_int_equal(sched_active(), 0);
}

/* Contract: with at most one task active the call does not wait. */
static void test_nothing_to_wait_for(void **state)
{
    (void)state;
    sched_wait_for_one();
    sched_task_begin();
    sched_wait_for_one();
    sched_task_end();
}

static atomic_bool waiting, returned;

static void *waiter(void *arg)
{
    (void)arg;
    waiting = true;
    sched_wait_for_one();
    returned = true;
    return NULL;
}

static void begin_waiting(pthread_t *thread)
{
    waiting = returned = false;
    assert_int_equal(pthread_create(thread, NULL, waiter, NULL), 0);
    while (!waiting)
        usleep(100);
    usleep(20000);
}

static void test_waits_until_the_count_drops(void **state)
{
    pthread_t thread;

    (void)state;
    for (int i = 0; i < 3; i++)
        sched_task_begin();
    begin_waiting(&thread);
    assert_false(returned);
    sched_task_begin(); /* more work does not end the wait */
    usleep(20000);
    assert_false(returned);
    sched_task_end();
    usleep(20000);
    assert_false(returned); /* back at what it was at entry */
    sched_task_end();
    pthread_join(thread, NULL);
    assert_true(returned);
    sched_task_end();
    sched_task_end();
    assert_int_equal(sched_active(), 0);
}

static void *begin_and_end(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++) {
        sched_task_begin();
        sched_task_begin();
        sched_task_end();
        sched_task_end();
        sched_wait_for_one();
    }
    return NULL;
}

static void test_many_threads_come_back_to_zero(void **state)
{
    pthread_t thread[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, begin_and_end, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(sched_active(), 0);
}

/* ---- a backend that notices completion only when asked ---- */

static atomic_int looks, complete_at;

static void reap(void)
{
    if (++looks == complete_at)
        sched_task_end();
}

static void test_waiter_asks_the_backend(void **state)
{
    (void)state;
    looks = 0;
    complete_at = 5;
    sched_set_reaper(reap);
    sched_task_begin();
    sched_task_begin();
    sched_wait_for_one();
    assert_true(looks >= 5);
    assert_int_equal(sched_active(), 1);
    sched_task_end();
    sched_set_reaper(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_count),
        cmocka_unit_test(test_nothing_to_wait_for),
        cmocka_unit_test(test_waits_until_the_count_drops),
        cmocka_unit_test(test_many_threads_come_back_to_zero),
        cmocka_unit_test(test_waiter_asks_the_backend),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
