/* The two halves of vmap, for bindings, which call one after the other. Conventions: see mlx.h. */
#ifndef MLX_TRANSFORMS_IMPL_H
#define MLX_TRANSFORMS_IMPL_H

#include "mlx/c/closure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls fun on placeholders in the place of inputs: an input with an axis loses it, one with -1 is
 * taken as it is. res_0: what fun was called on; res_1: what it gave. */
int mlx_detail_vmap_trace(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_closure fun,
                          const mlx_vector_array inputs, const int *in_axes, size_t in_axes_num);

/* What fun gives over the batch, from what the trace gave (s_inputs, s_outputs); out_axes says
 * where each result has the batch. */
int mlx_detail_vmap_replace(mlx_vector_array *res, const mlx_vector_array inputs,
                            const mlx_vector_array s_inputs, const mlx_vector_array s_outputs,
                            const int *in_axes, size_t in_axes_num, const int *out_axes,
                            size_t out_axes_num);

#ifdef __cplusplus
}
#endif

#endif
