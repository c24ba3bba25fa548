/* Convolutions as products of matrices, decided once for every backend.
 *
 * Of each group, out (positions x channels) = unfolded input (positions x k) times weights (k x
 * channels). A row of the unfolded input is what one position reads: for each tap of the kernel the
 * channels of the group, or zeros where it reaches outside. Nothing is moved here. */
#pragma once

#include "backend/backend.h"

#define CONV_PLAN_AXES 3

/* A spatial axis. Tap k of output o is at o * stride + start + k * step of the dilated input. */
struct conv_axis {
    int64_t in, out, kernel;
    int64_t stride, start, step;
    int64_t dilation; /* of the input: all but its multiples are zeros */
    int64_t x_stride; /* of the input in memory, in elements */
};

struct conv_plan {
    int64_t n, x_stride;                   /* images, and elements from one to the next */
    struct conv_axis axis[CONV_PLAN_AXES]; /* missing ones first, with a size of 1 */
    int64_t groups;
    int64_t c, o;    /* channels of one group */
    int64_t taps, k; /* of the kernel; taps * c, 0 where there is no input */
    int64_t m;       /* positions of the output */
};

/* The input with neighbouring channels and row-major weights: what was given or copies of it, which
 * are encoded; all of one dtype. */
struct conv_inputs {
    struct arr *in[2];
    struct arr *copies[2]; /* owned */
};
MUST_CHECK enum err conv_inputs_init(struct conv_inputs *c, const struct exec *x, enum dtype t);
/* In any case, after the last use, with the status err so far: keeps the copies alive for the work
 * that is encoded and drops them. Returns err, or what failed here. */
MUST_CHECK enum err conv_inputs_end(struct conv_inputs *c, struct strm *s, enum err err);

void conv_plan_init(struct conv_plan *p, const struct exec *x, const struct conv_inputs *in);
