/* Runs of a plan that are encoded as they were before.
 *
 * On a backend that has recordings (backend.h) a run of a plan is recorded before it is encoded:
 * its steps are carried out on arrays whose storage are places, which says what is dispatched, how
 * results lie, and what is written over in place. Encoding puts real memory into the places. The
 * recording stays with the plan, and a graph that is built again with the same structure, by
 * anybody, pays for looking at its nodes and for the encoding, nothing else.
 *
 * A recording holds while arrays from outside lie as before and those that may be written over are
 * the same ones, while no setting changed. Where the parameters or shapes of a node changed, its
 * step is recorded again, and the steps that read what lies in another way now; if a step needs
 * other memory than before, all of them are. Where only positions changed, which grow with every
 * token, the backend may put those into what is recorded. */
#pragma once

#include "eval/eval_step.h"
#include "plan/plan.h"

/* True if runs of the stream are recorded. */
bool recording_serves(const struct strm *s);

/* Encodes the run of os->plan that plan_get saw last. Results that outlive it have storage then and
 * count as evaluated; all its nodes are detached. After a failure they are as before, but where
 * work that writes in place was encoded already: then nothing can be evaluated any more. */
MUST_CHECK enum err recording_run(struct open_stream *os, struct node *const *nodes, size_t n);
