/* Reductions: over all elements, over one axis, over several. */
#include "api/handle.h"

/* Runs expr, a constructor over x and ax, for the axes given. */
#define OVER_AXES(list, flag, expr)                                                                \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        struct ops_axes ax = { list, flag };                                                       \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }

/* flag: what the bool parameter is called; more: further parameters, after a comma */
#define ALL_AND_AXIS(name, flag, more, expr)                                                       \
    int mlx_##name(mlx_array *res, const mlx_array a, bool flag more, const mlx_stream s)          \
        OVER_AXES(INTS_ALL, flag, expr) int mlx_##name##_axis(                                     \
            mlx_array *res, const mlx_array a, int axis, bool flag more, const mlx_stream s)       \
            OVER_AXES(((struct ints){ &axis, 1 }), flag, expr)
#define AXES(name, flag, more, expr)                                                               \
    int mlx_##name##_axes(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,     \
                          bool flag more, const mlx_stream s)                                      \
        OVER_AXES(call_ints(&c, axes, axes_num, "axes"), flag, expr)

#define NO_MORE
#define AND_DDOF , int ddof

#define REDUCE(name, kind)                                                                         \
    ALL_AND_AXIS(name, keepdims, NO_MORE, ops_reduce(&c.out, kind, x, &ax, c.strm))                \
    AXES(name, keepdims, NO_MORE, ops_reduce(&c.out, kind, x, &ax, c.strm))

REDUCE(all, REDUCE_AND)
REDUCE(any, REDUCE_OR)
REDUCE(max, REDUCE_MAX)
REDUCE(min, REDUCE_MIN)
REDUCE(prod, REDUCE_PROD)
REDUCE(sum, REDUCE_SUM)

ALL_AND_AXIS(mean, keepdims, NO_MORE, ops_mean(&c.out, x, &ax, c.strm))
AXES(mean, keepdims, NO_MORE, ops_mean(&c.out, x, &ax, c.strm))
ALL_AND_AXIS(var, keepdims, AND_DDOF, ops_var(&c.out, x, &ax, ddof, c.strm))
AXES(var, keepdims, AND_DDOF, ops_var(&c.out, x, &ax, ddof, c.strm))
ALL_AND_AXIS(std, keepdims, AND_DDOF, ops_std(&c.out, x, &ax, ddof, c.strm))
AXES(std, keepdims, AND_DDOF, ops_std(&c.out, x, &ax, ddof, c.strm))
ALL_AND_AXIS(logsumexp, keepdims, NO_MORE, ops_logsumexp(&c.out, x, &ax, c.strm))
AXES(logsumexp, keepdims, NO_MORE, ops_logsumexp(&c.out, x, &ax, c.strm))
ALL_AND_AXIS(softmax, precise, NO_MORE, ops_softmax(&c.out, x, ax.axes, precise, c.strm))
AXES(softmax, precise, NO_MORE, ops_softmax(&c.out, x, ax.axes, precise, c.strm))
ALL_AND_AXIS(argmax, keepdims, NO_MORE, ops_arg_reduce(&c.out, true, x, &ax, c.strm))
ALL_AND_AXIS(argmin, keepdims, NO_MORE, ops_arg_reduce(&c.out, false, x, &ax, c.strm))
