/* How an elementwise program walks its operands; decided once for every backend (docs/runtime.md,
 * Walks). */
#pragma once

#include "backend/backend.h"

enum elem_kind {
    ELEM_SCALAR, /* every input holds one element: one result, broadcast */
    ELEM_VECTOR, /* inputs are one element or the same dense layout: a flat loop over n elements */
    ELEM_STRIDED /* a loop nest over the collapsed shape; outputs are row-major */
};

struct elem_walk {
    enum elem_kind kind;
    size_t n;                 /* elements computed */
    uint32_t scalar_in;       /* bit i: input i holds one element (SCALAR and VECTOR) */
    const struct arr *layout; /* outputs inherit this array's layout; NULL: row-major */
    struct nest nest;         /* STRIDED: operands are the inputs in order */
};

/* Classifies the inputs of x and gives the outputs storage: donated where possible, else allocated
 * with the layout that the walk implies. n == 0: nothing to do. */
MUST_CHECK enum err elem_prepare(struct elem_walk *w, const struct exec *x, const struct be *home);
