/* Nodes of traces that were read. Private to mlxfn. */
#pragma once

#include "eval/stream.h"
#include "io/mlxfn_prim.h"

struct mlxfn_node {
    const struct prim *prim;
    const union prim_params *params; /* the row's part of them */
    struct op_state *state;          /* owned; NULL for most */
    struct dev dev;
    uint32_t n_in;         /* arguments of the trace that it reads, and */
    uint32_t first, n_out; /* values that it makes */
};
