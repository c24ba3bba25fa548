/* Rows of packed integers times one vector, compiled once per instruction set (qmv_<isa>.c).
 *
 * x lies in the order in which loads of packed words show their codes. Sums are in float32, or, for
 * x that were 16-bit floats, in integers: the x of a group are then 15-bit integers times a power
 * of two, which loses less than their own rounding did. */
#pragma once

#include "core/common.h"

/* Bytes of a row that are read at a time. */
#define CPU_QMV_BLOCK 32

struct cpu_qmv {
    int bits; /* 2, 4 or 8 */
    int64_t group_size, k;
    const unsigned char *w; /* rows of k numbers, one after the other */
    /* k / group_size of each row; the scales times the units of x where x are integers. */
    const float *scales, *biases;
    const void *x;     /* float or int16_t, arranged */
    const float *sums; /* of x over groups */
};

/* out[i] = row i times x. */
typedef void (*cpu_qmv_fn)(float *out, const struct cpu_qmv *v, int64_t rows);
/* Sum of a[i] * b[i]; n is a multiple of 8. */
typedef float (*cpu_dot_fn)(const float *a, const float *b, int64_t n);

struct cpu_qmv_kernels {
    cpu_qmv_fn rows;
    cpu_qmv_fn rows_int; /* x are integers, 4 or 8 bits; NULL: there is none */
    cpu_dot_fn dot;
};
extern const struct cpu_qmv_kernels cpu_qmv_base;
#if defined(__x86_64__)
extern const struct cpu_qmv_kernels cpu_qmv_avx2;
#endif

/* The best set for this processor. Thread-safety: safe. */
const struct cpu_qmv_kernels *cpu_qmv_kernels(void);

/* Numbers of an arranged vector of k: whole blocks, zeros after the end. */
int64_t cpu_qmv_length(int64_t k, int bits);
void cpu_qmv_arrange(float *dst, const float *x, int64_t k, int bits);
/* units: what the integers of a group are to be multiplied by. */
void cpu_qmv_arrange_int(int16_t *dst, float *units, const float *x, const struct cpu_qmv *v);
