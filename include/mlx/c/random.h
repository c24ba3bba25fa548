/* Random numbers. Conventions: see mlx.h.
 *
 * Numbers come from a counter-based generator (threefry): the same key always gives the same bits,
 * on every device. key is a uint32 array of two elements; where it may be empty, an empty one draws
 * the next key from the state of the calling thread (see mlx_random_seed). shape may be NULL if
 * shape_num is 0. */
#ifndef MLX_RANDOM_H
#define MLX_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "mlx/c/array.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- keys ---- */

/* The key that belongs to seed. */
int mlx_random_key(mlx_array *res, uint64_t seed);

/* Restarts the generator that calls without a key draw from. */
int mlx_random_seed(uint64_t seed);

/* Two new keys, independent of each other and of key. */
int mlx_random_split(mlx_array *res_0, mlx_array *res_1, const mlx_array key, const mlx_stream s);

/* num new keys, as the rows of an array of shape (num, 2). */
int mlx_random_split_num(mlx_array *res, const mlx_array key, int num, const mlx_stream s);

/* ---- distributions ---- */

/* Unsigned integers of width bytes (1, 2 or 4) with all bits random. key may be empty. */
int mlx_random_bits(mlx_array *res, const int *shape, size_t shape_num, int width,
                    const mlx_array key, const mlx_stream s);

/* Uniform in [low, high), which broadcast to shape; dtype is a floating point type. key may be
 * empty. */
int mlx_random_uniform(mlx_array *res, const mlx_array low, const mlx_array high, const int *shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key, const mlx_stream s);

/* Normal with mean loc and standard deviation scale; dtype is a floating point type or complex64.
 * key may be empty. */
int mlx_random_normal(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                      float loc, float scale, const mlx_array key, const mlx_stream s);

/* The same with arrays that broadcast to shape. loc may be empty (0), scale may be empty (1), key
 * may be empty. */
int mlx_random_normal_broadcast(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array loc, const mlx_array scale, const mlx_array key,
                                const mlx_stream s);

/* Vectors with this mean and covariance, drawn from a normal distribution: an array of shape, which
 * broadcasts with what comes before the last axis of mean and the last two of cov, and of the
 * vectors' length. float32 only, on a CPU stream. key may be empty. */
int mlx_random_multivariate_normal(mlx_array *res, const mlx_array mean, const mlx_array cov,
                                   const int *shape, size_t shape_num, mlx_dtype dtype,
                                   const mlx_array key, const mlx_stream s);

/* The Laplace distribution; dtype is a floating point type. key may be empty. */
int mlx_random_laplace(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                       float loc, float scale, const mlx_array key, const mlx_stream s);

/* The standard normal distribution between two bounds, which broadcast to shape; dtype is a
 * floating point type. key may be empty. */
int mlx_random_truncated_normal(mlx_array *res, const mlx_array lower, const mlx_array upper,
                                const int *shape, size_t shape_num, mlx_dtype dtype,
                                const mlx_array key, const mlx_stream s);

/* The parts of x along the axis in random order; the numbers 0 to x - 1, as uint32. key may be
 * empty.
 */
int mlx_random_permutation(mlx_array *res, const mlx_array x, int axis, const mlx_array key,
                           const mlx_stream s);
int mlx_random_permutation_arange(mlx_array *res, int x, const mlx_array key, const mlx_stream s);

/* The standard Gumbel distribution; dtype is a floating point type. key may be empty. */
int mlx_random_gumbel(mlx_array *res, const int *shape, size_t shape_num, mlx_dtype dtype,
                      const mlx_array key, const mlx_stream s);

/* Positions along the axis, drawn with probabilities in proportion to exp(logits): one for each
 * distribution; an array of this shape, to which the other dimensions of logits broadcast; or
 * num_samples for each distribution, along a new last dimension. key may be empty. */
int mlx_random_categorical(mlx_array *res, const mlx_array logits, int axis, const mlx_array key,
                           const mlx_stream s);
int mlx_random_categorical_shape(mlx_array *res, const mlx_array logits, int axis, const int *shape,
                                 size_t shape_num, const mlx_array key, const mlx_stream s);
int mlx_random_categorical_num_samples(mlx_array *res, const mlx_array logits_, int axis,
                                       int num_samples, const mlx_array key, const mlx_stream s);

/* Integers in [low, high), which broadcast to shape; dtype is an integer type or bool. key may
 * be empty. */
int mlx_random_randint(mlx_array *res, const mlx_array low, const mlx_array high, const int *shape,
                       size_t shape_num, mlx_dtype dtype, const mlx_array key, const mlx_stream s);

/* bool, true with probability p, which broadcasts to shape. key may be empty. */
int mlx_random_bernoulli(mlx_array *res, const mlx_array p, const int *shape, size_t shape_num,
                         const mlx_array key, const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
