/* Version of the library. Conventions: see mlx.h. */
#ifndef MLX_VERSION_H
#define MLX_VERSION_H

#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the version of MLX whose behaviour this library follows, e.g. "0.32.4". */
int mlx_version(mlx_string *str_);

#ifdef __cplusplus
}
#endif

#endif
