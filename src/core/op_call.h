/* What the rules of ops (the columns of ops.def) are called with. */
#pragma once

#include "core/array.h"
#include "core/op.h"

/* Split has the most: one more than it has cuts. */
#define OP_MAX_OUT (SHP_MAX + 1)

/* From parameters and inputs to what the outputs will be. A rule writes out and, where it is not 1,
 * n_out, and fails where parameters and inputs do not make a node. It may read what op_infer has
 * made sure of: as many inputs as the row of ops.def allows, and parameters that
 * op_params_check accepts. */
struct infer_call {
    enum op_id op;
    const void *params;
    struct arr *const *in;
    size_t n_in;
    size_t n_out;
    struct out_desc out[OP_MAX_OUT];
};

/* The op's rule. For what may be wrong in any way, such as a node that a file describes; params are
 * as long as op_params_size says. */
MUST_CHECK enum err op_infer(struct infer_call *c);
