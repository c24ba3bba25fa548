/* Events: what completes when, and how one stream waits for another. */
#include "backend/vulkan/stream.h"

#include <stdatomic.h>

#include "backend/vulkan/fault.h"
#include "core/stat.h"

enum err vk_ev_record(struct strm *strm, struct ev *e)
{
    struct vk_strm *s = vk_strm_of(strm);

    e->ticket = s->submitted + vk_strm_has_work(s);
    return ERR_OK;
}

enum err vk_ev_wait(struct ev *e)
{
    struct vk_strm *s = vk_strm_of(e->strm);
    enum err err = s ? vk_strm_wait_ticket(s, e->ticket) : ERR_OK; /* a closed stream was drained */

    if (!err)
        atomic_store(&e->done, true);
    return err;
}

enum err vk_ev_query(bool *done, struct ev *e)
{
    struct vk_strm *s = vk_strm_of(e->strm);

    if (s && atomic_load(&s->completed) < e->ticket)
        vk_strm_retire(e->strm, false);
    *done = !s || atomic_load(&s->completed) >= e->ticket;
    if (*done)
        atomic_store(&e->done, true);
    return ERR_OK;
}

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

static enum err add_wait(struct vk_strm *s, struct vk_strm *p, uint64_t value)
{
    for (size_t i = 0; i < s->enc.waits.n; i++)
        if (s->enc.waits.v[i].semaphore == p->timeline) {
            s->enc.waits.v[i].value = MAX(s->enc.waits.v[i].value, value);
            return ERR_OK;
        }
    if (s->enc.waits.n == VK_MAX_WAITS) {
        enum err err = vk_strm_commit(s, false);
        if (err)
            return err;
    }
    return VEC_PUSH(&s->enc.waits, (struct vk_wait){ p->timeline, value });
}

static enum err wait_for_gpu(struct vk_strm *s, struct vk_strm *p, uint64_t ticket)
{
    uint64_t value;
    enum err err;

    TRY(vk_strm_make_committed(p, ticket));
    if (p->queue == s->queue && !vk_fault_hit(VK_FAULT_TIMELINE)) {
        vk_enc_order(&s->enc); /* submission order is enough, given a barrier */
        s->enc.ordered = true;
        return ERR_OK;
    }
    if (s->enc.ops) /* earlier work must not wait: two streams could wait for each other */
        TRY(vk_strm_commit(s, false));
    TRY(signal_timeline(p, ticket, &value));
    TRY(add_wait(s, p, value));
out:
    return err;
}

enum err vk_strm_wait(struct strm *strm, struct ev *e)
{
    if (e->strm->be != &be_vulkan) {
        /* The host waits here, so what the producer may wait for must be on its way. */
        enum err err = vk_streams_flush_mine();
        return err ? err : ev_wait(e);
    }
    struct vk_strm *p = vk_strm_of(e->strm);
    if (!p || atomic_load(&p->completed) >= e->ticket)
        return ERR_OK;
    return wait_for_gpu(vk_strm_of(strm), p, e->ticket);
}
