#include "eval/sched.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* How long a waiter sleeps between two looks at a backend that only notices completion on demand.
 */
#define REAP_INTERVAL_NS 50000

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dropped = PTHREAD_COND_INITIALIZER;
static _Atomic int active; /* changed under the lock, read without it */
static void (*_Atomic reaper)(void);

void sched_task_begin(void)
{
    pthread_mutex_lock(&count_lock);
    active++;
    pthread_mutex_unlock(&count_lock);
}

void sched_task_end(void)
{
    pthread_mutex_lock(&count_lock);
    active--;
    pthread_cond_broadcast(&dropped);
    pthread_mutex_unlock(&count_lock);
}

int sched_active(void)
{
    return atomic_load_explicit(&active, memory_order_relaxed);
}

void sched_set_reaper(void (*reap)(void))
{
    atomic_store(&reaper, reap);
}

/* Called with count_lock held; it is released while the reaper runs and while sleeping. */
static void wait_a_little(void (*reap)(void), int entry)
{
    struct timespec until;

    pthread_mutex_unlock(&count_lock);
    reap();
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += REAP_INTERVAL_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&count_lock);
    if (active >= entry)
        pthread_cond_timedwait(&dropped, &count_lock, &until);
}

void sched_wait_for_one(void)
{
    void (*reap)(void) = atomic_load(&reaper);

    if (reap)
        reap();
    pthread_mutex_lock(&count_lock);
    for (int entry = active; entry > 1 && active >= entry;) {
        if (reap)
            wait_a_little(reap, entry);
        else
            pthread_cond_wait(&dropped, &count_lock);
    }
    pthread_mutex_unlock(&count_lock);
}
