#include "backend/vulkan/rt/stream.h"

#include <stdatomic.h>

#include "backend/vulkan/check/record.h"
#include "base/gate.h"

/* Only ever grows, so it is walked without a lock. */
static _Atomic(struct vk_strm *) all_streams;

struct vk_strm *vk_streams_first(void)
{
    return atomic_load(&all_streams);
}

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

enum err vk_strm_open(struct strm *strm)
{
    enum err err = vk_dev_open();

    if (err)
        return err;
    if (strm->priv) { /* its timeline and its tickets go on */
        atomic_store(&vk_strm_of(strm)->strm, strm);
        return ERR_OK;
    }
    struct vk_strm *s = mem_alloc(sizeof *s);
    if (!s)
        return ERR_NO_MEMORY;
    TRY(timeline_create(&s->timeline));
    atomic_init(&s->strm, strm);
    s->queue = vk_dev_queue_take();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
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
    vk_enc_forget(&s->enc);
    hazard_clear(&s->enc.hazard);
    /* Events of the stream still find it: their tickets stay behind it when it is opened again. */
    atomic_store(&s->strm, NULL);
}

/* True if the command buffer with that stamp holds b already. */
static bool is_held(struct buf *b, uint64_t stamp)
{
    return b->home == &be_vulkan &&
           atomic_load_explicit(&vk_buf_of(b)->held, memory_order_relaxed) == stamp;
}

static void note_held(struct buf *b, uint64_t stamp)
{
    if (b->home == &be_vulkan)
        atomic_store_explicit(&vk_buf_of(b)->held, stamp, memory_order_relaxed);
}

static enum err cmdbuf_hold(struct vk_cmdbuf *cmdbuf, const struct strm *strm, struct buf *b)
{
    enum err err = VEC_RESERVE(&cmdbuf->held, 1);

    if (err)
        return err;
    cmdbuf->held_for = strm->index;
    cmdbuf->held.v[cmdbuf->held.n++] = buf_hold(b, strm->index);
    return ERR_OK;
}

enum err vk_enc_use(struct vk_enc *e, struct buf *b)
{
    struct vk_strm *s = (struct vk_strm *)((char *)e - offsetof(struct vk_strm, enc));
    struct vk_buf *v = vk_buf_of(b);
    enum err err = ERR_OK;

    if (is_held(b, e->stamp))
        return ERR_OK;
    TRY(cmdbuf_hold(e->cmdbuf, atomic_load(&s->strm), b));
    note_held(b, e->stamp);
    if (atomic_exchange_explicit(&v->seen, e->stamp, memory_order_relaxed) != e->stamp)
        e->bytes += b->size;
out:
    return err;
}

/* Nothing is open: the newest commit is the last that can use them. */
static enum err hold_in_newest(struct strm *strm, struct buf *const *bufs, size_t n)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = ERR_OK;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; s->newest && i < n && !err; i++)
        err = cmdbuf_hold(s->newest, strm, bufs[i]);
    pthread_mutex_unlock(&s->lock);
    return err;
}

enum err vk_strm_hold(struct strm *strm, struct buf *const *bufs, size_t n)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = ERR_OK;

    if (s->enc.recording) /* it keeps what it uses when it runs */
        return ERR_OK;
    if (!s->enc.cmdbuf)
        return hold_in_newest(strm, bufs, n);
    for (size_t i = 0; i < n; i++) /* open: nobody else touches it */
        if (!is_held(bufs[i], s->enc.stamp)) {
            TRY(cmdbuf_hold(s->enc.cmdbuf, strm, bufs[i]));
            note_held(bufs[i], s->enc.stamp);
        }
out:
    return err;
}

/* An idle device should begin soon; behind work in flight a commit is only a cost. What a command
 * buffer binds it also holds, so that its bytes stay bounded. */
static bool is_full(struct vk_strm *s)
{
    int64_t max_ops = gate_int_read(GATE_VK_MAX_OPS);

    if ((int64_t)(s->enc.bytes >> 20) > gate_int_read(GATE_VK_MAX_MB))
        return true;
    if (s->enc.ops <= max_ops)
        return false;
    bool is_busy = atomic_load(&s->completed) < atomic_load(&s->committed);
    return !is_busy || s->enc.ops > gate_int_read(GATE_VK_BUSY_FACTOR) * max_ops;
}

enum err vk_strm_step_end(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);

    return is_full(s) ? vk_strm_commit(s, true) : ERR_OK;
}

enum err vk_strm_flush(struct strm *strm)
{
    return vk_strm_commit(vk_strm_of(strm), false);
}

bool vk_strm_retire(struct strm *strm, bool block)
{
    struct vk_strm *s = vk_strm_of(strm);
    uint64_t oldest = vk_strm_oldest(s);

    if (oldest && block)
        vk_strm_wait_cmdbuf(s, oldest);
    else
        vk_strm_reap(s);
    return oldest != 0;
}

enum err vk_strm_sync(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);
    uint64_t ticket;
    enum err err;

    TRY(vk_strm_commit(s, false));
    ticket = atomic_load(&s->committed);
    TRY(vk_strm_wait_ticket(s, ticket));
    vk_rec_commit(VK_REC_SEEN, strm->index, ticket);
out:
    return err;
}
