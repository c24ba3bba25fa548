/* Memory of the library's allocators, all devices together, in bytes. Conventions: see mlx.h. */
#ifndef MLX_MEMORY_H
#define MLX_MEMORY_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns every cached, unused buffer to the system. */
int mlx_clear_cache(void);

/* Bytes in use by arrays now; buffers waiting in the cache do not count. */
int mlx_get_active_memory(size_t *res);

/* Bytes of unused buffers kept for reuse. */
int mlx_get_cache_memory(size_t *res);

/* The limit set with mlx_set_memory_limit, or the default derived from the device. */
int mlx_get_memory_limit(size_t *res);

/* Highest active memory since the start or the last reset. */
int mlx_get_peak_memory(size_t *res);

/* Makes the peak start again from what is active now. */
int mlx_reset_peak_memory(void);

/* Sets how many bytes of unused buffers are kept; 0 keeps none. *res: the limit before. */
int mlx_set_cache_limit(size_t *res, size_t limit);

/* Sets the amount of active memory above which evaluation waits for running work to finish before
 * it allocates more. A guideline, not a wall: an array that must exist is allocated all the same.
 * *res: the limit before. */
int mlx_set_memory_limit(size_t *res, size_t limit);

/* Sets how many bytes may be pinned for the device; 0 pins none. *res: the limit before.
 * Without effect on devices that do not page. */
int mlx_set_wired_limit(size_t *res, size_t limit);

#ifdef __cplusplus
}
#endif

#endif
