#include "eval/recording.h"

#include "base/gate.h"
#include "base/stat.h"
#include "eval/recorder.h"

/* Recordings of one plan: arrays may come with different layouts in turn. */
#define MOST 4

bool recording_serves(const struct strm *s)
{
    size_t n;

    return s->be->recording_new && plan_outside(s, &n);
}

void recordings_free(struct recording **first)
{
    while (*first) {
        struct recording *r = *first;
        *first = r->next;
        if (r->work)
            r->be->recording_free(&r->work);
        for (size_t i = 0; r->node && i < r->n_node; i++)
            op_state_unref(&r->node[i].state);
        VEC_FINI(&r->out);
        VEC_FINI(&r->dims);
        VEC_FINI(&r->params);
        VEC_FINI(&r->outside);
        VEC_FINI(&r->sole);
        VEC_FINI(&r->donation);
        VEC_FINI(&r->kept);
        VEC_FINI(&r->written);
        VEC_FINI(&r->several);
        VEC_FINI(&r->counts.note);
        mem_free(r->buf);
        mem_free(r->sharers);
        mem_free(r->node);
        mem_free(r->donations);
        mem_free(r->members);
        mem_free(r->member);
        mem_free(r);
    }
}

/* ---- finding ---- */

/* Names the buffers by place. False if two arrays that had one buffer have two. Two buffers that
 * have become one pass: then neither is sole, and steps are not recorded again (rebinding). */
static bool name_buffers(struct recording *r, const struct plan_outside *outside)
{
    memset(r->buf, 0, r->n_place * sizeof *r->buf);
    memset(r->sharers, 0, r->n_place * sizeof *r->sharers);
    for (size_t i = 0; i < r->n_outside; i++) {
        struct buf *b = outside[i].a->buf;
        uint32_t place = r->outside.v[i].l.place;
        if ((place == NO_PLACE) != !b)
            return false;
        if (!b)
            continue;
        if (r->buf[place] && r->buf[place] != b)
            return false;
        r->buf[place] = b;
        r->sharers[place]++;
    }
    return true;
}

/* Only what nobody else holds is ever written over. */
static bool has_same_owners(const struct recording *r, const struct strm *s)
{
    for (size_t i = 0; i < r->n_outside; i++) {
        const struct outside *o = &r->outside.v[i];
        uint32_t place = o->l.place;
        if ((o->traits & OUTSIDE_PRIVATE) && place != NO_PLACE &&
            r->sole.v[place] != (buf_owners(r->buf[place], s->index) == r->sharers[place]))
            return false;
    }
    return true;
}

static bool holds_for(struct recording *r, const struct strm *s, const struct plan_outside *outside)
{
    if (r->gates != gate_changes())
        return false;
    for (size_t i = 0; i < r->n_outside; i++) {
        const struct outside *o = &r->outside.v[i];
        if (!layout_is(r, &o->l, outside[i].a) ||
            recording_traits(outside[i].a, outside[i].uses, s) != o->traits)
            return false;
    }
    return name_buffers(r, outside) && has_same_owners(r, s);
}

static void drop_oldest(struct plan *p)
{
    struct recording **at = &p->recordings;

    for (int i = 0; *at && i < MOST - 1; i++)
        at = &(*at)->next;
    recordings_free(at);
}

static void put_first(struct plan *p, struct recording *r)
{
    r->next = p->recordings;
    p->recordings = r;
    p->free_recordings = recordings_free;
}

/* Takes the recording that holds out of the plan's list; NULL if there is none. */
static struct recording *take(struct open_stream *os, const struct plan_outside *outside)
{
    for (struct recording **at = &os->plan->recordings; *at; at = &(*at)->next) {
        struct recording *r = *at;
        if (!holds_for(r, os->strm, outside))
            continue;
        *at = r->next;
        r->next = NULL;
        return r;
    }
    return NULL;
}

/* The newest recording of the plan is one of this run. */
static enum err find(struct open_stream *os, struct node *const *nodes, size_t n)
{
    size_t n_outside;
    const struct plan_outside *outside = plan_outside(os->strm, &n_outside);
    struct recording *r = take(os, outside);
    bool fits = r;
    enum err err = ERR_OK;

    if (r)
        TRY(recording_refresh(&fits, r, os, nodes));
    if (fits)
        stat_add(STAT_RECORDING_HITS, 1);
    if (!fits) {
        recordings_free(&r);
        drop_oldest(os->plan);
        TRY(recording_make(&r, os, nodes, n));
        name_buffers(r, outside);
    }
    put_first(os->plan, r);
    r = NULL;
out:
    recordings_free(&r);
    return err;
}

/* ---- encoding ---- */

static void count(const struct recording *r)
{
    for (size_t i = 0; i < r->counts.note.n; i++)
        counter_add(r->counts.note.v[i].id, r->counts.note.v[i].n);
}

/* The results that outlive the run have storage and count as evaluated. */
static void finish_results(const struct recording *r, const struct open_stream *os,
                           struct node *const *nodes, struct buf *const *buf)
{
    for (size_t i = 0; i < r->kept.n; i++) {
        struct kept_output k = r->kept.v[i];
        struct arr *a = &nodes[k.node]->out[k.out];
        const struct layout *l = &r->out.v[r->node[k.node].first_out + k.out];
        layout_apply(r, l, a);
        if (l->place != NO_PLACE)
            a->buf = buf_ref(buf[l->place]);
        eval_finish_array(a, os->ev);
    }
}

static void detach_all(struct node *const *nodes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!nodes[i]->out[0].tracer)
            node_detach(nodes[i]);
}

/* An output that nobody holds would go while another one of its node is finished. */
static void for_siblings(const struct recording *r, struct node *const *nodes,
                         void (*fn)(struct node *))
{
    for (size_t i = 0; i < r->several.n; i++)
        fn(nodes[r->several.v[i]]);
}

static enum err encode(struct recording *r, struct open_stream *os, struct node *const *nodes,
                       size_t n)
{
    bool begun;
    enum err err;

    for (size_t i = 0; i < r->written.n; i++)
        buf_drop_mirror(r->buf[r->written.v[i]]);
    err = r->be->recording_run(r->work, os->strm, r->buf, &begun);
    if (!err) {
        count(r);
        for_siblings(r, nodes, node_pin);
        finish_results(r, os, nodes, r->buf);
        detach_all(nodes, n);
        for_siblings(r, nodes, node_unpin);
    } else if (begun && r->written.n) {
        detach_all(nodes, n);
    }
    for (size_t i = r->sole.n; i < r->n_place; i++)
        buf_unref(&r->buf[i]);
    return err;
}

enum err recording_run(struct open_stream *os, struct node *const *nodes, size_t n)
{
    enum err err;

    TRY(find(os, nodes, n));
    err = encode(os->plan->recordings, os, nodes, n);
out:
    return err;
}
