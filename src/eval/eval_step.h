/* One step of a plan: which arrays it reads and writes, the backend's call, and what follows on it.
 */
#pragma once

#include "graph/array.h"

struct plan;
struct plan_step;

/* One stream that took part in this eval. */
struct open_stream {
    struct strm *strm;
    struct plan *plan; /* of the run that is under way */
    struct ev *ev;     /* async: attached to the arrays made on this stream that outlive the run */
    struct ev *fence;  /* newest point other streams of this eval may wait for */
};

/* Carries out a step of os->plan, whose run is nodes. Where the backend leaves a group, its nodes
 * run one by one. Outputs of a step that failed have no storage. While the stream's run is recorded
 * outputs have storage and are not evaluated, and nodes keep their inputs. */
MUST_CHECK enum err eval_step(struct open_stream *os, const struct plan_step *step,
                              struct node *const *nodes);

/* The group that a step runs, of its nodes in this run. */
struct group;
void eval_group_of(struct group *g, const struct plan_step *step, struct node *const *nodes);

/* An array counts as evaluated from here on; ev: what its bytes wait for, or NULL. */
void eval_finish_array(struct arr *a, struct ev *ev);
