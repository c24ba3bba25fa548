/* Tables from strings to arrays or strings. Conventions: see mlx.h.
 *
 * A table made with _new(void) is live and must be freed. It copies keys and string values and
 * keeps its own references to arrays. Thread-safety: a table may be read by several threads, but
 * not while one of them changes it. */
#ifndef MLX_MAP_H
#define MLX_MAP_H

#include "mlx/c/array.h"
#include "mlx/c/string.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- strings to arrays ---- */

/* A table. ctx == NULL is the empty handle. */
typedef struct mlx_map_string_to_array_ {
    void *ctx;
} mlx_map_string_to_array;

/* A position in a table. Valid while the table lives and is not changed. */
typedef struct mlx_map_string_to_array_iterator_ {
    void *ctx;
    void *map_ctx;
} mlx_map_string_to_array_iterator;

/* A live table without entries. The empty handle on failure. */
mlx_map_string_to_array mlx_map_string_to_array_new(void);

/* Makes *map a copy of src; src stays with the caller. */
int mlx_map_string_to_array_set(mlx_map_string_to_array *map, const mlx_map_string_to_array src);

/* Releases the table and what it holds; the empty handle is allowed. */
int mlx_map_string_to_array_free(mlx_map_string_to_array map);

/* Puts value under key, in place of what was there. */
int mlx_map_string_to_array_insert(mlx_map_string_to_array map, const char *key,
                                   const mlx_array value);

/* Writes a new reference to the array under key into *value. 2 if there is no such key, and *value
 * is as before. */
int mlx_map_string_to_array_get(mlx_array *value, const mlx_map_string_to_array map,
                                const char *key);

/* A position before the first entry, to be freed. Entries come in no particular order. */
mlx_map_string_to_array_iterator mlx_map_string_to_array_iterator_new(mlx_map_string_to_array map);

/* Releases the position, not the table. */
int mlx_map_string_to_array_iterator_free(mlx_map_string_to_array_iterator it);

/* Steps to the next entry: *key is borrowed from the table, *value receives a new reference. 2 at
 * the end. */
int mlx_map_string_to_array_iterator_next(const char **key, mlx_array *value,
                                          mlx_map_string_to_array_iterator it);

/* ---- strings to strings ---- */

/* A table. ctx == NULL is the empty handle. */
typedef struct mlx_map_string_to_string_ {
    void *ctx;
} mlx_map_string_to_string;

/* A position in a table. Valid while the table lives and is not changed. */
typedef struct mlx_map_string_to_string_iterator_ {
    void *ctx;
    void *map_ctx;
} mlx_map_string_to_string_iterator;

/* A live table without entries. The empty handle on failure. */
mlx_map_string_to_string mlx_map_string_to_string_new(void);

/* Makes *map a copy of src; src stays with the caller. */
int mlx_map_string_to_string_set(mlx_map_string_to_string *map, const mlx_map_string_to_string src);

/* Releases the table and what it holds; the empty handle is allowed. */
int mlx_map_string_to_string_free(mlx_map_string_to_string map);

/* Puts value under key, in place of what was there. */
int mlx_map_string_to_string_insert(mlx_map_string_to_string map, const char *key,
                                    const char *value);

/* Points *value to the text under key, borrowed until the table changes or is freed. 2 if there is
 * no such key, and *value is as before. */
int mlx_map_string_to_string_get(const char **value, const mlx_map_string_to_string map,
                                 const char *key);

/* A position before the first entry, to be freed. Entries come in no particular order. */
mlx_map_string_to_string_iterator mlx_map_string_to_string_iterator_new(
    mlx_map_string_to_string map);

/* Releases the position, not the table. */
int mlx_map_string_to_string_iterator_free(mlx_map_string_to_string_iterator it);

/* Steps to the next entry: *key is borrowed from the table, *value is borrowed too. 2 at the end.
 */
int mlx_map_string_to_string_iterator_next(const char **key, const char **value,
                                           mlx_map_string_to_string_iterator it);

#ifdef __cplusplus
}
#endif

#endif
