/* Linear algebra. */
#include "api/handle.h"

/* ---- one result ---- */

/* Of one array. */
#define ONE(name, op)                                                                              \
    int mlx_linalg_##name(mlx_array *res, const mlx_array a, const mlx_stream s)                   \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = op;                                                                            \
        return CALL_END_ARR(&c, res);                                                              \
    }
ONE(inv, ops_inv(&c.out, x, c.strm))
ONE(pinv, ops_pinv(&c.out, x, c.strm))
ONE(eigvals, ops_eig(&c.out, x, false, c.strm))
ONE(det, ops_det(&c.out, x, c.strm))

/* Of one of its triangles. */
#define TRIANGLE(name)                                                                             \
    int mlx_linalg_##name(mlx_array *res, const mlx_array a, bool upper, const mlx_stream s)       \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, x, upper, c.strm);                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
TRIANGLE(cholesky)
TRIANGLE(cholesky_inv)
TRIANGLE(tri_inv)

int mlx_linalg_eigvalsh(mlx_array *res, const mlx_array a, const char *uplo, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    call_ptr(&c, uplo, "uplo");
    if (call_ok(&c))
        c.err = ops_eigh(&c.out, x, uplo, false, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linalg_solve(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_solve(&c.out, x, y, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linalg_solve_triangular(mlx_array *res, const mlx_array a, const mlx_array b, bool upper,
                                const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_solve_triangular(&c.out, x, y, upper, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linalg_cross(mlx_array *res, const mlx_array a, const mlx_array b, int axis,
                     const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_cross(&c.out, x, y, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- norms ---- */

/* NULL: all axes. */
static struct ops_axes call_axes(struct call *c, const int *axis, size_t n, bool keepdims)
{
    return (struct ops_axes){ axis ? call_ints(c, axis, n, "axis") : INTS_ALL, keepdims };
}

int mlx_linalg_norm(mlx_array *res, const mlx_array a, double ord, const int *axis, size_t axis_num,
                    bool keepdims, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_axes axes = call_axes(&c, axis, axis_num, keepdims);

    if (call_ok(&c))
        c.err = ops_norm(&c.out, x, ord, &axes, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linalg_norm_matrix(mlx_array *res, const mlx_array a, const char *ord, const int *axis,
                           size_t axis_num, bool keepdims, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_axes axes = call_axes(&c, axis, axis_num, keepdims);

    call_ptr(&c, ord, "ord");
    if (call_ok(&c))
        c.err = ops_norm_matrix(&c.out, x, ord, &axes, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linalg_norm_l2(mlx_array *res, const mlx_array a, const int *axis, size_t axis_num,
                       bool keepdims, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_axes axes = call_axes(&c, axis, axis_num, keepdims);

    if (call_ok(&c))
        c.err = ops_norm_l2(&c.out, x, &axes, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- two results ---- */

#define TWO(name, op)                                                                              \
    int mlx_linalg_##name(mlx_array *res_0, mlx_array *res_1, const mlx_array a,                   \
                          const mlx_stream s)                                                      \
    {                                                                                              \
        struct call c = CALL_OP(res_0, s);                                                         \
        struct arr *x = call_arr(&c, a, "a"), *outs[2] = { NULL, NULL };                           \
        call_ptr(&c, res_1, "res_1");                                                              \
        if (call_ok(&c))                                                                           \
            c.err = op;                                                                            \
        return CALL_END_PAIR(&c, res_0, res_1, outs);                                              \
    }
TWO(qr, ops_qr(outs, x, c.strm))
TWO(lu_factor, ops_lu_factor(outs, x, c.strm))
TWO(eig, ops_eig(outs, x, true, c.strm))
TWO(slogdet, ops_slogdet(outs, x, c.strm))

int mlx_linalg_eigh(mlx_array *res_0, mlx_array *res_1, const mlx_array a, const char *uplo,
                    const mlx_stream s)
{
    struct call c = CALL_OP(res_0, s);
    struct arr *x = call_arr(&c, a, "a"), *outs[2] = { NULL, NULL };

    call_ptr(&c, res_1, "res_1");
    call_ptr(&c, uplo, "uplo");
    if (call_ok(&c))
        c.err = ops_eigh(outs, x, uplo, true, c.strm);
    return CALL_END_PAIR(&c, res_0, res_1, outs);
}

/* ---- lists ---- */

static int end_list(struct call *c, mlx_vector_array *res, struct arr *const *outs, size_t n)
{
    if (call_ok(c))
        c->err = box_set_vec(res, outs, n);
    return CALL_END(c);
}

int mlx_linalg_lu(mlx_vector_array *res, const mlx_array a, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *outs[3] = { NULL, NULL, NULL };

    if (call_ok(&c))
        c.err = ops_lu(outs, x, c.strm);
    return end_list(&c, res, outs, 3);
}

int mlx_linalg_svd(mlx_vector_array *res, const mlx_array a, bool compute_uv, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *outs[3] = { NULL, NULL, NULL };

    if (call_ok(&c))
        c.err = ops_svd(outs, x, compute_uv, c.strm);
    return end_list(&c, res, outs, compute_uv ? 3 : 1);
}
