/* In-flight accounting and back-pressure (docs/runtime.md, Throttle). Thread-safety: safe. */
#pragma once

#include "base/common.h"

/* Backends call these around a counted task: a GPU commit at a threshold, every tenth CPU dispatch.
 */
void sched_task_begin(void);
void sched_task_end(void);
int sched_active(void);
/* Returns at once if at most one task is active, else blocks until the count drops. */
void sched_wait_for_one(void);

/* A backend without threads of its own registers how it notices that tasks are complete: called,
 * without locks, by whoever waits. Set once, before the first task. */
void sched_set_reaper(void (*reap)(void));
