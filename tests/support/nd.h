/* Arrays with awkward layouts and known contents, and numbers of any dtype on the host, for tests
 * that run single ops on the GPU. */
#pragma once

#include "graph/array.h"
#include "support/testing.h"

/* The stream that everything here runs on; made by nd_open, a group setup of cmocka. */
extern struct strm *nd_gpu;
int nd_open(void **state);
/* The same; results stay on the device until they are read, so that dispatches can be counted. */
int nd_open_for_counts(void **state);

/* A test: the validation layer, where it runs, had nothing to say. */
void nd_test_no_validation_messages(void **state);

/* One element: re and im for floating types and complex, i for integers and bool (uint64 as its
 * bits); re is set for all. */
struct num {
    double re, im;
    int64_t i;
};
struct num num_load(enum dtype t, const void *p);
/* Rounds to the dtype. */
void num_store(enum dtype t, void *p, struct num v);

enum nd_layout {
    ND_ROW,
    ND_SHIFTED,   /* row-major, but not at the start of an aligned block */
    ND_PERMUTED,  /* axes in any order in memory */
    ND_SLICED,    /* every other element along every axis */
    ND_REVERSED,  /* some axes run backwards */
    ND_BROADCAST, /* some axes do not move */
    ND_LAYOUTS
};

struct nd {
    struct arr *arr; /* a view that is not evaluated yet */
    enum dtype dtype;
    struct shp shape;
    int64_t strides[SHP_MAX], offset;
    char *bytes; /* what the view looks at, n elements */
    size_t n;
};

/* Random contents: small integers for integer types, [-2, 2) for floating ones. */
void nd_make(struct nd *a, struct rng *r, enum dtype t, const struct shp *shape,
             enum nd_layout layout);
/* The element at row-major position n; the address of it, to be changed before nd_view. */
struct num nd_get(const struct nd *a, size_t n);
void *nd_at(const struct nd *a, size_t n);
/* Makes a->arr from the bytes as they are now; nd_make has done so once. */
void nd_view(struct nd *a);
void nd_free(struct nd *a);

/* A random shape of at most max_ndim dimensions and about max_size elements. */
void nd_random_shape(struct shp *shape, struct rng *r, int max_ndim, size_t max_size);
/* Row-major position to coordinates, and back over another shape. */
void nd_unravel(int32_t *at, const struct shp *shape, size_t n);

/* Evaluates out on its stream, fails the test if that used no dispatch, and gives the host copy of
 * an array that must be row-major. */
const void *nd_run(struct arr *out);

/* Fails unless got is want within the precision of t; want is not rounded to t. scale: magnitude
 * that the relative error refers to (0: that of want). */
void nd_check(enum dtype t, struct num got, struct num want, double scale, const char *what);
