/* What the backends share of rotary positions. */
#pragma once

#include "graph/array.h"
#include "graph/op.h"

/* The angle per position of every pair: base^(-i / n), i < n, rounded from double. */
void rope_inv_freqs(float *dst, float base, size_t n);

/* x as rows of D elements: [B, heads, T] with all axes between the first and the last two as heads.
 */
struct rope_rows {
    int32_t batch, length, size; /* B, T, D */
    size_t heads;                /* of a batch */
    struct nest head;            /* over the heads of one batch of x; at least one dimension */
    int64_t batch_stride, position_stride, stride;
};
void rope_rows_of(struct rope_rows *r, const struct arr *x);
