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
static void note_loss(struct vk_strm *s, const struct vk_slot *slot)
{
    struct strm *strm = atomic_load(&s->strm);

    if (strm && vk_dev_check_lost() != ERR_OK)
        strm_note_error(strm, slot->ticket, ERR_DEVICE);
}

/* Takes completed commits off the front; called with the lock held. */
static struct vk_slot *pop_completed(struct vk_strm *s)
{
    struct vk_slot *first = NULL, **tail = &first;
    struct strm *strm = atomic_load(&s->strm);
    bool lost = vk_dev_is_lost();

    while (s->oldest && s->oldest->state == SLOT_HANDED) {
        struct vk_slot *slot = s->oldest;
        if (!slot->failed && !lost) {
            VkResult r = vk.GetFenceStatus(vk_dev.handle, slot->fence);
            if (r == VK_NOT_READY)
                break;
            lost = vk_check(r, "vkGetFenceStatus") != ERR_OK;
        }
        if (lost)
            note_loss(s, slot);
        if (strm)
            vk_rec_commit(VK_REC_RETIRE, strm->index, slot->ticket);
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

static void slot_release_refs(struct vk_slot *slot)
{
    for (size_t i = 0; i < slot->held.n; i++)
        buf_release(&slot->held.v[i], slot->held_for);
    for (size_t i = 0; i < slot->uploads.n; i++)
        buf_unref(&slot->uploads.v[i].src);
    for (size_t i = 0; i < slot->deps.n; i++)
        ev_unref(&slot->deps.v[i].ev);
    slot->held.n = slot->uploads.n = slot->deps.n = 0;
    slot->args_used = 0;
}

static void slot_finish(struct vk_strm *s, struct vk_slot *slot)
{
    struct strm *strm = atomic_load(&s->strm);

    timing_collect(&slot->timing, strm ? strm->index : 0);
    vk_cache_watch();
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

static void drain_lost(const struct vk_slot *slots)
{
    for (; slots && vk_dev_is_lost(); slots = slots->next)
        if (!slots->failed)
            vk.WaitForFences(vk_dev.handle, 1, &slots->fence, VK_TRUE, LOST_DRAIN_NS);
}

void vk_strm_reap(struct vk_strm *s)
{
    if (vk_dev_is_lost())
        vk_strm_pump(s); /* what waited for its turn fails now */
    pthread_mutex_lock(&s->lock);
    struct vk_slot *slots = pop_completed(s);
    pthread_mutex_unlock(&s->lock);
    drain_lost(slots);
    while (slots) {
        struct vk_slot *slot = slots;
        slots = slot->next;
        /* Several threads may reap at once. */
        uint64_t seen = atomic_load(&s->completed);
        while (seen < slot->ticket &&
               !atomic_compare_exchange_weak(&s->completed, &seen, slot->ticket))
            ;
        slot_finish(s, slot);
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

static struct vk_slot *find_slot(const struct vk_strm *s, uint64_t ticket)
{
    struct vk_slot *slot = s->oldest;

    while (slot && slot->ticket != ticket)
        slot = slot->next;
    return slot;
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

/* The slot of a commit once it was handed over, pinned; NULL if it has retired or failed. */
static struct vk_slot *pin_handed(struct vk_strm *s, uint64_t ticket)
{
    struct vk_slot *slot;

    pthread_mutex_lock(&s->lock);
    while ((slot = find_slot(s, ticket)) && slot->state != SLOT_HANDED && !vk_dev_is_lost())
        sleep_until_moved(s);
    if (slot && (slot->failed || slot->state != SLOT_HANDED))
        slot = NULL;
    if (slot)
        slot->pins++;
    pthread_mutex_unlock(&s->lock);
    return slot;
}

static void unpin(struct vk_strm *s, struct vk_slot *slot)
{
    pthread_mutex_lock(&s->lock);
    if (--slot->pins == 0 && slot->idle) {
        slot->next = s->free;
        s->free = slot;
    }
    pthread_mutex_unlock(&s->lock);
}

void vk_strm_wait_slot(struct vk_strm *s, uint64_t ticket)
{
    struct vk_slot *slot = pin_handed(s, ticket);

    if (slot) {
        /* A failure means a lost device, which is seen below. */
        enum err err = vk_fence_wait(slot->fence);
        (void)err;
        unpin(s, slot);
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
            vk_strm_wait_slot(s, ticket);
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
        vk_strm_wait_slot(s, ticket);
    }
    return ERR_OK;
}
