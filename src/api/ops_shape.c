/* Views and data movement. */
#include "api/handle.h"

/* ---- shapes ---- */

/* An op over one array and a list of ints. */
#define WITH_LIST(name, op, list)                                                                  \
    int mlx_##name(mlx_array *res, const mlx_array a, const int *list, size_t list##_num,          \
                   const mlx_stream s)                                                             \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        struct ints v = call_ints(&c, list, list##_num, #list);                                    \
        if (call_ok(&c))                                                                           \
            c.err = op(&c.out, x, v, c.strm);                                                      \
        return CALL_END_ARR(&c, res);                                                              \
    }
WITH_LIST(broadcast_to, ops_broadcast_to, shape)
WITH_LIST(expand_dims_axes, ops_expand_dims, axes)
WITH_LIST(reshape, ops_reshape, shape)
WITH_LIST(squeeze_axes, ops_squeeze, axes)
WITH_LIST(tile, ops_tile, reps)
WITH_LIST(transpose_axes, ops_transpose, axes)

/* The same with a fixed list. */
#define WITHOUT_LIST(name, op)                                                                     \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_stream s)                          \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = op(&c.out, x, INTS_ALL, c.strm);                                               \
        return CALL_END_ARR(&c, res);                                                              \
    }
WITHOUT_LIST(squeeze, ops_squeeze)
WITHOUT_LIST(transpose, ops_transpose)

int mlx_expand_dims(mlx_array *res, const mlx_array a, int axis, const mlx_stream s)
{
    return mlx_expand_dims_axes(res, a, &axis, 1, s);
}

int mlx_squeeze_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s)
{
    return mlx_squeeze_axes(res, a, &axis, 1, s);
}

#define ATLEAST(n)                                                                                 \
    int mlx_atleast_##n##d(mlx_array *res, const mlx_array a, const mlx_stream s)                  \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_atleast_nd(&c.out, x, n, c.strm);                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
ATLEAST(1)
ATLEAST(2)
ATLEAST(3)

/* An op over one array and two ints. */
#define WITH_TWO(name, first, second)                                                              \
    int mlx_##name(mlx_array *res, const mlx_array a, int first, int second, const mlx_stream s)   \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_##name(&c.out, x, first, second, c.strm);                                  \
        return CALL_END_ARR(&c, res);                                                              \
    }
WITH_TWO(flatten, start_axis, end_axis)
WITH_TWO(moveaxis, source, destination)
WITH_TWO(swapaxes, axis1, axis2)

int mlx_unflatten(mlx_array *res, const mlx_array a, int axis, const int *shape, size_t shape_num,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints to = call_ints(&c, shape, shape_num, "shape");

    if (call_ok(&c))
        c.err = ops_unflatten(&c.out, x, axis, to, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_as_strided(mlx_array *res, const mlx_array a, const int *shape, size_t shape_num,
                   const int64_t *strides, size_t strides_num, size_t offset, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_as_strided v = { call_ints(&c, shape, shape_num, "shape"), strides, strides_num,
                                offset };

    if (strides_num)
        call_ptr(&c, strides, "strides");
    if (call_ok(&c))
        c.err = ops_as_strided(&c.out, x, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_contiguous(mlx_array *res, const mlx_array a, bool allow_col_major, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");

    if (call_ok(&c))
        c.err = ops_contiguous(&c.out, x, allow_col_major, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- several results ---- */

int mlx_broadcast_arrays(mlx_vector_array *res, const mlx_vector_array inputs, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    const struct list *in = call_vec(&c, inputs, "inputs");
    size_t n = in ? in->n : 0;
    struct arr **outs = call_outs(&c, n);

    if (call_ok(&c))
        c.err = ops_broadcast_arrays(outs, list_arrs(in), c.strm);
    call_set_outs(&c, res, outs, n);
    return CALL_END(&c);
}

int mlx_split(mlx_vector_array *res, const mlx_array a, int num_splits, int axis,
              const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    size_t n = num_splits > 0 ? (size_t)num_splits : 0;
    struct arr **outs = call_outs(&c, n);

    if (call_ok(&c))
        c.err = ops_split(outs, x, num_splits, axis, c.strm);
    call_set_outs(&c, res, outs, n);
    return CALL_END(&c);
}

int mlx_split_sections(mlx_vector_array *res, const mlx_array a, const int *indices,
                       size_t indices_num, int axis, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ints cuts = call_ints(&c, indices, indices_num, "indices");
    struct arr **outs = call_outs(&c, cuts.n + 1);

    if (call_ok(&c))
        c.err = ops_split_sections(outs, x, cuts, axis, c.strm);
    call_set_outs(&c, res, outs, cuts.n + 1);
    return CALL_END(&c);
}

/* ---- parts of arrays ---- */

int mlx_slice(mlx_array *res, const mlx_array a, const int *start, size_t start_num,
              const int *stop, size_t stop_num, const int *strides, size_t strides_num,
              const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_slice v = { call_ints(&c, start, start_num, "start"),
                           call_ints(&c, stop, stop_num, "stop"),
                           call_ints(&c, strides, strides_num, "strides") };

    if (call_ok(&c))
        c.err = ops_slice(&c.out, x, &v, c.strm);
    return CALL_END_ARR(&c, res);
}

/* The five updates differ in what becomes of the old elements. */
#define SLICE_UPDATE(name, kind_)                                                                  \
    int mlx_##name(mlx_array *res, const mlx_array src, const mlx_array update, const int *start,  \
                   size_t start_num, const int *stop, size_t stop_num, const int *strides,         \
                   size_t strides_num, const mlx_stream s)                                         \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, src, "src");                                                  \
        struct ops_slice_update v = { .update = call_arr(&c, update, "update"), .kind = kind_ };   \
        v.region.start = call_ints(&c, start, start_num, "start");                                 \
        v.region.stop = call_ints(&c, stop, stop_num, "stop");                                     \
        v.region.step = call_ints(&c, strides, strides_num, "strides");                            \
        if (call_ok(&c))                                                                           \
            c.err = ops_slice_update(&c.out, x, &v, c.strm);                                       \
        return CALL_END_ARR(&c, res);                                                              \
    }
SLICE_UPDATE(slice_update, UPDATE_NONE)
SLICE_UPDATE(slice_update_add, UPDATE_SUM)
SLICE_UPDATE(slice_update_prod, UPDATE_PROD)
SLICE_UPDATE(slice_update_max, UPDATE_MAX)
SLICE_UPDATE(slice_update_min, UPDATE_MIN)

int mlx_slice_dynamic(mlx_array *res, const mlx_array a, const mlx_array start, const int *axes,
                      size_t axes_num, const int *slice_size, size_t slice_size_num,
                      const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_start at = { call_arr(&c, start, "start"), call_ints(&c, axes, axes_num, "axes") };
    struct ints size = call_ints(&c, slice_size, slice_size_num, "slice_size");

    if (call_ok(&c))
        c.err = ops_slice_dynamic(&c.out, x, &at, size, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_slice_update_dynamic(mlx_array *res, const mlx_array src, const mlx_array update,
                             const mlx_array start, const int *axes, size_t axes_num,
                             const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, src, "src"), *u = call_arr(&c, update, "update");
    struct ops_start at = { call_arr(&c, start, "start"), call_ints(&c, axes, axes_num, "axes") };

    if (call_ok(&c))
        c.err = ops_slice_update_dynamic(&c.out, x, u, &at, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_take(mlx_array *res, const mlx_array a, const mlx_array indices, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *at = call_arr(&c, indices, "indices");

    if (call_ok(&c))
        c.err = ops_take_flat(&c.out, x, at, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_take_axis(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                  const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *at = call_arr(&c, indices, "indices");

    if (call_ok(&c))
        c.err = ops_take(&c.out, x, at, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

/* ---- joining, repeating, padding ---- */

#define JOIN(name, more, expr)                                                                     \
    int mlx_##name(mlx_array *res, const mlx_vector_array arrays more, const mlx_stream s)         \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        const struct list *in = call_vec(&c, arrays, "arrays");                                    \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
#define NO_MORE
#define AND_AXIS , int axis
JOIN(concatenate, NO_MORE, ops_concatenate_flat(&c.out, list_arrs(in), c.strm))
JOIN(concatenate_axis, AND_AXIS, ops_concatenate(&c.out, list_arrs(in), axis, c.strm))
JOIN(stack, NO_MORE, ops_stack(&c.out, list_arrs(in), 0, c.strm))
JOIN(stack_axis, AND_AXIS, ops_stack(&c.out, list_arrs(in), axis, c.strm))

int mlx_repeat(mlx_array *res, const mlx_array arr, int repeats, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = ops_repeat_flat(&c.out, x, repeats, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_repeat_axis(mlx_array *res, const mlx_array arr, int repeats, int axis, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = ops_repeat(&c.out, x, repeats, axis, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_pad(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,
            const int *low_pad_size, size_t low_pad_size_num, const int *high_pad_size,
            size_t high_pad_size_num, const mlx_array pad_value, const char *mode,
            const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_pad p = { call_ints(&c, axes, axes_num, "axes"),
                         call_ints(&c, low_pad_size, low_pad_size_num, "low_pad_size"),
                         call_ints(&c, high_pad_size, high_pad_size_num, "high_pad_size"),
                         call_arr(&c, pad_value, "pad_value"), call_ptr(&c, mode, "mode") };

    if (call_ok(&c))
        c.err = ops_pad(&c.out, x, &p, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_pad_symmetric(mlx_array *res, const mlx_array a, int pad_width, const mlx_array pad_value,
                      const char *mode, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    struct ops_pad p = { .value = call_arr(&c, pad_value, "pad_value"),
                         .mode = call_ptr(&c, mode, "mode") };

    if (call_ok(&c))
        c.err = ops_pad_symmetric(&c.out, x, pad_width, &p, c.strm);
    return CALL_END_ARR(&c, res);
}
