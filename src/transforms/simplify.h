/* What a function does, with everything in it once. */
#pragma once

#include "transforms/trace.h"

/* What a traced function was given: arrays that a graph may not read for all calls to come. */
struct simplify_params {
    const struct traced *trace;
    struct arrs given;
    bool merges; /* else the graph is copied as it is */
};

/* A copy of the graph that nobody else knows, on placeholders of its own (program.h). Nodes that
 * compute the same become one: the same op with equal parameters and states on the same stream,
 * reading the same arrays; so do equal numbers. What hands its input over (copies, stopped
 * gradients, functions with rules of their own) goes. Arrays that are evaluated, and nodes that the
 * host fills, are not copied. ERR_ARG if the graph reads what the function was given.
 * Thread-safety: safe; waits for other threads' evals. */
MUST_CHECK enum err simplify(struct traced *out, const struct simplify_params *p);

/* Whether a graph depends on what another function was given whose trace is under way. */
MUST_CHECK enum err simplify_has_others(bool *out, const struct traced *t);
