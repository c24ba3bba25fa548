/* Failures that tests inject where a driver would report them. Never set outside tests. */
#pragma once

#include "base/common.h"

enum vk_fault {
    VK_FAULT_NO_DEVICE, /* the instance lists no device */
    VK_FAULT_FLOOR,     /* a required feature is missing */
    VK_FAULT_MEMORY,    /* vkAllocateMemory: out of device memory */
    VK_FAULT_LOST,      /* vkQueueSubmit: device lost */
    VK_FAULT_SUBMIT,    /* vkQueueSubmit: out of device memory */
    VK_FAULT_PIPELINE,  /* vkCreateComputePipelines fails */
    VK_FAULT_TIMELINE,  /* not a failure: streams that share a queue use semaphores, too */
    VK_FAULT_COUNT
};

/* The next `times` calls fail; negative: all of them, 0: none. Thread-safety: safe. */
void vk_fault_set(enum vk_fault f, int times);
/* True if this call is to fail. */
bool vk_fault_hit(enum vk_fault f);
