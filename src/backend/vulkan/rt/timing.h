/* How long the GPU is busy. While VK_TIMING is on or a trace is written, every command buffer has a
 * timestamp at each end; their differences add up in the counter GPU_NANOSECONDS, of which benches
 * take differences. While times by kernel are kept (base/times.h) every dispatch has two as well,
 * which costs the GPU about a microsecond each. */
#pragma once

#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/loader.h"
#include "base/mem.h"

struct vk_queue;

struct timing_dispatch {
    const char *kernel;      /* lives as long as the pipeline */
    enum variant_id variant; /* VARIANT_COUNT: none */
};

/* Timestamps of one command buffer. */
struct timing_cmdbuf {
    VkQueryPool pool;
    uint64_t mask;                        /* valid bits of a timestamp */
    bool is_timed;                        /* this command buffer has timestamps */
    bool has_each;                        /* and so have its dispatches */
    VEC(struct timing_dispatch) dispatch; /* in order; those past the pool's size are left out */
};

/* First and last commands of a command buffer; nothing is recorded while nobody asks. */
void timing_begin(struct timing_cmdbuf *t, VkCommandBuffer cmd, const struct vk_queue *queue);
void timing_end(struct timing_cmdbuf *t, VkCommandBuffer cmd);
/* Around a dispatch, where has_each. */
void timing_dispatch_begin(struct timing_cmdbuf *t, VkCommandBuffer cmd);
void timing_dispatch_end(struct timing_cmdbuf *t, VkCommandBuffer cmd,
                         const struct timing_dispatch *d);
/* The command buffer is complete: adds its times. track tells streams apart in the trace. */
void timing_collect(struct timing_cmdbuf *t, int track);
