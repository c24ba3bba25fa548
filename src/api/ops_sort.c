/* Sorting, scans, gathering along an axis. */
#include "api/handle.h"

/* Runs expr, a constructor over x and ax; without an axis over the flattened array. */
#define ALONG(expr)                                                                                \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a");                                                      \
        int ax = axis;                                                                             \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
#define FLAT(expr)                                                                                 \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *given = call_arr(&c, a, "a"), *x = NULL;                                       \
        int ax = 0;                                                                                \
        if (call_ok(&c))                                                                           \
            c.err = ops_flatten(&x, given, 0, -1, c.strm);                                         \
        if (call_ok(&c))                                                                           \
            c.err = expr;                                                                          \
        arr_unref(&x);                                                                             \
        return CALL_END_ARR(&c, res);                                                              \
    }

#define SORT(name)                                                                                 \
    int mlx_##name##_axis(mlx_array *res, const mlx_array a, int axis, const mlx_stream s)         \
        ALONG(ops_##name(&c.out, x, ax, c.strm)) int mlx_##name(mlx_array *res, const mlx_array a, \
                                                                const mlx_stream s)                \
            FLAT(ops_##name(&c.out, x, ax, c.strm))
SORT(sort)
SORT(argsort)

#define SELECT(name)                                                                               \
    int mlx_##name##_axis(mlx_array *res, const mlx_array a, int k, int axis, const mlx_stream s)  \
        ALONG(ops_##name(&c.out, x, k, ax, c.strm)) int mlx_##name(                                \
            mlx_array *res, const mlx_array a, int k, const mlx_stream s)                          \
            FLAT(ops_##name(&c.out, x, k, ax, c.strm))
SELECT(partition)
SELECT(argpartition)
SELECT(topk)

#define SCAN(name, scan_kind_)                                                                     \
    int mlx_##name(mlx_array *res, const mlx_array a, int axis, bool reverse, bool inclusive,      \
                   const mlx_stream s)                                                             \
        ALONG(ops_scan(                                                                            \
            &c.out, x,                                                                             \
            &(struct ops_scan){                                                                    \
                .kind = scan_kind_, .axis = ax, .reverse = reverse, .inclusive = inclusive },      \
            c.strm))
SCAN(cummax, SCAN_MAX)
SCAN(cummin, SCAN_MIN)
SCAN(cumprod, SCAN_PROD)
SCAN(cumsum, SCAN_SUM)
SCAN(logcumsumexp, SCAN_LOGADDEXP)

int mlx_take_along_axis(mlx_array *res, const mlx_array a, const mlx_array indices, int axis,
                        const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, a, "a"), *at = call_arr(&c, indices, "indices");

    if (call_ok(&c))
        c.err = ops_take_along_axis(&c.out, x, at, axis, c.strm);
    return CALL_END_ARR(&c, res);
}
