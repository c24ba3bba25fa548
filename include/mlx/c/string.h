/* Strings that the library hands out. Conventions: see mlx.h. */
#ifndef MLX_STRING_H
#define MLX_STRING_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An owned, zero-terminated string. ctx == NULL is the empty handle. */
typedef struct mlx_string_ {
    void *ctx;
} mlx_string;

/* The empty handle. Cannot fail. */
mlx_string mlx_string_new(void);

/* A copy of str, which must not be NULL. The empty handle on failure. */
mlx_string mlx_string_new_data(const char *str);

/* Makes *str a copy of src; src stays with the caller. */
int mlx_string_set(mlx_string *str, const mlx_string src);

/* The characters. Borrowed: valid until the string is set or freed. NULL on an empty handle, which
 * is an error. */
const char *mlx_string_data(mlx_string str);

/* Releases the string; the empty handle is allowed. */
int mlx_string_free(mlx_string str);

#ifdef __cplusplus
}
#endif

#endif
