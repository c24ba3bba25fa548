#include "core/rewrite.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/backend.h"
#include "core/gate.h"
#include "core/op.h"

/* Members of a group lie at most this far apart on the tape. */
#define REWRITE_WINDOW 96

/* ---- rows ---- */

static const struct {
    enum gate gate;
    const char *name;
} rows[REWRITE_COUNT] = {
#define REWRITE(id, variable, text) [REWRITE_##id] = { GATE_PLAN_##id, variable },
#include "core/rewrite.def"
#undef REWRITE
};

static const char *const reasons[GROUP_REASON_COUNT] = {
    [GROUP_TAKEN] = "taken", [GROUP_DTYPE] = "dtype",   [GROUP_LAYOUT] = "layout",
    [GROUP_SIZE] = "size",   [GROUP_PARAMS] = "params", [GROUP_OFF] = "off",
};

static _Atomic uint64_t counts[REWRITE_COUNT][GROUP_REASON_COUNT];

bool rewrite_on(enum rewrite id)
{
    return gate_on(rows[id].gate);
}

uint32_t rewrite_mask(void)
{
    uint32_t mask = 0;

    for (int i = 0; i < REWRITE_COUNT; i++)
        mask |= (uint32_t)rewrite_on((enum rewrite)i) << i;
    return mask;
}

void rewrite_count(uint32_t rewrites, enum group_reason why)
{
    for (int i = 0; i < REWRITE_COUNT; i++)
        if (rewrites >> i & 1)
            atomic_fetch_add_explicit(&counts[i][why], 1, memory_order_relaxed);
}

uint64_t rewrite_hits(enum rewrite id)
{
    return atomic_load(&counts[id][GROUP_TAKEN]);
}

uint64_t rewrite_rejects(enum rewrite id, enum group_reason why)
{
    return atomic_load(&counts[id][why]);
}

void rewrite_reset(void)
{
    for (int i = 0; i < REWRITE_COUNT; i++)
        for (int k = 0; k < GROUP_REASON_COUNT; k++)
            atomic_store(&counts[i][k], 0);
}

void rewrite_print(FILE *out)
{
    for (int i = 0; i < REWRITE_COUNT; i++)
        for (int k = 0; k < GROUP_REASON_COUNT; k++)
            if (atomic_load(&counts[i][k]))
                fprintf(out, "%12" PRIu64 "  rewrite %s: %s\n", atomic_load(&counts[i][k]),
                        rows[i].name, reasons[k]);
}

/* ---- looking around in a run ---- */

struct search {
    const struct plan_run *run;
    uint16_t *owner;
    struct rewrite_match *found;
    size_t n_found;
};

static const struct node *node_at(const struct search *s, uint16_t i)
{
    return s->run->nodes[i];
}

/* A node of the op that belongs to no group yet. */
static bool is_free(const struct search *s, uint16_t i, enum op_id op)
{
    return i != PLAN_NO_NODE && node_at(s, i)->op == op && s->owner[i] == PLAN_NO_NODE;
}

/* The node's result has so many readers in the run and none elsewhere. */
static bool is_private(const struct search *s, uint16_t i, int uses)
{
    return !s->run->info[i].held && s->run->info[i].uses == uses;
}

static uint16_t producer_of(const struct search *s, const struct arr *a)
{
    size_t i = plan_producer(s->run, a);

    return i < s->run->n ? (uint16_t)i : PLAN_NO_NODE;
}

static bool reads(const struct node *n, const struct arr *a)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == a)
            return true;
    return false;
}

/* The next reader of i's result behind `after`. */
static uint16_t next_reader(const struct search *s, uint16_t i, uint16_t after)
{
    const struct arr *a = &node_at(s, i)->out[0];
    size_t end = MIN(s->run->n, (size_t)i + REWRITE_WINDOW);

    for (size_t j = (size_t)after + 1; j < end; j++)
        if (reads(s->run->nodes[j], a))
            return (uint16_t)j;
    return PLAN_NO_NODE;
}

/* The only reader of i's result, if it is a free node of the op with that shape and dtype. */
static uint16_t only_reader(const struct search *s, uint16_t i, enum op_id op)
{
    uint16_t j = is_private(s, i, 1) ? next_reader(s, i, i) : PLAN_NO_NODE;

    return is_free(s, j, op) ? j : PLAN_NO_NODE;
}

/* No input from `first` on is made in the run, so the node can run wherever input 0 is there. */
static bool others_come_from_outside(const struct search *s, const struct node *n, int first)
{
    for (int k = first; k < n->n_in; k++)
        if (producer_of(s, n->in[k]) != PLAN_NO_NODE)
            return false;
    return true;
}

static bool is_alike(const struct arr *a, const struct arr *b)
{
    return a->dtype == b->dtype && arr_same_shape(a, b);
}

/* ---- accepting a group ---- */

static struct rewrite_match empty_match(enum group_kind kind)
{
    struct rewrite_match m = { .kind = (uint8_t)kind };

    for (int i = 0; i < GROUP_SLOTS; i++)
        m.member[i] = PLAN_NO_NODE;
    return m;
}

static void take(struct rewrite_match *m, enum rewrite id)
{
    m->rewrites |= (uint16_t)(1u << id);
}

static int uses_inside(const struct search *s, const struct rewrite_match *m, uint16_t i)
{
    const struct arr *a = &node_at(s, i)->out[0];
    int n = 0;

    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        if (m->member[slot] == PLAN_NO_NODE)
            continue;
        const struct node *reader = node_at(s, m->member[slot]);
        for (int k = 0; k < reader->n_in; k++)
            n += reader->in[k] == a;
    }
    return n;
}

static void accept(struct search *s, struct rewrite_match *m, uint16_t anchor)
{
    m->anchor = anchor;
    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        uint16_t i = m->member[slot];
        if (i == PLAN_NO_NODE)
            continue;
        bool wanted = s->run->info[i].held || s->run->info[i].uses > uses_inside(s, m, i);
        m->wanted |= (uint32_t)wanted << slot;
        s->owner[i] = anchor;
    }
    s->found[s->n_found++] = *m;
}

/* ---- quantized products ---- */

static bool is_product(const struct search *s, uint16_t i)
{
    return is_free(s, i, OP_QUANTIZED_MATMUL) && others_come_from_outside(s, node_at(s, i), 1);
}

static bool are_siblings(const struct node *a, const struct node *b)
{
    return a->in[0] == b->in[0] && a->n_in == b->n_in && a->out[0].dtype == b->out[0].dtype &&
           memcmp(a->params, b->params, a->params_size) == 0;
}

/* Products of the same input as the one in the first slot. Returns how many there are now. */
static int add_siblings(const struct search *s, struct rewrite_match *m, int most)
{
    uint16_t first = m->member[QMM_PRODUCT];
    size_t end = MIN(s->run->n, (size_t)first + REWRITE_WINDOW);
    int n = 1;

    for (size_t j = (size_t)first + 1; j < end && n < most; j++)
        if (is_product(s, (uint16_t)j) && are_siblings(node_at(s, first), s->run->nodes[j]))
            m->member[QMM_PRODUCT + n++] = (uint16_t)j;
    return n;
}

/* The norm before the products, if nobody else reads it. */
static void add_norm(const struct search *s, struct rewrite_match *m, int n_products)
{
    uint16_t norm = producer_of(s, node_at(s, m->member[QMM_PRODUCT])->in[0]);

    if (!rewrite_on(REWRITE_QMM_NORM) || !is_free(s, norm, OP_RMS_NORM) ||
        !is_private(s, norm, n_products) || !others_come_from_outside(s, node_at(s, norm), 1))
        return;
    m->member[QMM_NORM] = norm;
    take(m, REWRITE_QMM_NORM);
}

/* last = (gate * sigmoid(gate)) * up, for either order of the products. */
static bool add_silu_mul(const struct search *s, struct rewrite_match *m)
{
    for (int swap = 0; swap < 2; swap++) {
        uint16_t gate = m->member[QMM_PRODUCT + swap], up = m->member[QMM_PRODUCT + !swap];
        if (!is_private(s, gate, 2) || !is_private(s, up, 1))
            continue;
        uint16_t sigmoid = next_reader(s, gate, gate);
        uint16_t gated =
            is_free(s, sigmoid, OP_SIGMOID) ? only_reader(s, sigmoid, OP_MULTIPLY) : PLAN_NO_NODE;
        if (gated == PLAN_NO_NODE || !reads(node_at(s, gated), &node_at(s, gate)->out[0]))
            continue;
        uint16_t last = only_reader(s, gated, OP_MULTIPLY);
        if (last == PLAN_NO_NODE || !reads(node_at(s, last), &node_at(s, up)->out[0]) ||
            !is_alike(&node_at(s, last)->out[0], &node_at(s, up)->out[0]))
            continue;
        m->member[QMM_PRODUCT] = gate;
        m->member[QMM_PRODUCT + 1] = up;
        m->member[QMM_SIGMOID] = sigmoid;
        m->member[QMM_GATED] = gated;
        m->member[QMM_LAST] = last;
        take(m, REWRITE_QMM_SILU_MUL);
        return true;
    }
    return false;
}

static bool match_silu_mul(struct search *s, uint16_t first)
{
    struct rewrite_match m = empty_match(GROUP_QMM);

    m.member[QMM_PRODUCT] = first;
    if (!rewrite_on(REWRITE_QMM_SILU_MUL) || add_siblings(s, &m, 2) != 2 || !add_silu_mul(s, &m))
        return false;
    add_norm(s, &m, 2);
    accept(s, &m, m.member[QMM_LAST]);
    return true;
}

/* One product whose only reader adds something of the same shape to it. */
static bool add_residual(const struct search *s, struct rewrite_match *m)
{
    uint16_t product = m->member[QMM_PRODUCT];
    uint16_t add = only_reader(s, product, OP_ADD);

    if (!rewrite_on(REWRITE_QMM_RESIDUAL) || add == PLAN_NO_NODE)
        return false;
    const struct node *n = node_at(s, add);
    if (!is_alike(n->in[0], n->in[1]) || !is_alike(n->in[0], &n->out[0]))
        return false;
    m->member[QMM_LAST] = add;
    take(m, REWRITE_QMM_RESIDUAL);
    return true;
}

static void match_products(struct search *s, uint16_t first)
{
    struct rewrite_match m = empty_match(GROUP_QMM);
    int n = 1;

    m.member[QMM_PRODUCT] = first;
    if (rewrite_on(REWRITE_QMM_SIBLINGS))
        n = add_siblings(s, &m, GROUP_MAX_PRODUCTS);
    if (n > 1)
        take(&m, REWRITE_QMM_SIBLINGS);
    bool has_residual = n == 1 && add_residual(s, &m);
    add_norm(s, &m, n);
    /* A product's other inputs come from outside, so siblings can all run in the first one's place;
     * a residual may be made later than the product. */
    if (m.rewrites)
        accept(s, &m, has_residual ? m.member[QMM_LAST] : first);
}

static void find_qmm(struct search *s)
{
    for (uint16_t i = 0; i < s->run->n; i++)
        if (is_product(s, i) && !match_silu_mul(s, i))
            match_products(s, i);
}

/* ---- heads ---- */

static bool is_inner_view(const struct search *s, uint16_t i)
{
    return i != PLAN_NO_NODE && s->owner[i] == PLAN_NO_NODE && is_private(s, i, 1) &&
           (op_table[node_at(s, i)->op].flags & OPF_VIEW);
}

/* The norm in front of x, which the part turns, and the views between. Without a norm, the
 * transposition in front of x. */
static void add_head_norm(const struct search *s, struct rewrite_match *m, int part,
                          const struct arr *x)
{
    uint16_t *member = m->member + part * HEADS_SLOTS;
    uint16_t at = producer_of(s, x), view[2] = { PLAN_NO_NODE, PLAN_NO_NODE };

    for (int n = 0; n < 2 && is_inner_view(s, at); n++) {
        view[n] = at;
        at = producer_of(s, node_at(s, at)->in[0]);
    }
    if (!rewrite_on(REWRITE_NORM_ROPE) || !is_free(s, at, OP_RMS_NORM) || !is_private(s, at, 1)) {
        if (is_free(s, view[0], OP_TRANSPOSE))
            member[HEADS_VIEW] = view[0];
        return;
    }
    member[HEADS_NORM] = at;
    member[HEADS_VIEW] = view[1] == PLAN_NO_NODE ? view[0] : view[1];
    member[HEADS_VIEW2] = view[1] == PLAN_NO_NODE ? PLAN_NO_NODE : view[0];
    take(m, REWRITE_NORM_ROPE);
}

/* True if the node writes x, which somebody made for it, over a part of something else. */
static bool updates_with(const struct node *update, const struct arr *x)
{
    return update->in[1] == x && update->in[0] != x && update->out[0].dtype == x->dtype;
}

static void add_cache_update(const struct search *s, struct rewrite_match *m)
{
    uint16_t rope = m->member[HEADS_ROPE];
    uint16_t update = only_reader(s, rope, OP_SLICE_UPDATE);

    if (!rewrite_on(REWRITE_ROPE_CACHE) || update == PLAN_NO_NODE ||
        !updates_with(node_at(s, update), &node_at(s, rope)->out[0]))
        return;
    m->member[HEADS_UPDATE] = update;
    take(m, REWRITE_ROPE_CACHE);
}

static void match_rope(struct search *s, uint16_t rope)
{
    struct rewrite_match m = empty_match(GROUP_HEADS);

    m.member[HEADS_ROPE] = rope;
    add_head_norm(s, &m, 0, node_at(s, rope)->in[0]);
    add_cache_update(s, &m);
    if (m.rewrites)
        accept(s, &m, m.member[HEADS_UPDATE] != PLAN_NO_NODE ? m.member[HEADS_UPDATE] : rope);
}

/* ---- queries, keys and values of one attention ---- */

static bool are_turned_alike(const struct node *a, const struct node *b)
{
    bool same = a->n_in == b->n_in && memcmp(a->params, b->params, a->params_size) == 0;

    for (int k = 1; same && k < a->n_in; k++)
        same = a->in[k] == b->in[k];
    return same;
}

/* The update of the cache of which a is what is used of it. */
static uint16_t cache_update_of(const struct search *s, const struct arr *a)
{
    uint16_t slice = producer_of(s, a);

    if (slice == PLAN_NO_NODE || node_at(s, slice)->op != OP_SLICE)
        return PLAN_NO_NODE;
    uint16_t update = producer_of(s, node_at(s, slice)->in[0]);
    return is_free(s, update, OP_SLICE_UPDATE) &&
                   updates_with(node_at(s, update), node_at(s, update)->in[1])
               ? update
               : PLAN_NO_NODE;
}

static bool add_queries(const struct search *s, struct rewrite_match *m, const struct arr *q)
{
    uint16_t rope = producer_of(s, q);

    if (!is_free(s, rope, OP_ROPE))
        return false;
    m->member[HEADS_ROPE] = rope;
    add_head_norm(s, m, 0, node_at(s, rope)->in[0]);
    return true;
}

static bool add_keys(const struct search *s, struct rewrite_match *m, const struct arr *k)
{
    uint16_t *member = m->member + HEADS_SLOTS, update = cache_update_of(s, k);
    uint16_t rope =
        update == PLAN_NO_NODE ? PLAN_NO_NODE : producer_of(s, node_at(s, update)->in[1]);

    if (!is_free(s, rope, OP_ROPE) || !is_private(s, rope, 1) ||
        !are_turned_alike(node_at(s, rope), node_at(s, m->member[HEADS_ROPE])))
        return false;
    member[HEADS_ROPE] = rope;
    member[HEADS_UPDATE] = update;
    add_head_norm(s, m, 1, node_at(s, rope)->in[0]);
    return true;
}

static bool add_values(const struct search *s, struct rewrite_match *m, const struct arr *v)
{
    uint16_t *member = m->member + 2 * HEADS_SLOTS, update = cache_update_of(s, v);

    if (update == PLAN_NO_NODE)
        return false;
    uint16_t view = producer_of(s, node_at(s, update)->in[1]);
    if (is_free(s, view, OP_TRANSPOSE) && is_private(s, view, 1))
        member[HEADS_VIEW] = view;
    member[HEADS_UPDATE] = update;
    return true;
}

static bool is_member(const struct rewrite_match *m, uint16_t i)
{
    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (m->member[slot] == i)
            return true;
    return false;
}

/* Where a node outside of the group runs, if it is not moved. */
static uint16_t place_of(const struct search *s, uint16_t i)
{
    return s->owner[i] == PLAN_NO_NODE ? i : s->owner[i];
}

/* Everything that the members read is made before the place, and nobody reads them before it. */
static bool can_run_at(const struct search *s, const struct rewrite_match *m, uint16_t place)
{
    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        uint16_t i = m->member[slot];
        if (i == PLAN_NO_NODE)
            continue;
        const struct node *n = node_at(s, i);
        for (int k = 0; k < n->n_in; k++) {
            uint16_t from = producer_of(s, n->in[k]);
            if (from != PLAN_NO_NODE && !is_member(m, from) && place_of(s, from) >= place)
                return false;
        }
        if (place >= i + REWRITE_WINDOW)
            return false;
        for (uint16_t j = next_reader(s, i, i); j != PLAN_NO_NODE; j = next_reader(s, i, j))
            if (!is_member(m, j) && place_of(s, j) <= place)
                return false;
    }
    return true;
}

static void match_attention(struct search *s, uint16_t sdpa)
{
    const struct node *n = node_at(s, sdpa);
    struct rewrite_match m = empty_match(GROUP_HEADS);

    if (!add_queries(s, &m, n->in[0]) || !add_keys(s, &m, n->in[1]) || !add_values(s, &m, n->in[2]))
        return;
    uint16_t place =
        MAX(m.member[HEADS_SLOTS + HEADS_UPDATE], m.member[2 * HEADS_SLOTS + HEADS_UPDATE]);
    if (!can_run_at(s, &m, place))
        return;
    take(&m, REWRITE_ROPE_CACHE);
    take(&m, REWRITE_HEADS_SIBLINGS);
    accept(s, &m, place);
}

static void find_heads(struct search *s)
{
    bool merges = rewrite_on(REWRITE_HEADS_SIBLINGS) && rewrite_on(REWRITE_ROPE_CACHE);

    for (uint16_t i = 0; i < s->run->n && merges; i++)
        if (node_at(s, i)->op == OP_SDPA)
            match_attention(s, i);
    for (uint16_t i = 0; i < s->run->n; i++)
        if (is_free(s, i, OP_ROPE))
            match_rope(s, i);
}

/* ---- sums and their norms ---- */

static void find_add_norm(struct search *s)
{
    for (uint16_t i = 0; i < s->run->n && rewrite_on(REWRITE_ADD_RMSNORM); i++) {
        struct rewrite_match m = empty_match(GROUP_ADD_NORM);
        if (!is_free(s, i, OP_RMS_NORM) || !others_come_from_outside(s, node_at(s, i), 1))
            continue;
        uint16_t add = producer_of(s, node_at(s, i)->in[0]);
        if (!is_free(s, add, OP_ADD) || !is_alike(&node_at(s, add)->out[0], &node_at(s, i)->out[0]))
            continue;
        m.member[ADD_NORM_ADD] = add;
        m.member[ADD_NORM_NORM] = i;
        take(&m, REWRITE_ADD_RMSNORM);
        accept(s, &m, add); /* other readers of the sum may come before the norm */
    }
}

/* ---- */

size_t rewrite_find(struct rewrite_match *found, uint16_t *owner, const struct plan_run *r,
                    const struct be *be)
{
    static void (*const find[GROUP_KIND_COUNT])(struct search *) = {
        [GROUP_QMM] = find_qmm,
        [GROUP_HEADS] = find_heads,
        [GROUP_ADD_NORM] = find_add_norm,
    };
    struct search s = { .run = r, .owner = owner, .found = found };

    for (int kind = 0; kind < GROUP_KIND_COUNT && be->groups; kind++)
        if (find[kind] && be->groups[kind])
            find[kind](&s);
    return s.n_found;
}
