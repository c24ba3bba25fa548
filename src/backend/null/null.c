#include "backend/null/null.h"

#include "backend/common/elementwise.h"
#include "backend/common/families.h"
#include "graph/memory.h"
#include "plan/plan.h"

#include <stdatomic.h>

/* ---- the log ---- */

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct null_record) records; /* guarded by log_lock */
static atomic_size_t fail_countdown;    /* steps that still succeed, plus one; 0 = off */

static enum err record(const struct null_record *r)
{
    pthread_mutex_lock(&log_lock);
    enum err err = VEC_PUSH(&records, *r);
    pthread_mutex_unlock(&log_lock);
    return err;
}

bool null_record_get(struct null_record *out, size_t i)
{
    pthread_mutex_lock(&log_lock);
    bool found = i < records.n;
    if (found)
        *out = records.v[i];
    pthread_mutex_unlock(&log_lock);
    return found;
}

size_t null_record_count(void)
{
    pthread_mutex_lock(&log_lock);
    size_t n = records.n;
    pthread_mutex_unlock(&log_lock);
    return n;
}

void null_record_clear(void)
{
    pthread_mutex_lock(&log_lock);
    VEC_FINI(&records);
    pthread_mutex_unlock(&log_lock);
}

void null_fail_step(size_t n)
{
    atomic_store(&fail_countdown, n);
}

static bool step_fails(void)
{
    size_t left = atomic_load(&fail_countdown);

    while (left > 1)
        if (atomic_compare_exchange_weak(&fail_countdown, &left, left - 1))
            return false;
    return left == 1;
}

/* ---- streams: counters of commands ---- */

struct hold {
    uint64_t ticket; /* released once so many commands are finished */
    struct buf *buf;
    int stream_index;
};

struct queue {
    pthread_mutex_t lock; /* guards what follows; never held while buffers are released */
    uint64_t given, flushed, finished;
    VEC(struct hold) holds;
};

/* One more command on the stream. */
static void count_command(struct strm *s)
{
    struct queue *q = s->priv;

    pthread_mutex_lock(&q->lock);
    q->given++;
    pthread_mutex_unlock(&q->lock);
}

static struct hold take_finished_hold(struct queue *q)
{
    struct hold h = { 0 };

    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < q->holds.n && !h.buf; i++) {
        if (q->holds.v[i].ticket > q->finished)
            continue;
        h = q->holds.v[i];
        q->holds.v[i] = q->holds.v[--q->holds.n];
    }
    pthread_mutex_unlock(&q->lock);
    return h;
}

static void finish_until(struct queue *q, uint64_t ticket)
{
    pthread_mutex_lock(&q->lock);
    q->finished = MAX(q->finished, MIN(ticket, q->flushed));
    pthread_mutex_unlock(&q->lock);
    for (struct hold h = take_finished_hold(q); h.buf; h = take_finished_hold(q))
        buf_release(&h.buf, h.stream_index);
}

void null_finish(struct strm *s)
{
    finish_until(s->priv, UINT64_MAX);
}

size_t null_in_flight(const struct strm *s)
{
    struct queue *q = s->priv;

    pthread_mutex_lock(&q->lock);
    size_t n = (size_t)(q->flushed - q->finished);
    pthread_mutex_unlock(&q->lock);
    return n;
}

size_t null_held(const struct strm *s)
{
    struct queue *q = s->priv;

    pthread_mutex_lock(&q->lock);
    size_t n = q->holds.n;
    pthread_mutex_unlock(&q->lock);
    return n;
}

static enum err null_strm_open(struct strm *s)
{
    struct queue *q = mem_alloc(sizeof *q);

    if (!q)
        return ERR_NO_MEMORY;
    pthread_mutex_init(&q->lock, NULL);
    s->priv = q;
    return ERR_OK;
}

static enum err null_flush(struct strm *s)
{
    struct queue *q = s->priv;

    pthread_mutex_lock(&q->lock);
    q->flushed = q->given;
    pthread_mutex_unlock(&q->lock);
    return record(&(struct null_record){ .call = NULL_FLUSH, .strm = s });
}

static void null_strm_close(struct strm *s)
{
    struct queue *q = s->priv;

    q->flushed = q->given;
    null_finish(s);
    VEC_FINI(&q->holds);
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
    s->priv = NULL;
}

enum err null_strm_new(struct strm **out)
{
    struct strm *s = mem_alloc(sizeof *s);
    enum err err = ERR_NO_MEMORY;

    if (!s)
        return ERR_NO_MEMORY;
    s->index = -1;
    s->dev = (struct dev){ DEV_GPU, 0 };
    s->be = &be_null;
    s->owner = pthread_self();
    pthread_mutex_init(&s->failure_lock, NULL);
    TRY(null_strm_open(s));
    *out = s;
    s = NULL;
out:
    mem_free(s);
    return err;
}

void null_strm_free(struct strm **ps)
{
    struct strm *s = *ps;

    *ps = NULL;
    if (!s)
        return;
    plan_cache_clear(s);
    null_strm_close(s);
    pthread_mutex_destroy(&s->failure_lock);
    mem_free(s);
}

/* ---- steps ---- */

static bool shares_buffer(const struct exec *x)
{
    for (int o = 0; o < x->n_out; o++)
        for (int i = 0; i < x->n_in; i++)
            if (x->out[o]->buf && x->out[o]->buf == x->in[i]->buf)
                return true;
    return false;
}

/* The outputs have storage. */
static enum err record_step(const struct exec *x, bool donates)
{
    struct null_record r = {
        .call = NULL_STEP,
        .strm = x->strm,
        .op = x->node->op,
        .n_ins = x->program ? x->program->n_ins : 0,
        .n_in = (uint8_t)x->n_in,
        .n_out = (uint8_t)x->n_out,
        .dtype = x->out[0]->dtype,
        .donated = donates && shares_buffer(x),
    };

    arr_shape(&r.shape, x->out[0]);
    count_command(x->strm);
    return record(&r);
}

static enum err check_failure(const struct exec *x)
{
    if (!step_fails())
        return ERR_OK;
    return err_set(ERR_DEVICE, "[%s] The step was asked to fail.",
                   op_name((enum op_id)x->node->op));
}

static enum err null_elementwise(const struct exec *x)
{
    struct elem_walk w;
    enum err err;

    TRY(check_failure(x));
    TRY(elem_prepare(&w, x, &be_null));
    err = record_step(x, true);
out:
    return err;
}

static enum err null_op(const struct exec *x)
{
    enum err err;

    TRY(check_failure(x));
    for (int o = 0; o < x->n_out; o++)
        TRY(arr_alloc(x->out[o], &be_null));
    err = record_step(x, false);
out:
    return err;
}

/* Views share as they do everywhere; copies are recorded on their own, before the step. */
static enum err null_common(const struct exec *x)
{
    static const be_op_fn common[OP_FAMILY_COUNT] = {
#define COMMON(id, word) [OP_FAMILY_##id] = be_##word,
#include "ops/families.def"
    };
    enum err err;

    TRY(check_failure(x));
    TRY(common[op_table[x->node->op].family](x));
    err = record_step(x, false);
out:
    return err;
}

static enum err null_copy(struct strm *s, const struct be_copy *c)
{
    count_command(s);
    return record(&(struct null_record){ .call = NULL_COPY,
                                         .strm = s,
                                         .dtype = c->dst->dtype,
                                         .group = c->group,
                                         .shape = *c->shape });
}

static enum err null_hold(struct strm *s, struct buf *const *bufs, size_t n)
{
    struct queue *q = s->priv;
    enum err err = ERR_OK;

    pthread_mutex_lock(&q->lock);
    for (size_t i = 0; i < n && err == ERR_OK; i++) {
        err = VEC_PUSH(&q->holds, ((struct hold){ q->given, bufs[i], s->index }));
        if (err == ERR_OK)
            buf_hold(bufs[i], s->index);
    }
    pthread_mutex_unlock(&q->lock);
    if (err != ERR_OK)
        return err;
    return record(&(struct null_record){ .call = NULL_HOLD, .strm = s, .n_bufs = n });
}

static enum err null_step_end(struct strm *s)
{
    return record(&(struct null_record){ .call = NULL_STEP_END, .strm = s });
}

static bool null_retire(struct strm *s, bool block)
{
    if (null_in_flight(s) == 0)
        return false;
    if (block)
        null_finish(s);
    return true;
}

static enum err null_sync(struct strm *s)
{
    enum err err = null_flush(s);

    null_finish(s);
    return err ? err : record(&(struct null_record){ .call = NULL_SYNC, .strm = s });
}

/* ---- events ---- */

static enum err null_ev_record(struct strm *s, struct ev *e)
{
    struct queue *q = s->priv;

    pthread_mutex_lock(&q->lock);
    e->ticket = q->given;
    pthread_mutex_unlock(&q->lock);
    return record(&(struct null_record){ .call = NULL_EV_RECORD, .strm = s, .ticket = e->ticket });
}

static enum err null_ev_query(bool *done, struct ev *e)
{
    struct queue *q = e->strm->priv;

    pthread_mutex_lock(&q->lock);
    *done = q->finished >= e->ticket;
    pthread_mutex_unlock(&q->lock);
    if (*done)
        atomic_store(&e->done, true);
    return ERR_OK;
}

static enum err null_ev_wait(struct ev *e)
{
    bool done;

    finish_until(e->strm->priv, e->ticket);
    enum err err = null_ev_query(&done, e);
    if (err == ERR_OK && !done)
        err = err_set(ERR_RUNTIME, "[null] The event is waited for, but was never flushed.");
    return err;
}

static enum err null_strm_wait(struct strm *s, struct ev *e)
{
    count_command(s);
    return record(&(struct null_record){
        .call = NULL_STRM_WAIT, .strm = s, .ticket = e->ticket, .producer = e->strm });
}

/* ---- memory and device ---- */

static enum err null_buf_alloc(struct buf **out, size_t size)
{
    struct buf *b = mem_alloc(sizeof *b);

    if (!b || !(b->host = mem_alloc(size))) {
        mem_free(b);
        return ERR_NO_MEMORY;
    }
    b->home = &be_null;
    b->size = size;
    atomic_init(&b->refs, 1);
    memory_acquire(size);
    *out = b;
    return ERR_OK;
}

static void null_buf_free(struct buf *b)
{
    memory_release(b->size);
    mem_free(b->host);
    mem_free(b);
}

static enum err null_open(void)
{
    return ERR_OK;
}

static int null_device_count(void)
{
    return 1;
}

static bool null_is_hardware(void)
{
    return false;
}

static bool null_is_unified(void)
{
    return true;
}

static enum err null_device_info(const struct be_info_row **rows, size_t *n, int index)
{
    (void)index;
    *rows = NULL;
    *n = 0;
    return ERR_OK;
}

static void null_cache_clear(void)
{
}

static size_t null_memory_size(void)
{
    return (size_t)1 << 30;
}

static void null_describe(FILE *out)
{
    fprintf(out, "device        null (records, runs nothing)\n");
}

static const be_op_fn null_families[OP_FAMILY_COUNT] = {
#define COMMON(id, ...) [OP_FAMILY_##id] = null_common,
#define OWN(id, ...) [OP_FAMILY_##id] = null_op,
#include "ops/families.def"
};

const struct be be_null = {
    .name = "null",
    .type = DEV_GPU,
    .open = null_open,
    .device_count = null_device_count,
    .is_hardware = null_is_hardware,
    .device_info = null_device_info,
    .buf_alloc = null_buf_alloc,
    .buf_free = null_buf_free,
    .is_unified = null_is_unified,
    .cache_clear = null_cache_clear,
    .memory_size = null_memory_size,
    .strm_open = null_strm_open,
    .strm_close = null_strm_close,
    .elementwise = null_elementwise,
    .families = null_families,
    .copy = null_copy,
    .hold = null_hold,
    .step_end = null_step_end,
    .flush = null_flush,
    .retire = null_retire,
    .sync = null_sync,
    .ev_record = null_ev_record,
    .ev_wait = null_ev_wait,
    .ev_query = null_ev_query,
    .strm_wait = null_strm_wait,
    .describe = null_describe,
};
