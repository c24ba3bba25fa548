/* Ops along one axis, for kernels that want their rows consecutive. */
#pragma once

#include "backend/backend.h"

/* Rows of `length` consecutive elements, one behind the other, of input and output alike. */
struct be_rows {
    struct arr *in;   /* the input, or copy */
    struct arr *copy; /* owned: dropped by be_rows_end; NULL if the input has such rows */
    uint64_t n;
    uint32_t length;
};

/* Gives out storage whose fastest axis is the given one, and makes a copy of in where its rows are
 * not consecutive in the same order. The arrays are not empty. */
MUST_CHECK enum err be_rows_begin(struct be_rows *r, const struct exec *x, int axis);
/* After the work that reads the rows is encoded. */
MUST_CHECK enum err be_rows_end(struct be_rows *r, struct strm *s);
