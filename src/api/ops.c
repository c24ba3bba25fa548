/* Elementwise ops, creation, matrix products. */
#include "api/handle.h"

/* ---- one input ---- */

/* name, constructor over x */
#define ONE_INPUT(name, param, expr)                                                               \
    int mlx_##name(mlx_array *res, const mlx_array param, const mlx_stream s)                      \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *v = call_arr(&c, param, #param);                                               \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }

/* The functions of the op table: errors are told from here, not from the table's lines. */
static int unary(struct call c, mlx_array *res, mlx_array a, enum op_id op)
{
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_unary(&c.out, op, x, c.strm);
    return CALL_END_ARR(&c, res);
}

#define UNARY(id, name, public, ...)                                                               \
    int mlx_##public(mlx_array * res, const mlx_array a, const mlx_stream s)                       \
    {                                                                                              \
        return unary(CALL_OP(res, s), res, a, OP_##id);                                            \
    }
#include "ops/ops.def"

ONE_INPUT(copy, a, ops_copy(&c.out, v, c.strm))
ONE_INPUT(degrees, a, ops_degrees(&c.out, v, c.strm))
ONE_INPUT(isfinite, a, ops_isfinite(&c.out, v, c.strm))
ONE_INPUT(isinf, a, ops_isinf(&c.out, v, c.strm))
ONE_INPUT(isnan, a, ops_isnan(&c.out, v, c.strm))
ONE_INPUT(isneginf, a, ops_isneginf(&c.out, v, c.strm))
ONE_INPUT(isposinf, a, ops_isposinf(&c.out, v, c.strm))
ONE_INPUT(ones_like, a, ops_fill_like(&c.out, v, 1, (enum dtype)v->dtype, c.strm))
ONE_INPUT(radians, a, ops_radians(&c.out, v, c.strm))
ONE_INPUT(reciprocal, a, ops_reciprocal(&c.out, v, c.strm))
ONE_INPUT(stop_gradient, a, ops_stop_gradient(&c.out, v, c.strm))
ONE_INPUT(to_fp8, x, ops_to_fp8(&c.out, v, c.strm))
ONE_INPUT(zeros_like, a, ops_fill_like(&c.out, v, 0, (enum dtype)v->dtype, c.strm))

int mlx_round(mlx_array *res, const mlx_array a, int decimals, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_round(&c.out, x, decimals, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_nan_to_num(mlx_array *res, const mlx_array a, float nan, mlx_optional_float posinf,
                   mlx_optional_float neginf, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_nan_to_num v = { nan, posinf.has_value ? &posinf.value : NULL,
                                neginf.has_value ? &neginf.value : NULL };

    if (call_ok(&c))
        c.err = ops_nan_to_num(&c.out, x, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

/* name, constructor: to another dtype */
#define TO_DTYPE(name, param)                                                                      \
    int mlx_##name(mlx_array *res, const mlx_array param, mlx_dtype dtype, const mlx_stream s)     \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *v = call_arr(&c, param, #param);                                               \
        enum dtype t = call_dtype(&c, dtype);                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, v, t, c.strm);                                              \
        return CALL_END_ARR(&c, res);                                                              \
    }
TO_DTYPE(astype, a)
TO_DTYPE(from_fp8, x)
TO_DTYPE(view, a)

int mlx_hadamard_transform(mlx_array *res, const mlx_array a, mlx_optional_float scale,
                           const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_hadamard_transform(&c.out, x, scale.has_value ? &scale.value : NULL, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- two and three inputs ---- */

#define TWO_INPUTS(name, expr)                                                                     \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s)       \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");                           \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }

static int binary(struct call c, mlx_array *res, mlx_array a, mlx_array b, enum op_id op)
{
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_binary(&c.out, op, x, y, c.strm);
    return CALL_END_ARR(&c, res);
}

#define BINARY(id, name, public, ...)                                                              \
    int mlx_##public(mlx_array * res, const mlx_array a, const mlx_array b, const mlx_stream s)    \
    {                                                                                              \
        return binary(CALL_OP(res, s), res, a, b, OP_##id);                                        \
    }
#include "ops/ops.def"

TWO_INPUTS(floor_divide, ops_floor_divide(&c.out, x, y, c.strm))
TWO_INPUTS(kron, ops_kron(&c.out, x, y, c.strm))
TWO_INPUTS(inner, ops_inner(&c.out, x, y, c.strm))
TWO_INPUTS(matmul, ops_matmul(&c.out, x, y, c.strm))
TWO_INPUTS(outer, ops_outer(&c.out, x, y, c.strm))

int mlx_divmod(mlx_vector_array *res, const mlx_array a, const mlx_array b, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");
    struct arr *outs[2];

    if (call_ok(&c))
        c.err = ops_divmod(outs, x, y, c.strm);
    if (call_ok(&c))
        c.err = box_set_vec(res, outs, 2);
    return CALL_END(&c);
}

int mlx_where(mlx_array *res, const mlx_array condition, const mlx_array x, const mlx_array y,
              const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *cond = call_arr(&c, condition, "condition");
    struct arr *a = call_arr(&c, x, "x"), *b = call_arr(&c, y, "y");

    if (call_ok(&c))
        c.err = ops_where(&c.out, cond, a, b, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_clip(mlx_array *res, const mlx_array a, const mlx_array a_min, const mlx_array a_max,
             const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct arr *low = call_arr_opt(&c, a_min), *high = call_arr_opt(&c, a_max);

    if (call_ok(&c))
        c.err = ops_clip(&c.out, x, low, high, c.strm);
    return CALL_END_ARR(&c, res);
}

#define CLOSE(name)                                                                                \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array b, double rtol, double atol, \
                   bool equal_nan, const mlx_stream s)                                             \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");                           \
        struct ops_close v = { rtol, atol, equal_nan };                                            \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, x, y, &v, c.strm);                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
CLOSE(allclose)
CLOSE(isclose)

int mlx_array_equal(mlx_array *res, const mlx_array a, const mlx_array b, bool equal_nan,
                    const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_array_equal(&c.out, x, y, equal_nan, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_addmm(mlx_array *res, const mlx_array c, const mlx_array a, const mlx_array b, float alpha,
              float beta, const mlx_stream s)
{
    struct call call = CALL_OP(res, s);
    struct ops_addmm m = { call_arr(&call, c, "c"), call_arr(&call, a, "a"),
                           call_arr(&call, b, "b"), alpha, beta };

    if (call_ok(&call))
        call.err = ops_addmm(&call.out, &m, call.strm);
    return CALL_END_ARR(&call, res);
}

int mlx_block_masked_mm(mlx_array *res, const mlx_array a, const mlx_array b, int block_size,
                        const mlx_array mask_out, const mlx_array mask_lhs,
                        const mlx_array mask_rhs, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_masked_mm v = {
        call_arr(&c, a, "a"),       call_arr(&c, b, "b"),       block_size,
        call_arr_opt(&c, mask_out), call_arr_opt(&c, mask_lhs), call_arr_opt(&c, mask_rhs)
    };

    if (call_ok(&c))
        c.err = ops_block_masked_mm(&c.out, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_segmented_mm(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_array segments,
                     const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");
    struct arr *v = call_arr(&c, segments, "segments");

    if (call_ok(&c))
        c.err = ops_segmented_mm(&c.out, x, y, v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_gather_mm(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_array lhs_indices,
                  const mlx_array rhs_indices, bool sorted_indices, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");
    struct ops_gather_mm g = { call_arr_opt(&c, lhs_indices), call_arr_opt(&c, rhs_indices),
                               sorted_indices };

    if (call_ok(&c))
        c.err = ops_gather_mm(&c.out, x, y, &g, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_tensordot(mlx_array *res, const mlx_array a, const mlx_array b, const int *axes_a,
                  size_t axes_a_num, const int *axes_b, size_t axes_b_num, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_tensordot t = { call_arr(&c, a, "a"), call_arr(&c, b, "b"),
                               call_ints(&c, axes_a, axes_a_num, "axes_a"),
                               call_ints(&c, axes_b, axes_b_num, "axes_b") };

    if (call_ok(&c))
        c.err = ops_tensordot(&c.out, &t, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_tensordot_axis(mlx_array *res, const mlx_array a, const mlx_array b, int axis,
                       const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_tensordot_axis(&c.out, x, y, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_einsum(mlx_array *res, const char *subscripts, const mlx_vector_array operands,
               const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const char *text = call_ptr(&c, subscripts, "subscripts");
    const struct list *in = call_vec(&c, operands, "operands");

    if (call_ok(&c))
        c.err = ops_einsum(&c.out, text, list_arrs(in), c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- creation ---- */

int mlx_full(mlx_array *res, const int *shape, size_t shape_num, const mlx_array vals,
             mlx_dtype dtype, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ints to = call_ints(&c, shape, shape_num, "shape");
    struct arr *v = call_arr(&c, vals, "vals");
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = ops_full(&c.out, to, v, t, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_full_like(mlx_array *res, const mlx_array a, const mlx_array vals, mlx_dtype dtype,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *v = call_arr(&c, vals, "vals");
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = ops_full_like(&c.out, x, v, t, c.strm);
    return CALL_END_ARR(&c, res);
}

#define FILL(name, value)                                                                          \
    int mlx_##name(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,            \
                   const mlx_stream s)                                                             \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct ints to = call_ints(&c, shape, shape_num, "shape");                                 \
        enum dtype t = call_dtype(&c, dtype);                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_fill(&c.out, to, value, t, c.strm);                                        \
        return CALL_END_ARR(&c, res);                                                              \
    }
FILL(ones, 1)
FILL(zeros, 0)

int mlx_arange(mlx_array *res, double start, double stop, double step, mlx_dtype dtype,
               const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arange_params range = { start, stop, step };
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = ops_arange(&c.out, &range, t, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_linspace(mlx_array *res, double start, double stop, int num, mlx_dtype dtype,
                 const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_linspace range = { start, stop, num };
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = ops_linspace(&c.out, &range, t, c.strm);
    return CALL_END_ARR(&c, res);
}

#define DIAGONAL(name, type)                                                                       \
    int mlx_##name(mlx_array *res, int n, int m, int k, mlx_dtype type, const mlx_stream s)        \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct ops_diagonal d = { n, m, k };                                                       \
        enum dtype t = call_dtype(&c, type);                                                       \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, &d, t, c.strm);                                             \
        return CALL_END_ARR(&c, res);                                                              \
    }
DIAGONAL(eye, dtype)
DIAGONAL(tri, type)

int mlx_identity(mlx_array *res, int n, mlx_dtype dtype, const mlx_stream s)
{
    return mlx_eye(res, n, n, 0, dtype, s);
}

#define TRIANGLE(name)                                                                             \
    int mlx_##name(mlx_array *res, const mlx_array x, int k, const mlx_stream s)                   \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *a = call_arr(&c, x, "x");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, a, k, c.strm);                                              \
        return CALL_END_ARR(&c, res);                                                              \
    }
TRIANGLE(tril)
TRIANGLE(triu)

int mlx_number_of_elements(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                           bool inverted, mlx_dtype dtype, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints list = call_ints(&c, axes, axes_num, "axes");
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err =
            ops_number_of_elements(&c.out, x, &(struct ops_elements){ list, inverted, t }, c.strm);
    return CALL_END_ARR(&c, res);
}
