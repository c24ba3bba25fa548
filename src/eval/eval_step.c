#include "eval/eval_step.h"

#include "backend/backend.h"
#include "base/stat.h"
#include "base/times.h"
#include "graph/tracing.h"
#include "plan/plan.h"
#include "plan/rewrite.h"

/* ---- a dispatch and what follows on it ---- */

static bool shares_buffer(const struct exec *x, const struct buf *b)
{
    for (int o = 0; o < x->n_out; o++)
        if (x->out[o]->buf == b)
            return true;
    return false;
}

/* Buffers to keep until the device is done, handed over in batches. */
struct holds {
    struct strm *strm;
    struct buf *buf[ELEM_PROGRAM_MAX_IN];
    size_t n;
};

/* Where a hold cannot be remembered the work is waited for instead: it is encoded, and may have
 * taken over an input's buffer, so that there is no way back. */
static enum err holds_flush(struct holds *h)
{
    const struct be *be = h->strm->be;
    size_t n = h->n;

    h->n = 0;
    if (n == 0 || be->hold(h->strm, h->buf, n) == ERR_OK)
        return ERR_OK;
    return be->sync(h->strm);
}

static enum err holds_add(struct holds *h, struct buf *b)
{
    h->buf[h->n++] = b;
    return h->n == ARRAY_LEN(h->buf) ? holds_flush(h) : ERR_OK;
}

/* Inputs stay alive until the device is done with them. An output that took over an input's buffer
 * needs no hold; the copy of it on the other side is out of date. A single output is kept by its
 * consumer or by the caller of eval; of several one may be dropped while it is being written. */
static enum err hold_buffers(const struct exec *x)
{
    struct holds h;
    bool is_view = op_table[x->node->op].flags & OPF_VIEW;
    enum err err = ERR_OK;

    h.strm = x->strm;
    h.n = 0;
    for (int i = 0; i < x->n_in; i++) {
        struct buf *b = x->in[i]->buf;
        if (!b)
            continue;
        if (!shares_buffer(x, b)) {
            TRY(holds_add(&h, b));
        } else if (!is_view) {
            buf_drop_mirror(b);
            stat_add(STAT_DONATIONS, 1);
        }
    }
    for (int o = 0; o < x->n_out && x->n_out > 1 && !is_view; o++)
        if (x->out[o]->buf)
            TRY(holds_add(&h, x->out[o]->buf));
    err = holds_flush(&h);
out:
    return err;
}

static bool all_empty(const struct exec *x)
{
    for (int o = 0; o < x->n_out; o++)
        if (x->out[o]->size)
            return false;
    return true;
}

static enum err dispatch(const struct exec *x)
{
    const struct be *be = x->strm->be;
    be_op_fn fn = x->program ? be->elementwise : be->families[op_table[x->node->op].family];

    if (all_empty(x))
        return ERR_OK;
    if (!fn)
        return err_set(ERR_UNSUPPORTED, "[%s] Not supported for %s on the %s backend.",
                       op_name((enum op_id)x->node->op), dt_name((enum dtype)x->out[0]->dtype),
                       be->name);
    if (times_are_on())
        times_op_set(x->program && x->program->n_ins > 1 ? "fused elementwise"
                                                         : op_name((enum op_id)x->node->op));
    return fn(x);
}

/* What only nodes of the run use is gone before anybody can wait for it. */
static bool outlives_run(const struct open_stream *os, const struct arr *a)
{
    return a->node->n_out > 1 || os->plan->held[a->node->mark & PLAN_MARK_MASK];
}

void eval_finish_array(struct arr *a, struct ev *ev)
{
    if (ev)
        a->ev = ev_ref(ev);
    atomic_store_explicit(&a->status, ARR_EVALUATED, memory_order_release);
}

/* The outputs count as evaluated and become leaves; a sibling that nobody holds gives its bytes
 * back when it is unpinned. Tracers keep their graph. */
static void finish_outputs(const struct exec *x, const struct open_stream *os)
{
    for (int o = 0; o < x->n_out; o++) {
        struct arr *a = x->out[o];
        eval_finish_array(a, outlives_run(os, a) ? os->ev : NULL);
        if (a->tracer)
            tracing_keep(a->node);
        else
            node_detach(a->node);
    }
}

/* Part of a failed op may be encoded and write the outputs: they go when that is over. The text of
 * the failure stays. */
static void drop_outputs(const struct exec *x, enum err failed)
{
    struct err_note failure = { .code = ERR_OK };

    err_note_take(&failure, failed);
    enum err err = x->strm->be->sync(x->strm);
    (void)err; /* the first failure is the one to report */
    for (int o = 0; o < x->n_out; o++)
        buf_unref(&x->out[o]->buf);
    err_note_raise(&failure);
}

static void count_donations(const struct exec *x)
{
    for (int i = 0; i < x->n_in && !(op_table[x->node->op].flags & OPF_VIEW); i++)
        if (x->in[i]->buf && shares_buffer(x, x->in[i]->buf))
            stat_add_step(STAT_DONATIONS, 1);
}

/* What follows on a dispatch with that outcome. */
static enum err settle(const struct open_stream *os, const struct exec *x, enum err err)
{
    if (x->strm->recorder) {
        count_donations(x);
        return err;
    }
    if (!err)
        err = hold_buffers(x);
    if (err) {
        drop_outputs(x, err);
        return err;
    }
    finish_outputs(x, os);
    return x->strm->be->step_end(x->strm);
}

static enum err run_exec(const struct open_stream *os, const struct exec *x)
{
    return settle(os, x, dispatch(x));
}

/* ---- nodes and programs ---- */

/* One node. program: its program if it is elementwise. */
static enum err run_node(struct open_stream *os, struct node *n, const struct elem_program *program)
{
    struct arr *small[8];
    struct arr **outs = small;
    size_t n_out = (size_t)n->n_out;
    enum err err = ERR_NO_MEMORY;

    if (n_out > ARRAY_LEN(small) && !(outs = mem_alloc_array(n_out, sizeof *outs)))
        return ERR_NO_MEMORY;
    for (int o = 0; o < n->n_out; o++)
        outs[o] = &n->out[o];
    bool pins = n_out > 1;
    if (pins)
        node_pin(n);
    err = run_exec(os, &(struct exec){ .strm = os->strm,
                                       .node = n,
                                       .in = n->in,
                                       .n_in = n->n_in,
                                       .out = outs,
                                       .n_out = n->n_out,
                                       .program = program });
    if (pins)
        node_unpin(n);
    if (outs != small)
        mem_free(outs);
    return err;
}

/* The arrays of a program or a group. Several outputs are pinned until they are released: one that
 * another member reads and another thread drops meanwhile would go before the last is finished. A
 * single one is kept by whoever wanted it evaluated. */
struct step_arrays {
    struct arr *in[MAX(ELEM_PROGRAM_MAX_IN, GROUP_MAX_IN)],
        *out[MAX(ELEM_PROGRAM_MAX_OUT, GROUP_SLOTS)];
};

static bool pins_outputs(const struct plan_step *step)
{
    return step->n_out > 1;
}

static void resolve(struct step_arrays *a, const struct open_stream *os,
                    const struct plan_step *step, struct node *const *nodes)
{
    int n_in = step->n_in, n_out = step->n_out;

    for (int i = 0; i < n_in; i++)
        a->in[i] = plan_step_in(os->plan, step, nodes, i);
    for (int o = 0; o < n_out; o++)
        a->out[o] = &plan_step_out(os->plan, step, nodes, o)->out[0];
    for (int o = 0; o < n_out && pins_outputs(step); o++)
        node_pin(a->out[o]->node);
}

static void release(const struct step_arrays *a, const struct plan_step *step)
{
    for (int o = 0; o < step->n_out && pins_outputs(step); o++)
        node_unpin(a->out[o]->node);
}

static enum err run_program(struct open_stream *os, const struct plan_step *step,
                            struct node *const *nodes)
{
    struct step_arrays a;
    enum err err;

    resolve(&a, os, step, nodes);
    if (step->n_nodes > 1) {
        stat_add_step(STAT_FUSED_GROUPS, 1);
        stat_add_step(STAT_FUSED_NODES, step->n_nodes);
    }
    err = run_exec(os, &(struct exec){ .strm = os->strm,
                                       .node = nodes[step->node],
                                       .in = a.in,
                                       .n_in = step->n_in,
                                       .out = a.out,
                                       .n_out = step->n_out,
                                       .program = step->program });
    release(&a, step);
    return err;
}

/* ---- groups ---- */

/* Elementwise members in a row become one program, as they would without the group. */
static void add_instruction(struct elem_program *program, struct arr **in, const struct node *n,
                            const struct node *const *before)
{
    struct elem_program_ins *ins = &program->ins[program->n_ins];

    *ins = (struct elem_program_ins){ .op = n->op,
                                      .dtype = n->out[0].dtype,
                                      .n_args = (uint8_t)n->n_in };
    for (int k = 0; k < n->n_in; k++) {
        int value = -1;
        for (int i = 0; i < program->n_ins; i++)
            if (before[i] == n->in[k]->node)
                value = GROUP_MAX_IN + i;
        for (int i = 0; i < program->n_in && value < 0; i++)
            if (in[i] == n->in[k])
                value = i;
        if (value < 0) {
            value = program->n_in;
            program->in_dtype[program->n_in] = n->in[k]->dtype;
            in[program->n_in++] = n->in[k];
        }
        ins->arg[k] = (uint8_t)value;
    }
    program->n_ins++;
}

/* Results of instructions are numbered behind the inputs, whose number is known now. */
static void renumber(struct elem_program *program)
{
    for (int i = 0; i < program->n_ins; i++)
        for (int k = 0; k < program->ins[i].n_args; k++)
            if (program->ins[i].arg[k] >= GROUP_MAX_IN)
                program->ins[i].arg[k] =
                    (uint8_t)(program->ins[i].arg[k] - GROUP_MAX_IN + program->n_in);
    program->out[0] = (uint8_t)(program->n_in + program->n_ins - 1);
    program->n_out = 1;
}

static enum err run_tail(struct open_stream *os, struct node *const *tail, int n)
{
    struct arr *in[ELEM_PROGRAM_MAX_IN], *out = &tail[n - 1]->out[0];
    struct elem_program program = { 0 };

    for (int i = 0; i < n; i++)
        add_instruction(&program, in, tail[i], (const struct node *const *)tail);
    renumber(&program);
    return run_exec(os, &(struct exec){ .strm = os->strm,
                                        .node = tail[n - 1],
                                        .in = in,
                                        .n_in = program.n_in,
                                        .out = &out,
                                        .n_out = 1,
                                        .program = &program });
}

/* Slots are in the order in which the nodes depend on each other. */
static enum err run_members(struct open_stream *os, const struct group *g)
{
    struct node *tail[GROUP_SLOTS];
    int n_tail = 0;
    enum err err = ERR_OK;

    for (int i = 0; i < GROUP_SLOTS; i++) {
        struct node *n = g->node[i];
        if (!n)
            continue;
        if (op_table[n->op].flags & OPF_FUSE) {
            tail[n_tail++] = n;
            continue;
        }
        if (n_tail)
            TRY(run_tail(os, tail, n_tail));
        n_tail = 0;
        TRY(run_node(os, n, NULL));
    }
    if (n_tail)
        err = run_tail(os, tail, n_tail);
out:
    return err;
}

/* Asks the backend; what it does not take runs node by node. */
static enum err try_group(const struct open_stream *os, const struct exec *x,
                          enum group_reason *why)
{
    enum err err = ERR_OK;

    *why = GROUP_TAKEN;
    if (!all_empty(x)) {
        if (times_are_on())
            times_op_set(op_name((enum op_id)x->node->op));
        err = os->strm->be->groups[x->group->kind](x, why);
    }
    if (err != ERR_UNSUPPORTED)
        return err;
    *why = GROUP_OFF;
    for (int o = 0; o < x->n_out; o++)
        arr_give_back(x->out[o]);
    return ERR_OK;
}

void eval_group_of(struct group *g, const struct plan_step *step, struct node *const *nodes)
{
    const struct rewrite_match *m = step->group;

    *g = (struct group){ .kind = (enum group_kind)m->kind,
                         .wanted = m->wanted,
                         .program = m->program };
    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (m->member[slot] != PLAN_NO_NODE)
            g->node[slot] = nodes[m->member[slot]];
}

static enum err run_group(struct open_stream *os, const struct plan_step *step,
                          struct node *const *nodes)
{
    uint32_t apart = 0;
    struct group group;
    struct step_arrays a;
    enum group_reason why;

    eval_group_of(&group, step, nodes);
    group.apart = &apart;
    resolve(&a, os, step, nodes);
    struct exec x = { .strm = os->strm,
                      .node = nodes[step->node],
                      .in = a.in,
                      .n_in = step->n_in,
                      .out = a.out,
                      .n_out = step->n_out,
                      .group = &group };
    enum err err = try_group(os, &x, &why);
    rewrite_count(step->group->rewrites & ~apart, why);
    err = why == GROUP_TAKEN ? settle(os, &x, err) : run_members(os, &group);
    release(&a, step);
    return err;
}

/* ---- */

enum err eval_step(struct open_stream *os, const struct plan_step *step, struct node *const *nodes)
{
    if (step->group)
        return run_group(os, step, nodes);
    if (step->program)
        return run_program(os, step, nodes);
    return run_node(os, nodes[step->node], NULL);
}
