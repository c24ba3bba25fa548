/* Windows, diagonals, elements rolled and combined. */
#include "api/handle.h"

#define WINDOW(name, kind)                                                                         \
    int mlx_##name(mlx_array *res, int M, const mlx_stream s)                                      \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        if (call_ok(&c))                                                                           \
            c.err = ops_window(&c.out, kind, M, c.strm);                                           \
        return CALL_END_ARR(&c, res);                                                              \
    }
WINDOW(bartlett, WINDOW_BARTLETT)
WINDOW(blackman, WINDOW_BLACKMAN)
WINDOW(hamming, WINDOW_HAMMING)
WINDOW(hanning, WINDOW_HANNING)

int mlx_diag(mlx_array *res, const mlx_array a, int k, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_diag(&c.out, x, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_diagonal(mlx_array *res, const mlx_array a, int offset, int axis1, int axis2,
                 const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_diagonal(&c.out, x, &(struct ops_plane){ offset, axis1, axis2 }, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_trace(mlx_array *res, const mlx_array a, int offset, int axis1, int axis2, mlx_dtype dtype,
              const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    enum dtype t = call_dtype(&c, dtype);

    if (call_ok(&c))
        c.err = ops_trace(&c.out, x, &(struct ops_plane){ offset, axis1, axis2 }, t, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_roll(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num,
             const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints by = call_ints(&c, shift, shift_num, "shift");

    if (call_ok(&c))
        c.err = ops_roll_flat(&c.out, x, by, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_roll_axis(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num, int axis,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints by = call_ints(&c, shift, shift_num, "shift");

    if (call_ok(&c))
        c.err = ops_roll_axis(&c.out, x, by, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_roll_axes(mlx_array *res, const mlx_array a, const int *shift, size_t shift_num,
                  const int *axes, size_t axes_num, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints by = call_ints(&c, shift, shift_num, "shift");
    struct ints list = call_ints(&c, axes, axes_num, "axes");

    if (call_ok(&c))
        c.err = ops_roll(&c.out, x, by, list, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_meshgrid(mlx_vector_array *res, const mlx_vector_array arrays, bool sparse,
                 const char *indexing, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const struct list *in = call_vec(&c, arrays, "arrays");
    struct ops_meshgrid how = { sparse, call_ptr(&c, indexing, "indexing") };
    size_t n = in ? in->n : 0;
    struct arr **outs = call_outs(&c, n);

    if (call_ok(&c))
        c.err = ops_meshgrid(outs, list_arrs(in), &how, c.strm);
    call_set_outs(&c, res, outs, n);
    return CALL_END(&c);
}
