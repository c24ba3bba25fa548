/* What programs ask of Metal, which is never there. Conventions: see mlx.h. */
#ifndef MLX_METAL_H
#define MLX_METAL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* *res: false. */
int mlx_metal_is_available(bool *res);

/* Without effect, as there is nothing to capture. */
int mlx_metal_start_capture(const char *path);
int mlx_metal_stop_capture(void);

#ifdef __cplusplus
}
#endif

#endif
