#include "base/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* How long the end of the process waits for other threads to leave the driver. */
#define PATIENCE_MS 2000

atomic_int process_busy;
atomic_bool process_ending;
atomic_bool process_forked;

/* NULL while no device was asked for. */
static _Atomic(const struct process_hooks *) hooks;

static void before_fork(void)
{
    const struct process_hooks *h = atomic_load(&hooks);

    if (h && !process_is_child())
        h->before_fork();
}

static void in_child(void)
{
    atomic_store(&process_forked, true);
}

void process_wait_idle(void)
{
    const struct timespec ms = { .tv_nsec = 1000000 };

    for (int i = 0; i < PATIENCE_MS && atomic_load(&process_busy) > 0; i++)
        nanosleep(&ms, NULL);
}

static _Atomic(process_farewell_fn) farewell;

static void say_farewell(int status)
{
    process_farewell_fn fn = atomic_exchange(&farewell, NULL);

    if (fn)
        fn(status);
}

static void end(int status, void *unused)
{
    const struct process_hooks *h = atomic_load(&hooks);

    (void)unused;
    if (process_is_child())
        return;
    atomic_store(&process_ending, true);
    if (status)
        say_farewell(status);
    if (h)
        h->end();
    say_farewell(status);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, NULL, in_child);
}

void process_set_hooks(const struct process_hooks *h)
{
    atomic_store(&hooks, h);
}

void process_set_farewell(process_farewell_fn fn)
{
    atomic_store(&farewell, fn);
    process_watch();
}

void process_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, watch_forks);
    on_exit(end, NULL); /* and not atexit, which does not tell how the process ends */
}

enum err process_check(void)
{
    if (!process_is_child())
        return ERR_OK;
    return err_set(ERR_RUNTIME,
                   "[fork] The library was in use when this process was forked, and neither its "
                   "threads nor its devices are in the child. Fork before the first use, or let "
                   "the child call exec.");
}

enum err process_begin(void)
{
    enum err err = process_check();

    if (err)
        return err;
    process_enter(); /* first: the end waits for whoever did not see it coming */
    if (!atomic_load(&process_ending))
        return ERR_OK;
    process_leave();
    return err_set(ERR_DEVICE, "[exit] The process is ending.");
}
