/* Value numbering: nodes are taken in order, each after those that it reads, so that two of them
 * compute the same where what they read was found to be the same before. */
#include "transforms/simplify.h"

#include "base/hash.h"
#include "eval/program.h"
#include "eval/tape.h"
#include "graph/op.h"
#include "transforms/walk.h"

/* An array that others may turn out to be: a number, or the first result of a node. */
struct value {
    uint64_t hash;
    struct arr *a; /* NULL: free */
};

struct pass {
    bool merges;
    struct arrs given;
    struct walk walk;
    struct arr **now;    /* by number: what stands for an array of the trace, owned */
    struct value *value; /* a hash table: arrays borrowed from `now` or from the trace */
    size_t cap;          /* a power of two */
};

/* ---- values that are there ---- */

/* The value of that hash for which is_it holds, or a free place. */
static struct value *find(const struct pass *p, uint64_t hash, const void *it,
                          bool (*is_it)(const struct arr *a, const void *it))
{
    for (size_t i = hash;; i++) {
        struct value *v = &p->value[i & (p->cap - 1)];
        if (!v->a || (v->hash == hash && is_it(v->a, it)))
            return v;
    }
}

/* A number that can be read without waiting for anything. */
static bool is_number(const struct arr *a)
{
    return a->ndim == 0 && a->buf && a->buf->host && a->node->op == OP_NONE &&
           atomic_load_explicit(&a->status, memory_order_acquire) == ARR_AVAILABLE;
}

static const void *bytes_of(const struct arr *a)
{
    return (const char *)a->buf->host + a->offset;
}

static bool is_same_number(const struct arr *a, const void *it)
{
    const struct arr *b = it;

    return is_number(a) && a->dtype == b->dtype &&
           memcmp(bytes_of(a), bytes_of(b), dt_size((enum dtype)a->dtype)) == 0;
}

/* The first number equal to a. */
static struct arr *number_of(const struct pass *p, struct arr *a)
{
    uint64_t hash = hash_bytes(HASH_SEED ^ a->dtype, bytes_of(a), dt_size((enum dtype)a->dtype));
    struct value *v = find(p, hash, a, is_same_number);

    if (!v->a)
        *v = (struct value){ hash, a };
    return v->a;
}

/* A node as it would be made: on other inputs than its own. */
struct wanted {
    const struct node *like;
    struct arr *const *in;
};

static bool is_same_node(const struct arr *a, const void *it)
{
    const struct wanted *w = it;
    const struct node *n = a->node;

    return n->op == w->like->op && n->n_in == w->like->n_in && n->n_out == w->like->n_out &&
           n->strm == w->like->strm && node_same_params(n, w->like) &&
           memcmp(n->in, w->in, (size_t)n->n_in * sizeof *n->in) == 0;
}

static struct value *node_of(const struct pass *p, const struct wanted *w, uint64_t *hash)
{
    const struct node *n = w->like;

    *hash = hash_mix(node_params_hash(n), n->op);
    *hash = hash_mix(*hash, (uintptr_t)n->strm);
    *hash = hash_bytes(*hash, w->in, (size_t)n->n_in * sizeof *w->in);
    return find(p, *hash, w, is_same_node);
}

/* ---- the pass ---- */

static enum err check_given(const struct pass *p, const struct arr *a)
{
    for (size_t i = 0; i < p->given.n; i++)
        if (p->given.v[i] == a)
            return err_set(ERR_ARG, "[compile] Attempting to compile a function with uncaptured "
                                    "inputs is not allowed.");
    return ERR_OK;
}

/* Borrowed. */
static enum err find_now(struct arr **out, const struct pass *p, struct arr *a)
{
    size_t at = walk_number(&p->walk, a);
    enum err err;

    TRY(check_given(p, a));
    *out = at != WALK_NONE ? p->now[at] : p->merges && is_number(a) ? number_of(p, a) : a;
out:
    return err;
}

/* Which of its inputs the first result of a node is, -1 if it is none. */
static int handed_over(const struct node *n)
{
    switch (n->op) {
    case OP_COPY:
    case OP_STOP_GRADIENT:
        return 0;
    case OP_CUSTOM_TRANSFORMS:
        return ((const struct alias_params *)n->params)->first;
    default:
        return -1;
    }
}

static void share(struct pass *p, const struct walk_step *s, struct arr *first)
{
    for (int o = 0; o < s->node->n_out; o++)
        p->now[s->first + (size_t)o] = arr_ref(first + o);
}

static enum err step(struct pass *p, const struct walk_step *s, struct arr **in)
{
    const struct node *n = s->node;
    int handed = p->merges ? handed_over(n) : -1;
    bool merges = p->merges && !(op_table[n->op].flags & OPF_ORDERED);
    uint64_t hash;
    enum err err = ERR_OK;

    for (int i = 0; i < n->n_in; i++)
        TRY(find_now(&in[i], p, n->in[i]));
    if (op_table[n->op].flags & OPF_HOST) {
        share(p, s, n->out);
    } else if (handed >= 0) {
        for (int o = 0; o < n->n_out; o++)
            p->now[s->first + (size_t)o] = arr_ref(in[handed + o]);
    } else {
        struct value *v = node_of(p, &(struct wanted){ n, in }, &hash);
        if (v->a && merges) {
            share(p, s, v->a);
            goto out;
        }
        TRY(node_copy(&p->now[s->first], n, in));
        if (merges)
            *v = (struct value){ hash, p->now[s->first] };
    }
out:
    return err;
}

static enum err run_steps(struct pass *p)
{
    struct arr *small[16], **in = small;
    size_t room = ARRAY_LEN(small);
    enum err err = ERR_OK;

    for (size_t i = 0; i < p->walk.step.n; i++) {
        size_t n = (size_t)p->walk.step.v[i].node->n_in;
        if (n > room) {
            if (in != small)
                mem_free(in);
            room = 2 * n;
            in = mem_alloc_array(room, sizeof *in);
        }
        TRY(in ? step(p, &p->walk.step.v[i], in) : ERR_NO_MEMORY);
    }
out:
    if (in != small)
        mem_free(in);
    return err;
}

/* Every edge leads to one value at most. */
static enum err make_table(struct pass *p, size_t n_out)
{
    size_t n = n_out + p->walk.n_arrs;

    for (size_t i = 0; i < p->walk.step.n; i++)
        n += (size_t)p->walk.step.v[i].node->n_in;
    for (p->cap = 16; p->cap < 2 * n;)
        p->cap *= 2;
    p->value = mem_alloc_array(p->cap, sizeof *p->value);
    p->now = mem_alloc_array(p->walk.n_arrs, sizeof *p->now);
    return p->value && p->now ? ERR_OK : ERR_NO_MEMORY;
}

static enum err run(struct traced *out, struct pass *p, const struct traced *t)
{
    struct arr *a;
    enum err err;

    TRY(walk_whole_graph(&p->walk, outs_arrs(&t->out), outs_arrs(&t->in)));
    TRY(make_table(p, t->out.n));
    TRY(outs_init(&out->in, t->in.n));
    for (size_t i = 0; i < t->in.n; i++) {
        TRY(program_placeholder(&out->in.v[i], t->in.v[i]));
        p->now[i] = arr_ref(out->in.v[i]);
    }
    TRY(run_steps(p));
    TRY(outs_init(&out->out, t->out.n));
    for (size_t i = 0; i < t->out.n; i++) {
        TRY(find_now(&a, p, t->out.v[i]));
        out->out.v[i] = arr_ref(a);
    }
out:
    return err;
}

enum err simplify(struct traced *out, const struct simplify_params *q)
{
    struct pass p = { .merges = q->merges, .given = q->given };

    *out = (struct traced){ 0 };
    tape_pause();
    enum err err = run(out, &p, q->trace);
    tape_resume();
    for (size_t i = 0; p.now && i < p.walk.n_arrs; i++)
        arr_unref(&p.now[i]);
    mem_free(p.now);
    mem_free(p.value);
    walk_fini(&p.walk);
    if (err)
        traced_fini(out);
    return err;
}

/* ---- other traces ---- */

static bool is_origin(const struct node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]->tracer)
            return false;
    return n->out[0].tracer;
}

/* A tracer that no node of the graph makes, or a node that made a tracer of something else. */
static bool is_of_others(const struct walk *w, const struct arr *a)
{
    size_t at = walk_number(w, a);

    return a->tracer && at == WALK_NONE;
}

enum err simplify_has_others(bool *out, const struct traced *t)
{
    struct walk w;
    enum err err;

    *out = false;
    if (!tracing_is_on())
        return ERR_OK;
    tape_pause();
    err = walk_whole_graph(&w, outs_arrs(&t->out), outs_arrs(&t->in));
    for (size_t i = 0; i < w.step.n && !err; i++) {
        const struct node *n = w.step.v[i].node;
        *out |= is_origin(n);
        for (int k = 0; k < n->n_in; k++)
            *out |= is_of_others(&w, n->in[k]);
    }
    for (size_t i = 0; i < t->out.n && !err; i++)
        *out |= is_of_others(&w, t->out.v[i]);
    tape_resume();
    walk_fini(&w);
    return err;
}
