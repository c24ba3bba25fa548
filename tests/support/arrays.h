/* Arrays for tests: made from complex doubles in any dtype and layout, read back as such.
 * Everything fails the running test instead of returning an error. */
#pragma once

#include <complex.h>

#include "eval/stream.h"
#include "graph/array.h"
#include "ops/ops.h"
#include "support/testing.h"

/* The same logical array in different strides. */
enum layout {
    LAY_DENSE,
    LAY_TRANSPOSED, /* column-major */
    LAY_STEPPED,    /* every second element of a larger array, at an offset */
    LAY_REVERSED,   /* negative strides */
    LAY_BROADCAST,  /* the first dimension repeats its first entry: other values than given */
    LAY_COUNT
};

/* The CPU stream of the calling thread. */
struct strm *test_stream(void);

/* A dense array of the values converted to t (row-major). */
struct arr *arr_of(const double complex *v, const struct shp *s, enum dtype t);
/* The same in another layout; evaluated. */
struct arr *arr_of_layout(const double complex *v, const struct shp *s, enum dtype t,
                          enum layout layout);

/* Evaluates a and returns its elements in row-major order; free with mem_free. */
double complex *arr_values(struct arr *a);
/* The bytes of the elements in row-major order; free with mem_free. */
void *arr_bytes(struct arr *a);

/* v as an element of type t would hold it. */
double complex rounded_to(double complex v, enum dtype t);

/* Random values that suit a dtype: small integers, or floats in [-4, 4) with few digits. */
double complex random_value(struct rng *r, enum dtype t);
double complex *random_values(struct rng *r, size_t n, enum dtype t);
/* An array of such values; evaluated. */
struct arr *arr_random(struct rng *r, const struct shp *s, enum dtype t, enum layout layout);

/* Relative and absolute tolerance of a dtype's arithmetic. */
double tolerance_of(enum dtype t);

#define SHAPE(...)                                                                                 \
    (&(struct shp){ .ndim = sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t),                  \
                    .d = { __VA_ARGS__ } })
