/* GPU memory: a few large blocks, split into buffers, behind a cache of freed ones.
 *
 * Three strategies, chosen by the device's memory types or forced by a setting:
 *   unified  the host reads and writes GPU memory directly
 *   bar      the host writes GPU memory directly; reading it that way is slow, so reads are copies
 *   staged   the host reaches GPU memory only through copies
 * Thread-safety: safe. */
#pragma once

#include <stdio.h>

#include "backend/backend.h"
#include "backend/vulkan/rt/loader.h"

enum vk_strategy { VK_UNIFIED, VK_BAR, VK_STAGED };

enum vk_mem {
    VK_MEM_DEVICE,   /* arrays, scratch */
    VK_MEM_READBACK, /* the host reads it fast: targets of copies from the GPU */
    VK_MEM_UPLOAD,   /* the host writes it, the GPU reads it fast: arguments, staging */
    VK_MEM_COUNT,
    VK_MEM_NONE = VK_MEM_COUNT, /* a place (recording.h) */
};

struct vk_block;

/* A buffer of this backend; base is what the rest of the library sees. */
struct vk_buf {
    struct buf base;
    enum vk_mem mem;
    bool counted; /* in the memory API's active bytes */
    struct vk_block *block;
    uint64_t offset;       /* in the block */
    uint32_t range;        /* the block's bookkeeping */
    void *map;             /* host address of the first byte, NULL if the memory is not mapped */
    VkBuffer handle;       /* the block's */
    _Atomic uint64_t seen; /* command buffer that last counted it towards its size threshold */
    _Atomic uint64_t held; /* command buffer that last held it: one hold is enough */
    _Atomic int upload;    /* enum upload_state of a copy of host memory (transfer.c) */
};

static inline struct vk_buf *vk_buf_of(struct buf *b)
{
    return b->priv;
}

MUST_CHECK enum err vk_alloc_init(void);
enum vk_strategy vk_alloc_strategy(void);
void vk_alloc_describe(FILE *out);

/* A buffer for the runtime's own use, not counted in the memory API. Released with buf_unref. */
MUST_CHECK enum err vk_mem_alloc(struct vk_buf **out, enum vk_mem mem, size_t size);

/* ---- entries of the backend table ---- */
enum err vk_buf_alloc(struct buf **out, size_t size);
void vk_buf_free(struct buf *b);
bool vk_is_unified(void);
void vk_alloc_clear(void);
size_t vk_memory_size(void);
/* What this process can have of it, as far as the driver tells. */
size_t vk_memory_budget(void);
/* Largest single buffer. */
size_t vk_memory_max_buffer(void);
