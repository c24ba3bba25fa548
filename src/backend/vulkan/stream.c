#include "backend/vulkan/stream.h"

#include <stdatomic.h>
#include <time.h>

#include "core/gate.h"
#include "core/sched.h"
#include "core/stat.h"

/* A lost device answers fence waits at once; an injected loss leaves real work to drain. */
#define LOST_DRAIN_NS 1000000000ull

/* All streams ever made, newest first. Only ever grows, so it is walked without a lock. */
static _Atomic(struct vk_strm *) all_streams;

/* ---- command buffers ---- */

static void slot_destroy(struct vk_slot *slot)
{
    vk.DestroyFence(vk_dev.handle, slot->fence, NULL);
    vk.DestroyCommandPool(vk_dev.handle, slot->pool, NULL);
    mem_free(slot);
}

static enum err slot_create(struct vk_slot **out, const struct vk_queue *queue)
{
    VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                     .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
                                     .queueFamilyIndex = queue->family };
    VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
    struct vk_slot *slot = mem_alloc(sizeof *slot);
    enum err err;

    if (!slot)
        return ERR_NO_MEMORY;
    TRY(vk_check(vk.CreateCommandPool(vk_dev.handle, &pool, NULL, &slot->pool),
                 "vkCreateCommandPool"));
    VkCommandBufferAllocateInfo cmd = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                        .commandPool = slot->pool,
                                        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                        .commandBufferCount = 1 };
    TRY(vk_check(vk.AllocateCommandBuffers(vk_dev.handle, &cmd, &slot->cmd),
                 "vkAllocateCommandBuffers"));
    TRY(vk_check(vk.CreateFence(vk_dev.handle, &fence, NULL, &slot->fence), "vkCreateFence"));
    *out = slot;
    slot = NULL;
out:
    if (slot)
        slot_destroy(slot);
    return err;
}

static void slot_release_refs(struct vk_slot *slot)
{
    for (size_t i = 0; i < slot->held.n; i++)
        buf_release(&slot->held.v[i], slot->held_for);
    slot->held.n = 0;
    slot->args_used = 0;
}

enum err vk_slot_keep(struct vk_slot *slot, struct buf *b)
{
    enum err err = VEC_PUSH(&slot->held, b);

    if (err)
        buf_unref(&b);
    return err;
}

/* ---- retirement ---- */

/* Takes completed commits off the front; called with the lock held. */
static struct vk_slot *pop_completed(struct vk_strm *s)
{
    struct vk_slot *first = NULL, **tail = &first;
    bool lost = vk_dev_is_lost();

    while (s->oldest) {
        struct vk_slot *slot = s->oldest;
        if (!slot->failed && !lost) {
            VkResult r = vk.GetFenceStatus(vk_dev.handle, slot->fence);
            if (r == VK_NOT_READY)
                break;
            lost = vk_check(r, "vkGetFenceStatus") != ERR_OK;
        }
        s->oldest = slot->next;
        s->n_inflight--;
        *tail = slot;
        tail = &slot->next;
    }
    *tail = NULL;
    if (!s->oldest)
        s->newest = NULL;
    return first;
}

/* What is in flight on a lost device counts as complete, with an error, so that nobody hangs. */
static void drain_lost(struct vk_strm *s, struct vk_slot *slots)
{
    if (!slots || !vk_dev_is_lost())
        return;
    for (struct vk_slot *slot = slots; slot; slot = slot->next)
        if (!slot->failed)
            vk.WaitForFences(vk_dev.handle, 1, &slot->fence, VK_TRUE, LOST_DRAIN_NS);
    struct strm *strm = atomic_load(&s->strm);
    if (strm && vk_dev_check_lost() != ERR_OK)
        strm_note_error(strm, ERR_DEVICE);
}

static void slot_finish(struct vk_strm *s, struct vk_slot *slot)
{
    struct strm *strm = atomic_load(&s->strm);

    timing_collect(&slot->timing, strm ? strm->index : 0);
    slot_release_refs(slot);
    if (slot->counted)
        sched_task_end();
    stat_add(STAT_RETIRES, 1);
    pthread_mutex_lock(&s->lock);
    slot->idle = true;
    if (!slot->pins) {
        slot->next = s->free;
        s->free = slot;
    }
    pthread_mutex_unlock(&s->lock);
}

static void retire(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    struct vk_slot *slots = pop_completed(s);
    pthread_mutex_unlock(&s->lock);
    drain_lost(s, slots);
    while (slots) {
        struct vk_slot *slot = slots;
        slots = slot->next;
        /* Completion becomes visible after a loss was noted; several threads may retire at once. */
        uint64_t seen = atomic_load(&s->completed);
        while (seen < slot->ticket &&
               !atomic_compare_exchange_weak(&s->completed, &seen, slot->ticket))
            ;
        slot_finish(s, slot);
    }
}

void vk_streams_retire(void)
{
    for (struct vk_strm *s = atomic_load(&all_streams); s; s = s->next)
        retire(s);
}

/* ---- waiting ---- */

/* Ticket of the oldest commit in flight, 0 if there is none. */
static uint64_t oldest_ticket(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t ticket = s->oldest ? s->oldest->ticket : 0;
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

static struct vk_slot *find_slot(const struct vk_strm *s, uint64_t ticket)
{
    struct vk_slot *slot = s->oldest;

    while (slot && slot->ticket != ticket)
        slot = slot->next;
    return slot;
}

/* Blocks until the fence of a commit in flight is signalled (or the device is lost). */
static void wait_slot(struct vk_strm *s, uint64_t ticket)
{
    pthread_mutex_lock(&s->lock);
    struct vk_slot *slot = find_slot(s, ticket);
    bool pinned = slot && !slot->failed;
    if (pinned)
        slot->pins++;
    pthread_mutex_unlock(&s->lock);
    if (pinned) {
        /* A failure means a lost device, which retire() sees. */
        enum err err = vk_fence_wait(slot->fence);
        (void)err;
        pthread_mutex_lock(&s->lock);
        if (--slot->pins == 0 && slot->idle) {
            slot->next = s->free;
            s->free = slot;
        }
        pthread_mutex_unlock(&s->lock);
    }
    retire(s);
}

/* Another thread's stream may have recorded the event without having flushed yet. */
static void wait_committed(struct vk_strm *s, uint64_t ticket)
{
    pthread_mutex_lock(&s->lock);
    while (s->submitted < ticket && !vk_dev_is_lost()) {
        struct timespec until; /* a commit that fails for a lost device does not come */
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&s->committed, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
}

void vk_streams_drain(void)
{
    for (struct vk_strm *s = atomic_load(&all_streams); s; s = s->next)
        for (uint64_t ticket; (ticket = oldest_ticket(s));)
            wait_slot(s, ticket);
}

static bool is_mine(struct vk_strm *s)
{
    struct strm *strm = atomic_load(&s->strm);

    return strm && pthread_equal(strm->owner, pthread_self());
}

enum err vk_strm_make_committed(struct vk_strm *s, uint64_t ticket)
{
    enum err err = ERR_OK;

    if (is_mine(s)) {
        if (s->submitted < ticket)
            err = vk_strm_commit(s, false);
    } else {
        wait_committed(s, ticket);
    }
    return err;
}

enum err vk_strm_wait_ticket(struct vk_strm *s, uint64_t ticket)
{
    if (atomic_load(&s->completed) >= ticket)
        return ERR_OK;
    enum err err = vk_strm_make_committed(s, ticket);
    if (err)
        return err;
    while (atomic_load(&s->completed) < ticket) {
        if (vk_dev_is_lost()) {
            retire(s);
            return vk_dev_check_lost();
        }
        wait_slot(s, ticket);
    }
    return ERR_OK;
}

/* ---- recording and submission ---- */

bool vk_strm_has_work(const struct vk_strm *s)
{
    return s->enc.waits.n || s->enc.ordered || (s->enc.slot && (s->enc.ops || s->enc.slot->held.n));
}

static enum err take_slot(struct vk_slot **out, struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    struct vk_slot *slot = s->free;
    if (slot)
        s->free = slot->next;
    pthread_mutex_unlock(&s->lock);
    if (!slot)
        return slot_create(out, s->queue);
    slot->next = NULL;
    slot->counted = slot->failed = slot->idle = false;
    *out = slot;
    return ERR_OK;
}

/* The oldest commit's ticket when too many are in flight, else 0. */
static uint64_t over_limit(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t ticket = s->n_inflight >= gate_int(GATE_VK_MAX_INFLIGHT) ? s->oldest->ticket : 0;
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

static enum err slot_begin(struct vk_strm *s, struct vk_slot *slot)
{
    static const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
    };
    enum err err;

    TRY(vk_check(vk.ResetFences(vk_dev.handle, 1, &slot->fence), "vkResetFences"));
    TRY(vk_check(vk.ResetCommandPool(vk_dev.handle, slot->pool, 0), "vkResetCommandPool"));
    TRY(vk_check(vk.BeginCommandBuffer(slot->cmd, &begin), "vkBeginCommandBuffer"));
    timing_begin(&slot->timing, slot->cmd, s->queue);
out:
    return err;
}

enum err vk_strm_open_slot(struct vk_strm *s)
{
    static _Atomic uint64_t stamps;
    struct vk_slot *slot = NULL;
    enum err err;

    if (s->enc.slot)
        return ERR_OK;
    retire(s);
    for (uint64_t ticket; (ticket = over_limit(s));)
        wait_slot(s, ticket);
    TRY(vk_dev_check_lost());
    TRY(take_slot(&slot, s));
    TRY(slot_begin(s, slot));
    /* Accesses are tracked over command buffers, so no barrier opens one; but once everything
     * before has been waited for on the host, nothing is left to order. */
    if (atomic_load(&s->completed) == s->submitted)
        vk_enc_forget(&s->enc);
    s->enc.slot = slot;
    s->enc.bound = VK_NULL_HANDLE;
    s->enc.ops = 0;
    s->enc.bytes = 0;
    s->enc.stamp = atomic_fetch_add(&stamps, 1) + 1;
    slot = NULL;
out:
    if (slot) {
        pthread_mutex_lock(&s->lock);
        slot->next = s->free;
        s->free = slot;
        pthread_mutex_unlock(&s->lock);
    }
    return err;
}

/* Makes the results visible to the host where it reads GPU memory directly. */
static void encode_host_barrier(VkCommandBuffer cmd)
{
    static const VkMemoryBarrier barrier = { .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                             .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                             .dstAccessMask = VK_ACCESS_HOST_READ_BIT };

    if (vk_alloc_strategy() != VK_STAGED)
        vk.CmdPipelineBarrier(cmd, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                              0, 1, &barrier, 0, NULL, 0, NULL);
}

static enum err submit(struct vk_strm *s, struct vk_slot *slot)
{
    VkSemaphore semaphores[VK_MAX_WAITS];
    VkPipelineStageFlags stages[VK_MAX_WAITS];
    uint64_t values[VK_MAX_WAITS];
    uint32_t n = (uint32_t)s->enc.waits.n;

    for (uint32_t i = 0; i < n; i++) {
        semaphores[i] = s->enc.waits.v[i].semaphore;
        values[i] = s->enc.waits.v[i].value;
        stages[i] = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
    }
    VkTimelineSemaphoreSubmitInfo timeline = { .sType =
                                                   VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                               .waitSemaphoreValueCount = n,
                                               .pWaitSemaphoreValues = values };
    VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                          .pNext = n ? &timeline : NULL,
                          .waitSemaphoreCount = n,
                          .pWaitSemaphores = semaphores,
                          .pWaitDstStageMask = stages,
                          .commandBufferCount = 1,
                          .pCommandBuffers = &slot->cmd };
    return vk_queue_submit(s->queue, &info, slot->fence);
}

enum err vk_strm_commit(struct vk_strm *s, bool counted)
{
    enum err err;

    if (!vk_strm_has_work(s))
        return ERR_OK;
    TRY(vk_strm_open_slot(s)); /* a wait alone has none yet */
    struct vk_slot *slot = s->enc.slot;
    timing_end(&slot->timing, slot->cmd);
    if (s->enc.ops)
        encode_host_barrier(slot->cmd);
    err = vk_check(vk.EndCommandBuffer(slot->cmd), "vkEndCommandBuffer");
    if ((slot->counted = counted))
        sched_task_begin();
    pthread_mutex_lock(&s->lock);
    if (!err)
        err = submit(s, slot);
    slot->failed = err != ERR_OK;
    slot->ticket = ++s->submitted;
    if (s->newest)
        s->newest->next = slot;
    else
        s->oldest = slot;
    s->newest = slot;
    s->n_inflight++;
    pthread_cond_broadcast(&s->committed);
    pthread_mutex_unlock(&s->lock);
    s->enc.slot = NULL;
    s->enc.ops = 0;
    s->enc.ordered = false;
    s->enc.waits.n = 0; /* a submission that failed waits no more */
    if (err) {
        strm_note_error(atomic_load(&s->strm), err);
        err = ERR_OK;
    }
    retire(s);
out:
    return err;
}

/* ---- streams ---- */

static enum err timeline_create(VkSemaphore *out)
{
    static const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE
    };
    static const VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                                .pNext = &type };

    return vk_check(vk.CreateSemaphore(vk_dev.handle, &info, NULL, out), "vkCreateSemaphore");
}

static struct vk_strm *reuse_stream(struct strm *strm)
{
    for (struct vk_strm *s = atomic_load(&all_streams); s; s = s->next) {
        struct strm *unused = NULL;
        if (atomic_compare_exchange_strong(&s->strm, &unused, strm))
            return s;
    }
    return NULL;
}

enum err vk_strm_open(struct strm *strm)
{
    enum err err = vk_dev_open();

    if (err || (strm->priv = reuse_stream(strm)))
        return err;
    struct vk_strm *s = mem_alloc(sizeof *s);
    if (!s)
        return ERR_NO_MEMORY;
    TRY(timeline_create(&s->timeline));
    atomic_init(&s->strm, strm);
    s->queue = vk_dev_queue_take();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->committed, NULL);
    s->next = atomic_load(&all_streams);
    while (!atomic_compare_exchange_weak(&all_streams, &s->next, s))
        ;
    strm->priv = s;
    s = NULL;
out:
    mem_free(s);
    return err;
}

void vk_strm_close(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = vk_strm_sync(strm);

    (void)err; /* nobody is left to tell */
    strm->priv = NULL;
    atomic_store(&s->strm, NULL);
}

static enum err slot_hold(struct vk_slot *slot, int stream_index, struct buf *const *bufs, size_t n)
{
    enum err err = VEC_RESERVE(&slot->held, n);

    slot->held_for = stream_index;
    for (size_t i = 0; i < n && !err; i++)
        slot->held.v[slot->held.n++] = buf_hold(bufs[i], stream_index);
    return err;
}

enum err vk_strm_hold(struct strm *strm, struct buf *const *bufs, size_t n)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = ERR_OK;

    /* A wait that is not handed over yet: a view of another stream's result has no other work. */
    if (vk_strm_has_work(s))
        err = vk_strm_open_slot(s);
    if (err)
        return err;
    if (s->enc.slot) /* open: nobody else touches it */
        return slot_hold(s->enc.slot, strm->index, bufs, n);
    /* Nothing open: the newest commit is the last that can use them. */
    pthread_mutex_lock(&s->lock);
    if (s->newest)
        err = slot_hold(s->newest, strm->index, bufs, n);
    pthread_mutex_unlock(&s->lock);
    return err;
}

enum err vk_strm_step_end(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);

    if (s->enc.ops <= gate_int(GATE_VK_MAX_OPS) &&
        (int64_t)(s->enc.bytes >> 20) <= gate_int(GATE_VK_MAX_MB))
        return ERR_OK;
    return vk_strm_commit(s, true);
}

enum err vk_strm_flush(struct strm *strm)
{
    return vk_strm_commit(vk_strm_of(strm), false);
}

bool vk_strm_retire(struct strm *strm, bool block)
{
    struct vk_strm *s = vk_strm_of(strm);
    uint64_t oldest = oldest_ticket(s);

    if (oldest && block)
        wait_slot(s, oldest);
    else
        retire(s);
    return oldest != 0;
}

enum err vk_strm_sync(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = vk_strm_commit(s, false);

    return err ? err : vk_strm_wait_ticket(s, s->submitted);
}

enum err vk_streams_flush_mine(void)
{
    enum err err = ERR_OK;

    for (struct vk_strm *s = atomic_load(&all_streams); s && !err; s = s->next)
        if (is_mine(s))
            err = vk_strm_commit(s, false);
    return err;
}
