/* The Vulkan device: one per process, opened on first use, never closed.
 *
 * Lock order in this folder: stream lock, then queue lock, then allocator locks. No lock is held
 * across a wait, a pipeline build or the release of a buffer. */
#pragma once

#include <pthread.h>
#include <stdio.h>

#include "backend/vulkan/rt/caps.h"
#include "backend/vulkan/rt/loader.h"

struct vk_queue {
    VkQueue handle;
    uint32_t family;
    uint32_t timestamp_bits; /* 0: the family has no timestamps */
    pthread_mutex_t lock;    /* guards submission: a queue may serve several streams */
};

/* What the command buffers of streams do, for barriers. */
struct vk_scope {
    VkPipelineStageFlags stages;
    VkAccessFlags reads, writes;
};

#define VK_MAX_QUEUES 16
#define VK_MAX_FAMILIES 2

struct vk_dev {
    VkInstance instance;
    VkDevice handle;
    struct vk_phys phys;
    struct vk_features features; /* those enabled */
    VkPhysicalDeviceMemoryProperties memory;
    struct vk_queue queues[VK_MAX_QUEUES]; /* for streams, all of one family */
    uint32_t n_queues;
    struct vk_queue *transfer; /* its own queue where there is one, else queues[0] */
    struct vk_queue transfer_queue;
    uint32_t families[VK_MAX_FAMILIES]; /* distinct families in use */
    uint32_t n_families;
    VkPipelineLayout layout; /* of every pipeline: push constants only */
    struct vk_scope work;
    struct vk_buf *zeros;
    uint64_t absent; /* their address, marked: what kernels get where a dispatch has none */
};

/* Valid after vk_dev_open succeeded. */
extern struct vk_dev vk_dev;

/* Opens the device; later calls give the same answer. Thread-safety: safe. */
MUST_CHECK enum err vk_dev_open(void);

/* Turns a failed call into an error with its text; a lost device is remembered. ERR_OK for
 * VkResults that are not failures. */
MUST_CHECK enum err vk_check(VkResult r, const char *what);

/* Sticky: once lost, every further use of the device is ERR_DEVICE. */
bool vk_dev_is_lost(void);
MUST_CHECK enum err vk_dev_check_lost(void);
/* The process ends: queues take nothing any more. Then, when nothing is in flight, the device
 * counts as lost. */
void vk_dev_end(void);
void vk_dev_close(void);

/* A queue for a new stream: an unused one while they last, then shared. */
struct vk_queue *vk_dev_queue_take(void);

/* vkQueueSubmit under the queue's lock. */
MUST_CHECK enum err vk_queue_submit(struct vk_queue *q, const VkSubmitInfo *info, VkFence fence);

/* Waits for a fence: spins briefly, because a blocking wait costs three times a short batch, then
 * blocks. ERR_DEVICE when the device is lost. */
MUST_CHECK enum err vk_fence_wait(VkFence fence);

/* Names an object for the validation layer's messages; a no-op without it. */
void vk_name(VkObjectType type, uint64_t handle, const char *name);

/* Text for `mlx info`; works when the device could not be opened, too. */
void vk_dev_describe(FILE *out);
