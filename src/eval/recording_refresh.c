/* Recording again what changed since the last run. */
#include "base/stat.h"
#include "eval/recorder.h"
#include "graph/op.h"
#include "plan/rewrite.h"

/* What is to be done with a step. */
enum { STEP_KEPT, STEP_MOVED, STEP_CHANGED };

struct refresh {
    struct recorder c;
    struct counter_notes uncounted;
    uint8_t *how;  /* by step */
    bool *changed; /* by node: its results lie in another way */
    bool any_changed;
    bool has_begun;             /* steps can be recorded again */
    VEC(struct node *) touched; /* have storage that is taken back at the end */
};

/* ---- which steps ---- */

static bool same_shapes(const struct recording *r, const struct recorded_node *was,
                        const struct node *n)
{
    for (int o = 0; o < n->n_out; o++) {
        const struct layout *l = &r->out.v[was->first_out + (uint32_t)o];
        const struct arr *a = &n->out[o];
        if (l->ndim != a->ndim)
            return false;
        for (int i = 0; i < a->ndim; i++)
            if (r->dims.v[l->dims + (uint32_t)i] != a->shape[i])
                return false;
    }
    return true;
}

static bool has_same_params(const struct recording *r, const struct recorded_node *was,
                            const struct node *n)
{
    return was->params_size == n->params_size &&
           (!n->params_size || memcmp(r->params.v + was->params, n->params, n->params_size) == 0);
}

/* Parameters of another length, or a result with more or fewer axes, are another recording. */
static bool can_become(const struct recording *r, const struct recorded_node *was,
                       const struct node *n)
{
    bool fits = was->params_size == n->params_size && !was->state == !n->state;

    for (int o = 0; o < n->n_out; o++)
        fits &= r->out.v[was->first_out + (uint32_t)o].ndim == n->out[o].ndim;
    return fits;
}

static uint8_t compare(const struct recording *r, const struct recorded_node *was,
                       const struct node *n)
{
    if (!op_state_equal(was->state, n->state))
        return STEP_CHANGED;
    if (has_same_params(r, was, n))
        return same_shapes(r, was, n) ? STEP_KEPT : STEP_CHANGED;
    return was->params_size == n->params_size &&
                   op_params_differ_in_positions((enum op_params_id)op_table[n->op].params,
                                                 r->params.v + was->params, n->params)
               ? STEP_MOVED
               : STEP_CHANGED;
}

static bool find_changes(struct refresh *f)
{
    struct recording *r = f->c.r;

    for (size_t i = 0; i < r->n_node; i++) {
        struct recorded_node *was = &r->node[i];
        struct node *n = f->c.nodes[i];
        uint8_t how = compare(r, was, n), *step = &f->how[f->c.os->plan->step_of[i]];
        if (how == STEP_KEPT)
            continue;
        if (!can_become(r, was, n))
            return false;
        if (n->params_size)
            memcpy(r->params.v + was->params, n->params, n->params_size);
        op_state_unref(&was->state);
        was->state = op_state_ref(n->state);
        *step = MAX(*step, how);
    }
    return true;
}

static struct span_of members(const struct refresh *f, size_t step)
{
    return f->c.r->members[step];
}

static bool reads_changed(const struct refresh *f, size_t step)
{
    struct span_of m = members(f, step);

    for (uint32_t i = m.first; i < m.first + m.n; i++) {
        const struct node *n = f->c.nodes[f->c.r->member[i]];
        for (int k = 0; k < n->n_in; k++) {
            uint32_t number = recorder_number(&f->c, n->in[k]);
            if (number < f->c.r->out.n && f->changed[n->in[k]->node->mark & PLAN_MARK_MASK])
                return true;
        }
    }
    return false;
}

/* ---- a step ---- */

/* An array that another step of the run makes has the storage that it had when it was recorded. */
static enum err put_input(struct refresh *f, size_t step, struct arr *a)
{
    struct recording *r = f->c.r;
    uint32_t number = recorder_number(&f->c, a);
    enum err err = ERR_OK;

    if (number >= r->out.n || a->buf ||
        f->c.os->plan->step_of[a->node->mark & PLAN_MARK_MASK] == step)
        return ERR_OK;
    const struct layout *l = &r->out.v[number];
    if (l->place == NO_PLACE)
        return ERR_OK;
    TRY(VEC_PUSH(&f->touched, a->node));
    layout_apply(r, l, a);
    if (l->place < r->sole.n)
        a->buf = buf_ref(r->buf[l->place]);
    else
        err = r->be->recording_place(r->work, &a->buf, l->place);
out:
    return err;
}

static enum err put_inputs(struct refresh *f, size_t step)
{
    struct span_of m = members(f, step);
    enum err err = ERR_OK;

    for (uint32_t i = m.first; i < m.first + m.n; i++) {
        struct node *n = f->c.nodes[f->c.r->member[i]];
        TRY(VEC_PUSH(&f->touched, n));
        for (int k = 0; k < n->n_in; k++)
            TRY(put_input(f, step, n->in[k]));
    }
out:
    return err;
}

/* *fits false: a result is elsewhere than before. */
static enum err compare_results(bool *fits, struct refresh *f, const struct node *n)
{
    struct recording *r = f->c.r;
    enum err err = ERR_OK;

    for (int o = 0; o < n->n_out; o++) {
        struct layout *l = &r->out.v[recorder_number(&f->c, &n->out[o])];
        uint32_t before = l->place;
        bool is_same = layout_is(r, l, &n->out[o]);
        TRY(recording_set_layout(r, l, &n->out[o]));
        *fits &= l->place == before;
        f->changed[n->mark & PLAN_MARK_MASK] |= !is_same;
        f->any_changed |= !is_same;
    }
out:
    return err;
}

/* Buffers from outside have places again, and the steps count what they counted before. */
static enum err begin(bool *fits, struct refresh *f)
{
    struct recording *r = f->c.r;

    if (f->has_begun || !(*fits = r->be->recording_rebind(r->work, r->buf)))
        return ERR_OK;
    f->has_begun = true;
    f->c.os->strm->recorder = &f->c;
    counter_notes = &f->uncounted;
    return ERR_OK;
}

static void end(struct refresh *f)
{
    if (f->has_begun)
        f->c.os->strm->recorder = NULL;
    if (f->has_begun)
        counter_notes = NULL;
    for (size_t i = 0; i < f->touched.n; i++)
        node_reset(f->touched.v[i]);
}

static enum err record_again(bool *fits, struct refresh *f, size_t step)
{
    struct recording *r = f->c.r;
    struct strm *s = f->c.os->strm;
    struct span_of m = members(f, step), asked = r->donations[step];
    enum err err;

    TRY(begin(fits, f));
    if (!*fits)
        goto out;
    f->c.step = step;
    for (uint32_t i = asked.first; i < asked.first + asked.n; i++)
        r->donation.v[i].is_told = false;
    TRY(put_inputs(f, step));
    TRY(r->be->recording_begin(r->work, s, step));
    err = eval_step(f->c.os, &f->c.os->plan->step[step], f->c.nodes);
    for (uint32_t i = m.first; i < m.first + m.n && !err; i++)
        err = compare_results(fits, f, f->c.nodes[r->member[i]]);
    if (!r->be->recording_end(r->work, s)) {
        *fits = false; /* whatever failed then, it is tried once more with all steps */
        err = ERR_OK;
    }
    stat_add(STAT_RECORDED_AGAIN, 1);
out:
    return err;
}

/* ---- a step at another position ---- */

/* Somebody else reads what has another shape now. */
static bool is_seen_outside(const struct refresh *f, const struct group *g)
{
    const struct plan_step *s = &f->c.os->plan->step[f->c.step];
    const struct recording *r = f->c.r;

    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (group_wants(g, slot) &&
            !same_shapes(r, &r->node[s->group->member[slot]], g->node[slot]))
            return true;
    return false;
}

static void note_shapes(struct refresh *f, const struct node *n)
{
    struct recording *r = f->c.r;
    const struct layout *l = &r->out.v[recorder_number(&f->c, &n->out[0])];

    for (int i = 0; i < n->out[0].ndim; i++)
        r->dims.v[l->dims + (uint32_t)i] = n->out[0].shape[i];
}

/* False: it has to be recorded again. */
static bool move(struct refresh *f, size_t step)
{
    const struct open_stream *os = f->c.os;
    struct recording *r = f->c.r;
    struct group g;

    f->c.step = step;
    if (!os->plan->step[step].group)
        return false;
    eval_group_of(&g, &os->plan->step[step], f->c.nodes);
    if (is_seen_outside(f, &g) || !r->be->recording_move(r->work, os->strm, step, &g))
        return false;
    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (g.node[slot])
            note_shapes(f, g.node[slot]);
    stat_add(STAT_RECORDED_MOVED, 1);
    return true;
}

/* ---- */

static enum err redo_steps(bool *fits, struct refresh *f)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < f->c.r->n_step && *fits; i++) {
        uint8_t how = f->any_changed && reads_changed(f, i) ? STEP_CHANGED : f->how[i];
        if (how == STEP_CHANGED || (how == STEP_MOVED && !move(f, i)))
            TRY(record_again(fits, f, i));
    }
out:
    return err;
}

enum err recording_refresh(bool *fits, struct recording *r, struct open_stream *os,
                           struct node *const *nodes)
{
    struct refresh f = { .c = { .r = r, .os = os, .nodes = nodes, .again = true } };
    size_t n_outside;
    enum err err = ERR_NO_MEMORY;

    *fits = true;
    f.c.outside = plan_outside(os->strm, &n_outside);
    f.how = mem_alloc_array(r->n_step, sizeof *f.how);
    f.changed = mem_alloc_array(r->n_node, sizeof *f.changed);
    if (!f.how || !f.changed)
        goto out;
    err = ERR_OK;
    if ((*fits = find_changes(&f)))
        err = redo_steps(fits, &f);
    end(&f);
out:
    VEC_FINI(&f.uncounted.note);
    VEC_FINI(&f.touched);
    mem_free(f.how);
    mem_free(f.changed);
    return err;
}
