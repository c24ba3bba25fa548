#include "api/handle.h"

int mlx_random_key(mlx_array *res, uint64_t seed)
{
    struct call c = CALL(res);

    if (call_ok(&c))
        c.err = ops_random_key(&c.out, seed);
    return CALL_END_ARR(&c, res);
}

int mlx_random_seed(uint64_t seed)
{
    struct call c = CALL_BARE;

    c.err = ops_random_seed(seed);
    return CALL_END(&c);
}

int mlx_random_split(mlx_array *res_0, mlx_array *res_1, const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res_0, s);
    struct arr *k = call_arr(&c, key, "key");
    struct arr *outs[2] = { NULL, NULL };

    call_ptr(&c, res_1, "res_1");
    if (call_ok(&c))
        c.err = ops_random_split(outs, k, c.strm);
    return CALL_END_PAIR(&c, res_0, res_1, outs);
}

int mlx_random_split_num(mlx_array *res, const mlx_array key, int num, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *k = call_arr(&c, key, "key");

    if (call_ok(&c))
        c.err = ops_random_split_num(&c.out, k, num, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_bits(mlx_array *res, const int *shape, size_t shape_num, int width,
                    const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ints to = call_ints(&c, shape, shape_num, "shape");
    struct arr *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_bits(&c.out, to, width, k, c.strm);
    return CALL_END_ARR(&c, res);
}

/* Between two bounds. */
#define BETWEEN(name, least, most)                                                                 \
    int mlx_random_##name(mlx_array *res, const mlx_array least, const mlx_array most,             \
                          const int *shape, size_t shape_num, mlx_dtype dtype,                     \
                          const mlx_array key, const mlx_stream s)                                 \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct ops_random r = { .shape = call_ints(&c, shape, shape_num, "shape"),                 \
                                .dtype = call_dtype(&c, dtype),                                    \
                                .low = call_arr(&c, least, #least),                                \
                                .high = call_arr(&c, most, #most),                                 \
                                .key = call_arr_opt(&c, key) };                                    \
        if (call_ok(&c))                                                                           \
            c.err = ops_random_##name(&c.out, &r, c.strm);                                         \
        return CALL_END_ARR(&c, res);                                                              \
    }
BETWEEN(uniform, low, high)
BETWEEN(randint, low, high)
BETWEEN(truncated_normal, lower, upper)

/* Around loc, scale wide. */
#define AROUND(name)                                                                               \
    int mlx_random_##name(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,     \
                          float loc, float scale, const mlx_array key, const mlx_stream s)         \
    {                                                                                              \
        struct call c = CALL_OP(res, s);                                                           \
        struct ops_random r = { .shape = call_ints(&c, shape, shape_num, "shape"),                 \
                                .dtype = call_dtype(&c, dtype),                                    \
                                .key = call_arr_opt(&c, key) };                                    \
        if (call_ok(&c) && loc != 0)                                                               \
            c.err = arr_new_number(&r.loc, loc, r.dtype);                                          \
        if (call_ok(&c) && scale != 1)                                                             \
            c.err = arr_new_number(&r.scale, scale, r.dtype);                                      \
        if (call_ok(&c))                                                                           \
            c.err = ops_random_##name(&c.out, &r, c.strm);                                         \
        arr_unref(&r.loc);                                                                         \
        arr_unref(&r.scale);                                                                       \
        return CALL_END_ARR(&c, res);                                                              \
    }
AROUND(laplace)
AROUND(normal)

int mlx_random_permutation(mlx_array *res, const mlx_array x, int axis, const mlx_array key,
                           const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *a = call_arr(&c, x, "x"), *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_shuffle(&c.out, a, axis, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_permutation_arange(mlx_array *res, int x, const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_permutation(&c.out, x, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_normal_broadcast(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array loc, const mlx_array scale, const mlx_array key,
                                const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ops_random r = { .shape = call_ints(&c, shape, shape_num, "shape"),
                            .dtype = call_dtype(&c, dtype),
                            .loc = call_arr_opt(&c, loc),
                            .scale = call_arr_opt(&c, scale),
                            .key = call_arr_opt(&c, key) };

    if (call_ok(&c))
        c.err = ops_random_normal(&c.out, &r, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_multivariate_normal(mlx_array *res, const mlx_array mean, const mlx_array cov,
                                   const int *shape, size_t shape_num, mlx_dtype dtype,
                                   const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *m = call_arr(&c, mean, "mean"), *v = call_arr(&c, cov, "cov");
    struct ops_random r = { .shape = call_ints(&c, shape, shape_num, "shape"),
                            .dtype = call_dtype(&c, dtype),
                            .key = call_arr_opt(&c, key) };

    if (call_ok(&c))
        c.err = ops_random_multivariate_normal(&c.out, m, v, &r, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_bernoulli(mlx_array *res, const mlx_array p, const int *shape, size_t shape_num,
                         const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, p, "p");
    struct ints to = call_ints(&c, shape, shape_num, "shape");
    struct arr *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_bernoulli(&c.out, x, to, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_gumbel(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                      const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct ints to = call_ints(&c, shape, shape_num, "shape");
    enum dtype t = call_dtype(&c, dtype);
    struct arr *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_gumbel(&c.out, to, t, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_categorical(mlx_array *res, const mlx_array logits, int axis, const mlx_array key,
                           const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, logits, "logits"), *k = call_arr_opt(&c, key);

    if (call_ok(&c))
        c.err = ops_random_categorical(&c.out, x, axis, k, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_categorical_shape(mlx_array *res, const mlx_array logits, int axis, const int *shape,
                                 size_t shape_num, const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, logits, "logits");
    struct ops_random r = { .shape = call_ints(&c, shape, shape_num, "shape"),
                            .key = call_arr_opt(&c, key) };

    if (call_ok(&c))
        c.err = ops_random_categorical_shape(&c.out, x, axis, &r, c.strm);
    return CALL_END_ARR(&c, res);
}

int mlx_random_categorical_num_samples(mlx_array *res, const mlx_array logits_, int axis,
                                       int num_samples, const mlx_array key, const mlx_stream s)
{
    struct call c = CALL_OP(res, s);
    struct arr *x = call_arr(&c, logits_, "logits");
    struct ops_samples v = { num_samples, call_arr_opt(&c, key) };

    if (call_ok(&c))
        c.err = ops_random_categorical_samples(&c.out, x, axis, &v, c.strm);
    return CALL_END_ARR(&c, res);
}
