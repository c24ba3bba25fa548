#include "api/handle.h"

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
