/* Memory accounting behind MLX's memory API, shared by all allocators. Thread-safety: safe. */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct buf;
struct be;

/* Allocators report what they hand out and take back, and what they keep cached. */
void memory_acquire(size_t bytes);
void memory_release(size_t bytes);
void memory_cached(int64_t delta);

size_t memory_active(void);
size_t memory_peak(void);
size_t memory_cache(void);
void memory_reset_peak(void);
/* True if there are more active bytes than the limit. */
bool memory_is_short(void);
size_t memory_limit(void);
size_t memory_cache_limit(void);
/* Active plus cached bytes above which an allocator releases cached buffers before growing. */
size_t memory_gc_limit(void);
size_t memory_set_limit(size_t limit);
size_t memory_set_cache_limit(size_t limit);
void memory_clear_cache(void);

/* A buffer of size > 0 bytes that home writes. Host memory comes from the GPU's allocator where
 * that is unified, open and large enough, so that no mirror is needed there. */
MUST_CHECK enum err memory_alloc(struct buf **out, size_t size, const struct be *home);
/* A buffer for a leaf: a copy of data, or unset bytes if data is NULL. Its home is the default
 * device where the host writes that one's memory directly, else the host. */
MUST_CHECK enum err memory_new_leaf(struct buf **out, const void *data, size_t size);
/* Adopts memory of the caller; dtor(arg) runs when the bytes are no longer needed. */
MUST_CHECK enum err memory_adopt(struct buf **out, void *data, size_t size, void (*dtor)(void *),
                                 void *arg);
