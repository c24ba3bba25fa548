/* Host memory for arrays. */
#include "backend/common/buffer_cache.h"
#include "backend/cpu/cpu.h"
#include "base/stat.h"
#include "graph/memory.h"

#include <unistd.h>

static void release(struct buf *b)
{
    mem_free(b->host);
    mem_free(b);
}

static struct buf_cache cache = BUF_CACHE_INIT(release, 0);

static struct buf *buf_create(size_t size)
{
    struct buf *b = mem_alloc(sizeof *b);

    if (!b || !(b->host = mem_alloc_aligned(size))) {
        mem_free(b);
        return NULL;
    }
    b->home = &be_cpu;
    b->size = size;
    return b;
}

enum err cpu_buf_alloc(struct buf **out, size_t size)
{
    size = buf_cache_round(size);
    struct buf *b = buf_cache_take(&cache, size);

    stat_add(b ? STAT_ALLOC_CACHE_HITS : STAT_ALLOC_CACHE_MISSES, 1);
    if (!b) {
        buf_cache_make_room(&cache, size);
        b = buf_create(size);
    }
    if (!b)
        return ERR_NO_MEMORY;
    atomic_init(&b->refs, 1);
    memory_acquire(b->size);
    buf_cache_enforce_limit(&cache);
    *out = b;
    return ERR_OK;
}

void cpu_buf_free(struct buf *b)
{
    memory_release(b->size);
    buf_cache_put(&cache, b);
}

void cpu_cache_clear(void)
{
    buf_cache_clear(&cache);
}

size_t cpu_memory_size(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page : 0;
}

enum err cpu_src_host(const char **out, const struct cpu_src *src)
{
    const void *first = NULL;
    enum err err = src->buf ? buf_host_span(&first, src->buf, src->span) : ERR_OK;

    *out = first ? (const char *)first + (src->offset - (int64_t)src->span.lo) : NULL;
    return err;
}
