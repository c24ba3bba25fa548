/* Rows of packed integers times one vector, compiled once per instruction set (qmv_<isa>.c).
 *
 * x lies in the order in which loads of packed words show their codes. Sums are in float32, or, for
 * x that were 16-bit floats, in integers: the x of a group are then 15-bit integers times a power
 * of two, which loses less than their own rounding did. */
#pragma once

#include "base/common.h"

/* Bytes of a row that are read at a time, and by what reads the most. */
#define CPU_QMV_BLOCK 32
#define CPU_QMV_BLOCK_MAX 64

struct cpu_qmv {
    int bits; /* 2, 4 or 8 */
    int64_t group_size, k;
    const unsigned char *w; /* rows of k numbers, one after the other */
    /* k / group_size of each row; the scales times the units of x where x are integers. */
    const float *scales, *biases;
    const void *x;     /* float or int16_t, arranged */
    const float *sums; /* of x over groups */
    /* For rows_half: scales and biases as they are stored, and the units of x. */
    const uint16_t *half_scales, *half_biases;
    bool is_bf16; /* else float16 */
    const float *units;
};

/* out[i] = row i times x. */
typedef void (*cpu_qmv_fn)(float *out, const struct cpu_qmv *v, int64_t rows);
/* Sum of a[i] * b[i]; n is a multiple of 8. */
typedef float (*cpu_dot_fn)(const float *a, const float *b, int64_t n);

struct cpu_qmv_kernels {
    cpu_qmv_fn rows;
    /* x are integers, 4 or 8 bits; NULL: there is none. rows_half goes first. */
    cpu_qmv_fn rows_int, rows_half;
    cpu_dot_fn dot;
};
extern const struct cpu_qmv_kernels cpu_qmv_base;
#if defined(__x86_64__)
extern const struct cpu_qmv_kernels cpu_qmv_avx2, cpu_qmv_avx512;
#elif defined(__aarch64__)
extern const struct cpu_qmv_kernels cpu_qmv_neon;
#endif

/* The sets for this processor, the best one first; NULL after the last. Thread-safety: safe. */
const struct cpu_qmv_kernels *cpu_qmv_set(int i);

static inline const struct cpu_qmv_kernels *cpu_qmv_kernels(void)
{
    return cpu_qmv_set(0);
}

/* Numbers of an arranged vector of k: whole blocks, zeros after the end. */
int64_t cpu_qmv_length(int64_t k, int bits);
void cpu_qmv_arrange(float *dst, const float *x, int64_t k, int bits);
/* For rows_half of the set if there is one, else for rows_int. units: what the integers of a group
 * are to be multiplied by. */
void cpu_qmv_arrange_int(int16_t *dst, float *units, const float *x, const struct cpu_qmv *v,
                         const struct cpu_qmv_kernels *set);
