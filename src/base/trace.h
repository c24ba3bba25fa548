/* A trace of what the process does, for Perfetto or chrome://tracing, written when the process ends
 * to the file that the setting VK_PROFILE names. Spans of the CPU are taken on the thread that
 * calls; a device adds spans of its own clock. While the setting is off everything here does
 * nothing. Names must live for the process. Thread-safety: safe. */
#pragma once

#include "base/common.h"

bool trace_is_on(void);

/* A span of the calling thread: what begin gave is handed to end. */
int64_t trace_span_begin(void);
void trace_span_end(const char *name, int64_t begin);
/* As trace_span_end; n says how many things the span dealt with. */
void trace_span_end_n(const char *name, int64_t begin, size_t n);

/* The calling thread is shown as "what index". */
void trace_name_thread(const char *what, int index);

/* A span of a device's clock, whose offset to the CPU's is unknown: `seen` is a time of the CPU's
 * clock when the span was over. */
struct trace_device_span {
    const char *name, *detail; /* detail may be NULL */
    int track;                 /* one row of the picture each */
    int64_t begin, end;        /* ns of the device's clock */
    int64_t seen;
};
void trace_device_span(const struct trace_device_span *s);
