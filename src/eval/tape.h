/* The tape: the nodes that an eval must run, in order of execution (docs/runtime.md, Evaluation).
 *
 * Threads may evaluate graphs that share nodes which nobody has evaluated yet. Whoever comes first
 * has them: from tape_build to tape_release a tape owns its nodes, that is their marks, inputs,
 * streams and results. A thread that meets a node of another's tape waits until it is released; by
 * then the node is evaluated, with an event where its work may be under way, or as it was before if
 * the eval failed. Marks are written, and tapes come and go, under one lock, which is never held
 * while anything runs. */
#pragma once

#include <pthread.h>

#include "graph/array.h"

struct tape {
    struct node **node; /* borrowed: kept by the outputs until they are detached */
    bool *crosses;      /* some consumer runs on another stream */
    bool waits;     /* some input comes from another stream, now or earlier, and may not be there */
    bool is_traced; /* some nodes keep their graph (graph/tracing.h) */
    size_t n;
    struct arena arena;
    uint32_t number; /* in the upper half of the nodes' marks while it owns them; 0: it does not */
    struct tape *next; /* of all that own nodes */
    pthread_t owner;
};

/* Orders what outs need breadth-first from the outputs with a width limit, then reversed. Refuses
 * placeholders (ERR_ARG for tracers, ERR_RUNTIME otherwise) and, when async, tracers. An empty tape
 * means that nothing is left to run. Nodes of other threads' streams are moved to the caller's. The
 * lower half of a mark is the node's position in its run. t must stay where it is. */
MUST_CHECK enum err tape_build(struct tape *t, struct arr *const *outs, size_t n, bool async);
/* How many nodes from the first one on are a run: on one stream, filled by the host (OPF_HOST) all
 * or none, and no more than a plan takes. */
size_t tape_run(const struct tape *t, size_t first);
/* Lets others have the nodes; the tape stays readable. */
void tape_release(struct tape *t);
void tape_fini(struct tape *t);

/* True while another thread's tape owns the node that makes a. */
bool tape_is_busy(const struct arr *a);
/* Waits until that is over. ERR_RUNTIME if it is the calling thread's own tape. */
MUST_CHECK enum err tape_wait(const struct arr *a);

/* Between the two no other thread's tape owns nodes, so that graphs may be looked at: briefly, and
 * without waiting for anything, because whoever evaluates waits meanwhile. */
void tape_pause(void);
void tape_resume(void);
