/* Cross products and determinants: differences of products, or for larger matrices the diagonal of
 * an LU factorization. */
#include <math.h>

#include "ops/build.h"
#include "ops/linalg.h"

/* f[0] * f[1] - f[2] * f[3]. A product with a missing factor is zero; like is of the result's shape
 * and dtype. */
static enum err difference(struct arr **out, struct arr *const f[4], struct arr *like,
                           struct strm *s)
{
    struct arr *p[2] = { NULL, NULL };
    enum err err = ERR_OK;

    for (int i = 0; i < 2; i++)
        if (f[2 * i] && f[2 * i + 1])
            TRY(ops_binary(&p[i], OP_MULTIPLY, f[2 * i], f[2 * i + 1], s));
    if (p[0] && p[1])
        err = ops_binary(out, OP_SUBTRACT, p[0], p[1], s);
    else if (p[1])
        err = ops_unary(out, OP_NEGATIVE, p[1], s);
    else if (p[0])
        err = ops_same(out, p[0]);
    else
        err = ops_fill_like(out, like, 0, dtype_of(like), s);
out:
    arr_unref_all(p, 2);
    return err;
}

/* ---- cross products ---- */

static enum err check_cross_axis(int32_t *size, const struct arr *a, int axis)
{
    enum err err;
    int at;

    TRY(shp_axis(&at, axis, a->ndim, "linalg::cross"));
    *size = a->shape[at];
    if (*size < 2 || *size > 3)
        err = err_set(ERR_ARG, "[linalg::cross] The specified axis must have size 2 or 3.");
out:
    return err;
}

/* The common shape of a and b but for the axis, which is put in its place there. */
static enum err cross_shape(struct shp *out, int *axis, struct arr *a, struct arr *b)
{
    struct shp sa, sb;
    enum err err;

    arr_shape(&sa, a);
    arr_shape(&sb, b);
    sa.d[*axis < 0 ? *axis + sa.ndim : *axis] = 3;
    sb.d[*axis < 0 ? *axis + sb.ndim : *axis] = 3;
    TRY(shp_broadcast(out, &sa, &sb, "broadcast_shapes"));
    *axis += *axis < 0 ? out->ndim : 0;
out:
    return err;
}

/* The two or three components of a, broadcast to the shape. */
static enum err components(struct arr *part[3], struct arr *a, struct shp shape, int axis,
                           struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_broadcast_to(&x, a, shp_ints(&shape), s));
    err = ops_split(part, x, shape.d[axis], axis, s);
out:
    arr_unref(&x);
    return err;
}

enum err ops_cross(struct arr **out, struct arr *a, struct arr *b, int axis, struct strm *s)
{
    struct arr *in[2] = { a, b }, *p[2][3] = { { NULL } }, *c[3] = { NULL, NULL, NULL };
    int32_t size[2] = { 0, 0 };
    struct shp shape;
    enum err err;

    for (int i = 0; i < 2; i++)
        TRY(check_cross_axis(&size[i], in[i], axis));
    TRY(cross_shape(&shape, &axis, a, b));
    for (int i = 0; i < 2; i++) {
        struct arr *x = NULL;
        TRY(ops_astype(&x, in[i], dt_promote(dtype_of(a), dtype_of(b)), s));
        shape.d[axis] = size[i];
        err = components(p[i], x, shape, axis, s);
        arr_unref(&x);
        if (err)
            goto out;
    }
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        struct arr *const f[] = { p[0][j], p[1][k], p[0][k], p[1][j] };
        TRY(difference(&c[i], f, p[0][0], s));
    }
    err = ops_concatenate(out, (struct arrs){ c, 3 }, axis, s);
out:
    arr_unref_all(p[0], 3);
    arr_unref_all(p[1], 3);
    arr_unref_all(c, 3);
    return err;
}

/* ---- determinants ---- */

/* Every matrix's element in row i and column j. */
static enum err element(struct arr **out, struct arr *a, int i, int j, struct strm *s)
{
    const struct ints last = { (int32_t[]){ -2, -1 }, 2 };
    struct arr *x = NULL;
    enum err err;

    TRY(ops_slice_axis(&x, a, a->ndim - 2, (int32_t[]){ i, i + 1 }, s));
    STEP(x, ops_slice_axis(&next, x, a->ndim - 1, (int32_t[]){ j, j + 1 }, s));
    err = ops_squeeze(out, x, last, s);
out:
    arr_unref(&x);
    return err;
}

/* The determinant of two rows and two columns. */
static enum err minor(struct arr **out, struct arr *a, const int row[2], const int col[2],
                      struct strm *s)
{
    struct arr *f[4] = { NULL, NULL, NULL, NULL };
    enum err err;

    for (int i = 0; i < 4; i++)
        TRY(element(&f[i], a, row[i % 2], col[i % 2 ^ i / 2], s));
    err = difference(out, f, f[0], s);
out:
    arr_unref_all(f, 4);
    return err;
}

/* By the first row of 3 x 3. */
static enum err by_minors(struct arr **out, struct arr *a, struct strm *s)
{
    static const int rest[3][2] = { { 1, 2 }, { 0, 2 }, { 0, 1 } };
    static const enum op_id join[3] = { OP_NONE, OP_SUBTRACT, OP_ADD };
    struct arr *sum = NULL, *x = NULL, *m = NULL;
    enum err err = ERR_OK;

    for (int j = 0; j < 3; j++) {
        STEP(x, element(&next, a, 0, j, s));
        STEP(m, minor(&next, a, (int[]){ 1, 2 }, rest[j], s));
        STEP(x, ops_binary(&next, OP_MULTIPLY, x, m, s));
        if (j)
            STEP(sum, ops_binary(&next, join[j], sum, x, s));
        else
            arr_move(&sum, &x);
    }
    arr_move(out, &sum);
out:
    arr_unref(&sum);
    arr_unref(&x);
    arr_unref(&m);
    return err;
}

#define SMALL 3
static enum err small_det(struct arr **out, struct arr *a, struct strm *s)
{
    switch (a->shape[a->ndim - 1]) {
    case 0: /* the empty product */
        return ops_fill(out, (struct ints){ a->shape, (size_t)a->ndim - 2 }, 1, dtype_of(a), s);
    case 1:
        return element(out, a, 0, 0, s);
    case 2:
        return minor(out, a, (int[]){ 0, 1 }, (int[]){ 0, 1 }, s);
    default:
        return by_minors(out, a, s);
    }
}

/* -1, 1 or 0, and the logarithm of the absolute value. */
static enum err small_slogdet(struct arr *outs[2], struct arr *a, struct strm *s)
{
    struct arr *det = NULL, *x = NULL, *sign = NULL;
    enum err err;

    TRY(small_det(&det, a, s));
    TRY(ops_unary(&sign, OP_SIGN, det, s));
    TRY(ops_unary(&x, OP_ABS, det, s));
    STEP(x, ops_unary(&next, OP_LOG, x, s));
    arr_move(&outs[0], &sign);
    arr_move(&outs[1], &x);
out:
    arr_unref(&det);
    arr_unref(&x);
    arr_unref(&sign);
    return err;
}

static const struct ops_axes last_axis = { { (int32_t[]){ -1 }, 1 }, false };

/* The number of elements of the last axis for which op says true of a and b, as int32. */
static enum err count(struct arr **out, enum op_id op, struct arr *a, struct arr *b, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_binary(&x, op, a, b, s));
    STEP(x, ops_reduce(&next, REDUCE_SUM, x, &last_axis, s));
    err = ops_astype(out, x, DT_INT32, s);
out:
    arr_unref(&x);
    return err;
}

/* 1 where n is even, else -1. */
static enum err sign_of_count(struct arr **out, struct arr *n, enum dtype t, struct strm *s)
{
    struct arr *two = NULL, *one = NULL, *x = NULL;
    enum err err;

    TRY(arr_new_number(&two, 2, DT_INT32));
    TRY(arr_new_number(&one, 1, DT_INT32));
    TRY(ops_binary(&x, OP_REMAINDER, n, two, s));
    STEP(x, ops_binary(&next, OP_MULTIPLY, two, x, s));
    STEP(x, ops_binary(&next, OP_SUBTRACT, one, x, s));
    err = ops_astype(out, x, t, s);
out:
    arr_unref(&two);
    arr_unref(&one);
    arr_unref(&x);
    return err;
}

/* x, or a number where the condition holds. */
static enum err unless(struct arr **x, struct arr *condition, double number, struct strm *s)
{
    struct arr *v = NULL;
    enum err err;

    TRY(arr_new_number(&v, number, dtype_of(*x)));
    STEP(*x, ops_where(&next, condition, v, *x, s));
out:
    arr_unref(&v);
    return err;
}

/* From the diagonal of U, and how often rows changed places: where a pivot is not its own row. */
static enum err slogdet_of_lu(struct arr *outs[2], struct arr *diag, struct arr *swaps,
                              struct strm *s)
{
    enum dtype t = dtype_of(diag);
    struct arr *sign = NULL, *size = NULL, *zero = NULL, *is_zero = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, t));
    TRY(count(&sign, OP_LESS, diag, zero, s));
    STEP(sign, ops_binary(&next, OP_ADD, swaps, sign, s));
    STEP(sign, sign_of_count(&next, sign, t, s));
    TRY(ops_unary(&size, OP_ABS, diag, s));
    STEP(size, ops_unary(&next, OP_LOG, size, s));
    STEP(size, ops_reduce(&next, REDUCE_SUM, size, &last_axis, s));
    TRY(ops_binary(&is_zero, OP_EQUAL, diag, zero, s));
    STEP(is_zero, ops_reduce(&next, REDUCE_OR, is_zero, &last_axis, s));
    TRY(unless(&sign, is_zero, 0, s));
    TRY(unless(&size, is_zero, -INFINITY, s));
    arr_move(&outs[0], &sign);
    arr_move(&outs[1], &size);
out:
    arr_unref(&sign);
    arr_unref(&size);
    arr_unref(&zero);
    arr_unref(&is_zero);
    return err;
}

static enum err slogdet(struct arr *outs[2], struct arr *a, struct strm *s)
{
    struct arr *lu[2] = { NULL, NULL }, *row = NULL, *at = NULL;
    int32_t n = a->shape[a->ndim - 1];
    const struct ints last = { (int32_t[]){ -1 }, 1 };
    enum err err;

    if (n <= SMALL)
        return small_slogdet(outs, a, s);
    TRY(ops_lu_factor(lu, a, s));
    TRY(ops_arange(&row, &(struct arange_params){ 0, n, 1 }, DT_UINT32, s));
    STEP(lu[1], count(&next, OP_NOT_EQUAL, lu[1], row, s));
    /* The diagonal: of row i the element i. */
    TRY(ops_expand_dims(&at, row, last, s));
    while (at->ndim < a->ndim)
        STEP(at, ops_expand_dims(&next, at, (struct ints){ (int32_t[]){ 0 }, 1 }, s));
    STEP(lu[0], ops_take_along_axis(&next, lu[0], at, -1, s));
    STEP(lu[0], ops_squeeze(&next, lu[0], last, s));
    err = slogdet_of_lu(outs, lu[0], lu[1], s);
out:
    arr_unref_all(lu, 2);
    arr_unref(&row);
    arr_unref(&at);
    return err;
}

/* The matrices as floats. */
static enum err operand(struct arr **out, struct arr *a, const char *op, struct strm *s)
{
    const struct ops_matrices want = { op, MATRICES_CAST, "Only defined for" };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_astype(out, a, dt_at_least_float(dtype_of(a)), s);
}

enum err ops_slogdet(struct arr *outs[2], struct arr *a, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(operand(&x, a, "slogdet", s));
    err = slogdet(outs, x, s);
out:
    arr_unref(&x);
    return err;
}

enum err ops_det(struct arr **out, struct arr *a, struct strm *s)
{
    struct arr *x = NULL, *part[2] = { NULL, NULL };
    enum err err;

    TRY(operand(&x, a, "det", s));
    if (x->shape[x->ndim - 1] <= SMALL) {
        err = small_det(out, x, s);
        goto out;
    }
    TRY(slogdet(part, x, s));
    STEP(part[1], ops_unary(&next, OP_EXP, part[1], s));
    err = ops_binary(out, OP_MULTIPLY, part[0], part[1], s);
out:
    arr_unref(&x);
    arr_unref_all(part, 2);
    return err;
}
