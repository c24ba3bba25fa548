#include "plan/rewrite_find.h"

#include <assert.h>
#include <inttypes.h>

#include "backend/backend.h"
#include "base/counter.h"
#include "base/gate.h"

/* ---- rows ---- */

static const struct {
    enum gate gate;
    const char *name;
} rows[REWRITE_COUNT] = {
#define REWRITE(id, variable, text) [REWRITE_##id] = { GATE_PLAN_##id, variable },
#include "plan/rewrite.def"
#undef REWRITE
};

static const char *const reasons[GROUP_REASON_COUNT] = {
    [GROUP_TAKEN] = "taken", [GROUP_DTYPE] = "dtype",   [GROUP_LAYOUT] = "layout",
    [GROUP_SIZE] = "size",   [GROUP_PARAMS] = "params", [GROUP_OFF] = "off",
};

#define N_COUNTS (REWRITE_COUNT * GROUP_REASON_COUNT)
static_assert(COUNTER_REWRITE + N_COUNTS <= COUNTER_BACKEND, "counters have room");

static unsigned count_of(int rewrite, int why)
{
    return COUNTER_REWRITE + (unsigned)(rewrite * GROUP_REASON_COUNT + why);
}

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
            counter_add_step(count_of(i, (int)why), 1);
}

uint64_t rewrite_hits(enum rewrite id)
{
    return counter_get(count_of((int)id, GROUP_TAKEN));
}

uint64_t rewrite_rejects(enum rewrite id, enum group_reason why)
{
    return counter_get(count_of((int)id, (int)why));
}

void rewrite_reset(void)
{
    counter_reset(COUNTER_REWRITE, N_COUNTS);
}

void rewrite_print(FILE *out)
{
    for (int i = 0; i < REWRITE_COUNT; i++)
        for (int k = 0; k < GROUP_REASON_COUNT; k++)
            if (counter_get(count_of(i, k)))
                fprintf(out, "%12" PRIu64 "  rewrite %s: %s\n", counter_get(count_of(i, k)),
                        rows[i].name, reasons[k]);
}

/* ---- looking around in a run ---- */

bool rw_is_free(const struct rw_search *s, uint16_t i, enum op_id op)
{
    return i != PLAN_NO_NODE && rw_node(s, i)->op == op && s->owner[i] == PLAN_NO_NODE;
}

bool rw_is_private(const struct rw_search *s, uint16_t i, int uses)
{
    return !s->run->info[i].held && s->run->info[i].uses == uses;
}

uint16_t rw_producer(const struct rw_search *s, const struct arr *a)
{
    size_t i = plan_producer(s->run, a);

    return i < s->run->n ? (uint16_t)i : PLAN_NO_NODE;
}

bool rw_reads(const struct node *n, const struct arr *a)
{
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] == a)
            return true;
    return false;
}

uint16_t rw_next_reader(const struct rw_search *s, uint16_t i, uint16_t after)
{
    const struct arr *a = &rw_node(s, i)->out[0];
    size_t end = MIN(s->run->n, (size_t)i + RW_WINDOW);

    for (size_t j = (size_t)after + 1; j < end; j++)
        if (rw_reads(s->run->nodes[j], a))
            return (uint16_t)j;
    return PLAN_NO_NODE;
}

uint16_t rw_only_reader(const struct rw_search *s, uint16_t i, enum op_id op)
{
    uint16_t j = rw_is_private(s, i, 1) ? rw_next_reader(s, i, i) : PLAN_NO_NODE;

    return rw_is_free(s, j, op) ? j : PLAN_NO_NODE;
}

bool rw_others_from_outside(const struct rw_search *s, const struct node *n, int first)
{
    for (int k = first; k < n->n_in; k++)
        if (rw_producer(s, n->in[k]) != PLAN_NO_NODE)
            return false;
    return true;
}

bool rw_is_alike(const struct arr *a, const struct arr *b)
{
    return a->dtype == b->dtype && arr_same_shape(a, b);
}

/* ---- accepting a group ---- */

struct rewrite_match rw_empty(enum group_kind kind)
{
    struct rewrite_match m = { .kind = (uint8_t)kind };

    for (int i = 0; i < GROUP_SLOTS; i++)
        m.member[i] = PLAN_NO_NODE;
    return m;
}

void rw_take(struct rewrite_match *m, enum rewrite id)
{
    m->rewrites |= (uint16_t)(1u << id);
}

static int uses_inside(const struct rw_search *s, const struct rewrite_match *m, uint16_t i)
{
    const struct arr *a = &rw_node(s, i)->out[0];
    int n = 0;

    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        if (m->member[slot] == PLAN_NO_NODE)
            continue;
        const struct node *reader = rw_node(s, m->member[slot]);
        for (int k = 0; k < reader->n_in; k++)
            n += reader->in[k] == a;
    }
    return n;
}

void rw_accept(struct rw_search *s, struct rewrite_match *m, uint16_t anchor)
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

static bool is_member(const struct rewrite_match *m, uint16_t i)
{
    for (int slot = 0; slot < GROUP_SLOTS; slot++)
        if (m->member[slot] == i)
            return true;
    return false;
}

/* Where a node outside of the group runs, if it is not moved. */
static uint16_t place_of(const struct rw_search *s, uint16_t i)
{
    return s->owner[i] == PLAN_NO_NODE ? i : s->owner[i];
}

bool rw_can_run_at(const struct rw_search *s, const struct rewrite_match *m, uint16_t place)
{
    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        uint16_t i = m->member[slot];
        if (i == PLAN_NO_NODE)
            continue;
        const struct node *n = rw_node(s, i);
        for (int k = 0; k < n->n_in; k++) {
            uint16_t from = rw_producer(s, n->in[k]);
            if (from != PLAN_NO_NODE && !is_member(m, from) && place_of(s, from) >= place)
                return false;
        }
        if (place >= i + RW_WINDOW)
            return false;
        for (uint16_t j = rw_next_reader(s, i, i); j != PLAN_NO_NODE; j = rw_next_reader(s, i, j))
            if (!is_member(m, j) && place_of(s, j) <= place)
                return false;
    }
    return true;
}

/* ---- sums and their norms ---- */

static void find_add_norm(struct rw_search *s)
{
    for (uint16_t i = 0; i < s->run->n && rewrite_on(REWRITE_ADD_RMSNORM); i++) {
        struct rewrite_match m = rw_empty(GROUP_ADD_NORM);
        if (!rw_is_free(s, i, OP_RMS_NORM) || !rw_others_from_outside(s, rw_node(s, i), 1))
            continue;
        uint16_t add = rw_producer(s, rw_node(s, i)->in[0]);
        if (!rw_is_free(s, add, OP_ADD) ||
            !rw_is_alike(&rw_node(s, add)->out[0], &rw_node(s, i)->out[0]))
            continue;
        m.member[ADD_NORM_ADD] = add;
        m.member[ADD_NORM_NORM] = i;
        rw_take(&m, REWRITE_ADD_RMSNORM);
        rw_accept(s, &m, add); /* other readers of the sum may come before the norm */
    }
}

/* ---- rows of a packed table ---- */

static bool is_inner_shape(const struct rw_search *s, uint16_t i)
{
    return (rw_is_free(s, i, OP_SQUEEZE) || rw_is_free(s, i, OP_RESHAPE)) && rw_is_private(s, i, 1);
}

/* The rows that the unpacking node reads as input k, if nobody else does. */
static bool add_rows(const struct rw_search *s, struct rewrite_match *m, int k)
{
    uint16_t at = rw_producer(s, rw_node(s, m->member[EMBED_UNPACK])->in[k]);
    uint16_t view = PLAN_NO_NODE;

    if (is_inner_shape(s, at)) {
        view = at;
        at = rw_producer(s, rw_node(s, at)->in[0]);
    }
    if (!rw_is_free(s, at, OP_GATHER) || !rw_is_private(s, at, 1) || rw_node(s, at)->n_in != 2)
        return false;
    m->member[EMBED_GATHER + k] = at;
    m->member[EMBED_VIEW + k] = view;
    return rw_node(s, at)->in[1] == rw_node(s, m->member[EMBED_GATHER])->in[1];
}

static void find_embed(struct rw_search *s)
{
    for (uint16_t i = 0; i < s->run->n && rewrite_on(REWRITE_EMBEDDING); i++) {
        struct rewrite_match m = rw_empty(GROUP_EMBED);
        if (!rw_is_free(s, i, OP_QUANTIZE) || rw_node(s, i)->n_out != 1)
            continue;
        m.member[EMBED_UNPACK] = i;
        if (!add_rows(s, &m, 0) || !add_rows(s, &m, 1))
            continue;
        /* Biases; or a number by which all scales are multiplied. */
        if (rw_node(s, i)->n_in > 2 && !add_rows(s, &m, 2))
            m.member[EMBED_GATHER + 2] = m.member[EMBED_VIEW + 2] = PLAN_NO_NODE;
        rw_take(&m, REWRITE_EMBEDDING);
        rw_accept(s, &m, i);
    }
}

/* ---- */

size_t rewrite_find(struct rewrite_match *found, uint16_t *owner, const struct plan_run *r,
                    const struct be *be)
{
    static void (*const find[GROUP_KIND_COUNT])(struct rw_search *) = {
        [GROUP_PRODUCT] = rw_find_products, [GROUP_ATTN] = rw_find_attn,
        [GROUP_HEADS] = rw_find_heads,      [GROUP_ADD_NORM] = find_add_norm,
        [GROUP_EMBED] = find_embed,
    };
    struct rw_search s = { .run = r, .owner = owner, .found = found };

    for (int kind = 0; kind < GROUP_KIND_COUNT && be->groups; kind++)
        if (find[kind] && be->groups[kind])
            find[kind](&s);
    return s.n_found;
}
