/* How long the GPU is busy: a timestamp at each end of every command buffer while VK_TIMING is on.
 * The sum is the counter GPU_NANOSECONDS; benches take differences. */
#pragma once

#include "backend/vulkan/loader.h"
#include "core/common.h"

struct vk_queue;

struct timing_slot {
    VkQueryPool pool;
    uint64_t mask; /* valid bits of a timestamp */
    bool running;  /* this command buffer is timed */
};

/* First and last commands of a command buffer; nothing is recorded while the setting is off. */
void timing_begin(struct timing_slot *t, VkCommandBuffer cmd, const struct vk_queue *queue);
void timing_end(struct timing_slot *t, VkCommandBuffer cmd);
/* The command buffer is complete: adds its time. */
void timing_collect(struct timing_slot *t);
