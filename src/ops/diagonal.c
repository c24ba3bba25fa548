/* Diagonals of matrices: taken out, put in, added up. */
#include "ops/build.h"

/* Two different axes of a, normalised. */
static enum err plane_of(int axis[2], const struct arr *a, const struct ops_plane *p,
                         const char *op)
{
    const int given[2] = { p->axis1, p->axis2 };

    if (a->ndim < 2)
        return err_set(ERR_ARG,
                       "[%s] Array must have at least two dimensions, but got %d dimensions.", op,
                       a->ndim);
    for (int i = 0; i < 2; i++) {
        axis[i] = given[i] < 0 ? given[i] + a->ndim : given[i];
        if (axis[i] < 0 || axis[i] >= a->ndim)
            return err_set(ERR_RANGE, "[%s] Invalid axis%d %d for array with %d dimensions.", op,
                           i + 1, given[i], a->ndim);
    }
    if (axis[0] == axis[1])
        return err_set(ERR_ARG, "[%s] axis1 and axis2 cannot be the same axis", op);
    return ERR_OK;
}

/* The numbers first, first + 1, ..., of which there are n. */
static enum err count_from(struct arr **out, int64_t first, int64_t n, struct strm *s)
{
    struct arange_params range = { (double)first, (double)(first + n), 1 };

    return ops_arange(out, &range, DT_INT32, s);
}

static enum err diagonal_of(struct arr **out, struct arr *a, int offset, const int axis[2],
                            struct strm *s)
{
    struct gather_params p = { .n_axes = 2, .n = a->ndim };
    int64_t first[2] = { MAX(-(int64_t)offset, 0), MAX((int64_t)offset, 0) }, n;
    struct arr *in[3] = { a, NULL, NULL }, *x = NULL;
    enum err err;

    n = MIN(a->shape[axis[0]] - first[0], a->shape[axis[1]] - first[1]);
    for (int i = 0; i < a->ndim; i++)
        p.d[i].size = a->shape[i];
    for (int i = 0; i < 2; i++) {
        p.d[i].axis = axis[i];
        p.d[axis[i]].size = 1;
        /* A diagonal outside of the matrix is empty, wherever it begins. */
        TRY(count_from(&in[1 + i], n > 0 ? first[i] : 0, MAX(n, 0), s));
    }
    TRY(ops_make(&x, OP_GATHER, &p, (struct arrs){ in, 3 }, s));
    STEP(x, ops_squeeze(&next, x, (struct ints){ (int32_t[]){ axis[0] + 1, axis[1] + 1 }, 2 }, s));
    TRY(ops_moveaxis(out, x, 0, -1, s));
out:
    arr_unref_all(in + 1, 2);
    arr_unref(&x);
    return err;
}

enum err ops_diagonal(struct arr **out, struct arr *a, const struct ops_plane *p, struct strm *s)
{
    int axis[2];
    enum err err;

    TRY(plane_of(axis, a, p, "diagonal"));
    TRY(diagonal_of(out, a, p->offset, axis, s));
out:
    return err;
}

enum err ops_trace(struct arr **out, struct arr *a, const struct ops_plane *p, enum dtype t,
                   struct strm *s)
{
    struct ops_axes last = { { &(int32_t){ -1 }, 1 }, false };
    int axis[2];
    struct arr *x = NULL;
    enum err err;

    TRY(plane_of(axis, a, p, "trace"));
    TRY(diagonal_of(&x, a, p->offset, axis, s));
    STEP(x, ops_astype(&next, x, t, s));
    TRY(ops_reduce(out, REDUCE_SUM, x, &last, s));
out:
    arr_unref(&x);
    return err;
}

/* Row i of the matrix has an element of v on the diagonal and zeros elsewhere: v is padded to one
 * element for each row and chosen where the diagonal is. */
static enum err matrix_of(struct arr **out, struct arr *v, int k, struct strm *s)
{
    struct ops_diagonal d = { .k = k };
    struct arr *zero = NULL, *on = NULL, *x = NULL;
    enum err err;

    TRY(ops_dim(&d.n, (int64_t)v->shape[0] + llabs(k), "diag"));
    d.m = d.n;
    int32_t axis = 0, low = k < 0 ? -k : 0, high = k > 0 ? k : 0;
    TRY(arr_new_number(&zero, 0, dtype_of(v)));
    TRY(ops_eye(&on, &d, DT_BOOL, s));
    struct ops_pad pad = { { &axis, 1 }, { &low, 1 }, { &high, 1 }, zero, "constant" };
    TRY(ops_pad(&x, v, &pad, s));
    STEP(x, ops_expand_dims(&next, x, (struct ints){ &(int32_t){ 1 }, 1 }, s));
    TRY(ops_where(out, on, x, zero, s));
out:
    arr_unref(&zero);
    arr_unref(&on);
    arr_unref(&x);
    return err;
}

enum err ops_diag(struct arr **out, struct arr *a, int k, struct strm *s)
{
    if (a->ndim == 1)
        return matrix_of(out, a, k, s);
    if (a->ndim == 2)
        return ops_diagonal(out, a, &(struct ops_plane){ k, 0, 1 }, s);
    return err_set(ERR_ARG, "[diag] array must be 1-D or 2-D, got array with %d dimensions.",
                   a->ndim);
}
