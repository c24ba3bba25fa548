/* Graphs that are built once and put into other graphs any number of times.
 *
 * A program owns a graph on placeholders. A call makes copies of its nodes that read arrays in the
 * places of these: an ordinary lazy graph, for a small part of what building it costs, which is
 * evaluated with whatever else is wanted and found again as every graph of its structure is
 * (recording.h). Thread-safety: the caller's own. */
#pragma once

#include "graph/array.h"

struct program;

/* A leaf that stands for arrays of like's shape and dtype. */
MUST_CHECK enum err program_placeholder(struct arr **out, const struct arr *like);

/* A node whose position grows from call to call: the offset of a RoPE, the region of a SliceUpdate
 * along the axis, the end of a Slice along the axis, which makes its result longer; so only an
 * attention may read it, whose result keeps its shape. */
struct program_move {
    struct arr *a; /* the node's result */
    int axis;
};

struct program_params {
    struct arr *const *in; /* placeholders */
    size_t n_in;
    struct arr *const *out; /* results, not evaluated */
    size_t n_out;
    const struct program_move *move;
    size_t n_moves;
};
/* Takes a reference on the results, which may be placeholders or evaluated arrays, too; those that
 * the host fills need not be the graph's own. ERR_UNSUPPORTED if something else reads a Slice that
 * moves; ERR_ARG if the graph has another placeholder, or if what moves has no position or is named
 * twice. */
MUST_CHECK enum err program_new(struct program **out, const struct program_params *p);
void program_destroy(struct program **p);
size_t program_n_out(const struct program *p);

/* Moves everything that moves on by so many positions, for the calls to come. */
void program_advance(struct program *p, int32_t by);

/* in[i] are arrays of the placeholders' shapes and dtypes, whose references are taken over, so that
 * the last one lets its bytes be written over in place; out[i] receive new references. After a
 * failure the references are the caller's still, and there is nothing in out. */
MUST_CHECK enum err program_call(const struct program *p, struct arr **in, struct arr **out);
