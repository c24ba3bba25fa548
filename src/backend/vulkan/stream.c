#include "backend/vulkan/stream.h"

#include <stdatomic.h>

#include "backend/vulkan/record.h"
#include "core/gate.h"

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
    hazard_clear(&s->enc.hazard);
    /* Events of the stream still find it: their tickets stay behind it, whoever uses it next. */
    atomic_store(&s->strm, NULL);
}

/* True if the command buffer with that stamp holds b already; if not, it is about to. */
static bool is_held(struct buf *b, uint64_t stamp)
{
    if (b->home != &be_vulkan)
        return false;
    struct vk_buf *v = vk_buf_of(b);
    if (atomic_load_explicit(&v->held, memory_order_relaxed) == stamp)
        return true;
    atomic_store_explicit(&v->held, stamp, memory_order_relaxed);
    return false;
}

/* stamp: of the open command buffer; 0: of none. */
static enum err slot_hold(struct vk_slot *slot, const struct strm *strm, uint64_t stamp,
                          struct buf *const *bufs, size_t n)
{
    enum err err = VEC_RESERVE(&slot->held, n);

    slot->held_for = strm->index;
    for (size_t i = 0; i < n && !err; i++)
        if (!stamp || !is_held(bufs[i], stamp))
            slot->held.v[slot->held.n++] = buf_hold(bufs[i], strm->index);
    return err;
}

enum err vk_strm_hold(struct strm *strm, struct buf *const *bufs, size_t n)
{
    struct vk_strm *s = vk_strm_of(strm);
    enum err err = ERR_OK;

    if (s->enc.rehearses)
        return ERR_OK;
    if (s->enc.slot) /* open: nobody else touches it */
        return slot_hold(s->enc.slot, strm, s->enc.stamp, bufs, n);
    /* Nothing open: the newest commit is the last that can use them. */
    pthread_mutex_lock(&s->lock);
    if (s->newest)
        err = slot_hold(s->newest, strm, 0, bufs, n);
    pthread_mutex_unlock(&s->lock);
    return err;
}

/* An idle device should begin soon; behind work in flight a commit is only a cost. What a command
 * buffer binds it also holds, so that its bytes stay bounded. */
static bool is_full(struct vk_strm *s)
{
    int64_t max_ops = gate_int(GATE_VK_MAX_OPS);

    if ((int64_t)(s->enc.bytes >> 20) > gate_int(GATE_VK_MAX_MB))
        return true;
    if (s->enc.ops <= max_ops)
        return false;
    bool is_busy = atomic_load(&s->completed) < atomic_load(&s->committed);
    return !is_busy || s->enc.ops > gate_int(GATE_VK_BUSY_FACTOR) * max_ops;
}

enum err vk_strm_step_end(struct strm *strm)
{
    struct vk_strm *s = vk_strm_of(strm);

    variant_taken(); /* whatever it was, it is not the next step's */
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
        vk_strm_wait_slot(s, oldest);
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
