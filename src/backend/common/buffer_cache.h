/* Freed buffers kept for reuse, with MLX's rules (docs/runtime.md, Memory): the smallest cached
 * buffer that is not much larger than the request, least recently used ones released first.
 * Thread-safety: safe.
 */
#pragma once

#include <pthread.h>

#include "graph/array.h"

struct cache_node;

struct cache_bin {
    size_t size;
    struct cache_node *head;
};

struct buf_cache {
    /* Gives a buffer's memory back to the system. Called without locks. */
    void (*release)(struct buf *b);
    /* 0: the cache counts in the memory API and obeys its cache limit. Otherwise a cache of its own
     * with this many bytes. */
    size_t own_limit;
    pthread_mutex_t lock; /* guards what follows */
    size_t bytes;
    VEC(struct cache_bin) bins; /* by ascending size, none empty */
    struct cache_node *newest, *oldest, *spare;
};

#define BUF_CACHE_INIT(release_, own_limit_)                                                       \
    {                                                                                              \
        .release = (release_), .own_limit = (own_limit_), .lock = PTHREAD_MUTEX_INITIALIZER        \
    }

/* What a request is rounded to: small sizes stay exact, larger ones are whole pages. */
#define BUF_CACHE_PAGE 16384
static inline size_t buf_cache_round(size_t size)
{
    return size > BUF_CACHE_PAGE ? align_up(size, BUF_CACHE_PAGE) : size;
}

/* Takes a buffer with size <= b->size < min(2 size, size + 2 pages) out of the cache, or NULL. */
struct buf *buf_cache_take(struct buf_cache *c, size_t size);

/* Keeps b, or releases it when the cache is at its limit. */
void buf_cache_put(struct buf_cache *c, struct buf *b);

/* Before growing by size bytes: releases old buffers when active and cached memory would pass the
 * garbage collection limit. */
void buf_cache_make_room(struct buf_cache *c, size_t size);

/* Releases what exceeds the cache limit; called after an allocation. */
void buf_cache_enforce_limit(struct buf_cache *c);

void buf_cache_clear(struct buf_cache *c);
size_t buf_cache_bytes(struct buf_cache *c);
