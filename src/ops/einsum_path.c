#include "ops/einsum.h"

/* What is known of the operands that are left while a path is looked for. */
struct search {
    const struct einsum *e;
    uint64_t *set; /* labels of each, owned */
    size_t n;
    size_t n_first; /* of these so many are operands, behind them come products, oldest first */
    double most;    /* elements of the largest array there is without the path */
};

struct pair {
    size_t a, b;
    uint64_t left; /* labels of the product */
    double saved, cost;
};

static double size_of(const struct einsum *e, uint64_t set)
{
    double size = 1;

    for (int i = 0; i < EINSUM_LABELS; i++)
        if (set & einsum_bit(i))
            size *= e->size[i];
    return size;
}

/* Multiplications of n factors, and additions if labels go away. */
static double cost_of(const struct einsum *e, uint64_t all, uint64_t left, size_t n)
{
    double factors = n > 2 ? (double)(n - 1) : 1;

    return size_of(e, all) * (factors + ((all & ~left) != 0));
}

static uint64_t needed_without(const struct search *s, size_t a, size_t b)
{
    uint64_t needed = s->e->out.set;

    for (size_t i = 0; i < s->n; i++)
        if (i != a && i != b)
            needed |= s->set[i];
    return needed;
}

/* Takes the pair instead of *best if it is better: it saves more memory, or as much and is cheaper;
 * never if it is larger or costs more than it may. */
static void judge(const struct search *s, struct pair *best, size_t a, size_t b, double budget)
{
    uint64_t all = s->set[a] | s->set[b];
    struct pair p = { a, b, .left = all & needed_without(s, a, b) };
    double size = size_of(s->e, p.left);

    p.saved = size_of(s->e, s->set[a]) + size_of(s->e, s->set[b]) - size;
    p.cost = cost_of(s->e, all, p.left, 2);
    if (size > s->most || p.cost > budget)
        return;
    if (best->a == best->b || p.saved > best->saved ||
        (p.saved == best->saved && p.cost < best->cost))
        *best = p;
}

/* a == b: there is none. */
static struct pair best_pair(const struct search *s, double budget)
{
    struct pair best = { 0 };

    /* Products without a common label only where there are no others. */
    for (int outer = 0; outer < 2 && best.a == best.b; outer++) {
        for (size_t a = 0; a < s->n_first; a++)
            for (size_t b = a + 1; b < s->n_first; b++)
                if (outer || s->set[a] & s->set[b])
                    judge(s, &best, a, b, budget);
        for (size_t b = MAX(s->n_first, 1); b < s->n; b++)
            for (size_t a = 0; a < b; a++)
                if (outer || s->set[a] & s->set[b])
                    judge(s, &best, a, b, budget);
    }
    return best;
}

static void take_pair(struct search *s, const struct pair *p)
{
    s->n_first -= (size_t)(p->a < s->n_first) + (size_t)(p->b < s->n_first);
    memmove(&s->set[p->b], &s->set[p->b + 1], (s->n - p->b - 1) * sizeof *s->set);
    memmove(&s->set[p->a], &s->set[p->a + 1], (s->n - p->a - 2) * sizeof *s->set);
    s->set[s->n - 2] = p->left;
    s->n--;
}

static void search_steps(struct einsum_path *path, struct search *s)
{
    while (s->n > 1) {
        struct pair p = best_pair(s, path->naive_cost - path->cost);
        uint64_t all = 0;
        if (p.a == p.b) {
            for (size_t i = 0; i < s->n; i++)
                all |= s->set[i];
            path->step[path->n++] = (struct einsum_step){ 0, EINSUM_ALL };
            path->cost += cost_of(s->e, all, s->e->out.set, s->n);
            path->scaling = MAX(path->scaling, __builtin_popcountll(all));
            return;
        }
        all = s->set[p.a] | s->set[p.b];
        path->step[path->n++] = (struct einsum_step){ (int32_t)p.a, (int32_t)p.b };
        path->cost += p.cost;
        path->scaling = MAX(path->scaling, __builtin_popcountll(all));
        take_pair(s, &p);
    }
}

enum err einsum_path_find(struct einsum_path *p, const struct einsum *e)
{
    struct search s = { .e = e, .n = e->n, .n_first = e->n, .most = size_of(e, e->out.set) };
    uint64_t all = 0;

    *p = (struct einsum_path){ .step = mem_alloc_array(e->n, sizeof *p->step) };
    s.set = mem_alloc_array(e->n, sizeof *s.set);
    if (!p->step || !s.set) {
        mem_free(s.set);
        einsum_path_fini(p);
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < e->n; i++) {
        s.set[i] = e->in[i].set;
        s.most = MAX(s.most, size_of(e, s.set[i]));
        all |= s.set[i];
    }
    p->naive_cost = cost_of(e, all, e->out.set, e->n);
    p->naive_scaling = __builtin_popcountll(all);
    if (e->n > 2) {
        search_steps(p, &s);
    } else {
        p->step[p->n++] = (struct einsum_step){ 0, EINSUM_ALL };
        p->cost = p->naive_cost;
        p->scaling = p->naive_scaling;
    }
    mem_free(s.set);
    return ERR_OK;
}
