/* A stream's worker thread and its queue. */
#include "backend/cpu/cpu.h"
#include "base/clock.h"
#include "base/stat.h"
#include "base/times.h"
#include "base/trace.h"
#include "eval/sched.h"

#include <pthread.h>
#include <stdatomic.h>

/* How many dispatches count as one task for the throttle (docs/runtime.md, Throttle). */
#define DISPATCHES_PER_TASK 10

struct task {
    struct task *next;
    cpu_task_fn run;
    const char *op; /* whose time is taken; NULL: none */
    bool counted;   /* sched_task_begin was called for it */
    _Alignas(16) unsigned char payload[];
};

/* Somebody to be told when the count of completed tasks reaches the ticket. */
struct watch {
    struct watch *next;
    uint64_t ticket;
    void (*fn)(void);
};

struct encoder {
    struct encoder *next; /* of all that were made */
    struct strm *strm;
    pthread_t thread;
    bool started;        /* owner thread only */
    unsigned dispatches; /* owner thread only */

    pthread_mutex_t queue_lock; /* guards head, tail, queued, watches, stop, the two conditions */
    pthread_cond_t queue_filled;
    pthread_cond_t progressed;
    struct task *head, **tail;
    uint64_t queued;
    struct watch *watches;
    bool stop;

    _Atomic uint64_t done; /* tasks complete; an event's ticket is the value it waits for */
    atomic_int waiters;    /* threads that sleep until `done` moves, and watches */
};

/* Takes out the watches whose time has come; called with the lock held. */
static struct watch *take_due(struct encoder *e)
{
    struct watch *due = NULL;

    for (struct watch **p = &e->watches; *p;) {
        struct watch *w = *p;
        if (w->ticket > atomic_load(&e->done)) {
            p = &w->next;
            continue;
        }
        *p = w->next;
        w->next = due;
        due = w;
        atomic_fetch_sub(&e->waiters, 1);
    }
    return due;
}

static void tell(struct watch *due)
{
    while (due) {
        struct watch *w = due;
        due = w->next;
        w->fn();
        mem_free(w);
    }
}

static void task_complete(struct encoder *e)
{
    atomic_fetch_add(&e->done, 1);
    /* Sequentially consistent on both sides: either the waiter sees the new count, or it is seen
     * here. */
    if (atomic_load(&e->waiters) == 0)
        return;
    pthread_mutex_lock(&e->queue_lock);
    struct watch *due = take_due(e);
    pthread_cond_broadcast(&e->progressed);
    pthread_mutex_unlock(&e->queue_lock);
    tell(due);
}

static enum err run_timed(struct task *t)
{
    int64_t begin = clock_ns();
    enum err err = t->run(t->payload);

    times_add(&(struct times_key){ .device = "cpu", .name = t->op },
              (uint64_t)(clock_ns() - begin));
    trace_span_end(t->op, begin);
    return err;
}

static void task_run(struct encoder *e, struct task *t)
{
    enum err err = t->op ? run_timed(t) : t->run(t->payload);

    if (err != ERR_OK)
        strm_note_error(e->strm, atomic_load(&e->done) + 1, err);
    if (t->counted)
        sched_task_end();
    mem_free(t);
    task_complete(e);
}

/* Everything queued, or NULL when the stream closes. */
static struct task *queue_take(struct encoder *e)
{
    struct task *list;

    pthread_mutex_lock(&e->queue_lock);
    while (!e->head && !e->stop)
        pthread_cond_wait(&e->queue_filled, &e->queue_lock);
    list = e->head;
    e->head = NULL;
    e->tail = &e->head;
    pthread_mutex_unlock(&e->queue_lock);
    return list;
}

static _Thread_local bool is_worker;

static void *worker(void *arg)
{
    struct encoder *e = arg;

    is_worker = true;
    trace_name_thread("CPU stream", e->strm->index);
    for (struct task *t = queue_take(e); t; t = queue_take(e)) {
        while (t) {
            struct task *next = t->next;
            task_run(e, t);
            t = next;
        }
    }
    return NULL;
}

static atomic_bool is_over; /* the process ends */

/* False if no more tasks are taken. */
static bool queue_put(struct encoder *e, struct task *t)
{
    pthread_mutex_lock(&e->queue_lock);
    bool was_empty = !e->head, is_taken = !atomic_load(&is_over);
    if (is_taken) {
        *e->tail = t;
        e->tail = &t->next;
        e->queued++;
    }
    if (was_empty && is_taken)
        pthread_cond_signal(&e->queue_filled);
    pthread_mutex_unlock(&e->queue_lock);
    return is_taken;
}

static enum err worker_start(struct encoder *e)
{
    if (e->started)
        return ERR_OK;
    if (pthread_create(&e->thread, NULL, worker, e) != 0)
        return err_set(ERR_RUNTIME, "[cpu] The worker thread of stream %d could not be started.",
                       e->strm->index);
    e->started = true;
    return ERR_OK;
}

/* ---- waiting ---- */

static void wait_until(struct encoder *e, uint64_t ticket)
{
    if (atomic_load(&e->done) >= ticket)
        return;
    int64_t begin = trace_span_begin();
    stat_add(STAT_HOST_WAITS, 1);
    atomic_fetch_add(&e->waiters, 1);
    pthread_mutex_lock(&e->queue_lock);
    while (atomic_load(&e->done) < ticket)
        pthread_cond_wait(&e->progressed, &e->queue_lock);
    pthread_mutex_unlock(&e->queue_lock);
    atomic_fetch_sub(&e->waiters, 1);
    trace_span_end("wait for the CPU", begin);
}

static uint64_t queued_so_far(struct encoder *e)
{
    pthread_mutex_lock(&e->queue_lock);
    uint64_t n = e->queued;
    pthread_mutex_unlock(&e->queue_lock);
    return n;
}

/* ---- queueing ---- */

/* payload NULL leaves the bytes to the caller. */
static struct task *task_new(cpu_task_fn fn, const void *payload, size_t size)
{
    struct task *t = mem_alloc(sizeof *t + size);

    if (!t)
        return NULL;
    t->run = fn;
    if (payload)
        memcpy(t->payload, payload, size);
    return t;
}

static enum err enqueue(struct strm *s, cpu_task_fn fn, const void *payload, size_t size,
                        const char *op)
{
    struct encoder *e = s->priv;
    struct task *t = NULL;
    enum err err = worker_start(e);

    if (err == ERR_OK && !(t = task_new(fn, payload, size)))
        err = ERR_NO_MEMORY;
    if (err != ERR_OK) {
        /* The caller drops the op's buffers; an earlier task of the op may be using them. */
        wait_until(e, queued_so_far(e));
        return err;
    }
    t->op = op;
    t->counted = ++e->dispatches % DISPATCHES_PER_TASK == 0;
    if (t->counted)
        sched_task_begin();
    if (queue_put(e, t)) {
        stat_add(STAT_CPU_TASKS, 1);
        return ERR_OK;
    }
    if (t->counted)
        sched_task_end();
    mem_free(t);
    return err_set(ERR_DEVICE, "[cpu] The process is ending.");
}

enum err cpu_enqueue(struct strm *s, cpu_task_fn fn, const void *payload, size_t size)
{
    return enqueue(s, fn, payload, size, times_op());
}

struct held {
    int stream_index;
    size_t n;
    struct buf *buf[];
};

static enum err run_release(void *payload)
{
    struct held *h = payload;

    for (size_t i = 0; i < h->n; i++)
        buf_release(&h->buf[i], h->stream_index);
    return ERR_OK;
}

enum err cpu_hold(struct strm *s, struct buf *const *bufs, size_t n)
{
    struct encoder *e = s->priv;

    /* Before the first task nothing can be reading the buffers. */
    if (n == 0 || !e->started)
        return ERR_OK;
    struct task *t = task_new(run_release, NULL, sizeof(struct held) + n * sizeof bufs[0]);
    if (!t)
        return cpu_sync(s); /* no memory to remember them with, so outlast the work here */
    struct held *h = (struct held *)t->payload;
    h->stream_index = s->index;
    for (h->n = 0; h->n < n; h->n++)
        h->buf[h->n] = buf_hold(bufs[h->n], s->index);
    if (!queue_put(e, t)) /* the bytes stay, for nobody */
        mem_free(t);
    return ERR_OK;
}

/* ---- steps and events ---- */

enum err cpu_step_end(struct strm *s)
{
    (void)s;
    return ERR_OK;
}

enum err cpu_flush(struct strm *s)
{
    (void)s; /* a task runs as soon as it is queued */
    return ERR_OK;
}

bool cpu_retire(struct strm *s, bool block)
{
    struct encoder *e = s->priv;
    uint64_t done = atomic_load(&e->done);

    if (done == queued_so_far(e))
        return false;
    if (block)
        wait_until(e, done + 1);
    return true;
}

enum err cpu_sync(struct strm *s)
{
    wait_until(s->priv, queued_so_far(s->priv));
    return ERR_OK;
}

enum err cpu_ev_record(struct strm *s, struct ev *e)
{
    e->ticket = queued_so_far(s->priv);
    return ERR_OK;
}

enum err cpu_ev_wait(struct ev *e)
{
    wait_until(e->strm->priv, e->ticket);
    atomic_store(&e->done, true);
    return ERR_OK;
}

enum err cpu_ev_query(bool *done, struct ev *e)
{
    struct encoder *enc = e->strm->priv;

    *done = atomic_load(&enc->done) >= e->ticket;
    if (*done)
        atomic_store(&e->done, true);
    return ERR_OK;
}

enum err cpu_ev_notify(struct ev *ev, void (*fn)(void))
{
    struct encoder *e = ev->strm->priv;
    struct watch *w = mem_alloc(sizeof *w);

    if (!w)
        return ERR_NO_MEMORY;
    *w = (struct watch){ .ticket = ev->ticket, .fn = fn };
    pthread_mutex_lock(&e->queue_lock);
    w->next = e->watches;
    e->watches = w;
    atomic_fetch_add(&e->waiters, 1);
    struct watch *due = take_due(e); /* it may be complete by now */
    pthread_mutex_unlock(&e->queue_lock);
    tell(due);
    return ERR_OK;
}

/* The producer's failure becomes this stream's. */
static enum err run_wait(void *payload)
{
    struct ev *e;

    memcpy(&e, payload, sizeof e);
    enum err err = ev_inherit(e);
    ev_unref(&e);
    return err;
}

enum err cpu_strm_wait(struct strm *s, struct ev *e)
{
    struct ev *held = ev_ref(e);
    enum err err = enqueue(s, run_wait, &held, sizeof held, NULL);

    if (err != ERR_OK)
        ev_unref(&held);
    return err;
}

/* ---- life ---- */

/* Encoders live for the process, because events of a closed stream may still be waited for; their
 * counts go on when the stream is opened again. */
static _Atomic(struct encoder *) all_encoders;

enum err cpu_strm_open(struct strm *s)
{
    if (s->priv)
        return ERR_OK;
    struct encoder *e = mem_alloc(sizeof *e);
    if (!e)
        return ERR_NO_MEMORY;
    e->tail = &e->head;
    e->strm = s;
    pthread_mutex_init(&e->queue_lock, NULL);
    pthread_cond_init(&e->queue_filled, NULL);
    pthread_cond_init(&e->progressed, NULL);
    e->next = atomic_load(&all_encoders);
    while (!atomic_compare_exchange_weak(&all_encoders, &e->next, e))
        ;
    s->priv = e;
    return ERR_OK;
}

void cpu_strm_close(struct strm *s)
{
    struct encoder *e = s->priv;

    if (!e->started)
        return;
    pthread_mutex_lock(&e->queue_lock);
    e->stop = true;
    pthread_cond_signal(&e->queue_filled);
    pthread_mutex_unlock(&e->queue_lock);
    pthread_join(e->thread, NULL); /* the worker empties the queue first */
    e->started = e->stop = false;
}

/* A task that ends the process would wait for itself. */
static void wait_for_all(void)
{
    struct encoder *e = is_worker ? NULL : atomic_load(&all_encoders);

    for (; e; e = e->next)
        wait_until(e, queued_so_far(e));
}

/* OpenBLAS takes its memory and its threads down when the process ends: a product crashes or hangs
 * then. */
void cpu_quiesce(void)
{
    atomic_store(&is_over, true);
    wait_for_all();
}

/* It stops its threads before a fork, too, and hangs if somebody computes with them. */
void cpu_before_fork(void)
{
    wait_for_all();
}
