/* Elementwise ops, matrix products and creation. */
#include "api/handle.h"

/* name, op */
#define BINARY(name, op)                                                                           \
    int mlx_##name(mlx_array *res, const mlx_array a, const mlx_array b, const mlx_stream s)       \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct arr *x = call_arr(&c, a, "a"), *y = call_arr(&c, b, "b");                           \
        if (call_ok(&c))                                                                           \
            c.err = ops_binary(&c.out, op, x, y, c.strm);                                          \
        return CALL_END_ARR(&c, res);                                                              \
    }
BINARY(add, OP_ADD)
