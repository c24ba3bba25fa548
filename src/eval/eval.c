#include "eval/eval.h"

#include <stdatomic.h>

#include "backend/backend.h"
#include "base/process.h"
#include "base/stat.h"
#include "base/trace.h"
#include "eval/eval_step.h"
#include "eval/recording.h"
#include "eval/sched.h"
#include "eval/tape.h"
#include "eval/wait.h"
#include "graph/memory.h"
#include "plan/plan.h"
#include "plan/rewrite.h"

/* More counted tasks in flight than this and eval waits for one (docs/runtime.md, Throttle). */
#define MAX_ACTIVE_TASKS 10

/* Results that come to the host ahead of its asking. More of them are more likely parameters of a
 * model than what somebody looks at. */
#define MAX_AHEAD 4

struct ahead {
    struct buf *buf, *mirror; /* owned */
};

struct eval {
    bool async;
    VEC(struct open_stream) open;
    struct ahead ahead[MAX_AHEAD];
    size_t n_ahead;
    VEC(struct arr *) traced; /* inputs of nodes that keep their graph */
};

static struct open_stream *find_open(struct eval *e, const struct strm *s)
{
    for (size_t i = 0; i < e->open.n; i++)
        if (e->open.v[i].strm == s)
            return &e->open.v[i];
    return NULL;
}

static enum err open_stream(struct open_stream **out, struct eval *e, struct strm *s)
{
    enum err err = ERR_OK;

    if ((*out = find_open(e, s)))
        return ERR_OK;
    TRY(strm_check_thread(s));
    TRY(VEC_PUSH(&e->open, (struct open_stream){ .strm = s }));
    *out = &e->open.v[e->open.n - 1];
    if (e->async)
        err = ev_new(&(*out)->ev, s);
out:
    return err;
}

/* ---- before a run: wait for what other streams produce ---- */

/* An array of an earlier async eval carries a recorded event; one made by this eval is covered by
 * its stream's fence. */
static enum err wait_for_input(struct eval *e, struct strm *s, struct arr *a)
{
    struct strm *producer = a->node->strm;
    struct open_stream *os = find_open(e, producer);

    enum err err = ERR_OK;

    if (!producer || producer == s)
        return ERR_OK;
    /* A thread that waits for the array may drop its event at any time. */
    struct ev *ev = arr_event(a);
    if (ev && !(os && os->ev == ev))
        err = ev_wait_on(s, ev);
    else if (os && os->fence)
        err = ev_wait_on(s, os->fence);
    ev_unref(&ev);
    return err;
}

static enum err wait_for_inputs(struct eval *e, struct strm *s, struct node *const *nodes, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < nodes[i]->n_in; k++)
            if (arr_is_scheduled(nodes[i]->in[k]))
                TRY(wait_for_input(e, s, nodes[i]->in[k]));
out:
    return err;
}

/* ---- what traced nodes read ---- */

/* Rules of gradients will read it again: with another owner nothing writes over it. */
static enum err hold_traced(struct eval *e, const struct tape *t)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < t->n && t->is_traced; i++) {
        const struct node *n = t->node[i];
        if (!n->out[0].tracer)
            continue;
        TRY(VEC_RESERVE(&e->traced, (size_t)n->n_in));
        for (int k = 0; k < n->n_in; k++)
            e->traced.v[e->traced.n++] = arr_ref(n->in[k]);
    }
out:
    return err;
}

static void release_traced(struct eval *e)
{
    for (size_t i = 0; i < e->traced.n; i++)
        arr_unref(&e->traced.v[i]);
    VEC_FINI(&e->traced);
}

/* ---- runs ---- */

/* CPU tasks are counted; GPU commits are bounded by each stream itself, so a GPU stream is only
 * waited for when memory is short (docs/runtime.md, Throttle). */
static enum err throttle(struct eval *e)
{
    enum err err = ERR_OK;

    if (sched_active() > MAX_ACTIVE_TASKS)
        sched_wait_for_one();
    if (!memory_is_short())
        return ERR_OK;
    for (size_t i = 0; i < e->open.n; i++) {
        struct strm *s = e->open.v[i].strm;
        TRY(s->be->flush(s));
        while (memory_is_short() && s->be->retire(s, true))
            ;
    }
out:
    return err;
}

/* Has the first lines of a later step's nodes on their way to the processor. */
static void prefetch_step(const struct plan *p, size_t i, struct node *const *nodes)
{
    if (i >= p->n_step)
        return;
    const struct plan_step *step = &p->step[i];
    for (int slot = 0; step->group && slot < GROUP_SLOTS; slot++)
        if (step->group->member[slot] != PLAN_NO_NODE)
            __builtin_prefetch(&nodes[step->group->member[slot]]->out);
    __builtin_prefetch(&nodes[step->node]->out);
    __builtin_prefetch(nodes[step->node]->out);
}

static enum err run_steps(struct eval *e, struct open_stream *os, struct node *const *nodes)
{
    const struct plan *plan = os->plan;
    enum err err = ERR_OK;

    for (size_t i = 0; i < plan->n_step; i++) {
        prefetch_step(plan, i + 2, nodes);
        TRY(eval_step(os, &plan->step[i], nodes));
        TRY(throttle(e));
    }
out:
    return err;
}

static enum err run_plan(struct eval *e, struct open_stream *os, struct node *const *nodes,
                         size_t n)
{
    int64_t begin = trace_span_begin();
    bool by_host = op_table[nodes[0]->op].flags & OPF_HOST;
    enum err err;

    stat_add(STAT_NODES, n);
    if (by_host || !recording_serves(os->strm)) {
        TRY(run_steps(e, os, nodes));
    } else {
        TRY(throttle(e)); /* before memory for all of it is taken */
        TRY(recording_run(os, nodes, n));
    }
    trace_span_end_n("encode", begin, os->plan->n_step);
out:
    return err;
}

static enum err run_nodes(struct eval *e, const struct tape *t, size_t first, size_t n)
{
    struct node *const *nodes = t->node + first;
    struct strm *s = nodes[0]->strm;
    struct open_stream *os = NULL;
    bool fence = false;
    enum err err;

    for (size_t i = 0; i < n; i++)
        fence |= t->crosses[first + i];
    TRY(open_stream(&os, e, s));
    if (t->waits)
        TRY(wait_for_inputs(e, s, nodes, n));
    int64_t begin = trace_span_begin();
    TRY(plan_get(&os->plan, s, nodes, n));
    trace_span_end_n("plan", begin, n);
    TRY(run_plan(e, os, nodes, n));
    if (fence) {
        ev_unref(&os->fence);
        TRY(ev_new(&os->fence, s));
        TRY(ev_record(os->fence));
        TRY(s->be->flush(s));
    }
out:
    return err;
}

static enum err run_tape(struct eval *e, const struct tape *t)
{
    enum err err = ERR_OK;

    for (size_t i = 0, n; i < t->n; i += n) {
        n = tape_run(t, i);
        TRY(run_nodes(e, t, i, n));
    }
out:
    return err;
}

/* ---- the end of an eval ---- */

/* The requested bytes stay until the device is done, whatever the caller does with the handles. */
static enum err hold_outputs(struct eval *e, struct arr *const *outs, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++) {
        struct open_stream *os = find_open(e, outs[i]->node->strm);
        if (outs[i]->buf && os)
            TRY(os->strm->be->hold(os->strm, &outs[i]->buf, 1));
    }
out:
    return err;
}

/* Copies the results that the caller of a synchronous eval will probably read along with the work,
 * which saves reading them a round trip. */
static enum err eager_read(struct eval *e, struct arr *const *outs, size_t n)
{
    enum err err = ERR_OK;

    if (e->async || n > MAX_AHEAD || !buf_expects_reads())
        return ERR_OK;
    for (size_t i = 0; i < n; i++) {
        struct open_stream *os = find_open(e, outs[i]->node->strm);
        struct buf *b = outs[i]->buf, *mirror = NULL;
        if (!b || !os || !os->strm->be->eager_read || atomic_load(&b->mirror))
            continue;
        TRY(os->strm->be->eager_read(&mirror, os->strm, b, arr_span(outs[i])));
        if (mirror)
            e->ahead[e->n_ahead++] = (struct ahead){ buf_ref(b), mirror };
    }
out:
    return err;
}

static void take_ahead(struct eval *e, enum err failed)
{
    for (size_t i = 0; i < e->n_ahead; i++) {
        struct ahead *a = &e->ahead[i];
        if (failed)
            buf_unref(&a->mirror);
        else
            buf_add_mirror(a->buf, a->mirror);
        buf_unref(&a->buf);
    }
}

/* Records the events and hands everything over. Runs after a failure too, so that no later reader
 * waits for an event that never comes; then it also drains the streams. */
static enum err finish(struct eval *e, enum err failed)
{
    enum err err = failed;

    for (size_t i = 0; i < e->open.n; i++) {
        struct open_stream *os = &e->open.v[i];
        const struct be *be = os->strm->be;
        struct err_note original = { 0 };
        enum err now = ERR_OK;

        err_note_take(&original, err);
        if (os->ev)
            now = ev_record(os->ev);
        if (!now)
            now = be->flush(os->strm);
        if ((!e->async || failed) && !now)
            now = be->sync(os->strm);
        if (!now && !e->async)
            now = strm_raise_error(os->strm);
        err = err ? err_note_raise(&original) : now;
        ev_unref(&os->ev);
        ev_unref(&os->fence);
    }
    VEC_FINI(&e->open);
    return err;
}

static enum err wait_all(struct arr *const *outs, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n; i++)
        TRY(arr_wait(outs[i]));
out:
    return err;
}

enum err eval_arrays(struct arr *const *outs, size_t n, bool async)
{
    struct eval e = { .async = async };
    struct tape tape = { 0 };
    int64_t begin = trace_span_begin();
    enum err err;

    TRY(process_check());
    process_enter();
    if ((err = tape_build(&tape, outs, n, async)) != ERR_OK)
        goto leave;
    trace_span_end_n("tape", begin, tape.n);
    if (tape.n == 0)
        goto leave;
    stat_add(STAT_EVALS, 1);
    err = hold_traced(&e, &tape);
    if (!err)
        err = run_tape(&e, &tape);
    if (!err)
        err = hold_outputs(&e, outs, n);
    if (!err)
        err = eager_read(&e, outs, n);
    err = finish(&e, err);
    take_ahead(&e, err);
    release_traced(&e);
leave:
    tape_release(&tape);
    process_leave();
    if (!err && !async)
        err = wait_all(outs, n);
    trace_span_end_n(async ? "async_eval" : "eval", begin, tape.n);
    tape_fini(&tape);
out:
    return err;
}
