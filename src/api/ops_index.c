/* Gathers and scatters. */
#include "api/handle.h"

int mlx_gather(mlx_array *res, const mlx_array a, const mlx_vector_array indices, const int *axes,
               size_t axes_num, const int *slice_sizes, size_t slice_sizes_num, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a");
    const struct list *at = call_vec(&c, indices, "indices");
    struct ops_gather g = { .axes = call_ints(&c, axes, axes_num, "axes"),
                            .sizes = call_ints(&c, slice_sizes, slice_sizes_num, "slice_sizes") };

    if (call_ok(&c)) {
        g.indices = list_arrs(at);
        c.err = ops_gather(&c.out, x, &g, c.strm);
    }
    return CALL_END_ARR(&c, res);
}

int mlx_gather_single(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                      const int *slice_sizes, size_t slice_sizes_num, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *at = call_arr(&c, indices, "indices");
    struct ops_gather g = { { &at, 1 },
                            { &axis, 1 },
                            call_ints(&c, slice_sizes, slice_sizes_num, "slice_sizes") };

    if (call_ok(&c))
        c.err = ops_gather(&c.out, x, &g, c.strm);
    return CALL_END_ARR(&c, res);
}

#define SCATTER(name, kind_)                                                                       \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_vector_array indices,              \
                   const mlx_array updates, const int *axes, size_t axes_num, const mlx_stream s)  \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        const struct list *at = call_vec(&c, indices, "indices");                                  \
        struct ops_scatter v = { .updates = call_arr(&c, updates, "updates"),                      \
                                 .axes = call_ints(&c, axes, axes_num, "axes"),                    \
                                 .kind = kind_ };                                                  \
        if (call_ok(&c)) {                                                                         \
            v.indices = list_arrs(at);                                                             \
            c.err = ops_scatter(&c.out, x, &v, c.strm);                                            \
        }                                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }                                                                                              \
    int mlx_##name##_single(mlx_array *res, const mlx_array a, const mlx_array indices,            \
                            const mlx_array updates, int axis, const mlx_stream s)                 \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a"), *at = call_arr(&c, indices, "indices");              \
        struct ops_scatter v = {                                                                   \
            { &at, 1 }, call_arr(&c, updates, "updates"), { &axis, 1 }, kind_                      \
        };                                                                                         \
        if (call_ok(&c))                                                                           \
            c.err = ops_scatter(&c.out, x, &v, c.strm);                                            \
        return CALL_END_ARR(&c, res);                                                              \
    }
SCATTER(scatter, UPDATE_NONE)
SCATTER(scatter_add, UPDATE_SUM)
SCATTER(scatter_prod, UPDATE_PROD)
SCATTER(scatter_max, UPDATE_MAX)
SCATTER(scatter_min, UPDATE_MIN)

#define SCATTER_AXIS(name, kind_)                                                                  \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array indices,                     \
                   const mlx_array values, int axis, const mlx_stream s)                           \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        struct ops_scatter_axis v = { call_arr(&c, indices, "indices"),                            \
                                      call_arr(&c, values, "values"), axis, kind_ };               \
        if (call_ok(&c))                                                                           \
            c.err = ops_scatter_axis(&c.out, x, &v, c.strm);                                       \
        return CALL_END_ARR(&c, res);                                                              \
    }
SCATTER_AXIS(put_along_axis, UPDATE_NONE)
SCATTER_AXIS(scatter_add_axis, UPDATE_SUM)

int mlx_masked_scatter(mlx_array *res, const mlx_array a, const mlx_array mask, const mlx_array src,
                       const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *m = call_arr(&c, mask, "mask"),
               *v = call_arr(&c, src, "src");

    if (call_ok(&c))
        c.err = ops_masked_scatter(&c.out, x, m, v, c.strm);
    return CALL_END_ARR(&c, res);
}
