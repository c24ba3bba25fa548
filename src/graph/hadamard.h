/* Hadamard matrices: of 1, 12, 20 or 28 rows, times (Kronecker) the one of a power of two. */
#pragma once

#include "base/common.h"

#define HADAMARD_BASE_MAX 28
#define HADAMARD_LOG2_MAX 26

struct hadamard_size {
    int32_t base; /* 1, 12, 20 or 28 */
    int32_t log2; /* n = base << log2 */
};

/* False if there is no such matrix of n rows. */
bool hadamard_size(struct hadamard_size *out, int32_t n);

/* The matrix of a base: bit q of row j is set where it is 1, else it is -1. */
const uint32_t *hadamard_rows(int32_t base);
