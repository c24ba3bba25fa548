/* Linear algebra that LAPACK does, on the CPU only: factorizations, and what is made of them. */
#include <float.h>

#include "eval/stream.h"
#include "ops/build.h"
#include "ops/linalg.h"
#include "ops/rules.h"
#include "ops/vmap.h"

static int32_t rows_of(const struct arr *a)
{
    return a->shape[a->ndim - 2];
}

static int32_t cols_of(const struct arr *a)
{
    return a->shape[a->ndim - 1];
}

/* ---- what the results are ---- */

static bool is_real(const struct arr *a)
{
    return a->dtype == DT_FLOAT32 || a->dtype == DT_FLOAT64;
}

static bool is_square(const struct arr *a)
{
    return a->ndim >= 2 && rows_of(a) == cols_of(a);
}

static bool is_square_or_complex(const struct arr *a)
{
    return is_square(a) && (is_real(a) || a->dtype == DT_COMPLEX64);
}

static enum dtype real_of(const struct arr *a)
{
    return a->dtype == DT_COMPLEX64 ? DT_FLOAT32 : dtype_of(a);
}

/* Output i: a matrix of this size for each of a's. */
static void infer_matrices(struct infer_call *c, int i, int32_t rows, int32_t cols)
{
    struct shp *shape = &c->out[i].shape;

    c->out[i].dtype = dtype_of(c->in[0]);
    arr_shape(shape, c->in[0]);
    shape->d[shape->ndim - 2] = rows;
    shape->d[shape->ndim - 1] = cols;
}

/* Output i: as many numbers. */
static void infer_vectors(struct infer_call *c, int i, int32_t n, enum dtype t)
{
    infer_matrices(c, i, n, 0);
    c->out[i].dtype = t;
    c->out[i].shape.ndim--;
}

enum err op_infer_square(struct infer_call *c)
{
    FITS(is_square(c->in[0]) && is_real(c->in[0]));
    infer_like(c, c->in[0]);
    return ERR_OK;
}

/* Values of a dtype, then vectors if they are wanted. */
static void infer_values(struct infer_call *c, enum dtype t, bool vectors)
{
    int32_t n = cols_of(c->in[0]);

    infer_vectors(c, 0, n, t);
    if (!vectors)
        return;
    c->n_out = 2;
    infer_matrices(c, 1, n, n);
}

enum err op_infer_eig(struct infer_call *c)
{
    const struct vectors_params *p = c->params;

    FITS(is_square_or_complex(c->in[0]));
    infer_values(c, DT_COMPLEX64, p->vectors);
    if (p->vectors)
        c->out[1].dtype = DT_COMPLEX64;
    return ERR_OK;
}

enum err op_infer_eigh(struct infer_call *c)
{
    FITS(is_square_or_complex(c->in[0]));
    infer_values(c, real_of(c->in[0]), ((const struct eigh_params *)c->params)->vectors);
    return ERR_OK;
}

enum err op_infer_svd(struct infer_call *c)
{
    const struct vectors_params *p = c->params;
    const struct arr *a = c->in[0];

    FITS(a->ndim >= 2 && (is_real(a) || a->dtype == DT_COMPLEX64));
    int32_t m = rows_of(a), n = cols_of(a);
    infer_vectors(c, p->vectors ? 1 : 0, MIN(m, n), real_of(a));
    if (p->vectors) {
        c->n_out = 3;
        infer_matrices(c, 0, m, m);
        infer_matrices(c, 2, n, n);
    }
    return ERR_OK;
}

enum err op_infer_qrf(struct infer_call *c)
{
    const struct arr *a = c->in[0];

    FITS(a->ndim >= 2 && is_real(a));
    int32_t m = rows_of(a), n = cols_of(a), k = MIN(m, n);
    c->n_out = 2;
    infer_matrices(c, 0, m, k);
    infer_matrices(c, 1, k, n);
    return ERR_OK;
}

enum err op_infer_luf(struct infer_call *c)
{
    const struct arr *a = c->in[0];

    FITS(a->ndim >= 2 && is_real(a));
    int32_t m = rows_of(a), n = cols_of(a);
    c->n_out = 3;
    infer_matrices(c, 0, m, n);
    infer_vectors(c, 1, MIN(m, n), DT_UINT32);
    infer_vectors(c, 2, m, DT_UINT32);
    return ERR_OK;
}

/* The batch is one more axis of matrices. */
enum err op_vmap_matrices(struct vmap_call *c)
{
    return vmap_over_fronts(c, c->f.params);
}

/* ---- what they take ---- */

static enum err check_stream(const char *op, const struct strm *s)
{
    if (s->dev.type == DEV_GPU)
        return err_set(ERR_ARG,
                       "[linalg::%s] This op is not yet supported on the GPU. Explicitly pass a "
                       "CPU stream to run it.",
                       op);
    return ERR_OK;
}

enum err ops_check_matrices(const struct ops_matrices *want, const struct arr *a,
                            const struct strm *s)
{
    const char *op = want->op;
    enum err err = check_stream(op, s);

    if (err)
        return err;
    if (want->types != MATRICES_CAST && !is_real(a) &&
        (want->types == MATRICES_REAL || a->dtype != DT_COMPLEX64))
        return err_set(
            ERR_ARG, "[linalg::%s] Arrays must have type %s. Received array with type %s.", op,
            want->types == MATRICES_REAL ? "float32 or float64" : "float32, float64 or complex64",
            dt_name(dtype_of(a)));
    if (want->types == MATRICES_CAST && a->dtype == DT_COMPLEX64)
        return err_set(ERR_ARG, "[linalg::%s] Complex inputs are not supported.", op);
    if (a->ndim < 2)
        return err_set(ERR_ARG,
                       "[linalg::%s] %s must have >= 2 dimensions. Received array with %d "
                       "dimensions.",
                       op, want->called ? want->called : "Arrays", a->ndim);
    if (want->square && !is_square(a))
        return err_set(ERR_ARG, "[linalg::%s] %s square matrices.", op, want->square);
    return ERR_OK;
}

/* ---- factorizations ---- */

enum err ops_cholesky(struct arr **out, struct arr *a, bool upper, struct strm *s)
{
    static const struct ops_matrices want = { "cholesky", MATRICES_REAL,
                                              "Cholesky decomposition is only defined for" };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(out, OP_CHOLESKY, &(struct cholesky_params){ upper }, a, s);
}

static enum err inverse(struct arr **out, struct arr *a, const struct inverse_params *p,
                        struct strm *s)
{
    static const struct ops_matrices want = { "inv", MATRICES_REAL,
                                              "Inverses are only defined for" };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(out, OP_INVERSE, p, a, s);
}

enum err ops_inv(struct arr **out, struct arr *a, struct strm *s)
{
    return inverse(out, a, &(struct inverse_params){ .upper = true }, s);
}

enum err ops_tri_inv(struct arr **out, struct arr *a, bool upper, struct strm *s)
{
    return inverse(out, a, &(struct inverse_params){ .triangular = true, .upper = upper }, s);
}

static const char only_square[] = "Only defined for";

enum err ops_eig(struct arr **outs, struct arr *a, bool vectors, struct strm *s)
{
    const struct ops_matrices want = { vectors ? "eig" : "eigvals", MATRICES_COMPLEX, only_square };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(outs, OP_EIG, &(struct vectors_params){ vectors }, a, s);
}

enum err ops_eigh(struct arr **outs, struct arr *a, const char *uplo, bool vectors, struct strm *s)
{
    const struct ops_matrices want = { vectors ? "eigh" : "eigvalsh", MATRICES_COMPLEX,
                                       only_square };
    const struct eigh_params p = { .upper = uplo[0] != 'L', .vectors = vectors };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(outs, OP_EIGH, &p, a, s);
}

enum err ops_svd(struct arr **outs, struct arr *a, bool vectors, struct strm *s)
{
    static const struct ops_matrices want = { "svd", MATRICES_COMPLEX, .called = "Input array" };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(outs, OP_SVD, &(struct vectors_params){ vectors }, a, s);
}

enum err ops_qr(struct arr *outs[2], struct arr *a, struct strm *s)
{
    static const struct ops_matrices want = { "qr", MATRICES_REAL, NULL };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(outs, OP_QRF, NULL, a, s);
}

/* LU in one matrix, pivots, the order of rows. */
static enum err lu_factors(struct arr *outs[3], struct arr *a, const char *op, struct strm *s)
{
    const struct ops_matrices want = { op, MATRICES_REAL, NULL };
    enum err err = ops_check_matrices(&want, a, s);

    return err ? err : ops_make_one(outs, OP_LUF, NULL, a, s);
}

enum err ops_lu_factor(struct arr *outs[2], struct arr *a, struct strm *s)
{
    struct arr *f[3] = { NULL, NULL, NULL };
    enum err err = lu_factors(f, a, "lu_factor", s);

    if (!err) {
        arr_move(&outs[0], &f[0]);
        arr_move(&outs[1], &f[1]);
    }
    arr_unref_all(f, 3);
    return err;
}

enum err ops_lu(struct arr *outs[3], struct arr *a, struct strm *s)
{
    struct arr *f[3] = { NULL, NULL, NULL }, *l = NULL, *u = NULL, *one = NULL;
    enum err err;

    TRY(lu_factors(f, a, "lu", s));
    int32_t m = rows_of(a), n = cols_of(a), k = MIN(m, n);
    TRY(ops_tril(&l, f[0], -1, s));
    TRY(ops_triu(&u, f[0], 0, s));
    STEP(l, ops_slice_axis(&next, l, a->ndim - 1, (int32_t[]){ 0, k }, s));
    STEP(u, ops_slice_axis(&next, u, a->ndim - 2, (int32_t[]){ 0, k }, s));
    TRY(ops_eye(&one, &(struct ops_diagonal){ m, k, 0 }, dtype_of(a), s));
    STEP(l, ops_binary(&next, OP_ADD, l, one, s));
    arr_move(&outs[0], &f[2]);
    arr_move(&outs[1], &l);
    arr_move(&outs[2], &u);
out:
    arr_unref_all(f, 3);
    arr_unref(&l);
    arr_unref(&u);
    arr_unref(&one);
    return err;
}

/* ---- what is made of them ---- */

static enum err transposed(struct arr **out, struct arr *a, struct strm *s)
{
    return ops_swapaxes(out, a, -1, -2, s);
}

enum err ops_cholesky_inv(struct arr **out, struct arr *a, bool upper, struct strm *s)
{
    static const struct ops_matrices want = { "cholesky_inv", MATRICES_REAL,
                                              "Cholesky inverse is only defined for" };
    struct arr *inv = NULL, *back = NULL;
    enum err err;

    TRY(ops_check_matrices(&want, a, s));
    TRY(ops_tri_inv(&inv, a, upper, s));
    TRY(transposed(&back, inv, s));
    err = upper ? ops_matmul(out, inv, back, s) : ops_matmul(out, back, inv, s);
out:
    arr_unref(&inv);
    arr_unref(&back);
    return err;
}

/* One over the singular values; 0 for those that are zero but for rounding. */
static enum err reciprocals(struct arr **out, struct arr *values, int32_t size, struct strm *s)
{
    enum dtype t = dtype_of(values);
    double eps = t == DT_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
    const struct ops_axes last = { { (int32_t[]){ -1 }, 1 }, true };
    struct arr *bound = NULL, *most = NULL, *zero = NULL, *x = NULL;
    enum err err;

    TRY(arr_new_number(&bound, 10. * size * eps, t));
    TRY(ops_reduce(&most, REDUCE_MAX, values, &last, s));
    STEP(bound, ops_binary(&next, OP_MULTIPLY, bound, most, s));
    STEP(bound, ops_binary(&next, OP_GREATER, values, bound, s));
    TRY(arr_new_number(&zero, 0, t));
    TRY(ops_reciprocal(&x, values, s));
    err = ops_where(out, bound, x, zero, s);
out:
    arr_unref(&bound);
    arr_unref(&most);
    arr_unref(&zero);
    arr_unref(&x);
    return err;
}

static enum err pinv_of_empty(struct arr **out, struct arr *a, struct strm *s)
{
    struct shp shape;

    arr_shape(&shape, a);
    shape.d[shape.ndim - 2] = cols_of(a);
    shape.d[shape.ndim - 1] = rows_of(a);
    return ops_fill(out, shp_ints(&shape), 0, dtype_of(a), s);
}

enum err ops_pinv(struct arr **out, struct arr *a, struct strm *s)
{
    static const struct ops_matrices want = { "pinv", MATRICES_REAL, NULL };
    struct arr *f[3] = { NULL, NULL, NULL };
    enum err err;

    TRY(ops_check_matrices(&want, a, s));
    if (a->size == 0)
        return pinv_of_empty(out, a, s);
    const int32_t first[] = { 0, MIN(rows_of(a), cols_of(a)) };
    TRY(ops_svd(f, a, true, s));
    STEP(f[0], ops_slice_axis(&next, f[0], a->ndim - 1, first, s));
    STEP(f[0], transposed(&next, f[0], s));
    STEP(f[2], ops_slice_axis(&next, f[2], a->ndim - 2, first, s));
    STEP(f[2], transposed(&next, f[2], s));
    STEP(f[1], ops_expand_dims(&next, f[1], (struct ints){ (int32_t[]){ -2 }, 1 }, s));
    STEP(f[1], reciprocals(&next, f[1], MAX(rows_of(a), cols_of(a)), s));
    STEP(f[2], ops_binary(&next, OP_MULTIPLY, f[2], f[1], s));
    err = ops_matmul(out, f[2], f[0], s);
out:
    arr_unref_all(f, 3);
    return err;
}

/* a x = b is a system that can be solved, as far as shapes and dtypes tell. */
static enum err check_system(const struct arr *a, const struct arr *b, const char *op,
                             const struct strm *s)
{
    struct shp sa, sb;
    enum err err;

    TRY(check_stream(op, s));
    arr_shape(&sa, a);
    arr_shape(&sb, b);
    if (a->ndim < 2)
        return err_set(ERR_ARG,
                       "[linalg::%s] First input must have >= 2 dimensions. Received array with %d "
                       "dimensions.",
                       op, a->ndim);
    if (b->ndim < 1)
        return err_set(ERR_ARG,
                       "[linalg::%s] Second input must have >= 1 dimensions. Received array with "
                       "%d dimensions.",
                       op, b->ndim);
    if (!is_square(a))
        return err_set(ERR_ARG,
                       "[linalg::%s] First input must be a square matrix. Received array with "
                       "shape %s.",
                       op, shp_text(&sa));
    if (cols_of(a) != b->shape[b->ndim > 1 ? b->ndim - 2 : 0])
        return err_set(ERR_ARG,
                       "[linalg::%s] Last dimension of first input with shape %s must match second "
                       "to last dimension of second input with shape %s.",
                       op, shp_text(&sa), shp_text(&sb));
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    if (t != DT_FLOAT32 && t != DT_FLOAT64)
        return err_set(ERR_ARG,
                       "[linalg::%s] Input arrays must promote to float32 or float64. Received "
                       "arrays with type %s and %s.",
                       op, dt_name(dtype_of(a)), dt_name(dtype_of(b)));
out:
    return err;
}

enum err ops_solve_triangular(struct arr **out, struct arr *a, struct arr *b, bool upper,
                              struct strm *s)
{
    struct arr *inv = NULL;
    enum err err;

    TRY(check_system(a, b, "solve_triangular", s));
    TRY(ops_tri_inv(&inv, a, upper, s));
    err = ops_matmul(out, inv, b, s);
out:
    arr_unref(&inv);
    return err;
}

enum err ops_solve(struct arr **out, struct arr *a, struct arr *b, struct strm *s)
{
    struct arr *f[3] = { NULL, NULL, NULL }, *x = NULL, *order = NULL;
    bool is_vector = b->ndim < 2;
    enum err err;

    TRY(check_system(a, b, "solve", s));
    TRY(ops_lu(f, a, s));
    TRY(ops_argsort(&order, f[0], -1, s));
    if (!is_vector)
        STEP(order, ops_expand_dims(&next, order, (struct ints){ (int32_t[]){ -1 }, 1 }, s));
    TRY(ops_take_along_axis(&x, b, order, is_vector ? -1 : -2, s));
    STEP(x, ops_solve_triangular(&next, f[1], x, false, s));
    err = ops_solve_triangular(out, f[2], x, true, s);
out:
    arr_unref_all(f, 3);
    arr_unref(&x);
    arr_unref(&order);
    return err;
}
