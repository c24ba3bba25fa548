#include "plan/plan_build.h"

#include "base/hash.h"
#include "graph/op.h"
#include "plan/rewrite.h"

/* A group looks back at most this far for members, and a step may move ahead of at most this many.
 */
#define FUSE_WINDOW 64
#define ORDER_WINDOW 32

struct builder {
    struct plan *plan;
    const struct plan_run *run;
    uint16_t group[PLAN_MAX_NODES];         /* the node in whose step a node is */
    uint16_t uses_in_group[PLAN_MAX_NODES]; /* edges from members of the group being built */
    struct rewrite_match *match;            /* groups of different ops */
    uint16_t match_at[PLAN_MAX_NODES];      /* anchor -> match */
    uint32_t n_inputs, n_outputs;           /* of the programs and groups so far */
    const struct plan_step *program[2 * PLAN_MAX_NODES]; /* distinct ones, by hash */
};

/* ---- fusion: one group per root, members found by one backward scan ---- */

struct chain {
    uint16_t member[ELEM_PROGRAM_MAX_INS]; /* descending; the root first */
    int n, n_out;
    const struct arr *input[ELEM_PROGRAM_MAX_IN]; /* distinct arrays from outside the group */
    struct plan_input source[ELEM_PROGRAM_MAX_IN];
    int n_in;
};

static int find_input(const struct chain *g, const struct arr *a)
{
    for (int i = 0; i < g->n_in; i++)
        if (g->input[i] == a)
            return i;
    return -1;
}

/* Adding a node replaces one input (its output) by its own inputs. False if that is too many. */
static bool add_member(struct builder *b, struct chain *g, uint16_t index)
{
    const struct node *n = b->run->nodes[index];
    const struct plan_node *info = &b->run->info[index];
    struct chain grown = *g;
    bool is_output = g->n == 0 || info->held;
    int own = find_input(&grown, &n->out[0]);

    if (g->n == ELEM_PROGRAM_MAX_INS || (is_output && g->n_out == ELEM_PROGRAM_MAX_OUT))
        return false;
    if (own >= 0) {
        grown.n_in--;
        grown.input[own] = grown.input[grown.n_in];
        grown.source[own] = grown.source[grown.n_in];
    }
    for (int k = 0; k < n->n_in; k++) {
        if (find_input(&grown, n->in[k]) >= 0)
            continue;
        if (grown.n_in == ELEM_PROGRAM_MAX_IN)
            return false;
        grown.input[grown.n_in] = n->in[k];
        grown.source[grown.n_in++] = (struct plan_input){ index, (uint16_t)k };
    }
    grown.member[grown.n++] = index;
    grown.n_out += is_output;
    *g = grown;
    for (int k = 0; k < n->n_in; k++) {
        size_t producer = plan_producer(b->run, n->in[k]);
        if (producer < b->run->n)
            b->uses_in_group[producer]++;
    }
    return true;
}

static void collect_group(struct builder *b, struct chain *g, uint16_t root)
{
    const struct plan_run *r = b->run;
    const struct arr *shape = &r->nodes[root]->out[0];

    size_t oldest = root - MIN(root, FUSE_WINDOW);

    memset(b->uses_in_group + oldest, 0, (root - oldest + 1u) * sizeof b->uses_in_group[0]);
    *g = (struct chain){ 0 };
    add_member(b, g, root);
    b->group[root] = root;
    if (!rewrite_on(REWRITE_FUSE))
        return;
    /* Consumers stand behind their producers on the tape, so going backwards every consumer of a
     * candidate has been decided before the candidate itself. */
    for (int i = (int)root - 1; i >= 0 && i >= (int)root - FUSE_WINDOW; i--) {
        const struct plan_node *info = &r->info[i];
        if (info->fusable && b->group[i] == PLAN_NO_NODE && info->uses > 0 &&
            b->uses_in_group[i] == info->uses && arr_same_shape(&r->nodes[i]->out[0], shape) &&
            add_member(b, g, (uint16_t)i))
            b->group[i] = root;
    }
}

static int value_of(const struct chain *g, const struct builder *b, const struct arr *a)
{
    int input = find_input(g, a);

    if (input >= 0)
        return input;
    for (int m = 0; m < g->n; m++) /* instructions run in tape order: the reverse of member[] */
        if (&b->run->nodes[g->member[m]]->out[0] == a)
            return g->n_in + (g->n - 1 - m);
    return 0;
}

/* The program of a chain; its inputs and outputs are the step's. */
static void make_program(const struct builder *b, struct elem_program *f,
                         const struct plan_step *step, const struct chain *g)
{
    struct plan *p = b->plan;

    f->n_in = (uint8_t)g->n_in;
    for (int i = 0; i < g->n_in; i++) {
        f->in_dtype[i] = g->input[i]->dtype;
        p->inputs[step->first_in + (uint32_t)i] = g->source[i];
    }
    for (int m = g->n - 1; m >= 0; m--) {
        uint16_t index = g->member[m];
        const struct node *n = b->run->nodes[index];
        struct elem_program_ins *ins = &f->ins[f->n_ins++];
        ins->op = n->op;
        ins->dtype = n->out[0].dtype;
        ins->n_args = (uint8_t)n->n_in;
        for (int k = 0; k < n->n_in; k++)
            ins->arg[k] = (uint8_t)value_of(g, b, n->in[k]);
        if (m == 0 || b->run->info[index].held) {
            p->outputs[step->first_out + f->n_out] = index;
            f->out[f->n_out++] = (uint8_t)(g->n_in + f->n_ins - 1);
        }
    }
}

static const struct arr *input_of(const struct builder *b, const struct plan_step *s, uint32_t i)
{
    struct plan_input in = b->plan->inputs[s->first_in + i];

    return b->run->nodes[in.node]->in[in.arg];
}

/* True if the step, which has a program, computes f over shapes like those of another one. */
static bool is_same_program(const struct builder *b, const struct plan_step *s,
                            const struct elem_program *f, const struct plan_step *other)
{
    const struct plan_run *r = b->run;
    bool is_same = elem_program_equal(s->program, f) &&
                   arr_same_shape(&r->nodes[s->node]->out[0], &r->nodes[other->node]->out[0]);

    for (uint32_t i = 0; i < f->n_in && is_same; i++)
        is_same = arr_same_shape(input_of(b, s, i), input_of(b, other, i));
    return is_same;
}

/* Gives the step its program: that of an equal one, if there is any. */
static enum err share_program(struct builder *b, struct plan_step *step,
                              const struct elem_program *f)
{
    const struct arr *out = &b->run->nodes[step->node]->out[0];
    size_t at = hash_mix(elem_program_hash(f), out->size) % ARRAY_LEN(b->program);
    struct elem_program *own;

    while (b->program[at] && !is_same_program(b, b->program[at], f, step))
        at = (at + 1) % ARRAY_LEN(b->program);
    if (b->program[at]) {
        step->program = b->program[at]->program;
        return ERR_OK;
    }
    if (!(own = arena_alloc(&b->plan->arena, sizeof *own)))
        return ERR_NO_MEMORY;
    *own = *f;
    step->program = own;
    b->program[at] = step;
    return ERR_OK;
}

static enum err emit_program(struct builder *b, struct plan_step *step, const struct chain *g)
{
    struct elem_program f = { 0 };

    make_program(b, &f, step, g);
    step->n_in = f.n_in;
    step->n_out = f.n_out;
    step->n_nodes = (uint8_t)g->n;
    return share_program(b, step, &f);
}

/* ---- groups ---- */

static bool is_in_group(const struct builder *b, uint16_t anchor, const struct arr *a)
{
    size_t producer = plan_producer(b->run, a);

    return producer < b->run->n && b->group[producer] == anchor;
}

/* True if input k of the group's node i is an array that none of the inputs so far is. */
static bool is_new_input(const struct builder *b, const struct plan_step *step, uint16_t i, int k)
{
    const struct plan_input *in = &b->plan->inputs[step->first_in];
    const struct arr *a = b->run->nodes[i]->in[k];

    for (int n = 0; n < step->n_in; n++)
        if (b->run->nodes[in[n].node]->in[in[n].arg] == a)
            return false;
    return !is_in_group(b, step->node, a);
}

/* ---- the program behind products ---- */

static uint16_t tail_of(const struct rewrite_match *m, int i)
{
    return i < GROUP_MAX_TAIL ? m->member[PRODUCT_TAIL + i] : PLAN_NO_NODE;
}

/* The number of a product or a side input, or -1. */
static int tail_input(const struct builder *b, const struct plan_step *step,
                      const struct rewrite_match *m, const struct arr *a)
{
    int n = 0;

    for (; n < GROUP_MAX_PRODUCTS && m->member[PRODUCT_FIRST + n] != PLAN_NO_NODE; n++)
        if (&b->run->nodes[m->member[PRODUCT_FIRST + n]]->out[0] == a)
            return n;
    for (uint32_t i = 0; i < step->n_in; i++)
        if (input_of(b, step, i) == a)
            return n + (int)i;
    return -1;
}

static int tail_value(const struct builder *b, const struct plan_step *step,
                      const struct rewrite_match *m, const struct elem_program *f,
                      const struct arr *a)
{
    for (int i = 0; tail_of(m, i) != PLAN_NO_NODE; i++)
        if (&b->run->nodes[tail_of(m, i)]->out[0] == a)
            return f->n_in + i;
    return tail_input(b, step, m, a);
}

/* Numbers the products, then the side inputs, which become the first inputs of the step. */
static void wire_sides(struct builder *b, struct plan_step *step, const struct rewrite_match *m,
                       struct elem_program *f)
{
    while (f->n_in < GROUP_MAX_PRODUCTS && m->member[PRODUCT_FIRST + f->n_in] != PLAN_NO_NODE) {
        f->in_dtype[f->n_in] = b->run->nodes[m->member[PRODUCT_FIRST + f->n_in]]->out[0].dtype;
        f->n_in++;
    }
    for (int i = 0; tail_of(m, i) != PLAN_NO_NODE; i++) {
        const struct node *n = b->run->nodes[tail_of(m, i)];
        for (int k = 0; k < n->n_in; k++) {
            if (is_in_group(b, step->node, n->in[k]) || tail_input(b, step, m, n->in[k]) >= 0)
                continue;
            f->in_dtype[f->n_in++] = n->in[k]->dtype;
            b->plan->inputs[step->first_in + step->n_in++] =
                (struct plan_input){ tail_of(m, i), (uint16_t)k };
        }
    }
}

static enum err make_tail(struct builder *b, struct plan_step *step, struct rewrite_match *m)
{
    struct elem_program *f;

    if (m->kind != GROUP_PRODUCT || tail_of(m, 0) == PLAN_NO_NODE)
        return ERR_OK;
    if (!(f = arena_alloc(&b->plan->arena, sizeof *f)))
        return ERR_NO_MEMORY;
    *f = (struct elem_program){ .n_out = 1 };
    wire_sides(b, step, m, f);
    for (int i = 0; tail_of(m, i) != PLAN_NO_NODE; i++) {
        const struct node *n = b->run->nodes[tail_of(m, i)];
        struct elem_program_ins *ins = &f->ins[f->n_ins++];
        ins->op = n->op;
        ins->dtype = n->out[0].dtype;
        ins->n_args = (uint8_t)n->n_in;
        for (int k = 0; k < n->n_in; k++)
            ins->arg[k] = (uint8_t)tail_value(b, step, m, f, n->in[k]);
    }
    f->out[0] = (uint8_t)(f->n_in + f->n_ins - 1);
    m->program = f;
    return ERR_OK;
}

/* The arrays that enter a group and those that leave it. */
static void wire_group(struct builder *b, struct plan_step *step)
{
    const struct rewrite_match *m = step->group;
    struct plan *p = b->plan;

    for (int slot = 0; slot < GROUP_SLOTS; slot++) {
        uint16_t i = m->member[slot];
        if (i == PLAN_NO_NODE)
            continue;
        for (int k = 0; k < b->run->nodes[i]->n_in; k++)
            if (is_new_input(b, step, i, k))
                p->inputs[step->first_in + step->n_in++] = (struct plan_input){ i, (uint16_t)k };
        if (m->wanted >> slot & 1)
            p->outputs[step->first_out + step->n_out++] = i;
    }
}

/* ---- order: independent steps side by side ---- */

struct order {
    uint16_t step_of[PLAN_MAX_NODES]; /* node -> step (in the order of roots) */
    uint16_t head[PLAN_MAX_NODES];    /* step -> its first node */
    uint16_t next[PLAN_MAX_NODES];    /* node -> next node of the same step, or PLAN_NO_NODE */
    uint16_t epoch[PLAN_MAX_NODES];   /* step -> barrier interval, once placed */
    bool placed[PLAN_MAX_NODES];
};

static bool is_view(const struct builder *b, const struct plan_step *s)
{
    return op_table[b->run->nodes[s->node]->op].flags & OPF_VIEW;
}

static bool is_ordered(const struct builder *b, const struct plan_step *s)
{
    return op_table[b->run->nodes[s->node]->op].flags & OPF_ORDERED;
}

/* Earliest interval in which the step's inputs are ready; false while one is not placed yet. */
static bool ready_epoch(const struct builder *b, const struct order *o, size_t step,
                        uint16_t *epoch)
{
    const struct plan_run *r = b->run;
    uint16_t earliest = 0;

    for (size_t i = o->head[step]; i != PLAN_NO_NODE; i = o->next[i]) {
        const struct node *n = r->nodes[i];
        for (int k = 0; k < n->n_in; k++) {
            size_t from = plan_producer(r, n->in[k]);
            if (from == r->n || o->step_of[from] == step)
                continue;
            uint16_t producer = o->step_of[from];
            if (!o->placed[producer])
                return false;
            uint16_t after = (uint16_t)(o->epoch[producer] + !is_view(b, &b->plan->step[producer]));
            earliest = MAX(earliest, after);
        }
    }
    *epoch = earliest;
    return true;
}

struct sorted {
    struct plan_step *step;
    size_t n;
    size_t first; /* step that is not placed */
};

/* Places what is ready in the interval; false if nothing was. */
static bool place_ready(struct builder *b, struct order *o, struct sorted *out, uint16_t epoch)
{
    const struct plan *p = b->plan;
    bool any = false, waits = false; /* an ordered step does */

    for (size_t s = out->first, seen = 0; s < p->n_step && seen < ORDER_WINDOW; s++) {
        uint16_t ready;
        if (o->placed[s])
            continue;
        seen++;
        bool ordered = is_ordered(b, &p->step[s]);
        if ((ordered && waits) || !ready_epoch(b, o, s, &ready) || ready > epoch) {
            waits |= ordered;
            continue;
        }
        o->placed[s] = any = true;
        o->epoch[s] = is_view(b, &p->step[s]) ? ready : epoch;
        out->step[out->n++] = p->step[s];
    }
    while (out->first < p->n_step && o->placed[out->first])
        out->first++;
    return any;
}

static enum err order_steps(struct builder *b, struct order *o)
{
    struct plan *p = b->plan;
    struct sorted sorted = { .step = arena_alloc(&p->arena, p->n_step * sizeof *sorted.step) };

    if (!sorted.step)
        return ERR_NO_MEMORY;
    for (uint16_t epoch = 0; sorted.n < p->n_step; epoch++)
        while (place_ready(b, o, &sorted, epoch))
            ;
    p->step = sorted.step;
    return ERR_OK;
}

/* Lists the nodes of every step. */
static void link_members(const struct builder *b, struct order *o)
{
    uint16_t step_of_root[PLAN_MAX_NODES];

    for (size_t s = 0; s < b->plan->n_step; s++) {
        step_of_root[b->plan->step[s].node] = (uint16_t)s;
        o->head[s] = PLAN_NO_NODE;
    }
    for (size_t i = 0; i < b->run->n; i++) {
        uint16_t s = step_of_root[b->group[i]];
        o->step_of[i] = s;
        o->next[i] = o->head[s];
        o->head[s] = (uint16_t)i;
    }
}

/* ---- */

/* Groups of different ops come first: they save more than a longer program does. */
static enum err find_groups(struct builder *b, const struct be *be)
{
    b->match = arena_alloc(&b->plan->arena, b->run->n * sizeof *b->match);
    if (!b->match)
        return ERR_NO_MEMORY;
    size_t n = rewrite_find(b->match, b->group, b->run, be);
    for (size_t m = 0; m < n; m++)
        b->match_at[b->match[m].anchor] = (uint16_t)m;
    return ERR_OK;
}

/* The step in the place of node i: a group that it anchors, a program that ends with it, or the
 * node alone. */
static enum err make_step(struct builder *b, struct plan_step *step, uint16_t i)
{
    struct chain g;
    enum err err = ERR_OK;

    *step = (struct plan_step){
        .node = i, .n_nodes = 1, .first_in = b->n_inputs, .first_out = b->n_outputs
    };
    if (b->group[i] == i) {
        step->group = &b->match[b->match_at[i]];
        TRY(make_tail(b, step, &b->match[b->match_at[i]]));
        wire_group(b, step);
    } else {
        b->group[i] = i;
        if (!b->run->info[i].fusable)
            return ERR_OK;
        collect_group(b, &g, i);
        TRY(emit_program(b, step, &g));
    }
    b->n_inputs += step->n_in;
    b->n_outputs += step->n_out;
out:
    return err;
}

static enum err make_steps(struct builder *b, struct order *o)
{
    struct plan *p = b->plan;
    const struct plan_run *r = b->run;
    enum err err = ERR_OK;

    /* Roots are found from the back, steps are wanted from the front: fill from the end. */
    size_t at = r->n;
    for (int i = (int)r->n - 1; i >= 0; i--)
        if (b->group[i] == PLAN_NO_NODE || b->group[i] == i)
            TRY(make_step(b, &p->step[--at], (uint16_t)i));
    p->step += at;
    p->n_step = r->n - at;
    link_members(b, o);
out:
    return err;
}

static void note_steps(struct builder *b)
{
    struct plan *p = b->plan;
    uint16_t step_of_root[PLAN_MAX_NODES];

    for (size_t s = 0; s < p->n_step; s++)
        step_of_root[p->step[s].node] = (uint16_t)s;
    for (size_t i = 0; i < b->run->n; i++)
        p->step_of[i] = step_of_root[b->group[i]];
}

static size_t count_inputs(const struct plan_run *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += (size_t)r->nodes[i]->n_in;
    return n;
}

enum err plan_build(struct plan *p, const struct plan_run *r, const struct be *be)
{
    struct builder b = { .plan = p, .run = r };
    struct order o = { .placed = { false } };
    enum err err = ERR_NO_MEMORY;

    p->step = arena_alloc(&p->arena, r->n * sizeof *p->step);
    p->inputs = arena_alloc(&p->arena, count_inputs(r) * sizeof *p->inputs);
    p->outputs = arena_alloc(&p->arena, r->n * sizeof *p->outputs);
    p->step_of = arena_alloc(&p->arena, r->n * sizeof *p->step_of);
    if (!p->step || !p->inputs || !p->outputs || !p->step_of)
        goto out;
    for (size_t i = 0; i < r->n; i++)
        b.group[i] = PLAN_NO_NODE;
    TRY(find_groups(&b, be));
    TRY(make_steps(&b, &o));
    if (rewrite_on(REWRITE_REORDER))
        TRY(order_steps(&b, &o));
    note_steps(&b);
out:
    return err;
}
