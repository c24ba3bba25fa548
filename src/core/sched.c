#include "core/sched.h"

#include <pthread.h>

static pthread_mutex_t count_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t dropped = PTHREAD_COND_INITIALIZER;
static int active;

void sched_task_begin(void)
{
    pthread_mutex_lock(&count_lock);
    active++;
    pthread_mutex_unlock(&count_lock);
}

void sched_task_end(void)
{
    pthread_mutex_lock(&count_lock);
    active--;
    pthread_cond_broadcast(&dropped);
    pthread_mutex_unlock(&count_lock);
}

int sched_active(void)
{
    pthread_mutex_lock(&count_lock);
    int n = active;
    pthread_mutex_unlock(&count_lock);
    return n;
}

void sched_wait_for_one(void)
{
    pthread_mutex_lock(&count_lock);
    for (int entry = active; entry > 1 && active >= entry;)
        pthread_cond_wait(&dropped, &count_lock);
    pthread_mutex_unlock(&count_lock);
}
