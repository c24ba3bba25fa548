/* What programs ask of CUDA, which is never there: NVIDIA's GPUs are used through Vulkan.
 * Conventions: see mlx.h. */
#ifndef MLX_CUDA_H
#define MLX_CUDA_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *res: false. */
int mlx_cuda_is_available(bool *res);

#ifdef __cplusplus
}
#endif

#endif
