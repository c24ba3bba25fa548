#include "plan/plan.h"

#include "backend/backend.h"
#include "base/gate.h"
#include "base/hash.h"
#include "base/stat.h"
#include "base/trace.h"
#include "plan/plan_build.h"
#include "plan/rewrite.h"

/* ---- structure keys ---- */

static uint64_t shape_hash(const struct arr *a)
{
    uint64_t h = hash_mix(HASH_SEED, a->ndim);

    for (int i = 0; i < a->ndim; i++)
        h = hash_mix(h, (uint32_t)a->shape[i]);
    return h;
}

static bool is_fusable(const struct node *n)
{
    return (op_table[n->op].flags & OPF_FUSE) && n->n_out == 1 && n->out[0].size > 0;
}

/* Finds the producers of all inputs, which is where time goes: nodes lie all over memory. */
static enum err count_uses(struct plan_run *r)
{
    enum err err = ERR_OK;

    r->edges.n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct node *n = r->nodes[i];
        TRY(VEC_RESERVE(&r->edges, (size_t)n->n_in));
        for (int k = 0; k < n->n_in; k++) {
            const struct arr *a = n->in[k];
            size_t p = plan_producer(r, a);
            bool is_inside = p < r->n;
            if (is_inside)
                r->info[p].uses++;
            r->edges.v[r->edges.n++] =
                is_inside ? (uint32_t)(a - a->node->out) << 16 | (uint32_t)p : PLAN_NO_NODE;
        }
    }
    for (size_t i = 0; i < r->n; i++) {
        const struct arr *out = &r->nodes[i]->out[0];
        struct plan_node *info = &r->info[i];
        info->fusable = is_fusable(r->nodes[i]);
        info->held = out->tracer || ref_get(&out->rc) > info->uses;
        r->is_traced |= out->tracer;
    }
out:
    return err;
}

static size_t number_slot(const struct plan_run *r, const struct arr *a)
{
    size_t slot = hash_mix(HASH_SEED, (uintptr_t)a) % PLAN_OUTSIDE_SLOTS;

    while (r->number[slot].run_number == r->run_number && r->number[slot].a != a)
        slot = (slot + 1) % PLAN_OUTSIDE_SLOTS;
    return slot;
}

/* Distinct outside inputs are numbered in order of appearance: one array that enters twice and two
 * arrays that enter once are different structures. An array that finds no room is told apart by its
 * address, which only makes cache hits rare. */
static uint64_t number_of(struct plan_run *r, struct arr *a)
{
    const struct plan_number *last = r->last_number;

    if (!last || last->a != a) {
        size_t slot = number_slot(r, a);
        bool is_new = r->number[slot].run_number != r->run_number;
        uint32_t next = (uint32_t)r->outside.n;
        if (is_new && (next == PLAN_OUTSIDE_SLOTS / 2 ||
                       VEC_PUSH(&r->outside, (struct plan_outside){ .a = a }) != ERR_OK)) {
            r->has_unnumbered = true;
            return (uintptr_t)a;
        }
        if (is_new)
            r->number[slot] = (struct plan_number){ a, r->run_number, next };
        last = r->last_number = &r->number[slot];
    }
    r->outside.v[last->number].uses++;
    return last->number;
}

/* Where an input comes from: an output of a node of the run, or an array from outside; and its
 * dtype, which the first output's node tells already. */
static uint64_t source_word(struct plan_run *r, uint32_t edge, struct arr *a)
{
    const uint64_t from_run = (uint64_t)1 << 59;

    if (edge == PLAN_NO_NODE)
        return number_of(r, a) << 4 | a->dtype;
    return (from_run | edge) << 4 | (edge >> 16 ? a->dtype : 0);
}

static enum err make_key(struct plan_run *r)
{
    const uint32_t *edge = r->edges.v;
    enum err err = ERR_OK;

    r->key.n = 0;
    TRY(VEC_PUSH(&r->key, rewrite_mask()));
    for (size_t i = 0; i < r->n; i++) {
        const struct node *n = r->nodes[i];
        const struct plan_node *info = &r->info[i];
        uint64_t *word;

        TRY(VEC_RESERVE(&r->key, (size_t)n->n_in + 3));
        word = r->key.v + r->key.n;
        *word++ = (uint64_t)n->op | (uint64_t)n->out[0].dtype << 16 | (uint64_t)info->held << 24 |
                  (uint64_t)info->fusable << 25 | (uint64_t)n->n_in << 32 |
                  (uint64_t)n->n_out << 48;
        bool is_product = plan_is_product((enum op_id)n->op);
        if (info->fusable || is_product)
            *word++ = shape_hash(&n->out[0]);
        if (is_product) /* those of one group are of one kind */
            *word++ = node_params_hash(n);
        for (int a = 0; a < n->n_in; a++)
            *word++ = source_word(r, *edge++, n->in[a]);
        r->key.n = (size_t)(word - r->key.v);
    }
out:
    return err;
}

/* ---- cache ---- */

#define CACHE_BUCKETS 64
#define CACHE_MAX 512

struct plan_cache {
    struct plan *bucket[CACHE_BUCKETS];
    struct plan *last; /* found or made */
    size_t n;
    struct plan_run run; /* scratch of the stream's owner thread */
};

struct plan *plan_ref(struct plan *p)
{
    ref_inc(&p->rc);
    return p;
}

void plan_unref(struct plan **pp)
{
    struct plan *p = *pp;

    *pp = NULL;
    if (!p || !ref_dec(&p->rc))
        return;
    if (p->recordings)
        p->free_recordings(&p->recordings);
    arena_fini(&p->arena);
    mem_free(p);
}

static void clear(struct plan_cache *c)
{
    for (size_t b = 0; b < CACHE_BUCKETS; b++)
        while (c->bucket[b]) {
            struct plan *p = c->bucket[b];
            c->bucket[b] = p->next;
            plan_unref(&p);
        }
    c->n = 0;
    c->last = NULL;
}

void plan_cache_clear(struct strm *s)
{
    if (!s->plans)
        return;
    clear(s->plans);
    VEC_FINI(&s->plans->run.key);
    VEC_FINI(&s->plans->run.edges);
    VEC_FINI(&s->plans->run.outside);
    mem_free(s->plans);
    s->plans = NULL;
}

static bool is_of(const struct plan *p, const struct plan_run *r)
{
    return p->n_key == r->key.n && memcmp(p->key, r->key.v, r->key.n * sizeof p->key[0]) == 0;
}

/* Mostly what came after the last run before: hashing a key takes longer than comparing it. */
static struct plan *lookup(const struct plan_cache *c, struct plan_run *r)
{
    struct plan *p = c->last ? c->last->then : NULL;

    if (p && is_of(p, r))
        return p;
    r->hash = hash_bytes(HASH_SEED, r->key.v, r->key.n * sizeof r->key.v[0]);
    for (p = c->bucket[r->hash % CACHE_BUCKETS]; p; p = p->next)
        if (p->hash == r->hash && is_of(p, r))
            return p;
    return NULL;
}

static void note_last(struct plan_cache *c, struct plan *p)
{
    if (c->last)
        c->last->then = p;
    c->last = p;
}

static enum err build(struct plan **out, const struct plan_run *r, const struct be *be)
{
    struct plan *p = mem_alloc(sizeof *p);
    int64_t begin = trace_span_begin();
    enum err err = ERR_NO_MEMORY;

    if (!p)
        return ERR_NO_MEMORY;
    atomic_init(&p->rc, 1);
    p->hash = r->hash;
    p->n_key = r->key.n;
    p->key = arena_alloc(&p->arena, r->key.n * sizeof p->key[0]);
    p->held = arena_alloc(&p->arena, r->n * sizeof p->held[0]);
    if (!p->key || !p->held)
        goto out;
    memcpy(p->key, r->key.v, r->key.n * sizeof p->key[0]);
    for (size_t i = 0; i < r->n; i++)
        p->held[i] = r->info[i].held;
    TRY(plan_build(p, r, be));
    stat_add(STAT_PLAN_BUILDS, 1);
    trace_span_end_n("build plan", begin, r->n);
    *out = p;
    p = NULL;
out:
    plan_unref(&p);
    return err;
}

enum err plan_get(struct plan **out, struct strm *s, struct node *const *nodes, size_t n)
{
    if (!s->plans && !(s->plans = mem_alloc(sizeof *s->plans)))
        return ERR_NO_MEMORY;

    struct plan_cache *c = s->plans;
    struct plan_run *r = &c->run;
    r->nodes = nodes;
    r->n = n;
    r->run_number++;
    r->outside.n = 0;
    r->last_number = NULL;
    r->has_unnumbered = r->is_traced = false;
    memset(r->info, 0, n * sizeof r->info[0]);
    enum err err = count_uses(r);
    if (err || (err = make_key(r)) != ERR_OK)
        return err;

    struct plan *p = lookup(c, r);
    if (p && gate_on(GATE_PLAN_CACHE)) {
        stat_add(STAT_PLAN_HITS, 1);
        note_last(c, p);
        *out = p;
        return ERR_OK;
    }
    if (c->n >= CACHE_MAX || !gate_on(GATE_PLAN_CACHE))
        clear(c);
    if ((err = build(&p, r, s->be)) != ERR_OK)
        return err;
    p->next = c->bucket[p->hash % CACHE_BUCKETS];
    c->bucket[p->hash % CACHE_BUCKETS] = p;
    c->n++;
    note_last(c, p);
    *out = p;
    return ERR_OK;
}

const struct plan_outside *plan_outside(const struct strm *s, size_t *n)
{
    const struct plan_run *r = &s->plans->run;

    *n = r->outside.n;
    return r->has_unnumbered || r->is_traced ? NULL : r->outside.v;
}

uint32_t plan_outside_number(const struct strm *s, const struct arr *a)
{
    const struct plan_run *r = &s->plans->run;

    return r->number[number_slot(r, a)].number;
}
