/* Graphs that are run again and again.
 *
 * A replay owns a graph that was built once, on placeholders instead of arrays. A run puts arrays
 * into their places, moves what depends on a position, and has the steps of the plan encoded.
 * Nothing is built, ordered or planned again, and what lies between inputs and results keeps its
 * storage; results are arrays of their own. A device does the same work as it would for the graph
 * built anew. Thread-safety: the owner thread of the graph's stream. */
#pragma once

#include "graph/array.h"

struct replay;

/* A leaf that stands for arrays of like's shape and dtype, for a graph on that stream. */
MUST_CHECK enum err replay_placeholder(struct arr **out, const struct arr *like, struct strm *s);

/* A node whose position grows from run to run: the offset of a RoPE, the region of a SliceUpdate
 * along the axis, the end of a Slice along the axis, which makes its result longer; so only an
 * attention may read it, whose result keeps its shape. */
struct replay_move {
    struct arr *a; /* the node's result */
    int axis;
};

struct replay_params {
    struct arr *const *in; /* placeholders; the graph alone keeps them from now on */
    size_t n_in;
    struct arr *const *out; /* results, not evaluated */
    size_t n_out;
    const struct replay_move *move;
    size_t n_moves;
};
/* Takes a reference on the results. The caller drops its own to everything else before the first
 * run, because what somebody holds is not written over in place. Constants are evaluated, or on
 * their way. ERR_UNSUPPORTED if the graph is on several streams, longer than a plan can be, or
 * something else reads a Slice that moves; ERR_ARG if nothing reads a placeholder, or what moves
 * has no position, or is named twice. */
MUST_CHECK enum err replay_new(struct replay **out, const struct replay_params *p);
void replay_destroy(struct replay **r);

/* One run, `by` positions further than the one before it (the first: than the graph was built).
 * in[i] are evaluated arrays, or on their way; runs are fastest while they lie in memory as those
 * of the run before. The references are taken over, so that the last one lets its bytes be written
 * over in place (and its array serve as out[i] where that is alike). out[i] receive new references
 * to arrays that are on their way once the next eval hands the stream's work over. Settings that
 * changed since the first runs need not have an effect. After a failure nothing is in out and the
 * replay is of no more use. */
MUST_CHECK enum err replay_run(struct replay *r, struct arr **in, struct arr **out, int32_t by);
