/* From outputs to a tape, from the tape to backend calls (contract section 3). */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct arr;
struct ev;
struct node;
struct notes;
struct plan;

/* Evaluates the outputs and what they need. Synchronous: returns when the bytes are there.
 * Asynchronous: returns when the work is handed to the devices; arrays carry their stream's event.
 */
MUST_CHECK enum err eval_arrays(struct arr *const *outs, size_t n, bool async);

/* Nodes of a plan, which stay as they are and keep their storage (replay.h). */
struct eval_run {
    struct plan *plan;
    struct node *const *nodes;
    size_t n;
    struct notes *notes; /* may be NULL */
};
/* Encodes only: the work is handed over by whatever flushes the stream next. *done is a new event
 * of its end. */
MUST_CHECK enum err eval_again(struct ev **done, const struct eval_run *r);
