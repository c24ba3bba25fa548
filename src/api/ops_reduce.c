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

/* Errors are told from here, not from the table's lines. */
static int reduce(struct call *c, mlx_array *res, struct arr *x, enum reduce_kind kind,
                  struct ops_axes ax)
{
    if (call_ok(c))
        c->err = ops_reduce(&c->out, kind, x, &ax, c->strm);
    return CALL_END_ARR(c, res);
}

#define OVER(kind, list)                                                                           \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        return reduce(&c, res, x, kind, (struct ops_axes){ list, keepdims });                      \
    }
#define REDUCTION(id, public, ...)                                                                 \
    int mlx_##public(mlx_array * res, const mlx_array a, bool keepdims, const mlx_stream s)        \
        OVER(REDUCE_##id, INTS_ALL) int mlx_##public##_axis(                                       \
            mlx_array *res, const mlx_array a, int axis, bool keepdims, const mlx_stream s)        \
            OVER(REDUCE_##id, ((struct ints){ &axis, 1 })) int mlx_##public##_axes(                \
                mlx_array *res, const mlx_array a, const int *axes, size_t axes_num,               \
                bool keepdims, const mlx_stream s)                                                 \
                OVER(REDUCE_##id, call_ints(&c, axes, axes_num, "axes"))
#include "ops/reduce.def"

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

int mlx_median(mlx_array *res, const mlx_array a, const int *axes, size_t axes_num, bool keepdims,
               const mlx_stream s)
    OVER_AXES(call_ints(&c, axes, axes_num, "axes"), keepdims, ops_median(&c.out, x, &ax, c.strm))
