/* What linear algebra on the CPU asks of its matrices. Private to ops. */
#pragma once

#include "ops/ops.h"

enum matrix_types {
    MATRICES_REAL,    /* float32, float64 */
    MATRICES_COMPLEX, /* or complex64 */
    MATRICES_CAST,    /* what can become one of the former */
};

struct ops_matrices {
    const char *op;
    enum matrix_types types;
    const char *square; /* how it is said that they must be square; NULL: they need not */
    const char *called; /* how they are called; NULL: "Arrays" */
};

/* MLX's error for what the op does not take: a GPU stream, a dtype, a shape. */
MUST_CHECK enum err ops_check_matrices(const struct ops_matrices *want, const struct arr *a,
                                       const struct strm *s);
