/* Growable lists of arrays, lists of arrays, ints and strings. Conventions: see mlx.h.
 *
 * Unlike other handles, a list made with _new(void) is live and must be freed. A list keeps its own
 * references to arrays and its own copies of strings: the caller still frees what it put in.
 * Thread-safety: a list may be read by several threads, but not while one of them changes it. */
#ifndef MLX_VECTOR_H
#define MLX_VECTOR_H

#include <stddef.h>

#include "mlx/c/array.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- arrays ---- */

/* A list of arrays. ctx == NULL is the empty handle. */
typedef struct mlx_vector_array_ {
    void *ctx;
} mlx_vector_array;

/* A live list without elements. The empty handle on failure. */
mlx_vector_array mlx_vector_array_new(void);

/* Makes *vec a copy of src; src stays with the caller. */
int mlx_vector_array_set(mlx_vector_array *vec, const mlx_vector_array src);

/* Releases the list and what it holds; the empty handle is allowed. */
int mlx_vector_array_free(mlx_vector_array vec);

/* A list of the size elements at data, or of the single array val. The empty handle on failure. */
mlx_vector_array mlx_vector_array_new_data(const mlx_array *data, size_t size);
mlx_vector_array mlx_vector_array_new_value(const mlx_array val);

/* Replaces the content of *vec by the size elements at data, or by val. */
int mlx_vector_array_set_data(mlx_vector_array *vec, const mlx_array *data, size_t size);
int mlx_vector_array_set_value(mlx_vector_array *vec, const mlx_array val);

/* Appends the size elements at data, or val. On failure the list is as before. */
int mlx_vector_array_append_data(mlx_vector_array vec, const mlx_array *data, size_t size);
int mlx_vector_array_append_value(mlx_vector_array vec, const mlx_array val);

/* Number of elements; 0 on an empty handle, which is an error. */
size_t mlx_vector_array_size(mlx_vector_array vec);

/* Writes a new reference to element idx into *res. An error if idx is not below the size. */
int mlx_vector_array_get(mlx_array *res, const mlx_vector_array vec, size_t idx);

/* ---- lists of arrays ---- */

/* A list of lists of arrays. ctx == NULL is the empty handle. */
typedef struct mlx_vector_vector_array_ {
    void *ctx;
} mlx_vector_vector_array;

/* A live list without elements. The empty handle on failure. */
mlx_vector_vector_array mlx_vector_vector_array_new(void);

/* Makes *vec a copy of src; src stays with the caller. */
int mlx_vector_vector_array_set(mlx_vector_vector_array *vec, const mlx_vector_vector_array src);

/* Releases the list and what it holds; the empty handle is allowed. */
int mlx_vector_vector_array_free(mlx_vector_vector_array vec);

/* A list of the size elements at data, or of the single list val. The empty handle on failure. */
mlx_vector_vector_array mlx_vector_vector_array_new_data(const mlx_vector_array *data, size_t size);
mlx_vector_vector_array mlx_vector_vector_array_new_value(const mlx_vector_array val);

/* Replaces the content of *vec by the size elements at data, or by val. */
int mlx_vector_vector_array_set_data(mlx_vector_vector_array *vec, const mlx_vector_array *data,
                                     size_t size);
int mlx_vector_vector_array_set_value(mlx_vector_vector_array *vec, const mlx_vector_array val);

/* Appends the size elements at data, or val. On failure the list is as before. */
int mlx_vector_vector_array_append_data(mlx_vector_vector_array vec, const mlx_vector_array *data,
                                        size_t size);
int mlx_vector_vector_array_append_value(mlx_vector_vector_array vec, const mlx_vector_array val);

/* Number of elements; 0 on an empty handle, which is an error. */
size_t mlx_vector_vector_array_size(mlx_vector_vector_array vec);

/* Writes a copy of element idx, sharing its arrays, into *res. An error if idx is not below the
 * size. */
int mlx_vector_vector_array_get(mlx_vector_array *res, const mlx_vector_vector_array vec,
                                size_t idx);

/* ---- ints ---- */

/* A list of ints. ctx == NULL is the empty handle. */
typedef struct mlx_vector_int_ {
    void *ctx;
} mlx_vector_int;

/* A live list without elements. The empty handle on failure. */
mlx_vector_int mlx_vector_int_new(void);

/* Makes *vec a copy of src; src stays with the caller. */
int mlx_vector_int_set(mlx_vector_int *vec, const mlx_vector_int src);

/* Releases the list and what it holds; the empty handle is allowed. */
int mlx_vector_int_free(mlx_vector_int vec);

/* A list of the size elements at data, or of the single int val. The empty handle on failure. */
mlx_vector_int mlx_vector_int_new_data(int *data, size_t size);
mlx_vector_int mlx_vector_int_new_value(int val);

/* Replaces the content of *vec by the size elements at data, or by val. */
int mlx_vector_int_set_data(mlx_vector_int *vec, int *data, size_t size);
int mlx_vector_int_set_value(mlx_vector_int *vec, int val);

/* Appends the size elements at data, or val. On failure the list is as before. */
int mlx_vector_int_append_data(mlx_vector_int vec, int *data, size_t size);
int mlx_vector_int_append_value(mlx_vector_int vec, int val);

/* Number of elements; 0 on an empty handle, which is an error. */
size_t mlx_vector_int_size(mlx_vector_int vec);

/* Writes element idx into *res. An error if idx is not below the size. */
int mlx_vector_int_get(int *res, const mlx_vector_int vec, size_t idx);

/* ---- strings ---- */

/* A list of strings. ctx == NULL is the empty handle. */
typedef struct mlx_vector_string_ {
    void *ctx;
} mlx_vector_string;

/* A live list without elements. The empty handle on failure. */
mlx_vector_string mlx_vector_string_new(void);

/* Makes *vec a copy of src; src stays with the caller. */
int mlx_vector_string_set(mlx_vector_string *vec, const mlx_vector_string src);

/* Releases the list and what it holds; the empty handle is allowed. */
int mlx_vector_string_free(mlx_vector_string vec);

/* A list of the size elements at data, or of the single string val. The empty handle on failure. */
mlx_vector_string mlx_vector_string_new_data(const char **data, size_t size);
mlx_vector_string mlx_vector_string_new_value(const char *val);

/* Replaces the content of *vec by the size elements at data, or by val. */
int mlx_vector_string_set_data(mlx_vector_string *vec, const char **data, size_t size);
int mlx_vector_string_set_value(mlx_vector_string *vec, const char *val);

/* Appends the size elements at data, or val. On failure the list is as before. */
int mlx_vector_string_append_data(mlx_vector_string vec, const char **data, size_t size);
int mlx_vector_string_append_value(mlx_vector_string vec, const char *val);

/* Number of elements; 0 on an empty handle, which is an error. */
size_t mlx_vector_string_size(mlx_vector_string vec);

/* Points *res to element idx, borrowed until the list changes or is freed; it must not be written
 * to. An error if idx is not below the size. */
int mlx_vector_string_get(char **res, const mlx_vector_string vec, size_t idx);

#ifdef __cplusplus
}
#endif

#endif
