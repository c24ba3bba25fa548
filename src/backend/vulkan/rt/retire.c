/* The end of a commit: noticing completion, dropping what it held, waiting for it. */
#include "backend/vulkan/rt/stream.h"

#include <stdatomic.h>
#include <time.h>

#include "backend/vulkan/check/record.h"
#include "backend/vulkan/rt/pipeline_cache.h"
#include "base/process.h"
#include "base/stat.h"
#include "eval/sched.h"

/* A lost device answers fence waits at once; an injected loss leaves real work to drain. */
#define LOST_DRAIN_NS 1000000000ull

/* ---- retirement ---- */

/* What is in flight on a lost device counts as complete, with an error, so that nobody hangs.
 * Called with the lock held, before anybody sees the completion. */
static void note_loss(struct vk_strm *s, const struct vk_cmdbuf *cmdbuf)
{
    struct strm *strm = atomic_load(&s->strm);

    if (strm && vk_dev_check_lost() != ERR_OK)
        strm_note_error(strm, cmdbuf->ticket, ERR_DEVICE);
}

/* Takes completed commits off the front; called with the lock held. */
static struct vk_cmdbuf *pop_completed(struct vk_strm *s)
{
    struct vk_cmdbuf *first = NULL, **tail = &first;
    struct strm *strm = atomic_load(&s->strm);
    bool lost = vk_dev_is_lost();

    while (s->oldest && s->oldest->state == SLOT_HANDED) {
        struct vk_cmdbuf *cmdbuf = s->oldest;
        if (!cmdbuf->failed && !lost) {
            VkResult r = vk.GetFenceStatus(vk_dev.handle, cmdbuf->fence);
            if (r == VK_NOT_READY)
                break;
            lost = vk_check(r, "vkGetFenceStatus") != ERR_OK;
        }
        if (lost)
            note_loss(s, cmdbuf);
        if (strm)
            vk_rec_commit(VK_REC_RETIRE, strm->index, cmdbuf->ticket);
        s->oldest = cmdbuf->next;
        s->n_inflight--;
        *tail = cmdbuf;
        tail = &cmdbuf->next;
    }
    *tail = NULL;
    if (!s->oldest)
        s->newest = NULL;
    return first;
}

static void cmdbuf_release_refs(struct vk_cmdbuf *cmdbuf)
{
    for (size_t i = 0; i < cmdbuf->held.n; i++)
        buf_release(&cmdbuf->held.v[i], cmdbuf->held_for);
    for (size_t i = 0; i < cmdbuf->uploads.n; i++)
        buf_unref(&cmdbuf->uploads.v[i].src);
    for (size_t i = 0; i < cmdbuf->deps.n; i++)
        ev_unref(&cmdbuf->deps.v[i].ev);
    cmdbuf->held.n = cmdbuf->uploads.n = cmdbuf->deps.n = 0;
    cmdbuf->args_used = 0;
}

static void cmdbuf_finish(struct vk_strm *s, struct vk_cmdbuf *cmdbuf)
{
    struct strm *strm = atomic_load(&s->strm);

    timing_collect(&cmdbuf->timing, strm ? strm->index : 0);
    vk_cache_watch();
    cmdbuf_release_refs(cmdbuf);
    if (cmdbuf->counted)
        sched_task_end();
    stat_add(STAT_RETIRES, 1);
    pthread_mutex_lock(&s->lock);
    cmdbuf->idle = true;
    if (!cmdbuf->pins) {
        cmdbuf->next = s->free;
        s->free = cmdbuf;
    }
    pthread_mutex_unlock(&s->lock);
}

static void drain_lost(const struct vk_cmdbuf *cmdbufs)
{
    for (; cmdbufs && vk_dev_is_lost(); cmdbufs = cmdbufs->next)
        if (!cmdbufs->failed)
            vk.WaitForFences(vk_dev.handle, 1, &cmdbufs->fence, VK_TRUE, LOST_DRAIN_NS);
}

void vk_strm_reap(struct vk_strm *s)
{
    if (vk_dev_is_lost())
        vk_strm_pump(s); /* what waited for its turn fails now */
    pthread_mutex_lock(&s->lock);
    struct vk_cmdbuf *cmdbufs = pop_completed(s);
    pthread_mutex_unlock(&s->lock);
    drain_lost(cmdbufs);
    while (cmdbufs) {
        struct vk_cmdbuf *cmdbuf = cmdbufs;
        cmdbufs = cmdbuf->next;
        /* Several threads may reap at once. */
        uint64_t seen = atomic_load(&s->completed);
        while (seen < cmdbuf->ticket &&
               !atomic_compare_exchange_weak(&s->completed, &seen, cmdbuf->ticket))
            ;
        cmdbuf_finish(s, cmdbuf);
    }
}

void vk_streams_retire(void)
{
    for (struct vk_strm *s = vk_streams_first(); s; s = s->next)
        vk_strm_reap(s);
}

/* ---- waiting ---- */

uint64_t vk_strm_oldest(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    uint64_t ticket = s->oldest ? s->oldest->ticket : 0;
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

static struct vk_cmdbuf *find_cmdbuf(const struct vk_strm *s, uint64_t ticket)
{
    struct vk_cmdbuf *cmdbuf = s->oldest;

    while (cmdbuf && cmdbuf->ticket != ticket)
        cmdbuf = cmdbuf->next;
    return cmdbuf;
}

/* Sleeps until a commit was made or handed over; called with the lock held. The loss of the device
 * is not announced, so nobody sleeps for long. */
static void sleep_until_moved(struct vk_strm *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_cond_timedwait(&s->moved, &s->lock, &until);
}

/* The command buffer of a commit once it was handed over, pinned; NULL if it has retired or failed.
 */
static struct vk_cmdbuf *pin_handed(struct vk_strm *s, uint64_t ticket)
{
    struct vk_cmdbuf *cmdbuf;

    pthread_mutex_lock(&s->lock);
    while ((cmdbuf = find_cmdbuf(s, ticket)) && cmdbuf->state != SLOT_HANDED && !vk_dev_is_lost())
        sleep_until_moved(s);
    if (cmdbuf && (cmdbuf->failed || cmdbuf->state != SLOT_HANDED))
        cmdbuf = NULL;
    if (cmdbuf)
        cmdbuf->pins++;
    pthread_mutex_unlock(&s->lock);
    return cmdbuf;
}

static void unpin(struct vk_strm *s, struct vk_cmdbuf *cmdbuf)
{
    pthread_mutex_lock(&s->lock);
    if (--cmdbuf->pins == 0 && cmdbuf->idle) {
        cmdbuf->next = s->free;
        s->free = cmdbuf;
    }
    pthread_mutex_unlock(&s->lock);
}

void vk_strm_wait_cmdbuf(struct vk_strm *s, uint64_t ticket)
{
    struct vk_cmdbuf *cmdbuf = pin_handed(s, ticket);

    if (cmdbuf) {
        /* A failure means a lost device, which is seen below. */
        enum err err = vk_fence_wait(cmdbuf->fence);
        (void)err;
        unpin(s, cmdbuf);
    }
    vk_streams_retire(); /* also those that nobody will use or wait for again */
}

/* Ticket of the oldest commit if it is in the queue, else 0. */
static uint64_t oldest_handed(struct vk_strm *s)
{
    pthread_mutex_lock(&s->lock);
    bool handed = s->oldest && s->oldest->state == SLOT_HANDED;
    uint64_t ticket = handed ? s->oldest->ticket : 0;
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

/* Commits that wait for their turn are left alone: the caller may be who has to hand them over. */
void vk_streams_drain(void)
{
    for (struct vk_strm *s = vk_streams_first(); s; s = s->next)
        for (uint64_t ticket; (ticket = oldest_handed(s));)
            vk_strm_wait_cmdbuf(s, ticket);
}

/* Commits that wait for their turn never get it. From the end on the device counts as lost, so that
 * nobody waits for them. */
void vk_quiesce(void)
{
    if (vk_dev_is_lost())
        return;
    vk_dev_end();
    process_wait_idle();
    vk_streams_drain();
    vk_cache_save();
    vk_dev_close();
}

static bool is_mine(struct vk_strm *s)
{
    struct strm *strm = atomic_load(&s->strm);

    return strm && pthread_equal(strm->owner, pthread_self());
}

enum err vk_streams_flush_mine(void)
{
    enum err err = ERR_OK;

    for (struct vk_strm *s = vk_streams_first(); s && !err; s = s->next)
        if (is_mine(s))
            err = vk_strm_commit(s, false);
    return err;
}

enum err vk_strm_make_committed(struct vk_strm *s, uint64_t ticket)
{
    if (is_mine(s))
        return atomic_load(&s->committed) < ticket ? vk_strm_commit(s, false) : ERR_OK;
    /* Another thread may have recorded the event without having flushed yet. */
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->committed) < ticket && !vk_dev_is_lost())
        sleep_until_moved(s);
    pthread_mutex_unlock(&s->lock);
    return ERR_OK;
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
            vk_strm_reap(s);
            return vk_dev_check_lost();
        }
        vk_strm_wait_cmdbuf(s, ticket);
    }
    return ERR_OK;
}
