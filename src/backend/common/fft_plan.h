/* Fourier transforms as the backends carry them out: one axis after the other, each by factors of
 * its size. */
#pragma once

#include "backend/backend.h"

enum fft_kind {
    FFT_COMPLEX,
    FFT_TO_HALF,   /* real numbers become the first half of their spectrum */
    FFT_FROM_HALF, /* and back */
};

struct fft_axis {
    int axis;
    enum fft_kind kind;
    size_t n; /* numbers that are transformed, all of them */
};

/* The axes in their order: what is real comes first, or last on the way back. */
struct fft_plan {
    int n;
    bool inverse; /* each axis then divides by its n */
    struct fft_axis d[SHP_MAX];
};
void fft_plan_init(struct fft_plan *p, const struct exec *x);

/* n as a product of allowed factors, those that are listed first as often as they fit; allowed ends
 * with 0. Returns how many there are, 0 if n is no such product or 1. */
#define FFT_FACTORS 64
int fft_factors(uint32_t out[FFT_FACTORS], size_t n, const uint8_t *allowed);

/* The least product of 2, 3 and 5 that is not below n. */
size_t fft_smooth(size_t n);
