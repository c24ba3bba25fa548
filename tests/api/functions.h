/* Functions of arrays for tests of transformations, and arrays as rows of tables. */
#pragma once

#include "lists.h"

/* ---- functions of up to three arrays ---- */

#define FUNCTION(word, call)                                                                       \
    static int word(mlx_vector_array *res, const mlx_vector_array in)                              \
    {                                                                                              \
        size_t n = mlx_vector_array_size(in);                                                      \
        mlx_array a = get(in, 0), b = n > 1 ? get(in, 1) : mlx_array_new(),                        \
                  c = n > 2 ? get(in, 2) : mlx_array_new(), y = mlx_array_new();                   \
                                                                                                   \
        int status = (call) || mlx_vector_array_set_value(res, y);                                 \
        mlx_array_free(a);                                                                         \
        mlx_array_free(b);                                                                         \
        mlx_array_free(c);                                                                         \
        mlx_array_free(y);                                                                         \
        return status;                                                                             \
    }
#define LIST(...) (int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)

/* ---- arrays as constants ---- */

struct values {
    int ndim, shape[3];
    float v[12];
};
#define S(x)                                                                                       \
    {                                                                                              \
        0, { 0 },                                                                                  \
        {                                                                                          \
            x                                                                                      \
        }                                                                                          \
    }
#define VEC(n, ...)                                                                                \
    {                                                                                              \
        1, { n },                                                                                  \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define MAT(m, n, ...)                                                                             \
    {                                                                                              \
        2, { m, n },                                                                               \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define TEN(k, m, n, ...)                                                                          \
    {                                                                                              \
        3, { k, m, n },                                                                            \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static inline mlx_array array(const struct values *v)
{
    return mlx_array_new_data(v->v, v->shape, v->ndim, MLX_FLOAT32);
}

static inline mlx_vector_array arrays(const struct values *v, int n)
{
    mlx_vector_array list = mlx_vector_array_new();

    for (int i = 0; i < n; i++) {
        mlx_array a = array(&v[i]);
        assert_ok(mlx_vector_array_append_value(list, a));
        mlx_array_free(a);
    }
    return list;
}
