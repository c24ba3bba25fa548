/* A function traced: called on placeholders, so that the graph it builds can be looked at. Nothing
 * can evaluate a placeholder or what depends on it (ERR_ARG). */
#pragma once

#include "graph/tracing.h"
#include "transforms/fun.h"

struct traced {
    struct outs in; /* placeholders: leaves without bytes, the only ones of the graph */
    struct outs out;
};

/* A tracer in the place of arrays of that shape and dtype. */
MUST_CHECK enum err trace_placeholder(struct arr **out, const struct shp *shape, enum dtype t);

/* Calls fun on a placeholder for each of the arrays; kind: what the graph is for. */
MUST_CHECK enum err trace_fun(struct traced *out, struct fun *fun, struct arrs like,
                              enum trace_kind kind);
/* Calls fun on what it is given, among which are placeholders of the caller's. */
MUST_CHECK enum err trace_call(struct outs *out, struct fun *fun, struct arrs in,
                               enum trace_kind kind);
void traced_fini(struct traced *t);
