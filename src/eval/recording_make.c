/* Recording the steps of a run. */
#include "base/gate.h"
#include "base/stat.h"
#include "base/trace.h"
#include "eval/recorder.h"

/* ---- arrays by number ---- */

static bool is_inside(const struct recorder *c, const struct arr *a)
{
    size_t i = a->node->mark & PLAN_MARK_MASK;

    return i < c->r->n_node && c->nodes[i] == a->node;
}

uint32_t recorder_number(const struct recorder *c, const struct arr *a)
{
    if (!is_inside(c, a))
        return (uint32_t)c->r->out.n + plan_outside_number(c->os->strm, a);
    return c->r->node[a->node->mark & PLAN_MARK_MASK].first_out + (uint32_t)(a - a->node->out);
}

/* Somebody outside of the run wants the node's results. */
static bool is_kept(const struct recorder *c, const struct node *n)
{
    return n->n_out > 1 || c->os->plan->held[n->mark & PLAN_MARK_MASK];
}

/* ---- layouts ---- */

bool layout_is(const struct recording *r, const struct layout *l, const struct arr *a)
{
    if (l->ndim != a->ndim || l->flags != a->flags || l->offset != a->offset ||
        l->data_size != a->data_size)
        return false;
    const int64_t *dims = a->ndim ? r->dims.v + l->dims : NULL;
    for (int i = 0; i < a->ndim; i++)
        if (dims[i] != a->shape[i] || dims[a->ndim + i] != a->strides[i])
            return false;
    return true;
}

enum err recording_set_layout(struct recording *r, struct layout *l, const struct arr *a)
{
    bool has_room = l->ndim == a->ndim && l->dims + 2u * a->ndim <= r->dims.n;
    enum err err = ERR_OK;

    if (!has_room) {
        l->dims = (uint32_t)r->dims.n;
        TRY(VEC_RESERVE(&r->dims, 2u * a->ndim));
        r->dims.n += 2u * a->ndim;
    }
    l->ndim = a->ndim;
    l->flags = a->flags;
    l->offset = a->offset;
    l->data_size = a->data_size;
    for (int i = 0; i < a->ndim; i++) {
        r->dims.v[l->dims + (uint32_t)i] = a->shape[i];
        r->dims.v[l->dims + (uint32_t)(a->ndim + i)] = a->strides[i];
    }
    err = recording_place_of(r, &l->place, a);
out:
    return err;
}

void layout_apply(const struct recording *r, const struct layout *l, struct arr *a)
{
    const int64_t *strides = l->ndim ? r->dims.v + l->dims + l->ndim : NULL;

    for (int i = 0; i < a->ndim; i++)
        a->strides[i] = strides[i];
    a->flags = l->flags;
    a->offset = l->offset;
    a->data_size = l->data_size;
}

enum err recording_place_of(struct recording *r, uint32_t *place, const struct arr *a)
{
    *place = NO_PLACE;
    if (!a->buf)
        return ERR_OK;
    enum err err = ERR_OK;
    if (buf_is_place(a->buf))
        *place = buf_place(a->buf);
    else
        err = r->be->recording_bind(r->work, place, a->buf);
    r->n_place = MAX(r->n_place, err ? 0 : *place + 1);
    return err;
}

/* ---- writing over in place ---- */

static bool is_last_reader(const struct recorder *c, uint32_t number, const struct arr *a)
{
    if (c->left[number] != 1 || a->tracer)
        return false;
    if (number < c->r->out.n)
        return !is_kept(c, a->node);
    return c->r->outside.v[number - c->r->out.n].traits & OUTSIDE_PRIVATE;
}

/* Nobody else has the storage: arrays of the run let go of theirs while it is recorded; those from
 * outside still have it, but would not any more. */
static bool is_only_owner(const struct recorder *c, const struct arr *a)
{
    uint32_t place;

    if (buf_is_place(a->buf))
        return buf_refs(a->buf) == 1;
    if (a->buf->dtor || recording_place_of(c->r, &place, a) != ERR_OK)
        return false;
    bool is_ours = a->buf->home == c->os->strm->be || (a->buf->host && a->buf->addr);
    /* The recording is found by what was seen before its first step; others let go meanwhile. */
    return is_ours && c->r->sole.v[place] &&
           buf_owners(a->buf, c->os->strm->index) == 1 + (int)c->ghosts[place];
}

/* What was asked more than once is answered in that order. */
static bool answered_before(const struct recorder *c, uint32_t number)
{
    struct span_of s = c->r->donations[c->step];

    for (uint32_t i = s.first; i < s.first + s.n; i++) {
        struct donation *d = &c->r->donation.v[i];
        if (d->id != number || d->is_told)
            continue;
        d->is_told = true;
        return d->answer;
    }
    return false;
}

bool strm_recorder_donates(const struct strm *s, const struct arr *a)
{
    struct recorder *c = s->recorder;
    uint32_t number = recorder_number(c, a);

    if (c->again)
        return answered_before(c, number);
    bool answer = is_last_reader(c, number, a) && is_only_owner(c, a);
    if (VEC_PUSH(&c->r->donation, (struct donation){ .id = number, .answer = answer }) != ERR_OK)
        return false;
    c->r->donations[c->step].n++;
    return answer;
}

/* ---- what is known before the first step ---- */

uint8_t recording_traits(const struct arr *a, uint32_t uses, const struct strm *s)
{
    const struct buf *b = a->buf;
    uint8_t traits = ref_get(&a->rc) == (int)uses && !a->tracer ? OUTSIDE_PRIVATE : 0;

    if (!b)
        return traits;
    if (!b->dtor && (b->home == s->be || (b->host && b->addr)))
        traits |= OUTSIDE_WRITABLE;
    if (b->size <= arr_nbytes(a) + ARR_DONATION_SLACK)
        traits |= OUTSIDE_SMALL;
    return traits;
}

static enum err note_outside(struct recorder *c)
{
    struct recording *r = c->r;
    enum err err = ERR_OK;

    TRY(VEC_RESERVE(&r->outside, r->n_outside));
    for (size_t i = 0; i < r->n_outside; i++) {
        const struct arr *a = c->outside[i].a;
        struct outside *o = &r->outside.v[r->outside.n++];
        *o = (struct outside){ .traits = recording_traits(a, c->outside[i].uses, c->os->strm) };
        TRY(recording_set_layout(r, &o->l, a));
    }
out:
    return err;
}

static enum err note_node(struct recording *r, struct recorded_node *to, const struct node *n)
{
    enum err err;

    *to = (struct recorded_node){ .params = (uint32_t)r->params.n,
                                  .params_size = n->params_size,
                                  .first_out = (uint32_t)r->out.n,
                                  .state = op_state_ref(n->state) };
    TRY(VEC_RESERVE(&r->params, n->params_size));
    if (n->params_size)
        memcpy(r->params.v + r->params.n, n->params, n->params_size);
    r->params.n += n->params_size;
    if (n->n_out > 1)
        TRY(VEC_PUSH(&r->several, (uint16_t)(to - r->node)));
    for (int o = 0; o < n->n_out; o++)
        TRY(VEC_PUSH(&r->out, (struct layout){ .place = NO_PLACE }));
out:
    return err;
}

/* The nodes by steps. */
static void sort_members(struct recording *r, const struct plan *p)
{
    for (size_t i = 0; i < r->n_node; i++)
        r->members[p->step_of[i]].n++;
    for (size_t s = 1; s < r->n_step; s++)
        r->members[s].first = r->members[s - 1].first + r->members[s - 1].n;
    for (size_t s = 0; s < r->n_step; s++)
        r->members[s].n = 0;
    for (size_t i = 0; i < r->n_node; i++) {
        struct span_of *m = &r->members[p->step_of[i]];
        r->member[m->first + m->n++] = (uint16_t)i;
    }
}

static enum err new_recording(struct recording **out, const struct open_stream *os, size_t n)
{
    const struct plan *p = os->plan;
    struct recording *r = mem_alloc(sizeof *r);
    enum err err = ERR_NO_MEMORY;

    if (!(*out = r))
        return ERR_NO_MEMORY;
    r->be = os->strm->be;
    r->gates = gate_changes();
    r->n_node = n;
    r->n_step = p->n_step;
    r->node = mem_alloc_array(n, sizeof *r->node);
    r->donations = mem_alloc_array(p->n_step, sizeof *r->donations);
    r->members = mem_alloc_array(p->n_step, sizeof *r->members);
    r->member = mem_alloc_array(n, sizeof *r->member);
    if (!r->node || !r->donations || !r->members || !r->member)
        goto out;
    sort_members(r, p);
    err = r->be->recording_new(&r->work, p->n_step);
out:
    return err;
}

static enum err note_nodes(struct recorder *c)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->r->n_node; i++)
        TRY(note_node(c->r, &c->r->node[i], c->nodes[i]));
out:
    return err;
}

/* ---- steps ---- */

static void count_edges(struct recorder *c)
{
    memset(c->left, 0, (c->r->out.n + c->r->n_outside) * sizeof *c->left);
    for (size_t i = 0; i < c->r->n_node; i++)
        for (int k = 0; k < c->nodes[i]->n_in; k++)
            c->left[recorder_number(c, c->nodes[i]->in[k])]++;
}

static enum err note_results(struct recorder *c, const struct node *n)
{
    struct layout *l = &c->r->out.v[recorder_number(c, &n->out[0])];
    enum err err = ERR_OK;

    for (int o = 0; o < n->n_out; o++)
        TRY(recording_set_layout(c->r, &l[o], &n->out[o]));
out:
    return err;
}

/* An array that no later step reads lets go of its storage, as it would if it were evaluated. */
static void pass_edge(struct recorder *c, struct arr *a)
{
    uint32_t number = recorder_number(c, a);

    if (--c->left[number] || !a->buf)
        return;
    if (number < c->r->out.n) {
        if (!is_kept(c, a->node))
            buf_unref(&a->buf);
    } else {
        const struct outside *o = &c->r->outside.v[number - c->r->out.n];
        c->ghosts[o->l.place] += o->traits & OUTSIDE_PRIVATE;
    }
}

static enum err record_step(struct recorder *c, size_t step)
{
    struct recording *r = c->r;
    struct strm *s = c->os->strm;
    struct span_of m = r->members[step];
    enum err err;

    c->step = step;
    r->donations[step] = (struct span_of){ (uint32_t)r->donation.n, 0 };
    TRY(r->be->recording_begin(r->work, s, step));
    err = eval_step(c->os, &c->os->plan->step[step], c->nodes);
    for (uint32_t i = m.first; i < m.first + m.n && !err; i++)
        err = note_results(c, c->nodes[r->member[i]]);
    for (uint32_t i = m.first; i < m.first + m.n && !err; i++)
        for (int k = 0; k < c->nodes[r->member[i]]->n_in; k++)
            pass_edge(c, c->nodes[r->member[i]]->in[k]);
    if (!r->be->recording_end(r->work, s) && !err)
        err = err_set(ERR_RUNTIME, "[eval] a step differs from itself");
out:
    return err;
}

static enum err record_steps(struct recorder *c)
{
    enum err err = ERR_OK;

    c->r->donation.n = c->r->counts.note.n = 0;
    count_edges(c);
    memset(c->ghosts, 0, c->r->n_outside * sizeof *c->ghosts);
    counter_notes = &c->r->counts;
    for (size_t i = 0; i < c->r->n_step && !err; i++)
        err = record_step(c, i);
    counter_notes = NULL;
    for (size_t i = 0; i < c->r->n_node; i++)
        node_reset(c->nodes[i]);
    return err;
}

/* ---- results ---- */

static enum err find_kept(struct recorder *c)
{
    struct recording *r = c->r;
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->n_node; i++)
        for (int o = 0; o < c->nodes[i]->n_out && is_kept(c, c->nodes[i]); o++)
            TRY(VEC_PUSH(&r->kept, (struct kept_output){ (uint16_t)i, (uint16_t)o }));
out:
    return err;
}

static enum err find_written(struct recording *r)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->donation.n; i++) {
        struct donation d = r->donation.v[i];
        uint32_t place =
            d.id < r->out.n ? r->out.v[d.id].place : r->outside.v[d.id - r->out.n].l.place;
        if (d.answer && place != NO_PLACE && place < r->sole.n)
            TRY(VEC_PUSH(&r->written, place));
    }
out:
    return err;
}

static enum err close(bool *again, struct recording *r)
{
    VEC(uint32_t) kept = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < r->kept.n; i++) {
        struct kept_output k = r->kept.v[i];
        uint32_t place = r->out.v[r->node[k.node].first_out + k.out].place;
        if (place != NO_PLACE)
            TRY(VEC_PUSH(&kept, place));
    }
    err = r->be->recording_close(r->work, &(struct be_kept){ kept.v, kept.n }, again);
out:
    VEC_FINI(&kept);
    return err;
}

/* Who else has the buffers of places from outside. Those have the first numbers. */
static enum err note_owners(struct recorder *c)
{
    struct recording *r = c->r;
    enum err err = VEC_RESERVE(&r->sole, r->n_place);

    if (err)
        return err;
    r->sole.n = r->n_place;
    memset(c->ghosts, 0, r->n_outside * sizeof *c->ghosts);
    for (size_t i = 0; i < r->n_outside; i++)
        if (c->outside[i].a->buf)
            c->ghosts[r->outside.v[i].l.place]++;
    for (size_t i = 0; i < r->n_outside; i++) {
        const struct buf *b = c->outside[i].a->buf;
        uint32_t place = r->outside.v[i].l.place;
        if (b)
            r->sole.v[place] = buf_owners(b, c->os->strm->index) == (int)c->ghosts[place];
    }
    return ERR_OK;
}

static enum err record(struct recorder *c)
{
    struct recording *r = c->r;
    bool again;
    enum err err;

    TRY(note_nodes(c));
    TRY(note_outside(c));
    err = ERR_NO_MEMORY;
    c->left = mem_alloc_array(r->out.n + r->n_outside, sizeof *c->left);
    c->ghosts = mem_alloc_array(r->n_outside, sizeof *c->ghosts);
    if (!c->left || !c->ghosts)
        goto out;
    TRY(note_owners(c));
    TRY(find_kept(c));
    do {
        TRY(record_steps(c));
        TRY(close(&again, r));
    } while (again);
    TRY(find_written(r));
    r->n_place = r->be->recording_places(r->work);
    r->buf = mem_alloc_array(r->n_place, sizeof *r->buf);
    r->sharers = mem_alloc_array(r->n_place, sizeof *r->sharers);
    err = r->buf && r->sharers ? ERR_OK : ERR_NO_MEMORY;
out:
    return err;
}

enum err recording_make(struct recording **out, struct open_stream *os, struct node *const *nodes,
                        size_t n)
{
    struct recorder c = { .os = os, .nodes = nodes };
    int64_t begin = trace_span_begin();
    enum err err;

    TRY(new_recording(&c.r, os, n));
    c.outside = plan_outside(os->strm, &c.r->n_outside);
    os->strm->recorder = &c;
    err = record(&c);
    os->strm->recorder = NULL;
    stat_add(STAT_RECORDINGS, 1);
    trace_span_end_n("record", begin, os->plan->n_step);
    if (!err) {
        *out = c.r;
        c.r = NULL;
    }
out:
    recordings_free(&c.r);
    mem_free(c.left);
    mem_free(c.ghosts);
    return err;
}
