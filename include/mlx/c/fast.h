/* Ops of neural networks that are faster as one than made of others. Conventions: see mlx.h. */
#ifndef MLX_FAST_H
#define MLX_FAST_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/optional.h"
#include "mlx/c/stream.h"
#include "mlx/c/vector.h"

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

/* ---- kernels of callers, in the languages of Metal and CUDA ----
 *
 * Neither is there, so programs that know them find all functions and nothing of theirs runs. A
 * configuration can be made, filled and freed. A Metal kernel can be made, and
 * mlx_fast_metal_kernel_apply fails; mlx_fast_cuda_kernel_new fails. */

typedef struct mlx_fast_metal_kernel_config_ {
    void *ctx;
} mlx_fast_metal_kernel_config;

mlx_fast_metal_kernel_config mlx_fast_metal_kernel_config_new(void);
void mlx_fast_metal_kernel_config_free(mlx_fast_metal_kernel_config cls);
int mlx_fast_metal_kernel_config_add_output_arg(mlx_fast_metal_kernel_config cls, const int *shape,
                                                size_t size, mlx_dtype dtype);
int mlx_fast_metal_kernel_config_set_grid(mlx_fast_metal_kernel_config cls, int grid1, int grid2,
                                          int grid3);
int mlx_fast_metal_kernel_config_set_thread_group(mlx_fast_metal_kernel_config cls, int thread1,
                                                  int thread2, int thread3);
int mlx_fast_metal_kernel_config_set_init_value(mlx_fast_metal_kernel_config cls, float value);
int mlx_fast_metal_kernel_config_set_verbose(mlx_fast_metal_kernel_config cls, bool verbose);
int mlx_fast_metal_kernel_config_add_template_arg_dtype(mlx_fast_metal_kernel_config cls,
                                                        const char *name, mlx_dtype dtype);
int mlx_fast_metal_kernel_config_add_template_arg_int(mlx_fast_metal_kernel_config cls,
                                                      const char *name, int value);
int mlx_fast_metal_kernel_config_add_template_arg_bool(mlx_fast_metal_kernel_config cls,
                                                       const char *name, bool value);

typedef struct mlx_fast_metal_kernel_ {
    void *ctx;
} mlx_fast_metal_kernel;

mlx_fast_metal_kernel mlx_fast_metal_kernel_new(const char *name,
                                                const mlx_vector_string input_names,
                                                const mlx_vector_string output_names,
                                                const char *source, const char *header,
                                                bool ensure_row_contiguous, bool atomic_outputs);
void mlx_fast_metal_kernel_free(mlx_fast_metal_kernel cls);
int mlx_fast_metal_kernel_apply(mlx_vector_array *outputs, mlx_fast_metal_kernel cls,
                                const mlx_vector_array inputs,
                                const mlx_fast_metal_kernel_config config, const mlx_stream stream);

typedef struct mlx_fast_cuda_kernel_config_ {
    void *ctx;
} mlx_fast_cuda_kernel_config;

mlx_fast_cuda_kernel_config mlx_fast_cuda_kernel_config_new(void);
void mlx_fast_cuda_kernel_config_free(mlx_fast_cuda_kernel_config cls);
int mlx_fast_cuda_kernel_config_add_output_arg(mlx_fast_cuda_kernel_config cls, const int *shape,
                                               size_t size, mlx_dtype dtype);
int mlx_fast_cuda_kernel_config_set_grid(mlx_fast_cuda_kernel_config cls, int grid1, int grid2,
                                         int grid3);
int mlx_fast_cuda_kernel_config_set_thread_group(mlx_fast_cuda_kernel_config cls, int thread1,
                                                 int thread2, int thread3);
int mlx_fast_cuda_kernel_config_set_init_value(mlx_fast_cuda_kernel_config cls, float value);
int mlx_fast_cuda_kernel_config_set_verbose(mlx_fast_cuda_kernel_config cls, bool verbose);
int mlx_fast_cuda_kernel_config_add_template_arg_dtype(mlx_fast_cuda_kernel_config cls,
                                                       const char *name, mlx_dtype dtype);
int mlx_fast_cuda_kernel_config_add_template_arg_int(mlx_fast_cuda_kernel_config cls,
                                                     const char *name, int value);
int mlx_fast_cuda_kernel_config_add_template_arg_bool(mlx_fast_cuda_kernel_config cls,
                                                      const char *name, bool value);

typedef struct mlx_fast_cuda_kernel_ {
    void *ctx;
} mlx_fast_cuda_kernel;

mlx_fast_cuda_kernel mlx_fast_cuda_kernel_new(const char *name, const mlx_vector_string input_names,
                                              const mlx_vector_string output_names,
                                              const char *source, const char *header,
                                              bool ensure_row_contiguous, int shared_memory);
void mlx_fast_cuda_kernel_free(mlx_fast_cuda_kernel cls);
int mlx_fast_cuda_kernel_apply(mlx_vector_array *outputs, mlx_fast_cuda_kernel cls,
                               const mlx_vector_array inputs,
                               const mlx_fast_cuda_kernel_config config, const mlx_stream stream);

#ifdef __cplusplus
}
#endif

#endif
