/* What tests of transformations share: lists of few arrays, batches. */
#pragma once

#include "api_test.h"

#include <math.h>

static const mlx_stream s = { NULL };

static inline mlx_array number(float v)
{
    return mlx_array_new_float32(v);
}

/* A list of up to three arrays, which it takes over. */
static inline mlx_vector_array list_of(int n, mlx_array a, mlx_array b, mlx_array c)
{
    mlx_array all[] = { a, b, c };
    mlx_vector_array list = mlx_vector_array_new_data(all, (size_t)n);

    for (int i = 0; i < n; i++)
        mlx_array_free(all[i]);
    return list;
}
#define ONE(a) list_of(1, a, (mlx_array){ NULL }, (mlx_array){ NULL })
#define TWO(a, b) list_of(2, a, b, (mlx_array){ NULL })

static inline mlx_array get(mlx_vector_array list, size_t at)
{
    mlx_array a = mlx_array_new();

    assert_ok(mlx_vector_array_get(&a, list, at));
    return a;
}

/* float32 elements, near those that are wanted, or as infinite as these. Takes a over. */
static inline void check(const char *name, mlx_array a, const float *want)
{
    assert_ok(mlx_contiguous(&a, a, false, s));
    assert_ok(mlx_array_eval(a));
    assert_int_equal(mlx_array_dtype(a), MLX_FLOAT32);
    for (size_t i = 0; i < mlx_array_size(a); i++) {
        float v = mlx_array_data_float32(a)[i], w = want[i];
        bool same = v == w || (isnan(v) && isnan(w)) || fabsf(v - w) <= 1e-5f * (1 + fabsf(w));
        if (!same)
            fail_msg("%s: element %zu is %g, not %g", name, i, (double)v, (double)w);
    }
    mlx_array_free(a);
}

static inline void assert_values(mlx_vector_array list, size_t at, const float *want, size_t n)
{
    mlx_array a = get(list, at);

    assert_int_equal(mlx_array_size(a), n);
    check("result", a, want);
}
#define VALUES(list, at, ...)                                                                      \
    assert_values(list, at, (float[]){ __VA_ARGS__ },                                              \
                  sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

/* The function over batches. */
static inline void vmap(mlx_vector_array *res, mlx_closure f, mlx_vector_array in,
                        const int *in_axes, const int *out_axes)
{
    mlx_vector_array traced_in = mlx_vector_array_new(), traced_out = mlx_vector_array_new();
    size_t n = mlx_vector_array_size(in);

    assert_ok(mlx_detail_vmap_trace(&traced_in, &traced_out, f, in, in_axes, n));
    assert_ok(mlx_detail_vmap_replace(res, in, traced_in, traced_out, in_axes, n, out_axes,
                                      mlx_vector_array_size(traced_out)));
    mlx_vector_array_free(traced_in);
    mlx_vector_array_free(traced_out);
}
