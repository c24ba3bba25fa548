/* Function transformations look at the graph that a function builds. While one of them runs the
 * thread is tracing: arrays that depend on what was handed to the function are tracers (the flag of
 * struct arr, which nodes pass on), and evaluating a tracer keeps its graph, which gradients still
 * need. Thread-safety: everything is the calling thread's own. */
#pragma once

#include "graph/array.h"

enum trace_kind {
    TRACE_PLAIN,   /* a graph is recorded */
    TRACE_GRAD,    /* a graph is recorded for gradients */
    TRACE_DYNAMIC, /* a graph is recorded for inputs of other sizes, too */
};

void tracing_begin(enum trace_kind kind);
/* The end of what began last. With the outermost one, nodes that were kept are detached. */
void tracing_end(enum trace_kind kind);

bool tracing_is_on(void);
/* Some transformation that is running is for gradients. */
bool tracing_has_grads(void);
/* The outermost one is for inputs of other sizes, too. */
bool tracing_is_dynamic(void);

/* While a gradient rule runs, whatever is evaluated keeps its graph. */
void tracing_retain(bool on);
bool tracing_retains(void);

/* A flag may be left of a transformation that is over. */
static inline bool arr_is_tracer(const struct arr *a)
{
    return a->tracer && tracing_is_on();
}

/* A node that was evaluated and keeps its graph until the thread traces no more. */
void tracing_keep(struct node *n);
