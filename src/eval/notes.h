/* Steps of a replayed graph that encode the same work in every run.
 *
 * A step is steady if none of its nodes moves, and all its arrays have storage that stays:
 * constants and what lies between inputs and results. The backend writes down what such a step
 * encodes, and from then on encodes that, without looking at arrays or params again. A step is run
 * as any other as soon as an input has other storage than it had; who uses notes sees to it that
 * layouts stay. */
#pragma once

#include "plan/group.h"
#include "plan/plan.h"

/* Steps that read more arrays are not steady. */
#define NOTES_MAX_IN MAX(FX_MAX_IN, GROUP_MAX_IN)

struct notes;
struct open_stream;

MUST_CHECK enum err notes_new(struct notes **out, const struct plan *p, struct strm *s);
void notes_destroy(struct notes **t);

/* A steady step that reads these arrays, whose storage is what they have now. The first n_inner are
 * made in the run, the others are constants. */
struct notes_inputs {
    struct arr *const *v;
    int n, n_inner;
};
MUST_CHECK enum err notes_want(struct notes *t, size_t step, const struct notes_inputs *in);

/* True if the step is written down. False for steps that are none. */
bool notes_has(const struct notes *t, size_t step);
/* Instead of eval_step: repeats the step, or runs it and writes it down if that is wanted. */
MUST_CHECK enum err notes_run_step(struct notes *t, struct open_stream *os, size_t step,
                                   struct node *const *nodes);
