/* Waiting for the values of arrays, and reading them. */
#pragma once

#include "graph/array.h"

/* True if evaluated and complete; drops a signalled event. *out false while work is pending.
 * An asynchronous error of the producing stream surfaces here. */
MUST_CHECK enum err arr_is_available(bool *out, struct arr *a);
/* The event that an async eval attached, as a new reference; NULL once it was seen complete, by
 * this thread or another one. Thread-safety: safe. */
struct ev *arr_event(struct arr *a);
/* Blocks until the bytes are there. ERR_ARG for an unscheduled array. */
MUST_CHECK enum err arr_wait(struct arr *a);

/* Evaluates if needed, waits, and gives a host pointer to element [0, ..., 0]. */
MUST_CHECK enum err arr_host(const void **out, struct arr *a);
