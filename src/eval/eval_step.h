/* One step of a plan: which arrays it reads and writes, the backend's call, and what follows on it.
 */
#pragma once

#include "graph/array.h"

struct plan;
struct plan_step;

/* One stream that took part in this eval. */
struct open_stream {
    struct strm *strm;
    const struct plan *plan; /* of the run that is under way */
    bool keeps;              /* nodes and their storage stay for another run (replay.h) */
    struct notes *notes;     /* of such a run, or NULL */
    struct ev *ev;    /* async: attached to the arrays made on this stream that outlive the run */
    struct ev *fence; /* newest point other streams of this eval may wait for */
};

/* Carries out a step of os->plan, whose run is nodes. Where the backend leaves a group, its nodes
 * run one by one. Outputs of a step that failed have no storage. */
MUST_CHECK enum err eval_step(struct open_stream *os, const struct plan_step *step,
                              struct node *const *nodes);
