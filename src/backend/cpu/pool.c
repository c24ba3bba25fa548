/* Threads that share one kernel between cores. One pool for the process, started on first use; the
 * threads sleep between jobs and are never joined. Jobs often follow each other within
 * microseconds, and waking a thread takes longer than many of them: whoever waits stays awake for a
 * while first. */
#include "backend/cpu/cpu.h"
#include "base/gate.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* More pieces than threads, so that a thread that starts late does not hold up the others. */
#define PIECES_PER_THREAD 4
/* Looks at what is waited for before going to sleep, some tens of microseconds. */
#define LOOKS 2000

struct job {
    struct job *next;
    cpu_range_fn fn;
    void *arg;
    size_t n, piece;
    _Atomic size_t taken; /* elements handed out so far; may run past n */
    atomic_int helpers;   /* written under pool_lock */
};

/* Guards jobs, posted, sleepers and job.helpers; two of them are read without it. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t job_posted = PTHREAD_COND_INITIALIZER;
static pthread_cond_t job_left = PTHREAD_COND_INITIALIZER;
static struct job *jobs;
static atomic_uint posted; /* jobs so far */
static int sleepers;

static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static int pool_threads = 1;

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* waits as long as x86's does; yield does not wait at all */
#endif
}

static void job_work(struct job *j)
{
    for (;;) {
        size_t begin = atomic_fetch_add(&j->taken, j->piece);
        if (begin >= j->n)
            return;
        j->fn(j->arg, begin, MIN(begin + j->piece, j->n));
    }
}

static struct job *job_with_work(void)
{
    for (struct job *j = jobs; j; j = j->next)
        if (atomic_load(&j->taken) < j->n)
            return j;
    return NULL;
}

/* Waits for a job after those that were posted; with and without the lock. */
static void wait_for_job(void)
{
    unsigned seen = atomic_load(&posted);

    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < LOOKS && atomic_load_explicit(&posted, memory_order_relaxed) == seen; i++)
        relax();
    pthread_mutex_lock(&pool_lock);
    if (atomic_load(&posted) == seen) {
        sleepers++;
        pthread_cond_wait(&job_posted, &pool_lock);
        sleepers--;
    }
}

static void *helper(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&pool_lock);
    for (;;) {
        struct job *j = job_with_work();
        if (!j) {
            wait_for_job();
            continue;
        }
        j->helpers++;
        pthread_mutex_unlock(&pool_lock);
        job_work(j);
        pthread_mutex_lock(&pool_lock);
        if (--j->helpers == 0)
            pthread_cond_broadcast(&job_left);
    }
    return NULL;
}

static void pool_start(void)
{
    int wanted = (int)gate_int(GATE_CPU_THREADS);
    pthread_attr_t attr;

    if (wanted == 0)
        wanted = (int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (; pool_threads < wanted; pool_threads++) {
        pthread_t thread;
        if (pthread_create(&thread, &attr, helper, NULL) != 0)
            break; /* fewer threads do the same work */
    }
    pthread_attr_destroy(&attr);
}

int cpu_threads(void)
{
    pthread_once(&pool_once, pool_start);
    return pool_threads;
}

static void job_post(struct job *j)
{
    pthread_mutex_lock(&pool_lock);
    j->next = jobs;
    jobs = j;
    atomic_fetch_add(&posted, 1);
    if (sleepers)
        pthread_cond_broadcast(&job_posted);
    pthread_mutex_unlock(&pool_lock);
}

static void job_withdraw(struct job *j)
{
    struct job **link = &jobs;

    pthread_mutex_lock(&pool_lock);
    while (*link != j)
        link = &(*link)->next;
    *link = j->next;
    pthread_mutex_unlock(&pool_lock);
    for (int i = 0; i < LOOKS && atomic_load_explicit(&j->helpers, memory_order_acquire); i++)
        relax();
    pthread_mutex_lock(&pool_lock);
    while (j->helpers > 0)
        pthread_cond_wait(&job_left, &pool_lock);
    pthread_mutex_unlock(&pool_lock);
}

void cpu_parallel_for(size_t n, size_t grain, cpu_range_fn fn, void *arg)
{
    size_t pieces = MIN(n / MAX(grain, 1), (size_t)cpu_threads() * PIECES_PER_THREAD);

    if (n == 0)
        return;
    if (pieces < 2 || cpu_threads() == 1) {
        fn(arg, 0, n);
        return;
    }
    struct job j = { .fn = fn, .arg = arg, .n = n, .piece = (n + pieces - 1) / pieces };
    job_post(&j);
    job_work(&j);
    job_withdraw(&j);
}
