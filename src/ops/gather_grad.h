/* Cotangents of products of matrices that indices choose, packed ones or not. Private to ops. */
#pragma once

#include "graph/op_call.h"
#include "ops/ops.h"

/* A product: matrix left[i] of a times matrix right[i] of another array is matrix i of the result,
 * whose cotangent is t. All borrowed. */
struct chosen {
    struct arr *a, *t, *left, *right;
    struct strm *strm;
};

/* t as a list of matrices, and their numbers in the shape of the indices: what another product
 * chooses from. */
MUST_CHECK enum err chosen_results(struct arr **t, struct arr **numbers, const struct chosen *c);
/* The cotangent of a from products, one for each i, that are a's part of matrix i. */
MUST_CHECK enum err chosen_sum(struct arr **out, struct arr *products, const struct chosen *c);
/* The cotangent of the other factor as a list of n matrices. */
MUST_CHECK enum err chosen_factor(struct arr **out, int32_t n, const struct chosen *c);
/* How many matrices an array has. */
MUST_CHECK enum err chosen_count(int32_t *out, const struct arr *a);
