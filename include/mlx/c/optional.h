/* Scalars that may be absent. An all-zero struct means "absent". */
#ifndef MLX_OPTIONAL_H
#define MLX_OPTIONAL_H

#include <stdbool.h>

#include "mlx/c/array.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An int, used only where has_value is true. */
typedef struct mlx_optional_int_ {
    int value;
    bool has_value;
} mlx_optional_int;

/* A float, used only where has_value is true. */
typedef struct mlx_optional_float_ {
    float value;
    bool has_value;
} mlx_optional_float;

/* A dtype, used only where has_value is true. */
typedef struct mlx_optional_dtype_ {
    mlx_dtype value;
    bool has_value;
} mlx_optional_dtype;

#ifdef __cplusplus
}
#endif

#endif
