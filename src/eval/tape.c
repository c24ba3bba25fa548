#include "eval/tape.h"

#include <stdatomic.h>

#include "base/gate.h"
#include "eval/stream.h"
#include "graph/op.h"
#include "graph/tracing.h"
#include "plan/plan.h"

/* ---- who owns nodes ---- */

static pthread_mutex_t tape_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows, and marks */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct tape *owners;
static _Atomic int n_owners; /* read without the lock */

/* The tape of that number, NULL if it owns nothing any more; called with the lock held. */
static const struct tape *owner(uint64_t number)
{
    const struct tape *t = owners;

    while (t && t->number != number)
        t = t->next;
    return t;
}

static const struct tape *owner_of(const struct node *n)
{
    return owner(n->mark >> 32);
}

static void own(struct tape *t, uint64_t number)
{
    t->number = (uint32_t)number;
    t->owner = pthread_self();
    t->next = owners;
    owners = t;
    atomic_fetch_add(&n_owners, 1);
}

void tape_release(struct tape *t)
{
    struct tape **link = &owners;

    if (!t->number)
        return;
    pthread_mutex_lock(&tape_lock);
    while (*link != t)
        link = &(*link)->next;
    *link = t->next;
    t->number = 0;
    atomic_fetch_sub(&n_owners, 1);
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&tape_lock);
}

/* Before waiting for an owner, which may itself be waiting for work that the calling thread has
 * encoded and not handed over. Called with the lock held, which is open meanwhile. */
static void hand_over(void)
{
    pthread_mutex_unlock(&tape_lock);
    strm_flush_mine();
    pthread_mutex_lock(&tape_lock);
}

/* Waits for the release of a node's tape; called with the lock held, which is open meanwhile. */
static enum err wait_for_owner(const struct node *n)
{
    uint64_t number = n->mark >> 32;

    if (pthread_equal(owner(number)->owner, pthread_self()))
        return err_set(ERR_RUNTIME, "[eval] The array is being evaluated by the calling thread.");
    hand_over();
    while (owner(number))
        pthread_cond_wait(&released, &tape_lock);
    return ERR_OK;
}

/* An array that is available is nobody's. */
static bool may_be_owned(const struct arr *a)
{
    return atomic_load_explicit(&n_owners, memory_order_acquire) &&
           atomic_load_explicit(&a->status, memory_order_acquire) != ARR_AVAILABLE;
}

bool tape_is_busy(const struct arr *a)
{
    if (!may_be_owned(a))
        return false;
    pthread_mutex_lock(&tape_lock);
    bool is_busy = owner_of(a->node);
    pthread_mutex_unlock(&tape_lock);
    return is_busy;
}

enum err tape_wait(const struct arr *a)
{
    enum err err = ERR_OK;

    if (!may_be_owned(a))
        return ERR_OK;
    pthread_mutex_lock(&tape_lock);
    if (owner_of(a->node))
        err = wait_for_owner(a->node);
    pthread_mutex_unlock(&tape_lock);
    return err;
}

/* Called with the lock held. */
static bool others_own(void)
{
    const struct tape *t = owners;

    while (t && pthread_equal(t->owner, pthread_self()))
        t = t->next;
    return t;
}

void tape_pause(void)
{
    pthread_mutex_lock(&tape_lock);
    if (others_own())
        hand_over();
    while (others_own())
        pthread_cond_wait(&released, &tape_lock);
}

void tape_resume(void)
{
    pthread_mutex_unlock(&tape_lock);
}

/* ---- the walk ---- */

/* What the walk knows about a node; node->mark finds it: walk number << 32 | index. */
struct visit {
    struct node *node;
    struct strm *strm; /* where it will run */
    uint32_t uses;     /* consumer edges not yet passed by the ordering pass */
    bool crosses;
    uint32_t next; /* input to look at next */
    uint32_t from; /* the visit that led here, NO_VISIT for the root */
};
#define NO_VISIT UINT32_MAX

struct walk {
    uint64_t number;
    bool async, waits;
    bool is_tracing, retains; /* the calling thread */
    bool is_traced;           /* some node keeps its graph */
    VEC(struct visit) seen;
    const struct node *taken; /* a node of another tape: the walk comes to nothing */
    struct strm *strm, *here; /* the last stream that was asked for, and the caller's for it */
};

/* A node with the input to look at next; node NULL is the root, whose inputs are the outputs. */
struct cursor {
    struct node *node;
    size_t next;
};

struct root {
    struct arr *const *outs;
    size_t n;
};

static struct arr *cursor_input(const struct cursor *c, const struct root *root)
{
    return c->node ? c->node->in[c->next] : root->outs[c->next];
}

static size_t cursor_end(const struct cursor *c, const struct root *root)
{
    return c->node ? (size_t)c->node->n_in : root->n;
}

static struct visit *visited(const struct walk *w, const struct node *n)
{
    return n->mark >> 32 == w->number ? &w->seen.v[(uint32_t)n->mark] : NULL;
}

static enum err check(const struct walk *w, const struct arr *a)
{
    bool is_tracer = a->tracer && w->is_tracing;

    if (a->node->op == OP_NONE)
        return is_tracer ? err_set(ERR_ARG, "[eval] Attempting to eval an array during function "
                                            "transformations like compile or vmap is not allowed.")
                         : err_set(ERR_RUNTIME, "[eval] Attempting to eval an array without a "
                                                "primitive.");
    if (w->async && is_tracer)
        return err_set(ERR_ARG, "[async_eval] Not allowed inside a graph transformation.");
    return ERR_OK;
}

static enum err add_visit(struct walk *w, struct node *n)
{
    enum err err = ERR_OK;

    if (n->strm != w->strm) {
        w->strm = n->strm;
        TRY(strm_here(&w->here, n->strm));
    }
    for (int i = 0; i < n->n_out; i++) /* the flag may be left of a trace that is over */
        arr_set_tracer(&n->out[i], (n->out[i].tracer && w->is_tracing) || w->retains);
    w->is_traced |= n->out[0].tracer;
    n->mark = w->number << 32 | w->seen.n;
    err = VEC_PUSH(&w->seen, (struct visit){ .node = n, .strm = w->here });
out:
    return err;
}

/* Notes an edge from a consumer on that stream (NULL: the root) to a. *is_new: its node was not
 * seen before. */
static enum err note_edge(struct walk *w, struct arr *a, const struct strm *consumer, bool *is_new)
{
    struct visit *v;
    enum err err = ERR_OK;

    *is_new = false;
    if (may_be_owned(a) && owner_of(a->node)) {
        w->taken = a->node;
        return ERR_RUNTIME;
    }
    if (arr_is_scheduled(a)) {
        w->waits |= consumer && a->node->strm && a->node->strm != consumer &&
                    atomic_load_explicit(&a->status, memory_order_relaxed) != ARR_AVAILABLE;
        return ERR_OK;
    }
    if (!(v = visited(w, a->node))) {
        TRY(check(w, a));
        TRY(add_visit(w, a->node));
        v = &w->seen.v[w->seen.n - 1];
        *is_new = true;
    }
    v->uses++;
    v->crosses |= consumer && consumer != v->strm;
    w->waits |= v->crosses;
out:
    return err;
}

/* Graphs of a program are mostly as large as the one before; beyond MAX_GUESS nodes growing step by
 * step is not noticed. */
#define MAX_GUESS 4096
static _Atomic size_t usual_size;

/* Pass 1: depth first, counting the edges that reach every node. */
static enum err count_edges(struct walk *w, const struct root *root)
{
    uint32_t at = NO_VISIT; /* the visit whose inputs are looked at, or the root's turn */
    size_t next_out = 0;
    bool is_new;
    enum err err;

    TRY(VEC_RESERVE(&w->seen, atomic_load_explicit(&usual_size, memory_order_relaxed)));
    while (at != NO_VISIT || next_out < root->n) {
        struct visit *v = at == NO_VISIT ? NULL : &w->seen.v[at];
        const struct node *n = v ? v->node : NULL;
        if (v && v->next == (uint32_t)n->n_in) {
            at = v->from;
            continue;
        }
        struct arr *a = v ? n->in[v->next++] : root->outs[next_out++];
        TRY(note_edge(w, a, v ? v->strm : NULL, &is_new));
        if (is_new) {
            w->seen.v[w->seen.n - 1].from = at;
            at = (uint32_t)(w->seen.n - 1);
        }
    }
out:
    return err;
}

/* Looks at the cursor's inputs from where it stands; a node whose last consumer is passed joins the
 * tape. Stops early when the frontier of appended, not yet expanded nodes reaches the limit. */
static void expand(struct walk *w, struct tape *t, struct cursor *c, const struct root *root,
                   size_t expanded)
{
    size_t width = (size_t)gate_int(GATE_BFS_MAX_WIDTH);

    while (c->next < cursor_end(c, root)) {
        struct arr *a = cursor_input(c, root);
        c->next++;
        if (arr_is_scheduled(a))
            continue;
        struct visit *v = visited(w, a->node);
        if (--v->uses > 0)
            continue;
        t->crosses[t->n] = v->crosses;
        t->node[t->n++] = a->node;
        if (t->n - expanded >= width)
            return;
    }
}

/* Pass 2: breadth first from the root with a width limit; a node cut short waits on a stack while
 * deeper nodes are expanded. */
static enum err order_nodes(struct walk *w, struct tape *t, const struct root *root)
{
    VEC(struct cursor) cut = { 0 };
    struct cursor c = { NULL, 0 };
    size_t expanded = 0;
    enum err err = ERR_OK;

    for (;;) {
        expand(w, t, &c, root, expanded);
        if (c.next < cursor_end(&c, root))
            TRY(VEC_PUSH(&cut, c));
        if (expanded < t->n)
            c = (struct cursor){ t->node[expanded++], 0 };
        else if (cut.n)
            c = cut.v[--cut.n];
        else
            break;
    }
out:
    VEC_FINI(&cut);
    return err;
}

static void reverse(struct tape *t)
{
    for (size_t i = 0, j = t->n; i + 1 < j; i++) {
        j--;
        struct node *n = t->node[i];
        bool crosses = t->crosses[i];
        t->node[i] = t->node[j];
        t->crosses[i] = t->crosses[j];
        t->node[j] = n;
        t->crosses[j] = crosses;
    }
}

static bool is_by_host(const struct node *n)
{
    return op_table[n->op].flags & OPF_HOST;
}

size_t tape_run(const struct tape *t, size_t first)
{
    const struct node *begin = t->node[first];
    size_t n = 1;

    while (first + n < t->n && n < PLAN_MAX_NODES && t->node[first + n]->strm == begin->strm &&
           is_by_host(t->node[first + n]) == is_by_host(begin))
        n++;
    return n;
}

/* The nodes are the tape's from here on. */
static void take_nodes(struct tape *t, const struct walk *w)
{
    for (size_t i = 0; i < w->seen.n; i++)
        w->seen.v[i].node->strm = w->seen.v[i].strm;
    for (size_t first = 0, n; first < t->n; first += n) {
        n = tape_run(t, first);
        for (size_t i = 0; i < n; i++)
            t->node[first + i]->mark = w->number << 32 | i;
    }
    own(t, w->number);
}

/* Called with the lock held. */
static enum err walk(struct tape *t, struct walk *w, const struct root *root)
{
    static uint32_t walks;
    enum err err;

    /* Never 0, which is the mark of a node that no walk has seen. */
    w->number = walks++ % UINT32_MAX + 1;
    TRY(count_edges(w, root));
    if (!w->seen.n)
        goto out;
    err = ERR_NO_MEMORY;
    t->node = arena_alloc(&t->arena, w->seen.n * sizeof *t->node);
    t->crosses = arena_alloc(&t->arena, w->seen.n * sizeof *t->crosses);
    if (!t->node || !t->crosses)
        goto out;
    t->waits = w->waits;
    t->is_traced = w->is_traced;
    atomic_store_explicit(&usual_size, MIN(w->seen.n, MAX_GUESS), memory_order_relaxed);
    TRY(order_nodes(w, t, root));
    reverse(t);
    take_nodes(t, w);
out:
    VEC_FINI(&w->seen);
    return err;
}

enum err tape_build(struct tape *t, struct arr *const *outs, size_t n, bool async)
{
    struct root root = { outs, n };
    struct walk w;
    enum err err;

    pthread_mutex_lock(&tape_lock);
    do {
        w = (struct walk){ .async = async,
                           .is_tracing = tracing_is_on(),
                           .retains = tracing_retains() };
        err = walk(t, &w, &root);
        if (w.taken)
            err = wait_for_owner(w.taken);
    } while (w.taken && !err);
    pthread_mutex_unlock(&tape_lock);
    return err;
}

void tape_fini(struct tape *t)
{
    tape_release(t);
    arena_fini(&t->arena);
}
