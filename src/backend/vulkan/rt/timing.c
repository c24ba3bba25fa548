#include "backend/vulkan/rt/timing.h"

#include "backend/vulkan/rt/device.h"
#include "base/clock.h"
#include "base/gate.h"
#include "base/stat.h"
#include "base/times.h"
#include "base/trace.h"

/* Dispatches with timestamps per command buffer. */
#define MAX_DISPATCHES 1024

/* Query 0 is the start of the command buffer and 1 its end; then come two for each dispatch. */
#define MAX_QUERIES (2 + 2 * MAX_DISPATCHES)

static bool has_pool(struct timing_cmdbuf *t)
{
    VkQueryPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                   .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                   .queryCount = MAX_QUERIES };

    return t->pool || vk.CreateQueryPool(vk_dev.handle, &info, NULL, &t->pool) >= 0;
}

/* Taken when earlier work is complete, so that waiting in the queue does not count as busy. */
static void write_stamp(struct timing_cmdbuf *t, VkCommandBuffer cmd, uint32_t query)
{
    vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, t->pool, query);
}

void timing_begin(struct timing_cmdbuf *t, VkCommandBuffer cmd, const struct vk_queue *queue)
{
    t->has_each = times_are_on();
    t->is_timed = (t->has_each || gate_on(GATE_VK_TIMING)) && queue->timestamp_bits && has_pool(t);
    t->has_each &= t->is_timed;
    t->dispatch.n = 0;
    if (!t->is_timed)
        return;
    t->mask = queue->timestamp_bits < 64 ? (1ull << queue->timestamp_bits) - 1 : UINT64_MAX;
    vk.CmdResetQueryPool(cmd, t->pool, 0, t->has_each ? MAX_QUERIES : 2);
    write_stamp(t, cmd, 0);
}

void timing_end(struct timing_cmdbuf *t, VkCommandBuffer cmd)
{
    if (t->is_timed)
        write_stamp(t, cmd, 1);
}

static bool has_room(const struct timing_cmdbuf *t)
{
    return t->dispatch.n < MAX_DISPATCHES;
}

void timing_dispatch_begin(struct timing_cmdbuf *t, VkCommandBuffer cmd)
{
    if (has_room(t))
        vk.CmdWriteTimestamp(cmd, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, t->pool,
                             2 + 2 * (uint32_t)t->dispatch.n);
}

void timing_dispatch_end(struct timing_cmdbuf *t, VkCommandBuffer cmd,
                         const struct timing_dispatch *d)
{
    if (has_room(t) && VEC_PUSH(&t->dispatch, *d) == ERR_OK)
        write_stamp(t, cmd, 1 + 2 * (uint32_t)t->dispatch.n);
}

/* ---- results ---- */

static bool read_stamps(const struct timing_cmdbuf *t, uint64_t ns[2], uint32_t first)
{
    double period = vk_dev.phys.props.limits.timestampPeriod;

    if (vk.GetQueryPoolResults(vk_dev.handle, t->pool, first, 2, 2 * sizeof *ns, ns, sizeof *ns,
                               VK_QUERY_RESULT_64_BIT) != VK_SUCCESS)
        return false;
    for (int i = 0; i < 2; i++)
        ns[i] = (uint64_t)((double)(ns[i] & t->mask) * period);
    return true;
}

static void add_dispatch(const struct timing_dispatch *d, const uint64_t ns[2], int track)
{
    bool has_variant = d->variant != VARIANT_COUNT;
    struct times_key key = { .device = "gpu", .name = d->kernel };

    if (has_variant) {
        key.family = variant_family(d->variant);
        key.variant = variant_name(d->variant);
    }
    times_add(&key, ns[1] - ns[0]);
    trace_device_span(&(struct trace_device_span){ .name = d->kernel,
                                                   .detail = key.variant,
                                                   .track = track,
                                                   .begin = (int64_t)ns[0],
                                                   .end = (int64_t)ns[1],
                                                   .seen = clock_ns() });
}

/* A dispatch's first timestamp may be taken while the one before is still running, and with no
 * barrier between them they overlap. Its time is what it adds to the end of all before it, so that
 * the times add up to the busy time. */
void timing_collect(struct timing_cmdbuf *t, int track)
{
    uint64_t whole[2], ns[2], over;

    if (t->is_timed && read_stamps(t, whole, 0)) {
        stat_add(STAT_GPU_NANOSECONDS, whole[1] - MIN(whole[0], whole[1]));
        over = whole[0];
        for (uint32_t i = 0; i < t->dispatch.n; i++) {
            if (!read_stamps(t, ns, 2 + 2 * i))
                continue;
            ns[0] = MAX(ns[0], over);
            over = ns[1] = MAX(ns[0], ns[1]);
            add_dispatch(&t->dispatch.v[i], ns, track);
        }
    }
    t->is_timed = t->has_each = false;
    t->dispatch.n = 0;
}
