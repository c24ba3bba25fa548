/* How a reduction walks its input; decided once for every backend.
 *
 * Kept axes count the outputs, reduced axes count what is combined into one output. The plan holds
 * both as loop nests after merging, and says which of the two moves through memory in the smaller
 * steps: neighbouring lanes should follow that one. */
#pragma once

#include "graph/array.h"
#include "graph/op_params.h"

enum reduce_walk {
    REDUCE_ROWS, /* the innermost reduced axis has the smallest stride: lanes share an output */
    REDUCE_COLS, /* a kept axis (plan.lane) has it: lanes hold neighbouring outputs */
};

/* Innermost last. out strides are those of the row-major output; unused for reduced axes. */
struct reduce_axes {
    int n;
    int64_t dim[SHP_MAX], in[SHP_MAX], out[SHP_MAX];
};

struct reduce_plan {
    enum reduce_walk walk;
    size_t n_out;   /* outputs */
    size_t n_red;   /* elements combined into each; 0: every output is the identity */
    int64_t offset; /* elements from the input's first one to where the walk starts */
    int lane;       /* REDUCE_COLS: index into kept */
    struct reduce_axes kept, red;
};

enum reduce_order {
    REDUCE_ANY_ORDER,  /* reduced axes may be sorted and turned around */
    REDUCE_REPEATABLE, /* any order, and seeing an element twice changes nothing (min, max, and,
                          or): broadcast axes are left out */
    REDUCE_IN_ORDER,   /* reduced elements are visited in row-major order (argmin, argmax) */
};

/* Plans the reduction of in (evaluated) over axes[0..n). */
void reduce_plan_make(struct reduce_plan *p, const struct arr *in, const int32_t *axes, int n,
                      enum reduce_order order);

/* The freedom that a kind leaves. */
enum reduce_order reduce_kind_order(enum reduce_kind kind);
