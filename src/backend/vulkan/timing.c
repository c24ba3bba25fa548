#include "backend/vulkan/timing.h"

#include "backend/vulkan/device.h"
#include "core/gate.h"
#include "core/stat.h"

void timing_begin(struct timing_slot *t, VkCommandBuffer cmd, const struct vk_queue *queue)
{
    VkQueryPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = 2 };

    t->running = false;
    if (!gate_on(GATE_VK_TIMING) || !queue->timestamp_bits)
        return;
    if (!t->pool && vk.CreateQueryPool(vk_dev.handle, &info, NULL, &t->pool) < 0)
        return;
    t->running = true;
    t->mask = queue->timestamp_bits < 64 ? (1ull << queue->timestamp_bits) - 1 : UINT64_MAX;
    vk.CmdResetQueryPool(cmd, t->pool, 0, 2);
    /* Taken when earlier work is complete, so that waiting in the queue does not count as busy. */
    vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, t->pool, 0);
}

void timing_end(struct timing_slot *t, VkCommandBuffer cmd)
{
    if (t->running)
        vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, t->pool, 1);
}

void timing_collect(struct timing_slot *t)
{
    double period = vk_dev.phys.props.limits.timestampPeriod;
    uint64_t ticks[2];

    if (t->running && vk.GetQueryPoolResults(vk_dev.handle, t->pool, 0, 2, sizeof ticks, ticks,
                                             sizeof *ticks, VK_QUERY_RESULT_64_BIT) == VK_SUCCESS)
        stat_add(STAT_GPU_NANOSECONDS,
                 (uint64_t)((double)((ticks[1] - ticks[0]) & t->mask) * period));
    t->running = false;
}
