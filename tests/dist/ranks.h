/* What test programs share that mpirun starts: the group, and arrays that differ by process. */
#pragma once

#include "api/functions.h"

#include <stdlib.h>

static mlx_distributed_group everybody;
static int rank, size;
static mlx_stream cpu;
static mlx_stream streams[2]; /* that ops are asked to run on */
static int n_streams;

/* arguments: how many processes are expected, and whether there is a GPU. */
static inline int start(int argc, char **argv)
{
    setup_cpu(NULL);
    cpu = mlx_default_cpu_stream_new();
    streams[n_streams++] = cpu;
    if (argc > 2 && strcmp(argv[2], "gpu") == 0)
        streams[n_streams++] = mlx_default_gpu_stream_new();
    everybody = mlx_distributed_group_new();
    if (mlx_distributed_init(&everybody, false, "mpi") != 0)
        printf("%s\n", errors.text);
    rank = mlx_distributed_group_rank(everybody);
    size = mlx_distributed_group_size(everybody);
    return argc > 1 && atoi(argv[1]) == size ? 0 : 1;
}

static inline void finish(void)
{
    mlx_distributed_group_free(everybody);
    for (int i = 0; i < n_streams; i++)
        mlx_stream_free(streams[i]);
}

/* Process r's element i of an array: small, so that sums of all are exact in every dtype. */
static inline int element(int r, int i)
{
    return (7 * i + 3 * r) % 5;
}

static inline mlx_array cast(mlx_array a, mlx_dtype t, mlx_stream at)
{
    mlx_array res = mlx_array_new();

    assert_ok(mlx_astype(&res, a, t, at));
    mlx_array_free(a);
    return res;
}

/* fn(i) for i < n as a vector; at most 4096. */
static inline mlx_array vector_by(int (*fn)(int i), int n, mlx_dtype t, mlx_stream at)
{
    static int32_t v[4096];

    for (int i = 0; i < n; i++)
        v[i] = fn(i);
    return cast(mlx_array_new_data(v, &n, 1, MLX_INT32), t, at);
}

static inline mlx_array reshaped(mlx_array a, const int *shape, size_t n, mlx_stream at)
{
    mlx_array res = mlx_array_new();

    assert_ok(mlx_reshape(&res, a, shape, n, at));
    mlx_array_free(a);
    return res;
}

/* Frees both. */
static inline void assert_same(mlx_array found, mlx_array expected)
{
    mlx_array same = mlx_array_new();
    bool is_same = false;

    assert_int_equal(mlx_array_dtype(found), mlx_array_dtype(expected));
    assert_int_equal(mlx_array_ndim(found), mlx_array_ndim(expected));
    for (size_t i = 0; i < mlx_array_ndim(found); i++)
        assert_int_equal(mlx_array_dim(found, (int)i), mlx_array_dim(expected, (int)i));
    assert_ok(mlx_array_equal(&same, found, expected, true, cpu));
    assert_ok(mlx_array_item_bool(&is_same, same));
    assert_true(is_same);
    mlx_array_free(same);
    mlx_array_free(found);
    mlx_array_free(expected);
}
