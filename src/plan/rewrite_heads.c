/* Groups of the heads of an attention, with it or without: GROUP_ATTN, GROUP_HEADS. */
#include "plan/rewrite_find.h"

#include <string.h>

static bool is_inner_view(const struct rw_search *s, uint16_t i)
{
    return i != PLAN_NO_NODE && s->owner[i] == PLAN_NO_NODE && rw_is_private(s, i, 1) &&
           (op_table[rw_node(s, i)->op].flags & OPF_VIEW);
}

/* The norm in front of x, which the part turns, and the views between. Without a norm, the
 * transposition in front of x. */
static void add_head_norm(const struct rw_search *s, struct rewrite_match *m, int part,
                          const struct arr *x)
{
    uint16_t *member = m->member + part * HEADS_SLOTS;
    uint16_t at = rw_producer(s, x), view[2] = { PLAN_NO_NODE, PLAN_NO_NODE };

    for (int n = 0; n < 2 && is_inner_view(s, at); n++) {
        view[n] = at;
        at = rw_producer(s, rw_node(s, at)->in[0]);
    }
    if (!rewrite_on(REWRITE_NORM_ROPE) || !rw_is_free(s, at, OP_RMS_NORM) ||
        !rw_is_private(s, at, 1)) {
        if (rw_is_free(s, view[0], OP_TRANSPOSE))
            member[HEADS_VIEW] = view[0];
        return;
    }
    member[HEADS_NORM] = at;
    member[HEADS_VIEW] = view[1] == PLAN_NO_NODE ? view[0] : view[1];
    member[HEADS_VIEW2] = view[1] == PLAN_NO_NODE ? PLAN_NO_NODE : view[0];
    rw_take(m, REWRITE_NORM_ROPE);
}

/* True if the node writes x, which somebody made for it, over a part of something else. */
static bool updates_with(const struct node *update, const struct arr *x)
{
    return update->in[1] == x && update->in[0] != x && update->out[0].dtype == x->dtype;
}

static void add_cache_update(const struct rw_search *s, struct rewrite_match *m)
{
    uint16_t rope = m->member[HEADS_ROPE];
    uint16_t update = rw_only_reader(s, rope, OP_SLICE_UPDATE);

    if (!rewrite_on(REWRITE_ROPE_CACHE) || update == PLAN_NO_NODE ||
        !updates_with(rw_node(s, update), &rw_node(s, rope)->out[0]))
        return;
    m->member[HEADS_UPDATE] = update;
    rw_take(m, REWRITE_ROPE_CACHE);
}

static void match_rope(struct rw_search *s, uint16_t rope)
{
    struct rewrite_match m = rw_empty(GROUP_HEADS);

    m.member[HEADS_ROPE] = rope;
    add_head_norm(s, &m, 0, rw_node(s, rope)->in[0]);
    add_cache_update(s, &m);
    if (m.rewrites)
        rw_accept(s, &m, m.member[HEADS_UPDATE] != PLAN_NO_NODE ? m.member[HEADS_UPDATE] : rope);
}

/* ---- queries, keys and values of one attention ---- */

static bool are_rotated_alike(const struct node *a, const struct node *b)
{
    bool same = a->n_in == b->n_in && node_same_params(a, b);

    for (int k = 1; same && k < a->n_in; k++)
        same = a->in[k] == b->in[k];
    return same;
}

/* The update of the cache of which a is what is used of it; of a full one that is all. */
static uint16_t cache_update_of(const struct rw_search *s, const struct arr *a)
{
    uint16_t at = rw_producer(s, a);

    if (at != PLAN_NO_NODE && rw_node(s, at)->op == OP_SLICE)
        at = rw_producer(s, rw_node(s, at)->in[0]);
    return rw_is_free(s, at, OP_SLICE_UPDATE) && updates_with(rw_node(s, at), rw_node(s, at)->in[1])
               ? at
               : PLAN_NO_NODE;
}

static bool add_queries(const struct rw_search *s, struct rewrite_match *m, const struct arr *q)
{
    uint16_t rope = rw_producer(s, q);

    if (!rw_is_free(s, rope, OP_ROPE))
        return false;
    m->member[HEADS_ROPE] = rope;
    add_head_norm(s, m, 0, rw_node(s, rope)->in[0]);
    return true;
}

static bool add_keys(const struct rw_search *s, struct rewrite_match *m, const struct arr *k)
{
    uint16_t *member = m->member + HEADS_SLOTS, update = cache_update_of(s, k);
    uint16_t rope =
        update == PLAN_NO_NODE ? PLAN_NO_NODE : rw_producer(s, rw_node(s, update)->in[1]);

    if (!rw_is_free(s, rope, OP_ROPE) || !rw_is_private(s, rope, 1) ||
        !are_rotated_alike(rw_node(s, rope), rw_node(s, m->member[HEADS_ROPE])))
        return false;
    member[HEADS_ROPE] = rope;
    member[HEADS_UPDATE] = update;
    add_head_norm(s, m, 1, rw_node(s, rope)->in[0]);
    return true;
}

static bool add_values(const struct rw_search *s, struct rewrite_match *m, const struct arr *v)
{
    uint16_t *member = m->member + 2 * HEADS_SLOTS, update = cache_update_of(s, v);

    if (update == PLAN_NO_NODE)
        return false;
    uint16_t view = rw_producer(s, rw_node(s, update)->in[1]);
    if (rw_is_free(s, view, OP_TRANSPOSE) && rw_is_private(s, view, 1))
        member[HEADS_VIEW] = view;
    member[HEADS_UPDATE] = update;
    return true;
}

/* The three parts of the heads of an attention. */
static bool add_heads(const struct rw_search *s, struct rewrite_match *m, uint16_t sdpa)
{
    const struct node *n = rw_node(s, sdpa);

    if (!add_queries(s, m, n->in[0]) || !add_keys(s, m, n->in[1]) || !add_values(s, m, n->in[2]) ||
        m->member[HEADS_SLOTS + HEADS_UPDATE] == m->member[2 * HEADS_SLOTS + HEADS_UPDATE])
        return false;
    rw_take(m, REWRITE_ROPE_CACHE);
    rw_take(m, REWRITE_QKV_PLACEMENT);
    return true;
}

static bool merges_heads(void)
{
    return rewrite_on(REWRITE_QKV_PLACEMENT) && rewrite_on(REWRITE_ROPE_CACHE);
}

static void match_heads(struct rw_search *s, uint16_t sdpa)
{
    struct rewrite_match m = rw_empty(GROUP_HEADS);

    if (!add_heads(s, &m, sdpa))
        return;
    uint16_t place =
        MAX(m.member[HEADS_SLOTS + HEADS_UPDATE], m.member[2 * HEADS_SLOTS + HEADS_UPDATE]);
    if (rw_can_run_at(s, &m, place))
        rw_accept(s, &m, place);
}

/* What is used of a cache, if that is not all of it. */
static bool add_used(const struct rw_search *s, struct rewrite_match *m, int slot,
                     const struct arr *a)
{
    uint16_t at = rw_producer(s, a);

    if (rw_is_free(s, at, OP_SLICE))
        m->member[slot] = at;
    return m->member[slot] != PLAN_NO_NODE || rw_is_free(s, at, OP_SLICE_UPDATE);
}

/* The heads with the attention itself. Its queries are for nobody else: they are never stored. */
static void match_attention(struct rw_search *s, uint16_t sdpa)
{
    struct rewrite_match m = rw_empty(GROUP_ATTN);
    const struct node *n = rw_node(s, sdpa);

    if (!add_heads(s, &m, sdpa) || !rw_is_private(s, m.member[HEADS_ROPE], 1) ||
        !add_used(s, &m, ATTN_KEYS, n->in[1]) || !add_used(s, &m, ATTN_VALUES, n->in[2]))
        return;
    m.member[ATTN_SDPA] = sdpa;
    if (rw_can_run_at(s, &m, sdpa))
        rw_accept(s, &m, sdpa);
}

void rw_find_attn(struct rw_search *s)
{
    bool on = rewrite_on(REWRITE_ATTN_HEADS) && merges_heads();

    for (uint16_t i = 0; i < s->run->n && on; i++)
        if (rw_is_free(s, i, OP_SDPA))
            match_attention(s, i);
}

void rw_find_heads(struct rw_search *s)
{
    bool merges = merges_heads();

    for (uint16_t i = 0; i < s->run->n && merges; i++)
        if (rw_is_free(s, i, OP_SDPA))
            match_heads(s, i);
    for (uint16_t i = 0; i < s->run->n; i++)
        if (rw_is_free(s, i, OP_ROPE))
            match_rope(s, i);
}
