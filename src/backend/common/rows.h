/* Ops along one axis, for kernels that want their rows consecutive. */
#pragma once

#include "backend/backend.h"

/* Rows of `length` consecutive elements, one behind the other, of input and output alike. */
struct be_rows {
    struct arr *in;               /* the op's input, or a copy */
    struct arr *out;              /* the op's output, or what is copied there at the end */
    struct arr *in_own, *out_own; /* owned: dropped by be_rows_end; NULL where there is no need */
    struct arr *target;           /* the op's output, borrowed */
    uint64_t n;
    uint32_t length;
};

/* Gives the op's output row-major storage, as MLX does, and makes a copy of the input where its
 * rows along the axis are not consecutive, likewise room for such rows of the output. The arrays
 * are not empty. */
MUST_CHECK enum err be_rows_begin(struct be_rows *r, const struct exec *x, int axis);
/* After the work on the rows is encoded with status err: brings the result to its place. Returns
 * err, or what failed here. */
MUST_CHECK enum err be_rows_end(struct be_rows *r, struct strm *s, enum err err);
