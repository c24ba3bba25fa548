/* Functions and parameters of MLX that mlx-c lacks. */
#include "api/handle.h"

/* name, parameter, constructor over v */
#define ONE_INPUT(name, expr)                                                                      \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_stream s)                          \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *v = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
ONE_INPUT(positive, (c.out = arr_ref(v), ERR_OK))
ONE_INPUT(trunc, ops_trunc(&c.out, v, c.strm))
ONE_INPUT(flip, ops_flip(&c.out, v, INTS_ALL, c.strm))

int mlx_logical_xor(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_logical_xor(&c.out, x, y, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_diff(mlx_array *res, const mlx_array a, int n, int axis, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_diff(&c.out, x, n, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_vecdot(mlx_array *res, const mlx_array a, const mlx_array b, int axis, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");

    if (call_ok(&c))
        c.err = ops_vecdot(&c.out, x, y, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_flip_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints v = call_ints(&c, axes, axes_num, "axes");

    if (call_ok(&c))
        c.err = ops_flip(&c.out, x, v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_flip_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s)
{
    return mlx_flip_axes(res, a, &axis, 1, s);
}

static enum err count(struct call *c, struct arr *x, struct ints axes, bool keepdims)
{
    return ops_count_nonzero(&c->out, x, &(struct ops_axes){ axes, keepdims }, c->strm);
}

int mlx_count_nonzero(mlx_array *res, const mlx_array a, bool keepdims, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = count(&c, x, INTS_ALL, keepdims);
    return CALL_END_ARR(&c, res);
}

int mlx_count_nonzero_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
                           bool keepdims, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints v = call_ints(&c, axes, axes_num, "axes");

    if (call_ok(&c))
        c.err = count(&c, x, v, keepdims);
    return CALL_END_ARR(&c, res);
}

int mlx_count_nonzero_axis(mlx_array *res, const mlx_array a, int axis, bool keepdims,
                           const mlx_stream s)
{
    return mlx_count_nonzero_axes(res, a, &axis, 1, keepdims, s);
}

int mlx_searchsorted(mlx_array *res, const mlx_array sorted_sequence, const mlx_array values,
                     const char *side, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, sorted_sequence, "sorted_sequence");
    struct arr *v = call_arr(&c, values, "values");

    call_ptr(&c, side, "side");
    if (call_ok(&c))
        c.err = ops_searchsorted(&c.out, x, v, side, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- lists ---- */

int mlx_unique(mlx_vector_array *res, const mlx_array a, int size, bool return_index,
               bool return_inverse, bool return_counts, const mlx_array fill_value,
               const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *outs[4] = { NULL };
    struct ops_unique u = { size, return_index, return_inverse, return_counts,
                            call_arr_opt(&c, fill_value) };

    if (call_ok(&c))
        c.err = ops_unique(outs, x, &u, c.strm);
    if (call_ok(&c))
        c.err = box_set_vec(res, outs, 1 + return_index + return_inverse + return_counts);
    return CALL_END(&c);
}

int mlx_unstack_axis(mlx_vector_array *res, const mlx_array a, int axis, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), **parts = NULL;
    int at = x && axis < 0 ? axis + x->ndim : axis;

    if (call_ok(&c) && (at < 0 || at >= x->ndim))
        c.err =
            err_set(ERR_RANGE, "[unstack] Axis %d is out of bounds for array with %d dimensions.",
                    axis, x->ndim);
    if (call_ok(&c) && !(parts = mem_alloc_array((size_t)x->shape[at] + 1, sizeof *parts)))
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c))
        c.err = ops_unstack(parts, x, at, c.strm);
    if (call_ok(&c))
        c.err = box_set_vec(res, parts, (size_t)x->shape[at]);
    mem_free(parts);
    return CALL_END(&c);
}

int mlx_unstack(mlx_vector_array *res, const mlx_array a, const mlx_stream s)
{
    return mlx_unstack_axis(res, a, 0, s);
}

static int atleast(struct call c, mlx_vector_array *res, mlx_vector_array arrays, int n)
{
    const struct list *in = call_vec(&c, arrays, "arrays");
    struct arrs from = in ? list_arrs(in) : (struct arrs){ NULL, 0 };
    struct arr **out = NULL;
    size_t done = 0;

    if (call_ok(&c) && !(out = mem_alloc_array(from.n + 1, sizeof *out)))
        c.err = ERR_NO_MEMORY;
    for (; call_ok(&c) && done < from.n; done++) {
        out[done] = NULL;
        c.err = ops_atleast_nd(&out[done], from.v[done], n, c.strm);
    }
    if (call_ok(&c))
        c.err = box_set_vec(res, out, from.n);
    else
        while (out && done > 0)
            arr_unref(&out[--done]);
    mem_free(out);
    return CALL_END(&c);
}

#define ATLEAST(n)                                                                                 \
    int mlx_atleast_##n##d_list(mlx_vector_array *res, const mlx_vector_array arrays,              \
                                const mlx_stream s)                                                \
    {                                                                                              \
        return atleast(CALL_OP(res, s), res, arrays, n);                                           \
    }
ATLEAST(1)
ATLEAST(2)
ATLEAST(3)

/* ---- more parameters ---- */

int mlx_linspace_endpoint(mlx_array *res, double start, double stop, int num, bool endpoint,
                          mlx_dtype dtype, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    enum dtype t = call_dtype(&c, dtype);
    struct ops_linspace v = { start, stop, num, !endpoint };

    if (call_ok(&c))
        c.err = ops_linspace(&c.out, &v, t, c.strm);
    return CALL_END_ARR(&c, res);
}

#define LIKE(name, value)                                                                          \
    int mlx_##name(mlx_array *res, const mlx_array a, mlx_dtype dtype, const mlx_stream s)         \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        enum dtype t = call_dtype(&c, dtype);                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_fill_like(&c.out, x, value, t, c.strm);                                    \
        return CALL_END_ARR(&c, res);                                                              \
    }
LIKE(zeros_like_dtype, 0)
LIKE(ones_like_dtype, 1)

static enum err scan_as(struct call *c, struct arr *x, enum dtype t, const struct ops_scan *v)
{
    struct arr *wide = NULL;
    enum err err = ops_astype(&wide, x, t, c->strm);

    if (!err)
        err = ops_scan(&c->out, wide, v, c->strm);
    arr_unref(&wide);
    return err;
}

#define SCAN_AS(name, kind_)                                                                       \
    int mlx_##name##_dtype(mlx_array *res, const mlx_array a, int axis, bool reverse,              \
                           bool inclusive, mlx_dtype dtype, const mlx_stream s)                    \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        enum dtype t = call_dtype(&c, dtype);                                                      \
        struct ops_scan v = { kind_, axis, reverse, inclusive };                                   \
        if (call_ok(&c))                                                                           \
            c.err = scan_as(&c, x, t, &v);                                                         \
        return CALL_END_ARR(&c, res);                                                              \
    }
SCAN_AS(cumsum, SCAN_SUM)
SCAN_AS(cumprod, SCAN_PROD)

int mlx_random_bernoulli_like(mlx_array *res, const mlx_array p, const mlx_array key,
                              const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, p, "p"), *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_bernoulli(&c.out, x, (struct ints){ x->shape, x->ndim }, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_einsum_path(mlx_vector_int *positions, mlx_vector_int *counts, mlx_string *info,
                    const char *subscripts, const mlx_vector_array operands)
{
    struct call c = CALL(positions);
    const char *text = call_ptr(&c, subscripts, "subscripts");
    const struct list *in = call_vec(&c, operands, "operands");
    struct ops_einsum_path p = { 0 };

    call_ptr(&c, counts, "counts");
    call_ptr(&c, info, "info");
    if (call_ok(&c))
        c.err = ops_einsum_path(&p, text, list_arrs(in));
    if (call_ok(&c))
        c.err = box_set_ints(positions, p.at, p.n_at);
    if (call_ok(&c))
        c.err = box_set_ints(counts, p.count, p.n);
    if (call_ok(&c)) {
        c.err = box_set_text(info, p.text);
        p.text = NULL;
    }
    ops_einsum_path_fini(&p);
    return CALL_END(&c);
}
