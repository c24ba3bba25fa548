/* Where the time goes: totals by kernel on a GPU, by op on the CPU. Kept while a trace is written,
 * or statistics are asked for and VK_TIMING is on. Thread-safety: safe. */
#pragma once

#include <stdio.h>

#include "base/common.h"
#include "base/gate.h"

/* What the time was spent on. Texts live for the process and are compared as texts; family and
 * variant may be NULL. */
struct times_key {
    const char *device; /* "gpu" or "cpu" */
    const char *name;
    const char *family, *variant;
};

/* Asked for every dispatch, so the answer is kept until a setting changes: gate_changes() + 1, and
 * the answer in the lowest bit. */
extern _Atomic uint64_t times_answer;
bool times_ask(void);
static inline bool times_are_on(void)
{
    uint64_t answer = atomic_load_explicit(&times_answer, memory_order_relaxed);

    return answer >> 1 == (uint64_t)gate_changes() + 1 ? answer & 1 : times_ask();
}

/* What the calling thread is encoding, for backends whose work runs later on another thread. NULL
 * while no times are kept. */
void times_op_set(const char *name);
const char *times_op(void);

void times_add(const struct times_key *key, uint64_t ns);
/* Calls and nanoseconds so far; 0 where there were none. */
void times_get(uint64_t *calls, uint64_t *ns, const struct times_key *key);
void times_reset(void);

/* A table, the largest total of a device first. Only families whose name contains family, where it
 * is not NULL. Prints nothing where there are no times. */
void times_print(FILE *out, const char *family);
