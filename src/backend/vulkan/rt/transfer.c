#include "backend/vulkan/rt/transfer.h"

#include <stdatomic.h>

#include "backend/vulkan/rt/alloc.h"
#include "backend/vulkan/rt/device.h"
#include "backend/vulkan/rt/recording.h"
#include "base/mem.h"
#include "base/stat.h"
#include "base/trace.h"
#include "graph/memory.h"

/* Reading mapped GPU memory costs about 17 us per KiB; a copy and its wait cost 45 us. */
#define DIRECT_READ_MAX 1024

/* Uploads through staging memory go in pieces of this size. */
#define STAGING ((size_t)16 << 20)

/* What one copy at a time needs. Threads that copy at once use one each; they are kept for reuse.
 */
struct copier {
    struct copier *next;
    VkCommandPool pool;
    VkCommandBuffer cmd;
    VkFence fence;
    struct vk_buf *staging;
};

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct copier *idle;

static void copier_destroy(struct copier *c)
{
    if (!c)
        return;
    vk.DestroyFence(vk_dev.handle, c->fence, NULL);
    vk.DestroyCommandPool(vk_dev.handle, c->pool, NULL);
    mem_free(c);
}

static enum err copier_create(struct copier **out)
{
    VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                     .queueFamilyIndex = vk_dev.transfer->family };
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    struct copier *c = mem_alloc(sizeof *c);
    enum err err;

    if (!c)
        return ERR_NO_MEMORY;
    TRY(vk_check(vk.CreateCommandPool(vk_dev.handle, &pool, NULL, &c->pool),
                 "vkCreateCommandPool"));
    VkCommandBufferAllocateInfo cmd = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = c->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1 };
    TRY(vk_check(vk.AllocateCommandBuffers(vk_dev.handle, &cmd, &c->cmd),
                 "vkAllocateCommandBuffers"));
    TRY(vk_check(vk.CreateFence(vk_dev.handle, &fence, NULL, &c->fence), "vkCreateFence"));
    *out = c;
    c = NULL;
out:
    copier_destroy(c);
    return err;
}

static enum err copier_take(struct copier **out)
{
    pthread_mutex_lock(&idle_lock);
    struct copier *c = idle;
    if (c)
        idle = c->next;
    pthread_mutex_unlock(&idle_lock);
    *out = c;
    return c ? ERR_OK : copier_create(out);
}

static void copier_give(struct copier *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&idle_lock);
    c->next = idle;
    idle = c;
    pthread_mutex_unlock(&idle_lock);
}

/* ---- one copy ---- */

struct piece {
    const struct vk_buf *src, *dst;
    size_t src_offset, dst_offset, size;
};

/* Earlier writers of the memory have been waited for on the host, so nothing comes before the copy;
 * after it, the bytes must reach the host. */
static enum err encode(const struct copier *c, const struct piece *p)
{
    static const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
    };
    static const VkMemoryBarrier barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                             .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                             .dstAccessMask = VK_ACCESS_HOST_READ_BIT };
    VkBufferCopy region = { .srcOffset = p->src->offset + p->src_offset,
                            .dstOffset = p->dst->offset + p->dst_offset,
                            .size = p->size };
    enum err err;

    TRY(vk_check(vk.ResetFences(vk_dev.handle, 1, &c->fence), "vkResetFences"));
    TRY(vk_check(vk.ResetCommandPool(vk_dev.handle, c->pool, 0), "vkResetCommandPool"));
    TRY(vk_check(vk.BeginCommandBuffer(c->cmd, &begin), "vkBeginCommandBuffer"));
    vk.CmdCopyBuffer(c->cmd, p->src->handle, p->dst->handle, 1, &region);
    if (p->dst->mem == VK_MEM_READBACK)
        vk.CmdPipelineBarrier(c->cmd, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                              1, &barrier, 0, NULL, 0, NULL);
    TRY(vk_check(vk.EndCommandBuffer(c->cmd), "vkEndCommandBuffer"));
out:
    return err;
}

static enum err copy_now(const struct copier *c, const struct piece *p)
{
    VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                          .commandBufferCount = 1,
                          .pCommandBuffers = &c->cmd };
    enum err err;

    TRY(vk_dev_check_lost());
    TRY(encode(c, p));
    TRY(vk_queue_submit(vk_dev.transfer, &info, c->fence));
    TRY(vk_fence_wait(c->fence));
out:
    return err;
}

/* ---- mirrors ---- */

static enum err read_back(struct vk_buf *dst, const struct vk_buf *src, struct span s)
{
    struct copier *c = NULL;
    enum err err;

    if (vk_alloc_strategy() != VK_STAGED && s.size <= DIRECT_READ_MAX) {
        memcpy(dst->map, (const char *)src->map + s.lo, s.size);
        return ERR_OK;
    }
    TRY(copier_take(&c));
    TRY(copy_now(c, &(struct piece){ .src = src, .dst = dst, .src_offset = s.lo, .size = s.size }));
out:
    copier_give(c);
    return err;
}

static enum err fill_staged(struct vk_buf *dst, size_t size, be_fill_fn fn, void *arg)
{
    struct copier *c = NULL;
    enum err err;

    TRY(copier_take(&c));
    if (!c->staging)
        TRY(vk_mem_alloc(&c->staging, VK_MEM_UPLOAD, STAGING));
    for (size_t done = 0; done < size;) {
        size_t n = MIN(size - done, STAGING);
        TRY(fn(arg, c->staging->map, done, n));
        TRY(copy_now(
            c, &(struct piece){ .src = c->staging, .dst = dst, .dst_offset = done, .size = n }));
        done += n;
    }
out:
    copier_give(c);
    return err;
}

enum err vk_buf_fill(struct buf *b, size_t size, be_fill_fn fn, void *arg)
{
    struct vk_buf *dst = vk_buf_of(b);

    if (buf_is_place(b))
        return err_set(ERR_RUNTIME, "[vulkan] the host writes nothing while a step is recorded");
    stat_add(STAT_BYTES_UPLOADED, size);
    if (vk_alloc_strategy() == VK_STAGED)
        return fill_staged(dst, size, fn, arg);
    return fn(arg, dst->map, 0, size); /* visible to the GPU with the next submission */
}

static enum err copy_piece(void *arg, void *dst, size_t offset, size_t n)
{
    memcpy(dst, (const char *)arg + offset, n);
    return ERR_OK;
}

enum err vk_buf_write(struct buf *b, const void *data, size_t size)
{
    return vk_buf_fill(b, size, copy_piece, (void *)data);
}

static enum err mirror_to_host(struct buf **out, struct buf *src, struct span want)
{
    struct vk_buf *dst;
    enum err err = vk_mem_alloc(&dst, VK_MEM_READBACK, want.size);

    if (err)
        return err;
    *out = &dst->base;
    dst->base.of = want;
    stat_add(STAT_BYTES_READ_BACK, want.size);
    int64_t begin = trace_span_begin();
    err = read_back(dst, vk_buf_of(src), want);
    trace_span_end("read back", begin);
    return err;
}

/* ---- GPU copies of host memory ---- */

enum upload_state { UPLOAD_DUE, UPLOAD_RUNNING, UPLOAD_DONE };

static pthread_mutex_t upload_lock = PTHREAD_MUTEX_INITIALIZER; /* guards changes of state */
static pthread_cond_t upload_ended = PTHREAD_COND_INITIALIZER;

bool vk_upload_is_filled(const struct buf *copy)
{
    return atomic_load(&((const struct vk_buf *)copy->priv)->upload) == UPLOAD_DONE;
}

/* True if the caller is to fill the copy; waits for a thread that is at it. */
static bool begin_upload(struct vk_buf *b)
{
    pthread_mutex_lock(&upload_lock);
    while (b->upload == UPLOAD_RUNNING)
        pthread_cond_wait(&upload_ended, &upload_lock);
    bool is_due = b->upload == UPLOAD_DUE;
    if (is_due)
        b->upload = UPLOAD_RUNNING;
    pthread_mutex_unlock(&upload_lock);
    return is_due;
}

enum err vk_upload_fill(struct buf *copy, const struct buf *src)
{
    struct vk_buf *b = vk_buf_of(copy);

    if (!begin_upload(b))
        return ERR_OK;
    int64_t begin = trace_span_begin();
    enum err err = vk_buf_write(copy, src->host, src->size);
    trace_span_end("upload", begin);
    pthread_mutex_lock(&upload_lock);
    b->upload = err ? UPLOAD_DUE : UPLOAD_DONE;
    pthread_cond_broadcast(&upload_ended);
    pthread_mutex_unlock(&upload_lock);
    return err;
}

static enum err mirror_to_gpu(struct buf **out, struct buf *src)
{
    enum err err = vk_buf_alloc(out, src->size);

    if (err)
        return err;
    (*out)->of = (struct span){ 0, src->size };
    atomic_store(&vk_buf_of(*out)->upload, UPLOAD_DUE);
    return ERR_OK;
}

enum err vk_buf_mirror(struct buf **out, struct buf *src, struct span want)
{
    bool to_host = src->home == &be_vulkan;
    struct buf *made = NULL;

    if (vk_recording_now)
        return err_set(ERR_UNSUPPORTED, "[vulkan] values are not there while a step is recorded");
    enum err err = to_host ? mirror_to_host(&made, src, want) : mirror_to_gpu(&made, src);

    if (err)
        buf_unref(&made);
    else
        *out = made;
    return err;
}

bool vk_buf_takes_host_writes(void)
{
    return vk_dev_open() == ERR_OK && vk_alloc_strategy() == VK_BAR;
}
