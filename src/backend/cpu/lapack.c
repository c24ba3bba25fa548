#include "backend/cpu/lapack.h"

#include <complex.h>
#include <float.h>

#include "base/mem.h"

/* Fortran's names and calls: everything by address, the lengths of texts behind the rest. */
#define CHARS const char *
#define INTS const blasint *
#define LENGTH size_t

typedef blasint (*routine_fn)(struct lapack *c);

#define REAL_ROUTINES(p, T)                                                                        \
    void p##potrf_(CHARS, INTS, T *, INTS, blasint *, LENGTH);                                     \
    void p##trtri_(CHARS, CHARS, INTS, T *, INTS, blasint *, LENGTH, LENGTH);                      \
    void p##getrf_(INTS, INTS, T *, INTS, blasint *, blasint *);                                   \
    void p##getri_(INTS, T *, INTS, INTS, T *, INTS, blasint *);                                   \
    void p##geqrf_(INTS, INTS, T *, INTS, T *, T *, INTS, blasint *);                              \
    void p##orgqr_(INTS, INTS, INTS, T *, INTS, const T *, T *, INTS, blasint *);                  \
    void p##syevd_(CHARS, CHARS, INTS, T *, INTS, T *, T *, INTS, blasint *, INTS, blasint *,      \
                   LENGTH, LENGTH);                                                                \
    void p##geev_(CHARS, CHARS, INTS, T *, INTS, T *, T *, T *, INTS, T *, INTS, T *, INTS,        \
                  blasint *, LENGTH, LENGTH);                                                      \
    void p##gesdd_(CHARS, INTS, INTS, T *, INTS, T *, T *, INTS, T *, INTS, T *, INTS, blasint *,  \
                   blasint *, LENGTH);                                                             \
                                                                                                   \
    static blasint potrf_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##potrf_(&c->uplo, &c->n, c->a, &c->n, &info, 1);                                         \
        return info;                                                                               \
    }                                                                                              \
    static blasint trtri_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##trtri_(&c->uplo, "N", &c->n, c->a, &c->n, &info, 1, 1);                                 \
        return info;                                                                               \
    }                                                                                              \
    static blasint getrf_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##getrf_(&c->m, &c->n, c->a, &c->m, c->pivots, &info);                                    \
        return info;                                                                               \
    }                                                                                              \
    static blasint getri_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##getri_(&c->n, c->a, &c->n, c->pivots, c->work, &c->lwork, &info);                       \
        return info;                                                                               \
    }                                                                                              \
    static blasint geqrf_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##geqrf_(&c->m, &c->n, c->a, &c->m, c->values, c->work, &c->lwork, &info);                \
        return info;                                                                               \
    }                                                                                              \
    static blasint orgqr_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0, k = MIN(c->m, c->n);                                                     \
        p##orgqr_(&c->m, &k, &k, c->a, &c->m, c->values, c->work, &c->lwork, &info);               \
        return info;                                                                               \
    }                                                                                              \
    static blasint syevd_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##syevd_(c->vectors ? "V" : "N", &c->uplo, &c->n, c->a, &c->n, c->values, c->work,        \
                  &c->lwork, c->iwork, &c->liwork, &info, 1, 1);                                   \
        return info;                                                                               \
    }                                                                                              \
    static blasint geev_##p(struct lapack *c)                                                      \
    {                                                                                              \
        blasint info = 0, none = 1;                                                                \
        T *re = c->values;                                                                         \
        p##geev_(c->vectors ? "V" : "N", "N", &c->n, c->a, &c->n, re, re ? re + c->n : NULL,       \
                 c->left, &c->n, NULL, &none, c->work, &c->lwork, &info, 1, 1);                    \
        return info;                                                                               \
    }                                                                                              \
    static blasint gesdd_##p(struct lapack *c)                                                     \
    {                                                                                              \
        blasint info = 0;                                                                          \
        p##gesdd_(c->vectors ? "A" : "N", &c->m, &c->n, c->a, &c->m, c->values, c->left, &c->m,    \
                  c->right, &c->n, c->work, &c->lwork, c->iwork, &info, 1);                        \
        return info;                                                                               \
    }
REAL_ROUTINES(s, float)
REAL_ROUTINES(d, double)

typedef float _Complex c64;

void cheevd_(CHARS, CHARS, INTS, c64 *, INTS, float *, c64 *, INTS, float *, INTS, blasint *, INTS,
             blasint *, LENGTH, LENGTH);
void cgeev_(CHARS, CHARS, INTS, c64 *, INTS, c64 *, c64 *, INTS, c64 *, INTS, c64 *, INTS, float *,
            blasint *, LENGTH, LENGTH);
void cgesdd_(CHARS, INTS, INTS, c64 *, INTS, float *, c64 *, INTS, c64 *, INTS, c64 *, INTS,
             float *, blasint *, blasint *, LENGTH);

static blasint syevd_c(struct lapack *c)
{
    blasint info = 0;

    cheevd_(c->vectors ? "V" : "N", &c->uplo, &c->n, c->a, &c->n, c->values, c->work, &c->lwork,
            c->rwork, &c->lrwork, c->iwork, &c->liwork, &info, 1, 1);
    return info;
}

static blasint geev_c(struct lapack *c)
{
    blasint info = 0, none = 1;

    cgeev_(c->vectors ? "V" : "N", "N", &c->n, c->a, &c->n, c->values, c->left, &c->n, NULL, &none,
           c->work, &c->lwork, c->rwork, &info, 1, 1);
    return info;
}

static blasint gesdd_c(struct lapack *c)
{
    blasint info = 0;

    cgesdd_(c->vectors ? "A" : "N", &c->m, &c->n, c->a, &c->m, c->values, c->left, &c->m, c->right,
            &c->n, c->work, &c->lwork, c->rwork, c->iwork, &info, 1);
    return info;
}

#define ROW(routine)                                                                               \
    {                                                                                              \
        routine##_s, routine##_d, NULL                                                             \
    }
#define ROW_COMPLEX(routine)                                                                       \
    {                                                                                              \
        routine##_s, routine##_d, routine##_c                                                      \
    }
static const routine_fn routines[LAPACK_COUNT][3] = {
    [LAPACK_POTRF] = ROW(potrf),         [LAPACK_TRTRI] = ROW(trtri),
    [LAPACK_GETRF] = ROW(getrf),         [LAPACK_GETRI] = ROW(getri),
    [LAPACK_GEQRF] = ROW(geqrf),         [LAPACK_ORGQR] = ROW(orgqr),
    [LAPACK_SYEVD] = ROW_COMPLEX(syevd), [LAPACK_GEEV] = ROW_COMPLEX(geev),
    [LAPACK_GESDD] = ROW_COMPLEX(gesdd),
};

blasint lapack_run(struct lapack *c, enum lapack_routine r, enum dtype t)
{
    return routines[r][t == DT_FLOAT64 ? 1 : t == DT_COMPLEX64 ? 2 : 0](c);
}

/* ---- scratch ---- */

static double first_number(const void *work, enum dtype t)
{
    return t == DT_FLOAT64 ? *(const double *)work : (double)*(const float *)work;
}

static void raise(blasint *size, double wanted)
{
    /* A size in float32 may have been rounded down. */
    double rounded_up = wanted * (1 + (double)FLT_EPSILON) + 1;

    *size = MAX(*size, rounded_up < INT32_MAX ? (blasint)rounded_up : INT32_MAX);
}

void lapack_ask(struct lapack *c, enum lapack_routine r, enum dtype t)
{
    double least = MIN(c->m, c->n), most = MAX(c->m, c->n);
    double work[2] = { 0 }, rwork = 0;
    blasint iwork = 0;
    struct lapack query = *c;

    query.work = work;
    query.rwork = &rwork;
    query.iwork = &iwork;
    query.uplo = 'U'; /* either will do */
    query.lwork = query.lrwork = query.liwork = -1;
    lapack_run(&query, r, t);
    raise(&c->lwork, first_number(work, t));
    raise(&c->lrwork, first_number(&rwork, t));
    raise(&c->liwork, iwork);
    /* What is told by the manual only. */
    if (r == LAPACK_GEEV)
        raise(&c->lrwork, 2 * most);
    if (r == LAPACK_GESDD) {
        raise(&c->liwork, 8 * least);
        raise(&c->lrwork,
              c->vectors ? least * MAX(5 * least + 7, 2 * most + 2 * least + 1) : 7 * least);
    }
}

enum err lapack_alloc(struct lapack *c, enum dtype t)
{
    size_t item = dt_size(t);

    c->work = mem_alloc_aligned((size_t)c->lwork * item);
    c->iwork = mem_alloc_aligned((size_t)c->liwork * sizeof *c->iwork);
    if (t == DT_COMPLEX64)
        c->rwork = mem_alloc_aligned((size_t)c->lrwork * sizeof(float));
    return c->work && c->iwork && (c->rwork || t != DT_COMPLEX64) ? ERR_OK : ERR_NO_MEMORY;
}

void lapack_free(struct lapack *c)
{
    mem_free(c->work);
    mem_free(c->iwork);
    mem_free(c->rwork);
}
