#include "backend/vulkan/check/record.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"

static pthread_mutex_t rec_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static VEC(struct vk_rec) list;
static atomic_int barriers_left, waits_left; /* until one is dropped; 0: none is */

void vk_rec_add(const struct vk_rec *r)
{
    pthread_mutex_lock(&rec_lock);
    enum err err = VEC_PUSH(&list, *r);
    pthread_mutex_unlock(&rec_lock);
    if (err)
        log_warn("hazard record is incomplete: %s", err_text());
}

void vk_rec_commit(enum vk_rec_kind kind, int stream, uint64_t ticket)
{
    if (gate_on(GATE_VK_RECORD))
        vk_rec_add(&(struct vk_rec){ .kind = kind, .stream = stream, .ticket = ticket });
}

const struct vk_rec *vk_rec_get(size_t *n)
{
    *n = list.n;
    return list.v;
}

void vk_rec_reset(void)
{
    pthread_mutex_lock(&rec_lock);
    list.n = 0;
    pthread_mutex_unlock(&rec_lock);
}

void vk_rec_drop_barrier(int n)
{
    atomic_store(&barriers_left, n);
}

void vk_rec_drop_wait(int n)
{
    atomic_store(&waits_left, n);
}

static bool is_the_one(atomic_int *left)
{
    return atomic_load_explicit(left, memory_order_relaxed) > 0 && atomic_fetch_sub(left, 1) == 1;
}

bool vk_rec_drops_barrier(void)
{
    return is_the_one(&barriers_left);
}

bool vk_rec_drops_wait(void)
{
    return is_the_one(&waits_left);
}
