#include "backend/vulkan/record.h"

#include <pthread.h>
#include <stdatomic.h>

#include "core/log.h"
#include "core/mem.h"

static pthread_mutex_t rec_lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static VEC(struct vk_rec) list;
static atomic_int drop;

void vk_rec_add(const struct vk_rec *r)
{
    pthread_mutex_lock(&rec_lock);
    enum err err = VEC_PUSH(&list, *r);
    pthread_mutex_unlock(&rec_lock);
    if (err)
        log_warn("hazard record is incomplete: %s", err_text());
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
    atomic_store(&drop, n);
}

bool vk_rec_drops_this(void)
{
    int left = atomic_load_explicit(&drop, memory_order_relaxed);

    return left > 0 && atomic_fetch_sub(&drop, 1) == 1;
}
