/* What becomes of devices and threads when the process ends, and in its copies by fork.
 *
 * Drivers and OpenBLAS take themselves down while the process exits, and what is in flight then
 * crashes or hangs in them. So an exit handler waits for it first, whoever ended the process and
 * however: a return from main, exit in any thread, the error handler's exit. A forked child has
 * neither the threads nor the devices of its parent, and locks may be held for ever in it: it is
 * told so at its first use. Thread-safety: safe. */
#pragma once

#include <stdatomic.h>

#include "base/common.h"
#include "base/err.h"

/* What is to be done for whoever has threads or devices. */
struct process_hooks {
    void (*end)(void);         /* returns when nothing is in flight */
    void (*before_fork)(void); /* returns when nothing is in flight that a fork would disturb */
};
/* Called before the first device is opened; h lives for the process. */
void process_set_hooks(const struct process_hooks *h);

/* What is said to other processes at the end, once: fn gets the exit status. A failure is told
 * before anything is waited for, else it is the last thing that the library does. */
typedef void (*process_farewell_fn)(int status);
void process_set_farewell(process_farewell_fn fn);

/* There is something now that an exit must wait for and that a child lacks. Called when the first
 * stream is made, when a driver has been loaded and whenever it may have registered an exit
 * handler: they run in reverse order, and those of a driver must come after ours. */
void process_watch(void);

/* Around what calls a driver or writes its memory: the end of the process waits a little for it. */
extern atomic_int process_busy;
static inline void process_enter(void)
{
    atomic_fetch_add(&process_busy, 1);
}
static inline void process_leave(void)
{
    atomic_fetch_sub_explicit(&process_busy, 1, memory_order_release);
}
/* Returns when nobody is inside, or after a while: the calling thread may be. */
void process_wait_idle(void);

/* Set once the handler has begun: errors are expected from here on. */
extern atomic_bool process_ending;
static inline bool process_is_ending(void)
{
    return atomic_load_explicit(&process_ending, memory_order_acquire);
}

/* True in a child that was forked after a first use of the library. */
extern atomic_bool process_forked;
static inline bool process_is_child(void)
{
    return atomic_load_explicit(&process_forked, memory_order_relaxed);
}
/* ERR_RUNTIME in such a child. */
MUST_CHECK enum err process_check(void);
/* process_enter, unless this is such a child or the process is ending, which are errors: for what
 * must not touch a driver's memory once its own exit handlers may have run. */
MUST_CHECK enum err process_begin(void);
