/* Tables of Fourier transforms on the CPU, and lines that are transformed by them. */
#pragma once

#include "backend/common/fft_plan.h"
#include "backend/cpu/kernels.h"

/* The powers of a root of unity, exp(-2 pi i k / n), as products of two that are exact to double
 * precision. */
struct fft_roots {
    size_t n;
    unsigned shift;
    double *low, *high; /* pairs: k below 2^shift, multiples of it */
};
MUST_CHECK enum err fft_roots_init(struct fft_roots *r, size_t n);
void fft_roots_fini(struct fft_roots *r);
/* k below n */
void fft_root(double out[2], const struct fft_roots *r, size_t k);

/* Transforms n complex numbers, forward. */
struct fft_table {
    size_t n;
    size_t length; /* what the steps transform: n or, where it has large factors, more */
    int n_steps;
    struct cpu_fft_step step[FFT_FACTORS]; /* without data */
    float *roots;                          /* of all steps */
    /* Where length is more than n, the transform is a convolution with a chirp (L. Bluestein): the
     * chirp for each of n numbers, and its spectrum over the length; pairs. */
    float *chirp, *spectrum;
};
MUST_CHECK enum err fft_table_init(struct fft_table *t, size_t n);
void fft_table_fini(struct fft_table *t);

/* `width` lines side by side in two buffers: real parts, then imaginary parts of length * width
 * numbers; number j of line l is at j * width + l. */
struct fft_block {
    float *data, *other; /* they change places */
    size_t width;
    bool is_shared; /* between cores */
};
void fft_table_run(const struct fft_table *t, struct fft_block *b);
