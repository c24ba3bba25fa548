/* Groups of products of one input and of what follows on them: GROUP_PRODUCT. */
#include "plan/rewrite_find.h"

#include <string.h>

static bool is_product(const struct rw_search *s, uint16_t i)
{
    return i != PLAN_NO_NODE && s->owner[i] == PLAN_NO_NODE &&
           plan_is_product((enum op_id)rw_node(s, i)->op);
}

static bool is_quantized(const struct rw_search *s, uint16_t i)
{
    return rw_node(s, i)->op == OP_QUANTIZED_MATMUL;
}

/* Inputs behind the matrices: the numbers of those that a gather takes. */
static int n_numbers(const struct node *n)
{
    return n->op == OP_GATHER_QMM || n->op == OP_GATHER_MM ? 2 : 0;
}

static bool are_siblings(const struct node *a, const struct node *b)
{
    bool same = a->op == b->op && a->in[0] == b->in[0] && a->n_in == b->n_in &&
                a->out[0].dtype == b->out[0].dtype && node_same_params(a, b);

    for (int k = a->n_in - n_numbers(a); same && k < a->n_in; k++)
        same = a->in[k] == b->in[k];
    return same && a->op != OP_ADDMM; /* whose last input is no matrix of weights */
}

/* The product's place does not depend on others of the run. */
static bool can_move(const struct rw_search *s, uint16_t i)
{
    return rw_others_from_outside(s, rw_node(s, i), 1);
}

/* Products of the same input as the one in the first slot; `moves`: all run in its place. Returns
 * how many there are now. */
static int add_siblings(const struct rw_search *s, struct rewrite_match *m, int most, bool moves)
{
    uint16_t first = m->member[PRODUCT_FIRST];
    size_t end = MIN(s->run->n, (size_t)first + RW_WINDOW);
    int n = 1;

    for (size_t j = (size_t)first + 1; j < end && n < most; j++)
        if (is_product(s, (uint16_t)j) && are_siblings(rw_node(s, first), s->run->nodes[j]) &&
            (!moves || can_move(s, (uint16_t)j)))
            m->member[PRODUCT_FIRST + n++] = (uint16_t)j;
    return n;
}

/* The norm before the products, if nobody else reads it. */
static void add_norm(const struct rw_search *s, struct rewrite_match *m, int n_products)
{
    uint16_t norm = rw_producer(s, rw_node(s, m->member[PRODUCT_FIRST])->in[0]);

    if (!rewrite_on(REWRITE_QMM_NORM) || !is_quantized(s, m->member[PRODUCT_FIRST]) ||
        !(rw_is_free(s, norm, OP_RMS_NORM) || rw_is_free(s, norm, OP_LAYER_NORM)) ||
        !rw_is_private(s, norm, n_products) || !rw_others_from_outside(s, rw_node(s, norm), 1))
        return;
    m->member[PRODUCT_NORM] = norm;
    rw_take(m, REWRITE_QMM_NORM);
}

/* ---- what follows ---- */

/* Nodes in tape order; member says which of them belong to the program. */
struct tail {
    const struct rw_search *s;
    const uint16_t *product;
    int n_products, n;
    uint16_t node[GROUP_MAX_TAIL];
    bool member[GROUP_MAX_TAIL];
};

static int number_in(const struct tail *t, const struct arr *a)
{
    for (int i = 0; i < t->n; i++)
        if (&rw_node(t->s, t->node[i])->out[0] == a)
            return i;
    return -1;
}

static bool is_of_product(const struct tail *t, const struct arr *a)
{
    for (int i = 0; i < t->n_products; i++)
        if (&rw_node(t->s, t->product[i])->out[0] == a)
            return true;
    return false;
}

static bool can_follow(const struct tail *t, uint16_t j)
{
    const struct node *n = rw_node(t->s, j);
    bool reads = false;

    if (!t->s->run->info[j].fusable || t->s->owner[j] != PLAN_NO_NODE ||
        !arr_same_shape(&n->out[0], &rw_node(t->s, t->product[0])->out[0]))
        return false;
    for (int k = 0; k < n->n_in; k++)
        reads |= is_of_product(t, n->in[k]) || number_in(t, n->in[k]) >= 0;
    return reads;
}

/* Elementwise nodes that need a product, directly or not. */
static void collect(struct tail *t)
{
    uint16_t last = t->product[t->n_products - 1];
    size_t end = MIN(t->s->run->n, (size_t)last + RW_WINDOW);

    for (size_t j = (size_t)t->product[0] + 1; j < end && t->n < GROUP_MAX_TAIL; j++)
        if (can_follow(t, (uint16_t)j))
            t->node[t->n++] = (uint16_t)j;
}

/* Edges from members to an array. */
static int uses_of(const struct tail *t, const struct arr *a)
{
    int uses = 0;

    for (int i = 0; i < t->n; i++)
        for (int k = 0; t->member[i] && k < rw_node(t->s, t->node[i])->n_in; k++)
            uses += rw_node(t->s, t->node[i])->in[k] == a;
    return uses;
}

static bool is_inner(const struct tail *t, uint16_t i)
{
    return rw_is_private(t->s, i, uses_of(t, &rw_node(t->s, i)->out[0]));
}

/* Members are `last` and what it needs. */
static void choose_members(struct tail *t, int last)
{
    memset(t->member, 0, sizeof t->member);
    t->member[last] = true;
    for (int i = last; i >= 0; i--) {
        const struct node *n = rw_node(t->s, t->node[i]);
        for (int k = 0; t->member[i] && k < n->n_in; k++)
            if (number_in(t, n->in[k]) >= 0)
                t->member[number_in(t, n->in[k])] = true;
    }
}

/* Side inputs so far, each counted once. */
struct sides {
    const struct arr *a[GROUP_MAX_SIDES];
    int n;
};

static bool add_side(struct sides *sides, const struct arr *a)
{
    for (int i = 0; i < sides->n; i++)
        if (sides->a[i] == a)
            return true;
    if (sides->n == GROUP_MAX_SIDES)
        return false;
    sides->a[sides->n++] = a;
    return true;
}

static bool sides_have_room(const struct tail *t)
{
    struct sides sides = { .n = 0 };

    for (int i = 0; i < t->n; i++) {
        const struct node *n = rw_node(t->s, t->node[i]);
        for (int k = 0; t->member[i] && k < n->n_in; k++)
            if (!is_of_product(t, n->in[k]) && number_in(t, n->in[k]) < 0 &&
                !add_side(&sides, n->in[k]))
                return false;
    }
    return true;
}

/* Nobody but members reads products and members, the last one aside. */
static bool ends_with(struct tail *t, int last)
{
    const struct arr *out = &rw_node(t->s, t->node[last])->out[0];
    bool ends = out->dtype == rw_node(t->s, t->product[0])->out[0].dtype;

    choose_members(t, last);
    for (int i = 0; i < t->n_products && ends; i++)
        ends = is_inner(t, t->product[i]);
    for (int i = 0; i < last && ends; i++)
        ends = !t->member[i] || is_inner(t, t->node[i]);
    return ends && sides_have_room(t);
}

/* The longest program that can follow on the n products of the group. */
static bool add_tail(const struct rw_search *s, struct rewrite_match *m, int n)
{
    struct tail t = { .s = s, .product = m->member + PRODUCT_FIRST, .n_products = n };
    int last, at = PRODUCT_TAIL;

    collect(&t);
    for (last = t.n - 1; last >= 0 && !ends_with(&t, last); last--)
        ;
    for (int i = 0; i <= last; i++)
        if (t.member[i])
            m->member[at++] = t.node[i];
    m->anchor = last < 0 ? PLAN_NO_NODE : t.node[last];
    return last >= 0;
}

static bool match_pair(struct rw_search *s, uint16_t first)
{
    struct rewrite_match m = rw_empty(GROUP_PRODUCT);

    m.member[PRODUCT_FIRST] = first;
    if (!rewrite_on(REWRITE_PAIR_EPILOGUE) || add_siblings(s, &m, 2, false) != 2 ||
        !rw_is_alike(&rw_node(s, first)->out[0],
                     &rw_node(s, m.member[PRODUCT_FIRST + 1])->out[0]) ||
        !add_tail(s, &m, 2))
        return false;
    rw_take(&m, REWRITE_PAIR_EPILOGUE);
    add_norm(s, &m, 2);
    rw_accept(s, &m, m.anchor);
    return true;
}

static void match_one(struct rw_search *s, uint16_t first)
{
    struct rewrite_match m = rw_empty(GROUP_PRODUCT);

    m.member[PRODUCT_FIRST] = first;
    if (rewrite_on(REWRITE_EPILOGUE) && add_tail(s, &m, 1))
        rw_take(&m, REWRITE_EPILOGUE);
    else
        m.anchor = first;
    add_norm(s, &m, 1);
    if (m.rewrites)
        rw_accept(s, &m, m.anchor);
}

static bool match_siblings(struct rw_search *s, uint16_t first)
{
    struct rewrite_match m = rw_empty(GROUP_PRODUCT);
    int n = 0;

    m.member[PRODUCT_FIRST] = first;
    if (rewrite_on(REWRITE_QMM_SIBLINGS) && is_quantized(s, first) && can_move(s, first))
        n = add_siblings(s, &m, GROUP_MAX_PRODUCTS, true);
    if (n < 2)
        return false;
    rw_take(&m, REWRITE_QMM_SIBLINGS);
    add_norm(s, &m, n);
    rw_accept(s, &m, first);
    return true;
}

void rw_find_products(struct rw_search *s)
{
    for (uint16_t i = 0; i < s->run->n; i++)
        if (is_product(s, i) && !match_pair(s, i) && !match_siblings(s, i))
            match_one(s, i);
}
