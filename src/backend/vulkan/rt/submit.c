/* From an open command buffer to the queue: recording, committing, handing over. */
#include "backend/vulkan/rt/stream.h"

#include <stdatomic.h>

#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/pipeline_cache.h"
#include "backend/vulkan/rt/transfer.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/sched.h"

/* Commits of all streams that were not handed over: tells whether anybody needs to be looked at. */
static atomic_int n_queued;

/* ---- command buffers ---- */

static void cmdbuf_destroy(struct vk_cmdbuf *cmdbuf)
{
    vk.DestroyFence(vk_dev.handle, cmdbuf->fence, NULL);
    vk.DestroyCommandPool(vk_dev.handle, cmdbuf->pool, NULL);
    mem_free(cmdbuf);
}

static enum err cmdbuf_create(struct vk_cmdbuf **out, const struct vk_queue *queue)
{
    VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                     .queueFamilyIndex = queue->family };
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    struct vk_cmdbuf *cmdbuf = mem_alloc(sizeof *cmdbuf);
    enum err err;

    if (!cmdbuf)
        return ERR_NO_MEMORY;
    TRY(vk_check(vk.CreateCommandPool(vk_dev.handle, &pool, NULL, &cmdbuf->pool),
                 "vkCreateCommandPool"));
    VkCommandBufferAllocateInfo cmd = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = cmdbuf->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1 };
    TRY(vk_check(vk.AllocateCommandBuffers(vk_dev.handle, &cmd, &cmdbuf->cmd),
                 "vkAllocateCommandBuffers"));
    TRY(vk_check(vk.CreateFence(vk_dev.handle, &fence, NULL, &cmdbuf->fence), "vkCreateFence"));
    *out = cmdbuf;
    cmdbuf = NULL;
out:
    if (cmdbuf)
        cmdbuf_destroy(cmdbuf);
    return err;
}

static enum err take_cmdbuf(struct vk_cmdbuf **out, struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    struct vk_cmdbuf *cmdbuf = s->free;
    if (cmdbuf)
        s->free = cmdbuf->next;
    pthread_mutex_unlock(&s->lock);
    if (!cmdbuf)
        return cmdbuf_create(out, s->queue);
    cmdbuf->next = NULL;
    cmdbuf->state = SLOT_OPEN;
    cmdbuf->counted = cmdbuf->failed = cmdbuf->idle = false;
    *out = cmdbuf;
    return ERR_OK;
}

static enum err cmdbuf_begin(struct vk_strm *s, struct vk_cmdbuf *cmdbuf)
{
    static const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
    };
    enum err err;

    TRY(vk_check(vk.ResetFences(vk_dev.handle, 1, &cmdbuf->fence), "vkResetFences"));
    TRY(vk_check(vk.ResetCommandPool(vk_dev.handle, cmdbuf->pool, 0), "vkResetCommandPool"));
    TRY(vk_cmdbuf_reset_sets(cmdbuf));
    TRY(vk_check(vk.BeginCommandBuffer(cmdbuf->cmd, &begin), "vkBeginCommandBuffer"));
    timing_begin(&cmdbuf->timing, cmdbuf->cmd, s->queue);
out:
    return err;
}

enum err vk_cmdbuf_keep(struct vk_cmdbuf *cmdbuf, struct buf *b)
{
    enum err err = VEC_PUSH(&cmdbuf->held, b);

    if (err)
        buf_unref(&b);
    return err;
}

/* Blocks while too many commits are in flight. Those that wait for the CPU may do so for work that
 * the calling thread still has to hand over. */
static enum err wait_for_room(struct vk_strm *s)
{
    enum err err = ERR_OK;

    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool is_full = s->n_inflight >= gate_int(GATE_VK_MAX_INFLIGHT);
        uint64_t ticket = is_full ? s->oldest->ticket : 0;
        bool is_queued = is_full && s->oldest->state == SLOT_QUEUED;
        pthread_mutex_unlock(&s->lock);
        if (!is_full)
            return ERR_OK;
        if (is_queued)
            TRY(vk_streams_flush_mine());
        vk_strm_wait_cmdbuf(s, ticket);
    }
out:
    return err;
}

enum err vk_strm_open_cmdbuf(struct vk_strm *s)
{
    static _Atomic uint64_t stamps;
    struct vk_cmdbuf *cmdbuf = NULL;
    enum err err;

    if (s->enc.cmdbuf)
        return ERR_OK;
    vk_strm_reap(s);
    TRY(wait_for_room(s));
    TRY(vk_dev_check_lost());
    TRY(take_cmdbuf(&cmdbuf, s));
    TRY(cmdbuf_begin(s, cmdbuf));
    /* Accesses are tracked over command buffers, so no barrier opens one; but once everything
     * before has been waited for on the host, nothing is left to order. */
    if (atomic_load(&s->completed) == atomic_load(&s->committed))
        vk_enc_forget(&s->enc);
    s->enc.cmdbuf = cmdbuf;
    s->enc.bound = VK_NULL_HANDLE;
    s->enc.ops = 0;
    s->enc.bytes = 0;
    s->enc.stamp = atomic_fetch_add(&stamps, 1) + 1;
    cmdbuf = NULL;
out:
    if (cmdbuf) {
        pthread_mutex_lock(&s->lock);
        cmdbuf->next = s->free;
        s->free = cmdbuf;
        pthread_mutex_unlock(&s->lock);
    }
    return err;
}

/* ---- what a commit waits for ---- */

static bool dep_is_ready(const struct vk_dep *d)
{
    struct ev *e = d->ev;
    bool done = atomic_load(&e->done);

    if (done)
        return true;
    if (e->strm->be == &be_vulkan)
        return atomic_load(&vk_strm_of(e->strm)->submitted) >= e->ticket;
    return e->strm->be->ev_query(&done, e) != ERR_OK || done;
}

static bool cmdbuf_is_ready(const struct vk_cmdbuf *cmdbuf)
{
    for (size_t i = 0; i < cmdbuf->deps.n; i++)
        if (!dep_is_ready(&cmdbuf->deps.v[i]))
            return false;
    return true;
}

bool vk_strm_is_ready(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    bool any_queued = s->queued;
    pthread_mutex_unlock(&s->lock);
    return !any_queued && (!s->enc.cmdbuf || cmdbuf_is_ready(s->enc.cmdbuf));
}

bool vk_strm_depends(const struct vk_strm *s, const struct ev *e)
{
    const struct vk_cmdbuf *cmdbuf = s->enc.cmdbuf;

    for (size_t i = 0; cmdbuf && i < cmdbuf->deps.n; i++) {
        const struct ev *have = cmdbuf->deps.v[i].ev;
        if (have->strm == e->strm && have->ticket >= e->ticket && have->told <= e->told)
            return true;
    }
    return false;
}

enum err vk_strm_depend(struct vk_strm *s, struct vk_dep dep)
{
    enum err err;

    TRY(vk_strm_open_cmdbuf(s));
    if (s->enc.cmdbuf->deps.n >= VK_MAX_WAITS) {
        TRY(vk_strm_commit(s, false));
        TRY(vk_strm_open_cmdbuf(s));
    }
    TRY(VEC_PUSH(&s->enc.cmdbuf->deps, dep));
    ev_ref(dep.ev);
out:
    return err;
}

/* ---- handing over ---- */

struct waits {
    uint32_t n;
    VkSemaphore semaphore[VK_MAX_WAITS];
    uint64_t value[VK_MAX_WAITS];
    VkPipelineStageFlags stage[VK_MAX_WAITS];
};

/* Makes sure that the producer's timeline will reach a value that covers the ticket. */
static enum err signal_timeline(struct vk_strm *p, uint64_t ticket, uint64_t *value)
{
    enum err err = ERR_OK;

    pthread_mutex_lock(&p->lock);
    if (p->signalled < ticket) {
        uint64_t target = p->submitted;
        VkTimelineSemaphoreSubmitInfo timeline = {
            .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
            .signalSemaphoreValueCount = 1,
            .pSignalSemaphoreValues = &target
        };
        VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                              .pNext = &timeline,
                              .signalSemaphoreCount = 1,
                              .pSignalSemaphores = &p->timeline };
        err = vk_queue_submit(p->queue, &info, VK_NULL_HANDLE);
        if (!err)
            p->signalled = target;
        stat_add(STAT_TIMELINE_SIGNALS, 1);
    }
    *value = p->signalled;
    pthread_mutex_unlock(&p->lock);
    return err;
}

static void add_wait(struct waits *w, VkSemaphore semaphore, uint64_t value)
{
    uint32_t i = 0;

    while (i < w->n && w->semaphore[i] != semaphore)
        i++;
    w->value[i] = i < w->n ? MAX(w->value[i], value) : value;
    w->semaphore[i] = semaphore;
    w->stage[i] = vk_dev.work.stages;
    w->n = MAX(w->n, i + 1);
}

/* What failed is not passed on to the GPU: it would compute with whatever lies in the memory. */
static enum err inherit_failures(const struct vk_cmdbuf *cmdbuf)
{
    struct err_note why = { .code = ERR_OK };

    for (size_t i = 0; i < cmdbuf->deps.n; i++)
        if (ev_failure(&why, cmdbuf->deps.v[i].ev))
            return err_note_raise(&why);
    return ERR_OK;
}

static enum err prepare(struct waits *w, const struct vk_cmdbuf *cmdbuf)
{
    enum err err;

    TRY(inherit_failures(cmdbuf));
    for (size_t i = 0; i < cmdbuf->uploads.n; i++)
        TRY(vk_upload_fill(cmdbuf->uploads.v[i].dst, cmdbuf->uploads.v[i].src));
    for (size_t i = 0; i < cmdbuf->deps.n; i++) {
        const struct ev *e = cmdbuf->deps.v[i].ev;
        uint64_t value;
        if (!cmdbuf->deps.v[i].uses_semaphore)
            continue;
        TRY(signal_timeline(vk_strm_of(e->strm), e->ticket, &value));
        add_wait(w, vk_strm_of(e->strm)->timeline, value);
    }
out:
    return err;
}

static enum err submit(struct vk_strm *s, const struct vk_cmdbuf *cmdbuf, const struct waits *w)
{
    VkTimelineSemaphoreSubmitInfo timeline = { .sType =
                                                   VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               .waitSemaphoreValueCount = w->n,
                                               .pWaitSemaphoreValues = w->value };
    VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                          .pNext = w->n ? &timeline : NULL,
                          .waitSemaphoreCount = w->n,
                          .pWaitSemaphores = w->semaphore,
                          .pWaitDstStageMask = w->stage,
                          .commandBufferCount = 1,
                          .pCommandBuffers = &cmdbuf->cmd };

    return vk_queue_submit(s->queue, &info, cmdbuf->fence);
}

/* The calling thread is the only one that hands over commits of s, and holds no lock. */
static void hand_over(struct vk_strm *s, struct vk_cmdbuf *cmdbuf)
{
    struct strm *strm = atomic_load(&s->strm); /* NULL: closed after the device was lost */
    struct waits w = { .n = 0 };
    enum err err = cmdbuf->failed ? ERR_OK : prepare(&w, cmdbuf);

    pthread_mutex_lock(&s->lock);
    if (!err && !cmdbuf->failed) {
        if (strm)
            vk_rec_commit(VK_REC_SUBMIT, strm->index, cmdbuf->ticket);
        err = submit(s, cmdbuf, &w);
    }
    if (err) { /* told before anybody can see the commit complete */
        cmdbuf->failed = true;
        if (strm)
            strm_note_error(strm, cmdbuf->ticket, err);
    }
    cmdbuf->state = SLOT_HANDED;
    s->queued = cmdbuf->next;
    atomic_store(&s->submitted, cmdbuf->ticket);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_sub(&n_queued, 1);
}

bool vk_strm_pump(struct vk_strm *s)
{
    bool moved = false, is_ready;

    pthread_mutex_lock(&s->lock);
    if (s->handing) {
        s->again = true;
        pthread_mutex_unlock(&s->lock);
        return false;
    }
    s->handing = true;
    do {
        struct vk_cmdbuf *cmdbuf = s->queued;
        s->again = false;
        pthread_mutex_unlock(&s->lock);
        is_ready = cmdbuf && (cmdbuf_is_ready(cmdbuf) || vk_dev_is_lost());
        if (is_ready)
            hand_over(s, cmdbuf);
        moved |= is_ready;
        pthread_mutex_lock(&s->lock);
    } while (is_ready || s->again);
    s->handing = false;
    pthread_mutex_unlock(&s->lock);
    return moved;
}

void vk_streams_pump(void)
{
    bool moved = true;

    while (moved && atomic_load(&n_queued)) {
        moved = false;
        for (struct vk_strm *s = vk_streams_first(); s; s = s->next)
            moved |= vk_strm_pump(s);
    }
}

/* ---- committing ---- */

/* Makes visible what the host reads without another command. */
static void encode_host_barrier(VkCommandBuffer cmd)
{
    VkMemoryBarrier barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                .srcAccessMask = vk_dev.work.writes,
                                .dstAccessMask = VK_ACCESS_HOST_READ_BIT };

    vk.CmdPipelineBarrier(cmd, vk_dev.work.stages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0,
                          NULL, 0, NULL);
}

bool vk_strm_has_work(const struct vk_strm *s)
{
    const struct vk_cmdbuf *cmdbuf = s->enc.cmdbuf;

    return cmdbuf && (s->enc.ops || cmdbuf->deps.n || cmdbuf->held.n);
}

/* Puts the command buffer behind the commits that were made before; called with the lock held. */
static void append(struct vk_strm *s, struct vk_cmdbuf *cmdbuf)
{
    cmdbuf->ticket = s->committed + 1;
    cmdbuf->state = SLOT_QUEUED;
    if (s->newest)
        s->newest->next = cmdbuf;
    else
        s->oldest = cmdbuf;
    s->newest = cmdbuf;
    if (!s->queued)
        s->queued = cmdbuf;
    s->n_inflight++;
    atomic_store(&s->committed, cmdbuf->ticket);
}

enum err vk_strm_commit(struct vk_strm *s, bool counted)
{
    struct vk_cmdbuf *cmdbuf = s->enc.cmdbuf;

    if (!vk_strm_has_work(s))
        return ERR_OK;
    timing_end(&cmdbuf->timing, cmdbuf->cmd);
    if (s->enc.ops)
        encode_host_barrier(cmdbuf->cmd);
    enum err err = vk_check(vk.EndCommandBuffer(cmdbuf->cmd), "vkEndCommandBuffer");
    if ((cmdbuf->counted = counted))
        sched_task_begin();
    atomic_fetch_add(&n_queued, 1);
    pthread_mutex_lock(&s->lock);
    append(s, cmdbuf);
    uint64_t ticket = cmdbuf->ticket; /* another thread may retire it */
    if ((cmdbuf->failed = err != ERR_OK))
        strm_note_error(atomic_load(&s->strm), cmdbuf->ticket, err);
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    s->enc.cmdbuf = NULL;
    s->enc.ops = 0;
    if (vk_strm_pump(s))
        vk_streams_pump(); /* others may have waited for it */
    if (vk_cache_is_cold() && atomic_load(&s->submitted) >= ticket)
        vk_strm_wait_cmdbuf(s, ticket); /* the first kernels are compiled now */
    vk_strm_reap(s);
    return ERR_OK;
}
