#include "backend/vulkan/check/fault.h"

#include <stdatomic.h>

static atomic_int faults[VK_FAULT_COUNT];

void vk_fault_set(enum vk_fault f, int times)
{
    atomic_store(&faults[f], times);
}

bool vk_fault_hit(enum vk_fault f)
{
    int left = atomic_load_explicit(&faults[f], memory_order_relaxed);

    while (left > 0)
        if (atomic_compare_exchange_weak(&faults[f], &left, left - 1))
            return true;
    return left < 0;
}
