#include "support/sim.h"

#include "support/testing.h"

#include "base/hash.h"
#include "graph/memory.h"
#include "plan/plan.h"
#include "plan/rewrite.h"

#define POISON 0xdeadull
#define MAX_OPERANDS 16

/* ---- state ---- */

struct cell { /* the memory behind a buffer */
    struct buf buf;
    struct cell *next; /* all cells of the test */
    uint64_t digest;
    bool freed;
};

struct read {
    struct cell *cell;
    int64_t offset;
};

struct task {
    enum { TASK_RUN, TASK_WAIT, TASK_RELEASE } kind;
    struct read in[MAX_OPERANDS];
    struct cell *out[MAX_OPERANDS];
    int n_in, n_out;
    uint16_t op;
    uint8_t dtype;
    bool is_program;
    struct elem_program program;
    struct ev *ev;    /* WAIT */
    struct buf **buf; /* RELEASE */
    size_t n_buf;
};

struct queue {
    VEC(struct task) task;
    size_t done, flushed;
};

/* Entries that fit without an allocation: tests let allocations fail while the log goes on. */
#define LOG_ROOM 4096

static struct {
    struct cell *cells;
    VEC(struct sim_entry) log;
    int violations, fail_step, fail_task, fail_hold;
    enum group_reason group_answer;
    char text[256];
    int n_streams;
} sim;

static void violation(const char *text)
{
    if (!sim.violations++)
        strncpy(sim.text, text, sizeof sim.text - 1);
}

int sim_violations(void)
{
    return sim.violations;
}

const char *sim_violation_text(void)
{
    return sim.text;
}

void sim_begin(void)
{
    assert_null(sim.cells);
    VEC_FINI(&sim.log);
    memset(&sim, 0, sizeof sim);
    assert_ok(VEC_RESERVE(&sim.log, LOG_ROOM));
}

void sim_end(void)
{
    int leaked = 0;

    while (sim.cells) {
        struct cell *c = sim.cells;
        sim.cells = c->next;
        leaked += !c->freed;
        mem_free(c);
    }
    VEC_FINI(&sim.log);
    if (leaked)
        fail_msg("%d buffers were not released", leaked);
    if (sim.violations)
        fail_msg("%d violations, the first: %s", sim.violations, sim.text);
}

int sim_setup(void **state)
{
    (void)state;
    sim_begin();
    return 0;
}

int sim_teardown(void **state)
{
    (void)state;
    mem_fail_after(0);
    sim_end();
    return 0;
}

void sim_fail_step(int n)
{
    sim.fail_step = n;
}

void sim_fail_task(int n)
{
    sim.fail_task = n;
}

void sim_answer_groups(enum group_reason why)
{
    sim.group_answer = why;
}

void sim_fail_hold(int n)
{
    sim.fail_hold = n;
}

/* True when a countdown reaches its end now. */
static bool fires(int *countdown)
{
    return *countdown && --*countdown == 0;
}

/* ---- log ---- */

static void note(struct sim_entry e)
{
    assert_ok(VEC_PUSH(&sim.log, e));
}

size_t sim_log(const struct sim_entry **entries)
{
    *entries = sim.log.v;
    return sim.log.n;
}

void sim_log_clear(void)
{
    sim.log.n = 0;
}

size_t sim_count(enum sim_call call)
{
    size_t n = 0;

    for (size_t i = 0; i < sim.log.n; i++)
        n += sim.log.v[i].call == call;
    return n;
}

/* ---- digests ---- */

static uint64_t value_at(uint64_t digest, int64_t offset)
{
    return hash_mix(hash_mix(HASH_SEED, digest), (uint64_t)offset);
}

static uint64_t op_digest(uint64_t op, uint64_t what, const uint64_t *args, int n)
{
    uint64_t h = hash_mix(hash_mix(HASH_SEED, op), what);

    for (int i = 0; i < n; i++)
        h = hash_mix(h, args[i]);
    return h;
}

/* ---- memory ---- */

static enum err sim_buf_alloc(struct buf **out, size_t size)
{
    struct cell *c = mem_alloc(sizeof *c);

    if (!c)
        return ERR_NO_MEMORY;
    c->buf = (struct buf){ .home = &be_sim, .size = size, .host = &c->digest };
    atomic_init(&c->buf.refs, 1);
    c->digest = POISON;
    c->next = sim.cells;
    sim.cells = c;
    memory_acquire(size);
    *out = &c->buf;
    return ERR_OK;
}

static void sim_buf_free(struct buf *b)
{
    struct cell *c = (struct cell *)b;

    if (c->freed)
        violation("a buffer is freed twice");
    c->freed = true;
    c->digest = POISON;
    memory_release(b->size);
}

/* ---- running ---- */

static void run_queue(struct strm *s, size_t until);

static uint64_t run_read(const struct read *r)
{
    if (r->cell->freed)
        violation("a task reads a buffer that was freed");
    if (r->cell->digest == POISON)
        violation("a task reads a buffer before it is written");
    return value_at(r->cell->digest, r->offset);
}

static void run_program(const struct task *t, const uint64_t *in, uint64_t *out)
{
    uint64_t value[ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS],
        digest[ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS] = { 0 };
    const struct elem_program *f = &t->program;

    memcpy(value, in, f->n_in * sizeof value[0]);
    for (int i = 0; i < f->n_ins; i++) {
        uint64_t args[4];
        for (int k = 0; k < f->ins[i].n_args; k++) {
            if (f->ins[i].arg[k] >= f->n_in + i)
                violation("a program uses a value before it is there");
            args[k] = value[f->ins[i].arg[k]];
        }
        digest[f->n_in + i] = op_digest(f->ins[i].op, f->ins[i].dtype, args, f->ins[i].n_args);
        value[f->n_in + i] = value_at(digest[f->n_in + i], 0);
    }
    for (int o = 0; o < f->n_out; o++)
        out[o] = digest[f->out[o]];
}

/* The task that runs failed: the first event to cover it is one that is recorded after it. */
static void task_failed(struct strm *s, enum err err)
{
    const struct queue *q = s->priv;

    strm_note_error(s, q->done + 1, err);
}

static void run_task(struct strm *s, struct task *t)
{
    uint64_t in[MAX_OPERANDS], out[MAX_OPERANDS];

    if (fires(&sim.fail_task)) {
        task_failed(s, err_set(ERR_DEVICE, "[sim] The device failed."));
        return;
    }
    for (int i = 0; i < t->n_in; i++)
        in[i] = run_read(&t->in[i]);
    if (t->is_program)
        run_program(t, in, out);
    for (int o = 0; o < t->n_out; o++) {
        if (t->out[o]->freed)
            violation("a task writes a buffer that was freed");
        t->out[o]->digest =
            t->is_program ? out[o]
                          : op_digest(t->op, (uint64_t)t->dtype | (uint64_t)o << 8, in, t->n_in);
    }
}

static void run_one(struct strm *s, struct task *t)
{
    switch (t->kind) {
    case TASK_RUN:
        run_task(s, t);
        break;
    case TASK_WAIT: {
        enum err err = ev_inherit(t->ev);
        if (err)
            task_failed(s, err);
        ev_unref(&t->ev);
        break;
    }
    case TASK_RELEASE:
        for (size_t i = 0; i < t->n_buf; i++)
            buf_release(&t->buf[i], s->index);
        mem_free(t->buf);
        break;
    }
}

static void run_queue(struct strm *s, size_t until)
{
    struct queue *q = s->priv;

    if (until > q->flushed) {
        violation("somebody waits for work that was not handed over");
        q->flushed = until;
    }
    while (q->done < until) {
        struct task t = q->task.v[q->done++];
        run_one(s, &t);
    }
}

/* ---- streams ---- */

static enum err sim_strm_open(struct strm *s)
{
    s->priv = mem_alloc(sizeof(struct queue));
    return s->priv ? ERR_OK : ERR_NO_MEMORY;
}

static void sim_strm_close(struct strm *s)
{
    struct queue *q = s->priv;

    q->flushed = q->task.n;
    run_queue(s, q->task.n);
    VEC_FINI(&q->task);
    mem_free(q);
    s->priv = NULL;
}

struct strm *sim_strm_new(void)
{
    struct strm *s = mem_alloc(sizeof *s);

    assert_non_null(s);
    s->be = &be_sim;
    s->index = sim.n_streams++;
    s->owner = pthread_self();
    pthread_mutex_init(&s->failure_lock, NULL);
    assert_ok(s->be->strm_open(s));
    return s;
}

void sim_strm_free(struct strm **ps)
{
    struct strm *s = *ps;

    *ps = NULL;
    plan_cache_clear(s);
    s->be->strm_close(s);
    pthread_mutex_destroy(&s->failure_lock);
    mem_free(s);
}

size_t sim_pending(const struct strm *s)
{
    const struct queue *q = s->priv;

    return q->task.n - q->done;
}

static enum err push(struct strm *s, const struct task *t)
{
    struct queue *q = s->priv;

    return VEC_PUSH(&q->task, *t);
}

static enum err sim_hold(struct strm *s, struct buf *const *bufs, size_t n)
{
    struct task t = { .kind = TASK_RELEASE, .n_buf = n };
    enum err err = ERR_NO_MEMORY;

    note((struct sim_entry){ .call = SIM_HOLD, .strm = s, .n_in = (int)n });
    if (fires(&sim.fail_hold))
        return err_set(ERR_NO_MEMORY, "[sim] No memory for a hold.");
    if (!(t.buf = mem_alloc_array(n, sizeof *t.buf)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < n; i++)
        t.buf[i] = buf_hold(bufs[i], s->index);
    TRY(push(s, &t));
    return ERR_OK;
out:
    for (size_t i = 0; i < n; i++)
        buf_release(&t.buf[i], s->index);
    mem_free(t.buf);
    return err;
}

static enum err sim_step_end(struct strm *s)
{
    note((struct sim_entry){ .call = SIM_STEP_END, .strm = s });
    return ERR_OK;
}

static enum err sim_flush(struct strm *s)
{
    struct queue *q = s->priv;

    note((struct sim_entry){ .call = SIM_FLUSH, .strm = s });
    q->flushed = q->task.n;
    return ERR_OK;
}

static bool sim_retire(struct strm *s, bool block)
{
    struct queue *q = s->priv;

    if (q->done == q->flushed)
        return false;
    if (block)
        run_queue(s, q->done + 1);
    return true;
}

static enum err sim_sync(struct strm *s)
{
    struct queue *q = s->priv;

    note((struct sim_entry){ .call = SIM_SYNC, .strm = s });
    q->flushed = q->task.n;
    run_queue(s, q->task.n);
    return ERR_OK;
}

/* ---- events ---- */

static enum err sim_ev_record(struct strm *s, struct ev *e)
{
    const struct queue *q = s->priv;

    note((struct sim_entry){ .call = SIM_RECORD, .strm = s });
    e->ticket = q->task.n + 1; /* 0 is an event that was never recorded */
    return ERR_OK;
}

static enum err sim_ev_wait(struct ev *e)
{
    if (!e->ticket)
        violation("somebody waits for an event that was not recorded");
    else
        run_queue(e->strm, e->ticket - 1);
    atomic_store(&e->done, true);
    return ERR_OK;
}

static enum err sim_ev_query(bool *done, struct ev *e)
{
    const struct queue *q = e->strm->priv;

    *done = e->ticket && q->done >= e->ticket - 1;
    return ERR_OK;
}

static enum err sim_strm_wait(struct strm *s, struct ev *e)
{
    struct task t = { .kind = TASK_WAIT, .ev = ev_ref(e) };

    if (!e->ticket)
        violation("a stream waits for an event that was not recorded");
    note((struct sim_entry){ .call = SIM_WAIT, .strm = s, .producer = e->strm });
    enum err err = push(s, &t);
    if (err)
        ev_unref(&t.ev);
    return err;
}

/* ---- steps ---- */

static enum err begin_step(const struct exec *x)
{
    note((struct sim_entry){ .call = SIM_STEP,
                             .strm = x->strm,
                             .node = x->node,
                             .n_ins = x->program ? x->program->n_ins : 0,
                             .n_in = x->n_in,
                             .n_out = x->n_out });
    if (fires(&sim.fail_step))
        return err_set(ERR_RUNTIME, "[sim] Step failed.");
    return ERR_OK;
}

static enum err queue_step(const struct exec *x)
{
    struct task t = { .kind = TASK_RUN,
                      .op = x->node->op,
                      .dtype = x->out[0]->dtype,
                      .n_in = x->n_in,
                      .n_out = x->n_out };

    for (int i = 0; i < x->n_in; i++) {
        if (!x->in[i]->buf)
            return err_set(ERR_RUNTIME, "[sim] Input %d has no storage.", i);
        t.in[i] = (struct read){ (struct cell *)x->in[i]->buf, x->in[i]->offset };
    }
    for (int o = 0; o < x->n_out; o++)
        t.out[o] = (struct cell *)x->out[o]->buf;
    if ((t.is_program = x->program != NULL))
        t.program = *x->program;
    return push(x->strm, &t);
}

/* Takes over an input's buffer where that is allowed, as real backends do. */
static enum err give_storage(const struct exec *x, struct arr *out, unsigned *taken)
{
    for (int i = 0; i < x->n_in && x->program; i++) {
        struct arr *in = x->in[i];
        if (in->offset == 0 && arr_same_shape(in, out) && !(*taken & 1u << i) &&
            arr_can_donate_to(in, out, x->strm)) {
            *taken |= 1u << i;
            arr_share_all(out, in);
            return ERR_OK;
        }
    }
    return arr_alloc(out, &be_sim);
}

static enum err sim_compute(const struct exec *x)
{
    unsigned taken = 0;
    enum err err;

    TRY(begin_step(x));
    for (int o = 0; o < x->n_out; o++)
        TRY(give_storage(x, x->out[o], &taken));
    err = queue_step(x);
out:
    return err;
}

/* How far a view moves the first element: told apart by op and output. */
static int64_t view_step(uint16_t op, int pos)
{
    return (int64_t)op * 16 + pos;
}

static enum err sim_view(const struct exec *x)
{
    enum err err = begin_step(x);

    for (int o = 0; o < x->n_out && !err; o++)
        arr_share(x->out[o], x->in[0], x->out[o]->strides, LAYOUT_ROW, x->in[0]->data_size,
                  view_step(x->node->op, o));
    return err;
}

static const be_op_fn families[OP_FAMILY_COUNT] = {
    [OP_FAMILY_DIVMOD] = sim_compute,
    [OP_FAMILY_ARANGE] = sim_compute,
    [OP_FAMILY_FULL] = sim_compute,
    [OP_FAMILY_VIEW] = sim_view,
    [OP_FAMILY_CONCATENATE] = sim_compute,
    [OP_FAMILY_REDUCE] = sim_compute,
    [OP_FAMILY_MATMUL] = sim_compute,
    [OP_FAMILY_GATHER] = sim_compute,
    [OP_FAMILY_QUANTIZE] = sim_compute,
    [OP_FAMILY_UNARY] = sim_compute,
    [OP_FAMILY_QUANTIZED_MATMUL] = sim_compute,
    [OP_FAMILY_NORM] = sim_compute,
    [OP_FAMILY_ROPE] = sim_compute,
    [OP_FAMILY_SDPA] = sim_compute,
    [OP_FAMILY_SLICE_UPDATE] = sim_compute,
    [OP_FAMILY_BINARY] = sim_compute,
    [OP_FAMILY_TERNARY] = sim_compute,
};

/* One node of a group, as if it ran alone. */
static enum err run_member(const struct exec *x, struct node *n)
{
    struct arr *out = &n->out[0];
    enum err err;

    if (op_table[n->op].flags & OPF_VIEW) {
        arr_share(out, n->in[0], out->strides, LAYOUT_ROW, n->in[0]->data_size,
                  view_step(n->op, 0));
        return ERR_OK;
    }
    TRY(arr_alloc(out, &be_sim));
    err = queue_step(&(struct exec){
        .strm = x->strm, .node = n, .in = n->in, .n_in = n->n_in, .out = &out, .n_out = 1 });
out:
    return err;
}

static enum err sim_group(const struct exec *x, enum group_reason *why)
{
    const struct group *g = x->group;
    enum err err = ERR_OK;

    if ((*why = sim.group_answer) != GROUP_TAKEN)
        return ERR_OK;
    TRY(begin_step(x));
    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (g->node[slot])
            TRY(run_member(x, g->node[slot]));
    for (int slot = 0; slot < GROUP_SLOTS;
         slot++) /* what stays inside lives as long as inputs do */
        if (g->node[slot] && !group_wants(g, slot))
            TRY(sim_hold(x->strm, &g->node[slot]->out[0].buf, 1));
out:
    return err;
}

/* Always one dispatch. */
static enum err sim_attn(const struct exec *x, enum group_reason *why)
{
    enum err err = sim_group(x, why);

    rewrite_count(1u << REWRITE_ATTN_HEADS, *why);
    return err;
}

static const be_group_fn groups[GROUP_KIND_COUNT] = {
    [GROUP_PRODUCT] = sim_group,  [GROUP_ATTN] = sim_attn,   [GROUP_HEADS] = sim_group,
    [GROUP_ADD_NORM] = sim_group, [GROUP_EMBED] = sim_group,
};

const struct be be_sim = {
    .name = "sim",
    .type = DEV_GPU, /* its memory is its own: core must not take it from another device */
    .buf_alloc = sim_buf_alloc,
    .buf_free = sim_buf_free,
    .strm_open = sim_strm_open,
    .strm_close = sim_strm_close,
    .elementwise = sim_compute,
    .families = families,
    .groups = groups,
    .hold = sim_hold,
    .step_end = sim_step_end,
    .flush = sim_flush,
    .retire = sim_retire,
    .sync = sim_sync,
    .ev_record = sim_ev_record,
    .ev_wait = sim_ev_wait,
    .ev_query = sim_ev_query,
    .strm_wait = sim_strm_wait,
};

/* ---- arrays with a known digest ---- */

struct sim_arr sim_leaf(const struct shp *s, enum dtype t, uint64_t seed)
{
    struct sim_arr leaf = { .digest = hash_mix(HASH_SEED, seed) };

    assert_ok(arr_new_empty(&leaf.a, s, t));
    assert_ok(arr_alloc(leaf.a, &be_sim));
    if (leaf.a->buf)
        ((struct cell *)leaf.a->buf)->digest = leaf.digest;
    atomic_store(&leaf.a->status, ARR_AVAILABLE);
    return leaf;
}

static void expect(struct sim_arr *out, const struct sim_node *n, const struct sim_arr *in,
                   size_t n_in, int pos)
{
    uint64_t args[MAX_OPERANDS];
    uint64_t what = (uint64_t)n->dtype | (uint64_t)pos << 8;

    if (op_table[n->op].flags & OPF_VIEW) {
        out->digest = in[0].digest;
        out->offset = in[0].offset + view_step((uint16_t)n->op, pos) * (int64_t)dt_size(n->dtype);
        return;
    }
    for (size_t i = 0; i < n_in; i++)
        args[i] = value_at(in[i].digest, in[i].offset);
    out->digest = op_digest(n->op, what, args, (int)n_in);
    out->offset = 0;
}

static void make_node(struct sim_arr *outs, const struct sim_node *n, const void *params,
                      const struct sim_arr *in, size_t n_in)
{
    struct arr *inputs[MAX_OPERANDS], *made[MAX_OPERANDS];
    struct out_desc desc[MAX_OPERANDS];
    size_t n_out = n->n_out ? n->n_out : 1;

    for (size_t i = 0; i < n_in; i++)
        inputs[i] = in[i].a;
    for (size_t o = 0; o < n_out; o++)
        desc[o] = (struct out_desc){ n->shape, n->dtype };
    assert_ok(node_new(made, &(struct node_params){ .op = (uint16_t)n->op,
                                                    .strm = n->strm,
                                                    .in = inputs,
                                                    .n_in = n_in,
                                                    .params = params,
                                                    .out = desc,
                                                    .n_out = n_out }));
    for (size_t o = 0; o < n_out; o++) {
        outs[o].a = made[o];
        expect(&outs[o], n, in, n_in, (int)o);
    }
}

void sim_node(struct sim_arr *outs, const struct sim_node *n, const struct sim_arr *in, size_t n_in)
{
    make_node(outs, n, NULL, in, n_in);
}

struct sim_arr sim_op_params(const struct sim_node *n, const void *params, const struct sim_arr *in,
                             size_t n_in)
{
    struct sim_arr out;

    make_node(&out, n, params, in, n_in);
    return out;
}

struct sim_arr sim_op(const struct sim_node *n, const struct sim_arr *in, size_t n_in)
{
    struct sim_arr out;

    sim_node(&out, n, in, n_in);
    return out;
}

bool sim_is_right(const struct sim_arr *s)
{
    return s->a->buf && ((struct cell *)s->a->buf)->digest == s->digest &&
           s->a->offset == s->offset;
}

void sim_drop(struct sim_arr *s)
{
    arr_unref(&s->a);
}
