/* The tape: the nodes that an eval must run, in order of execution (contract 3.2). */
#pragma once

#include "core/array.h"

struct tape {
    struct node **node; /* borrowed: kept by the outputs until they are detached */
    bool *crosses;      /* some consumer runs on another stream */
    bool waits; /* some input comes from another stream, now or earlier, and may not be there */
    size_t n;
    struct arena arena;
};

/* Orders what outs need breadth-first from the outputs with a width limit, then reversed. Refuses
 * placeholders (ERR_ARG for tracers, ERR_RUNTIME otherwise) and, when async, tracers. An empty tape
 * means that nothing is left to run. */
MUST_CHECK enum err tape_build(struct tape *t, struct arr *const *outs, size_t n, bool async);
void tape_fini(struct tape *t);
