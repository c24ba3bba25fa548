/* Packed numbers on the CPU (docs/runtime.md, Quantized matrices). */
#pragma once

#include "backend/cpu/cpu.h"

/* A dense packed matrix. Rows are multiples of group_size long. */
struct cpu_packed {
    struct quant_params q;
    enum dtype dtype;            /* of scales and biases; of what is computed in the fp modes */
    const unsigned char *w;      /* rows of whole words */
    const void *scales, *biases; /* biases NULL in the fp modes */
    int64_t cols;                /* numbers in a row */
};

static inline int64_t cpu_packed_row_bytes(const struct cpu_packed *a)
{
    return a->cols * a->q.bits / 8;
}

/* The scale that a byte stands for. */
float cpu_scale_decode(uint8_t v, enum quant_mode mode);

/* Writes the packed integers of n neighbouring numbers as floats, or the numbers of the fp modes
 * without their scale. The first number lies at the start of a group, n is a multiple of one. */
void cpu_unpack(float *dst, const struct quant_params *q, const unsigned char *w, int64_t n);

/* n scales from number `first` on, and biases where there are some, as float32. */
void cpu_scales(float *scales, float *biases, const struct cpu_packed *a, int64_t first, size_t n);

/* scale * q + bias in float32 for columns [first, first + n) of a row, both whole groups. */
void cpu_expand(float *dst, const struct cpu_packed *a, int64_t row, int64_t first, int64_t n);
