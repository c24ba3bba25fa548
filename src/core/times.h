/* Where the time goes: totals by kernel on a GPU, by op on the CPU. Kept while a trace is written,
 * or statistics are asked for and VK_TIMING is on. Thread-safety: safe. */
#pragma once

#include <stdio.h>

#include "core/common.h"

/* What the time was spent on. Texts live for the process and are compared as texts; family and
 * variant may be NULL. */
struct times_key {
    const char *device; /* "gpu" or "cpu" */
    const char *name;
    const char *family, *variant;
};

bool times_are_on(void);

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
