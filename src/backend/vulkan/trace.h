/* A trace of GPU dispatches and CPU spans for chrome://tracing or Perfetto, written to the file
 * named by the VK_PROFILE setting when the process ends. Everything is a no-op while the setting is
 * off. */
#pragma once

#include "backend/vulkan/loader.h"
#include "core/common.h"
#include "core/mem.h"

bool trace_is_on(void);

/* CPU span on the calling thread; name must live for the process. Thread-safety: safe. */
int64_t trace_span_begin(void);
void trace_span_end(const char *name, int64_t begin);

/* Timestamps of one command buffer, two per dispatch. */
struct trace_slot {
    VkQueryPool pool;
    uint64_t mask;           /* valid bits of a timestamp */
    VEC(const char *) names; /* of the kernels, in dispatch order */
};

struct vk_queue;

/* Around a command buffer and its dispatches; the caller records them in this order. Dispatches
 * past the pool's size are left out. */
void trace_begin(struct trace_slot *t, VkCommandBuffer cmd, const struct vk_queue *queue);
void trace_dispatch_begin(struct trace_slot *t, VkCommandBuffer cmd);
void trace_dispatch_end(struct trace_slot *t, VkCommandBuffer cmd, const char *name);
/* The command buffer is complete: reads the timestamps. track tells streams apart. */
void trace_collect(struct trace_slot *t, int track);
