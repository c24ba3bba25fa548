#include "graph/memory.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/mem.h"
#include "base/process.h"

/* Defaults: MLX's fractions of the memory that the arrays live in (docs/runtime.md, Memory). */
#define CPU_ONLY_CACHE ((size_t)32 << 20)

static atomic_size_t active, peak, cached;
/* SIZE_MAX: not set, the default applies. */
static atomic_size_t limit = SIZE_MAX, cache_limit = SIZE_MAX;

void memory_acquire(size_t bytes)
{
    size_t now = atomic_fetch_add(&active, bytes) + bytes;
    size_t seen = atomic_load(&peak);

    while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now))
        ;
}

void memory_release(size_t bytes)
{
    atomic_fetch_sub(&active, bytes);
}

void memory_cached(int64_t delta)
{
    atomic_fetch_add(&cached, (size_t)delta);
}

size_t memory_active(void)
{
    return atomic_load(&active);
}

size_t memory_peak(void)
{
    return atomic_load(&peak);
}

size_t memory_cache(void)
{
    return atomic_load(&cached);
}

void memory_reset_peak(void)
{
    atomic_store(&peak, 0);
}

static size_t host_memory(void)
{
    static _Atomic size_t known; /* asked at every step of an eval */
    size_t n = atomic_load_explicit(&known, memory_order_relaxed);

    if (!n) {
        long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        n = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : (size_t)8 << 30;
        atomic_store_explicit(&known, n, memory_order_relaxed);
    }
    return n;
}

static size_t default_limit(void)
{
    static _Atomic size_t known; /* of a GPU that is open: asked at every step of an eval */
    size_t n = atomic_load_explicit(&known, memory_order_relaxed);

    if (n)
        return n;
    const struct be *gpu = dev_is_open(DEV_GPU) ? dev_backend(DEV_GPU) : NULL;
    n = gpu && gpu->is_hardware() ? gpu->memory_size() / 100 * 95 : host_memory() / 10 * 8;
    if (gpu)
        atomic_store_explicit(&known, n, memory_order_relaxed);
    return n;
}

size_t memory_limit(void)
{
    size_t n = atomic_load_explicit(&limit, memory_order_relaxed);

    return n == SIZE_MAX ? default_limit() : n;
}

bool memory_is_short(void)
{
    return atomic_load_explicit(&active, memory_order_relaxed) > memory_limit();
}

size_t memory_cache_limit(void)
{
    size_t n = atomic_load(&cache_limit);

    if (n != SIZE_MAX)
        return n;
    return dev_is_open(DEV_GPU) ? memory_limit() : CPU_ONLY_CACHE;
}

size_t memory_gc_limit(void)
{
    return memory_limit() / 100 * 95;
}

size_t memory_set_limit(size_t n)
{
    size_t old = memory_limit();

    atomic_store(&limit, n);
    return old;
}

size_t memory_set_cache_limit(size_t n)
{
    size_t old = memory_cache_limit();

    atomic_store(&cache_limit, n);
    return old;
}

void memory_clear_cache(void)
{
    for (int t = 0; t < DEV_TYPE_COUNT; t++) {
        const struct be *be = dev_backend((enum dev_type)t);
        if (be && be->cache_clear && dev_is_open((enum dev_type)t))
            be->cache_clear();
    }
}

enum err memory_alloc(struct buf **out, size_t size, const struct be *home)
{
    const struct be *gpu = dev_is_open(DEV_GPU) ? dev_backend(DEV_GPU) : NULL;
    enum err err = process_check();

    if (err)
        return err;
    if (home->type == DEV_CPU && gpu && gpu->is_unified() && gpu->buf_alloc(out, size) == ERR_OK)
        return ERR_OK;
    return home->buf_alloc(out, size); /* a GPU may refuse what the host has room for */
}

/* The default device writes its own copy; saves the second copy that its first use would make. */
static enum err new_device_leaf(struct buf **out, const void *data, size_t size,
                                const struct be *home)
{
    struct buf *b = NULL;
    enum err err;

    TRY(home->buf_alloc(&b, size));
    TRY(home->buf_write(b, data, size));
    *out = b;
    b = NULL;
out:
    buf_unref(&b);
    return err;
}

enum err memory_new_leaf(struct buf **out, const void *data, size_t size)
{
    const struct be *home = dev_backend(dev_default().type);
    enum err err = process_begin();

    if (err)
        return err;
    if (data && home->buf_takes_host_writes && home->buf_takes_host_writes()) {
        err = new_device_leaf(out, data, size, home);
    } else {
        err = memory_alloc(out, size, &be_cpu);
        if (!err && data)
            memcpy((*out)->host, data, size);
    }
    process_leave();
    return err;
}

enum err memory_adopt(struct buf **out, void *data, size_t size, void (*dtor)(void *), void *arg)
{
    struct buf *b = mem_alloc(sizeof *b);

    if (!b)
        return ERR_NO_MEMORY;
    *b = (struct buf){ .home = &be_cpu, .size = size, .host = data, .dtor = dtor, .dtor_arg = arg };
    atomic_init(&b->refs, 1);
    memory_acquire(size);
    *out = b;
    return ERR_OK;
}
