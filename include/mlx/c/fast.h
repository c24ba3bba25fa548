/* Ops of neural networks that are faster as one than made of others. Conventions: see mlx.h. */
#ifndef MLX_FAST_H
#define MLX_FAST_H

#include <stdbool.h>

#include "mlx/c/array.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- norms over the last axis, computed in float32 ---- */

/* (x - mean) / sqrt(variance + eps) * weight + bias. weight and bias have the size of the last
 * axis; either may be empty. */
int mlx_fast_layer_norm(mlx_array *res, const mlx_array x, const mlx_array weight,
                        const mlx_array bias, float eps, const mlx_stream s);

/* x / sqrt(mean(x^2) + eps) * weight. weight may be empty. */
int mlx_fast_rms_norm(mlx_array *res, const mlx_array x, const mlx_array weight, float eps,
                      const mlx_stream s);

/* ---- rotary positions ---- */

/* x of shape (B, ..., T, D): the first dims elements of the last axis are rotated in pairs, by
 * (t + offset) * scale / base^(2i / dims), or by (t + offset) * scale / freqs[i]. traditional pairs
 * are neighbours, the others are half of dims apart. Either base or freqs is given; freqs may be
 * empty. */
int mlx_fast_rope(mlx_array *res, const mlx_array x, int dims, bool traditional,
                  mlx_optional_float base, float scale, int offset, const mlx_array freqs,
                  const mlx_stream s);

/* The same with an offset that is computed: an array of one integer, or of one for each batch. */
int mlx_fast_rope_dynamic(mlx_array *res, const mlx_array x, int dims, bool traditional,
                          mlx_optional_float base, float scale, const mlx_array offset,
                          const mlx_array freqs, const mlx_stream s);

/* ---- attention ---- */

/* softmax(scale * queries x keys^T) x values for every head. queries are (B, heads, Lq, D), keys
 * and values (B, kv heads, Lk, D), where heads is a multiple of kv heads. mask_mode is "" (with
 * mask_arr if that is not empty), "array", or "causal": query i sees keys up to i + Lk - Lq.
 * mask_arr may be empty; it broadcasts to (B, heads, Lq, Lk), true where a key is seen, or numbers
 * that are added. sinks may be empty: for each head a score that takes part in the softmax and has
 * no value. */
int mlx_fast_scaled_dot_product_attention(mlx_array *res, const mlx_array queries,
                                          const mlx_array keys, const mlx_array values, float scale,
                                          const char *mask_mode, const mlx_array mask_arr,
                                          const mlx_array sinks, const mlx_stream s);

#ifdef __cplusplus
}
#endif

#endif
