/* Events: what completes when, and how one stream waits for another. */
#include "backend/vulkan/rt/stream.h"

#include <stdatomic.h>

#include "backend/vulkan/check/fault.h"
#include "backend/vulkan/check/record.h"

enum err vk_ev_record(struct strm *strm, struct ev *e)
{
    struct vk_strm *s = vk_strm_of(strm);

    e->ticket = atomic_load(&s->committed) + vk_strm_has_work(s);
    return ERR_OK;
}

static void see(struct ev *e)
{
    vk_rec_commit(VK_REC_SEEN, e->strm->index, e->ticket);
    atomic_store(&e->done, true);
}

enum err vk_ev_wait(struct ev *e)
{
    enum err err = vk_strm_wait_ticket(vk_strm_of(e->strm), e->ticket);

    if (!err)
        see(e);
    return err;
}

enum err vk_ev_query(bool *done, struct ev *e)
{
    struct vk_strm *s = vk_strm_of(e->strm);

    if (atomic_load(&s->completed) < e->ticket)
        vk_strm_reap(s);
    *done = atomic_load(&s->completed) >= e->ticket;
    if (*done)
        see(e);
    return ERR_OK;
}

static enum err wait_for_gpu(struct vk_strm *s, struct ev *e)
{
    struct vk_strm *p = vk_strm_of(e->strm);
    bool is_other_queue = p->queue != s->queue || vk_fault_hit(VK_FAULT_TIMELINE);
    enum err err;

    TRY(vk_strm_make_committed(p, e->ticket));
    /* Earlier work must not wait: two streams could wait for each other. In one queue, behind what
     * it already holds, nothing waits. */
    if (s->enc.ops && (is_other_queue || atomic_load(&p->submitted) < e->ticket))
        TRY(vk_strm_commit(s, false));
    if (!is_other_queue)
        vk_enc_order(&s->enc); /* submission order is enough, given a barrier */
    TRY(vk_strm_depend(s, (struct vk_dep){ e, .uses_semaphore = is_other_queue }));
    vk_enc_note_wait(&s->enc, e, is_other_queue ? VK_REC_WAIT : VK_REC_QUEUED);
out:
    return err;
}

/* The commit stays with the stream until the CPU is done. */
static enum err wait_for_host(struct vk_strm *s, struct ev *e)
{
    enum err err = ERR_OK;

    if (s->enc.ops)
        TRY(vk_strm_commit(s, false));
    TRY(ev_notify(e, vk_streams_pump));
    TRY(vk_strm_depend(s, (struct vk_dep){ e, .uses_semaphore = false }));
out:
    return err;
}

/* True if later work needs no order after e any more, and does not fail with it. */
static bool is_over(struct ev *e, bool is_gpu)
{
    struct err_note why;
    bool done = false;

    if (is_gpu)
        done = atomic_load(&vk_strm_of(e->strm)->completed) >= e->ticket;
    else if (e->strm->be->ev_query(&done, e) != ERR_OK)
        return false;
    return done && !ev_failure(&why, e);
}

enum err vk_strm_wait(struct strm *strm, struct ev *e)
{
    struct vk_strm *s = vk_strm_of(strm);
    bool is_gpu = e->strm->be == &be_vulkan;

    if (vk_strm_depends(s, e) || (is_gpu && vk_rec_drops_wait()))
        return ERR_OK;
    if (!is_over(e, is_gpu))
        return is_gpu ? wait_for_gpu(s, e) : wait_for_host(s, e);
    if (is_gpu)
        vk_enc_note_wait(&s->enc, e, VK_REC_OVER);
    return ERR_OK;
}
