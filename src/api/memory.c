#include "api/handle.h"

#include <stdlib.h>

#include "graph/memory.h"

#define SIZE_GETTER(name, value)                                                                   \
    int mlx_get_##name(size_t *res)                                                                \
    {                                                                                              \
        struct call c = CALL(res);                                                                 \
        if (call_ok(&c))                                                                           \
            *res = value();                                                                        \
        return CALL_END(&c);                                                                       \
    }
SIZE_GETTER(active_memory, memory_active)
SIZE_GETTER(cache_memory, memory_cache)
SIZE_GETTER(memory_limit, memory_limit)
SIZE_GETTER(peak_memory, memory_peak)

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (struct buf *const *)a, y = (uintptr_t) * (struct buf *const *)b;

    return (x > y) - (x < y);
}

/* bufs: room for one of each array. */
static enum err buffers_size(size_t *out, struct buf **bufs, struct arrs in)
{
    size_t size = 0, n = 0;

    for (size_t i = 0; i < in.n; i++) {
        if (!arr_is_scheduled(in.v[i]))
            return err_set(ERR_ARG,
                           "[get_array_buffer_size] Array %zu has not been evaluated, and has no "
                           "buffer yet.",
                           i);
        if (in.v[i]->buf)
            bufs[n++] = in.v[i]->buf;
    }
    if (n)
        qsort(bufs, n, sizeof *bufs, by_address);
    for (size_t i = 0; i < n; i++)
        size += i && bufs[i] == bufs[i - 1] ? 0 : bufs[i]->size;
    *out = size;
    return ERR_OK;
}

int mlx_get_array_buffer_size(size_t *res, const mlx_vector_array arrays)
{
    struct call c = CALL(res);
    const struct list *in = call_vec(&c, arrays, "arrays");
    struct buf **bufs = NULL;

    if (call_ok(&c) && !(bufs = mem_alloc_array(in->n + 1, sizeof *bufs)))
        c.err = ERR_NO_MEMORY;
    if (call_ok(&c))
        c.err = buffers_size(res, bufs, list_arrs(in));
    mem_free(bufs);
    return CALL_END(&c);
}

int mlx_clear_cache(void)
{
    memory_clear_cache();
    return 0;
}

int mlx_reset_peak_memory(void)
{
    memory_reset_peak();
    return 0;
}

int mlx_set_cache_limit(size_t *res, size_t limit)
{
    struct call c = CALL(res);

    if (call_ok(&c))
        *res = memory_set_cache_limit(limit);
    return CALL_END(&c);
}

int mlx_set_memory_limit(size_t *res, size_t limit)
{
    struct call c = CALL(res);

    if (call_ok(&c))
        *res = memory_set_limit(limit);
    return CALL_END(&c);
}

/* Vulkan has no notion of wiring memory down: the limit is always 0, as on MLX's other devices
 * without it. */
int mlx_set_wired_limit(size_t *res, size_t limit)
{
    struct call c = CALL(res);

    (void)limit;
    if (call_ok(&c))
        *res = 0;
    return CALL_END(&c);
}
