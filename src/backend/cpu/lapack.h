/* LAPACK, which OpenBLAS contains: the routines that linear algebra is made of, by type. Matrices
 * are dense and by columns. */
#pragma once

#include <cblas.h>

#include "base/err.h"
#include "graph/dtype.h"

enum lapack_routine {
    LAPACK_POTRF, /* a symmetric, positive definite: its factor, in the triangle uplo */
    LAPACK_TRTRI, /* the inverse of a triangle */
    LAPACK_GETRF, /* LU of a, with pivots */
    LAPACK_GETRI, /* from there to the inverse */
    LAPACK_GEQRF, /* QR of a: reflectors, their factors in values */
    LAPACK_ORGQR, /* from there to the first min(m, n) columns of Q */
    LAPACK_SYEVD, /* a symmetric or Hermitian: values, and with vectors these in a */
    LAPACK_GEEV,  /* values (of real matrices: real parts, then imaginary ones), left vectors */
    LAPACK_GESDD, /* values, and with vectors all of U in left, V^H in right */
    LAPACK_COUNT
};

struct lapack {
    blasint m, n; /* rows and columns */
    char uplo;    /* 'U' or 'L': which triangle is read */
    bool vectors; /* as well as values */
    void *a;      /* m x n; overwritten */
    void *values; /* in the real type, unless GEEV says otherwise */
    void *left, *right;
    blasint *pivots;
    /* scratch, by lapack_ask and lapack_alloc; sizes in elements */
    void *work, *rwork;
    blasint *iwork;
    blasint lwork, lrwork, liwork;
};

/* Raises the sizes of scratch to what the routine wants for m, n and vectors. */
void lapack_ask(struct lapack *c, enum lapack_routine r, enum dtype t);
/* Allocates scratch of these sizes; lapack_free also after a failure. */
MUST_CHECK enum err lapack_alloc(struct lapack *c, enum dtype t);
void lapack_free(struct lapack *c);

/* 0, or LAPACK's info: positive where there is no result, negative for a bad argument, such as a
 * NaN. t: float32, float64; the last three routines have complex64, too. m and n are not 0. */
blasint lapack_run(struct lapack *c, enum lapack_routine r, enum dtype t);
