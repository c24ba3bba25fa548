/* Groups of quantized products of one input: GROUP_QMM. */
#include "plan/rewrite_find.h"

#include <string.h>

static bool is_product(const struct rw_search *s, uint16_t i)
{
    return rw_is_free(s, i, OP_QUANTIZED_MATMUL) && rw_others_from_outside(s, rw_node(s, i), 1);
}

static bool are_siblings(const struct node *a, const struct node *b)
{
    return a->in[0] == b->in[0] && a->n_in == b->n_in && a->out[0].dtype == b->out[0].dtype &&
           node_same_params(a, b);
}

/* Products of the same input as the one in the first slot. Returns how many there are now. */
static int add_siblings(const struct rw_search *s, struct rewrite_match *m, int most)
{
    uint16_t first = m->member[QMM_PRODUCT];
    size_t end = MIN(s->run->n, (size_t)first + RW_WINDOW);
    int n = 1;

    for (size_t j = (size_t)first + 1; j < end && n < most; j++)
        if (is_product(s, (uint16_t)j) && are_siblings(rw_node(s, first), s->run->nodes[j]))
            m->member[QMM_PRODUCT + n++] = (uint16_t)j;
    return n;
}

/* The norm before the products, if nobody else reads it. */
static void add_norm(const struct rw_search *s, struct rewrite_match *m, int n_products)
{
    uint16_t norm = rw_producer(s, rw_node(s, m->member[QMM_PRODUCT])->in[0]);

    if (!rewrite_on(REWRITE_QMM_NORM) || !rw_is_free(s, norm, OP_RMS_NORM) ||
        !rw_is_private(s, norm, n_products) || !rw_others_from_outside(s, rw_node(s, norm), 1))
        return;
    m->member[QMM_NORM] = norm;
    rw_take(m, REWRITE_QMM_NORM);
}

/* last = (gate * sigmoid(gate)) * up, for either order of the products. */
static bool add_silu_mul(const struct rw_search *s, struct rewrite_match *m)
{
    for (int swap = 0; swap < 2; swap++) {
        uint16_t gate = m->member[QMM_PRODUCT + swap], up = m->member[QMM_PRODUCT + !swap];
        if (!rw_is_private(s, gate, 2) || !rw_is_private(s, up, 1))
            continue;
        uint16_t sigmoid = rw_next_reader(s, gate, gate);
        uint16_t gated = rw_is_free(s, sigmoid, OP_SIGMOID)
                             ? rw_only_reader(s, sigmoid, OP_MULTIPLY)
                             : PLAN_NO_NODE;
        if (gated == PLAN_NO_NODE || !rw_reads(rw_node(s, gated), &rw_node(s, gate)->out[0]))
            continue;
        uint16_t last = rw_only_reader(s, gated, OP_MULTIPLY);
        if (last == PLAN_NO_NODE || !rw_reads(rw_node(s, last), &rw_node(s, up)->out[0]) ||
            !rw_is_alike(&rw_node(s, last)->out[0], &rw_node(s, up)->out[0]))
            continue;
        m->member[QMM_PRODUCT] = gate;
        m->member[QMM_PRODUCT + 1] = up;
        m->member[QMM_SIGMOID] = sigmoid;
        m->member[QMM_GATED] = gated;
        m->member[QMM_LAST] = last;
        rw_take(m, REWRITE_QMM_SILU_MUL);
        return true;
    }
    return false;
}

static bool match_silu_mul(struct rw_search *s, uint16_t first)
{
    struct rewrite_match m = rw_empty(GROUP_QMM);

    m.member[QMM_PRODUCT] = first;
    if (!rewrite_on(REWRITE_QMM_SILU_MUL) || add_siblings(s, &m, 2) != 2 || !add_silu_mul(s, &m))
        return false;
    add_norm(s, &m, 2);
    rw_accept(s, &m, m.member[QMM_LAST]);
    return true;
}

/* One product whose only reader adds something of the same shape to it. */
static bool add_residual(const struct rw_search *s, struct rewrite_match *m)
{
    uint16_t product = m->member[QMM_PRODUCT];
    uint16_t add = rw_only_reader(s, product, OP_ADD);

    if (!rewrite_on(REWRITE_QMM_RESIDUAL) || add == PLAN_NO_NODE)
        return false;
    const struct node *n = rw_node(s, add);
    if (!rw_is_alike(n->in[0], n->in[1]) || !rw_is_alike(n->in[0], &n->out[0]))
        return false;
    m->member[QMM_LAST] = add;
    rw_take(m, REWRITE_QMM_RESIDUAL);
    return true;
}

static void match_products(struct rw_search *s, uint16_t first)
{
    struct rewrite_match m = rw_empty(GROUP_QMM);
    int n = 1;

    m.member[QMM_PRODUCT] = first;
    if (rewrite_on(REWRITE_QMM_SIBLINGS))
        n = add_siblings(s, &m, GROUP_MAX_PRODUCTS);
    if (n > 1)
        rw_take(&m, REWRITE_QMM_SIBLINGS);
    bool has_residual = n == 1 && add_residual(s, &m);
    add_norm(s, &m, n);
    /* A product's other inputs come from outside, so siblings can all run in the first one's place;
     * a residual may be made later than the product. */
    if (m.rewrites)
        rw_accept(s, &m, has_residual ? m.member[QMM_LAST] : first);
}

void rw_find_qmm(struct rw_search *s)
{
    for (uint16_t i = 0; i < s->run->n; i++)
        if (is_product(s, i) && !match_silu_mul(s, i))
            match_products(s, i);
}
