/* Norms of vectors and matrices, made of other ops; the spectral ones of singular values. */
#include <math.h>

#include "ops/build.h"

/* Roots of the sums of squares. */
static enum err root_of_squares(struct arr **out, struct arr *a, const struct ops_axes *x,
                                struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    if (a->dtype == DT_COMPLEX64) {
        TRY(ops_unary(&v, OP_ABS, a, s));
        STEP(v, ops_binary(&next, OP_MULTIPLY, v, v, s));
    } else {
        TRY(ops_unary(&v, OP_SQUARE, a, s));
    }
    STEP(v, ops_reduce(&next, REDUCE_SUM, v, x, s));
    err = ops_unary(out, OP_SQRT, v, s);
out:
    arr_unref(&v);
    return err;
}

/* A reduction of absolute values, as floats. */
static enum err of_sizes(struct arr **out, enum reduce_kind kind, struct arr *a,
                         const struct ops_axes *x, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(ops_unary(&v, OP_ABS, a, s));
    STEP(v, ops_reduce(&next, kind, v, x, s));
    err = ops_astype(out, v, dt_at_least_float(dtype_of(a)), s);
out:
    arr_unref(&v);
    return err;
}

static enum err count_nonzero(struct arr **out, struct arr *a, const struct ops_axes *x,
                              struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, 0, dtype_of(a)));
    STEP(v, ops_binary(&next, OP_NOT_EQUAL, a, v, s));
    STEP(v, ops_reduce(&next, REDUCE_SUM, v, x, s));
    err = ops_astype(out, v, dt_at_least_float(dtype_of(a)), s);
out:
    arr_unref(&v);
    return err;
}

/* The sum of powers, to one over the power. */
static enum err power_norm(struct arr **out, struct arr *a, double ord, const struct ops_axes *x,
                           struct strm *s)
{
    enum dtype t = dt_at_least_float(dtype_of(a));
    struct arr *v = NULL, *p = NULL;
    enum err err;

    TRY(ops_unary(&v, OP_ABS, a, s));
    TRY(arr_new_number(&p, ord, t));
    STEP(v, ops_binary(&next, OP_POWER, v, p, s));
    STEP(v, ops_reduce(&next, REDUCE_SUM, v, x, s));
    STEP(p, arr_new_number(&next, 1 / ord, t));
    err = ops_binary(out, OP_POWER, v, p, s);
out:
    arr_unref(&v);
    arr_unref(&p);
    return err;
}

static enum err vector_norm(struct arr **out, struct arr *a, double ord, const struct ops_axes *x,
                            struct strm *s)
{
    if (ord == 0)
        return count_nonzero(out, a, x, s);
    if (ord == 1)
        return of_sizes(out, REDUCE_SUM, a, x, s);
    if (ord == 2)
        return root_of_squares(out, a, x, s);
    if (isinf(ord))
        return of_sizes(out, ord > 0 ? REDUCE_MAX : REDUCE_MIN, a, x, s);
    return power_norm(out, a, ord, x, s);
}

/* ---- of matrices ---- */

/* Which axes the rows and the columns are; perhaps out of range. */
struct matrix_axes {
    int row, col;
    bool keepdims;
};

static struct matrix_axes matrix_axes(const struct arr *a, const struct ops_axes *x)
{
    int row = x->axes.v[0], col = x->axes.v[1];

    return (struct matrix_axes){ row < 0 ? row + a->ndim : row, col < 0 ? col + a->ndim : col,
                                 x->keepdims };
}

/* The largest or smallest sum of absolute values in a column. */
static enum err extreme_sum(struct arr **out, struct arr *a, bool is_max,
                            const struct matrix_axes *m, struct strm *s)
{
    /* The axis before it may be gone. */
    int col = m->col - (!m->keepdims && m->col > m->row);
    struct arr *v = NULL;
    enum err err;

    TRY(ops_unary(&v, OP_ABS, a, s));
    STEP(v, ops_reduce(&next, REDUCE_SUM, v, &(struct ops_axes){ { &m->row, 1 }, m->keepdims }, s));
    STEP(v, ops_reduce(&next, is_max ? REDUCE_MAX : REDUCE_MIN, v,
                       &(struct ops_axes){ { &col, 1 }, m->keepdims }, s));
    err = ops_astype(out, v, dt_at_least_float(dtype_of(a)), s);
out:
    arr_unref(&v);
    return err;
}

/* A reduction of the singular values. */
static enum err of_singular_values(struct arr **out, enum reduce_kind kind, struct arr *a,
                                   const struct matrix_axes *m, struct strm *s)
{
    const int32_t axes[2] = { MIN(m->row, m->col), MAX(m->row, m->col) };
    const struct ops_axes last = { { (int32_t[]){ -1 }, 1 }, false };
    struct arr *v = NULL;
    enum err err;

    TRY(ops_moveaxis(&v, a, axes[1], -1, s));
    STEP(v, ops_moveaxis(&next, v, axes[0], m->row > m->col ? -1 : -2, s));
    STEP(v, ops_svd(&next, v, false, s));
    STEP(v, ops_reduce(&next, kind, v, &last, s));
    err = m->keepdims ? ops_expand_dims(out, v, (struct ints){ axes, 2 }, s) : ops_same(out, v);
out:
    arr_unref(&v);
    return err;
}

static enum err spectral(struct arr **out, bool is_max, struct arr *a, const struct matrix_axes *m,
                         struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(of_singular_values(&v, is_max ? REDUCE_MAX : REDUCE_MIN, a, m, s));
    err = ops_astype(out, v, dt_at_least_float(dtype_of(a)), s);
out:
    arr_unref(&v);
    return err;
}

static enum err matrix_norm(struct arr **out, struct arr *a, double ord, const struct ops_axes *x,
                            struct strm *s)
{
    const struct matrix_axes m = matrix_axes(a, x), turned = { m.col, m.row, m.keepdims };

    if (fabs(ord) == 1)
        return extreme_sum(out, a, ord > 0, &m, s);
    if (isinf(ord))
        return extreme_sum(out, a, ord > 0, &turned, s);
    if (fabs(ord) == 2)
        return spectral(out, ord > 0, a, &m, s);
    return err_set(ERR_ARG, "[linalg::norm] Invalid ord %g for matrix norm.", ord);
}

/* ---- the choice ---- */

/* No axes mean all of them, in order. */
static struct ops_axes all_named(const struct arr *a, const struct ops_axes *x, int32_t *room)
{
    for (int i = 0; i < a->ndim; i++)
        room[i] = i;
    return x->axes.n == SIZE_MAX ? (struct ops_axes){ { room, (size_t)a->ndim }, x->keepdims } : *x;
}

static enum err too_many_axes(void)
{
    return err_set(ERR_ARG, "[linalg::norm] Received too many axes for norm.");
}

enum err ops_norm(struct arr **out, struct arr *a, double ord, const struct ops_axes *x,
                  struct strm *s)
{
    int32_t room[SHP_MAX];
    struct ops_axes axes = all_named(a, x, room);

    if (axes.axes.n == 1)
        return vector_norm(out, a, ord, &axes, s);
    return axes.axes.n == 2 ? matrix_norm(out, a, ord, &axes, s) : too_many_axes();
}

enum err ops_norm_matrix(struct arr **out, struct arr *a, const char *ord, const struct ops_axes *x,
                         struct strm *s)
{
    int32_t room[SHP_MAX];
    struct ops_axes axes = all_named(a, x, room);

    if (axes.axes.n != 2)
        return err_set(ERR_ARG,
                       "[linalg::norm] Norm '%s' only supported for matrices, but received %zu "
                       "axis/axes.",
                       ord, axes.axes.n);
    struct matrix_axes m = matrix_axes(a, &axes);
    if (strcmp(ord, "f") == 0 || strcmp(ord, "fro") == 0)
        return root_of_squares(out, a, &axes, s);
    if (strcmp(ord, "nuc") == 0)
        return of_singular_values(out, REDUCE_SUM, a, &m, s);
    return err_set(ERR_ARG, "[linalg::norm] Invalid ord value '%s' for matrix norm.", ord);
}

enum err ops_norm_l2(struct arr **out, struct arr *a, const struct ops_axes *x, struct strm *s)
{
    if (x->axes.n != SIZE_MAX && x->axes.n > 2)
        return too_many_axes();
    return root_of_squares(out, a, x, s);
}
