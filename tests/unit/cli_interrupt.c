/* Ctrl-C that comes at any moment, also while an earlier one is being forgotten: who looks and who
 * waits see the same. */
#include "cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "support/testing.h"

#define ROUNDS 20000

/* How many Ctrl-C the other thread is to send, and has sent. */
static _Atomic int wanted, sent;

static void *interrupter(void *unused)
{
    while (atomic_load(&wanted) >= 0)
        if (atomic_load(&sent) < atomic_load(&wanted)) {
            raise(SIGINT);
            atomic_fetch_add(&sent, 1);
        }
    return unused;
}

static bool wakes_a_waiter(void)
{
    struct pollfd p = { .fd = interrupt_fd(), .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

static void test_none_is_lost(void **state)
{
    pthread_t thread;
    int while_forgetting = 0;

    (void)state;
    interrupt_forget(); /* before anything was caught */
    assert_false(interrupt_came());
    interrupt_catch();
    assert_int_equal(pthread_create(&thread, NULL, interrupter, NULL), 0);
    for (int i = 1; i <= ROUNDS; i++) {
        interrupt_forget();
        assert_false(interrupt_came());
        assert_false(wakes_a_waiter());
        atomic_store(&wanted, i);
        while (atomic_load(&sent) < i) { /* at one time or another it comes in the middle of this */
            interrupt_forget();
            while_forgetting += interrupt_came();
        }
        if (interrupt_came() != wakes_a_waiter())
            fail_msg("round %d: %d for who looks, %d for who waits", i, interrupt_came(),
                     wakes_a_waiter());
    }
    raise(SIGINT);
    assert_true(interrupt_came() && wakes_a_waiter());
    atomic_store(&wanted, -1);
    pthread_join(thread, NULL);
    print_message("%d were seen between two\n", while_forgetting);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_none_is_lost) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
