#include "eval/program.h"

#include <stdatomic.h>

#include "eval/tape.h"
#include "graph/op.h"
#include "graph/op_params.h"

/* Where a copy finds an array that a node reads, or a result. */
struct source {
    enum { FROM_CALLER, FROM_NODE, CONSTANT } kind;
    uint32_t index; /* of the placeholder, or of the output among all outputs */
};

struct program {
    struct tape tape; /* the nodes, in order */
    struct arr **in;  /* owned */
    size_t n_in;
    struct arr **out; /* owned: keeps the graph */
    size_t n_out;
    struct source *source;     /* of every input of every node, in order, then of every result */
    size_t n_made;             /* outputs of all nodes */
    struct program_move *move; /* their arrays are the graph's */
    size_t n_moves;
};

enum err program_placeholder(struct arr **out, const struct arr *like)
{
    struct shp shape;

    arr_shape(&shape, like);
    enum err err = arr_new_empty(out, &shape, (enum dtype)like->dtype);
    if (!err)
        atomic_store(&(*out)->status, ARR_AVAILABLE); /* for the walk that orders the graph */
    return err;
}

/* ---- making ---- */

/* Read by every call as it is, so that the host fills it once. */
static bool is_by_host(const struct node *n)
{
    return op_table[n->op].flags & OPF_HOST;
}

static void drop_those_by_host(struct tape *t)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++)
        if (!is_by_host(t->node[i]))
            t->node[n++] = t->node[i];
    t->n = n;
}

/* While a program is made its nodes are marked with the number of their first output. */
static struct source source_of(const struct program *p, const struct arr *a)
{
    for (uint32_t i = 0; i < p->n_in; i++)
        if (p->in[i] == a)
            return (struct source){ FROM_CALLER, i };
    if (arr_is_scheduled(a) || is_by_host(a->node))
        return (struct source){ .kind = CONSTANT };
    return (struct source){ FROM_NODE, (uint32_t)a->node->mark + (uint32_t)(a - a->node->out) };
}

/* What is evaluated has bytes, a placeholder has none. */
static enum err check_constant(const struct program *p, const struct arr *a)
{
    bool is_input = false;

    for (size_t i = 0; i < p->n_in; i++)
        is_input |= p->in[i] == a;
    if (is_input || !arr_is_scheduled(a) || a->buf || !a->size)
        return ERR_OK;
    return err_set(ERR_ARG, "[program] the graph has a placeholder that is no input");
}

static enum err find_sources(struct program *p)
{
    size_t n_edges = 0, at = 0;

    for (size_t i = 0; i < p->tape.n; i++) {
        struct node *n = p->tape.node[i];
        n->mark = p->n_made;
        p->n_made += (size_t)n->n_out;
        n_edges += (size_t)n->n_in;
    }
    if (!(p->source = mem_alloc_array(n_edges + p->n_out, sizeof *p->source)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < p->tape.n; i++)
        for (int k = 0; k < p->tape.node[i]->n_in; k++)
            p->source[at++] = source_of(p, p->tape.node[i]->in[k]);
    for (size_t i = 0; i < p->n_out; i++)
        p->source[at++] = source_of(p, p->out[i]);
    for (size_t i = 0; i < p->tape.n; i++)
        p->tape.node[i]->mark = 0;
    return ERR_OK;
}

static bool grows(const struct program *p, const struct arr *a)
{
    for (size_t i = 0; i < p->n_moves; i++)
        if (p->move[i].a == a && a->node->op == OP_SLICE)
            return true;
    return false;
}

static enum err check_moves(const struct program *p)
{
    for (size_t i = 0; i < p->n_moves; i++) {
        const struct node *n = p->move[i].a->node;
        if (n->op != OP_ROPE && n->op != OP_SLICE && n->op != OP_SLICE_UPDATE)
            return err_set(ERR_ARG, "[program] %s has no position", op_name((enum op_id)n->op));
        for (size_t k = 0; k < i; k++)
            if (p->move[k].a == p->move[i].a)
                return err_set(ERR_ARG, "[program] a node that moves twice");
    }
    for (size_t i = 0; i < p->tape.n && p->n_moves; i++) {
        const struct node *n = p->tape.node[i];
        for (int k = 0; k < n->n_in && n->op != OP_SDPA; k++)
            if (grows(p, n->in[k]))
                return err_set(ERR_UNSUPPORTED, "[program] %s reads what grows",
                               op_name((enum op_id)n->op));
    }
    return ERR_OK;
}

static enum err check_inputs(const struct program *p)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < p->tape.n; i++)
        for (int k = 0; k < p->tape.node[i]->n_in; k++)
            TRY(check_constant(p, p->tape.node[i]->in[k]));
out:
    return err;
}

static enum err copy_list(struct arr ***to, size_t *n, struct arr *const *from, size_t n_from)
{
    if (!(*to = mem_alloc_array(n_from, sizeof **to)))
        return ERR_NO_MEMORY;
    for (; *n < n_from; (*n)++)
        (*to)[*n] = arr_ref(from[*n]);
    return ERR_OK;
}

enum err program_new(struct program **out, const struct program_params *q)
{
    struct program *p = mem_alloc(sizeof *p);
    enum err err = ERR_NO_MEMORY;

    if (!p || !(p->move = mem_alloc_array(q->n_moves, sizeof *p->move)))
        goto out;
    for (; p->n_moves < q->n_moves; p->n_moves++)
        p->move[p->n_moves] = q->move[p->n_moves];
    TRY(copy_list(&p->in, &p->n_in, q->in, q->n_in));
    TRY(copy_list(&p->out, &p->n_out, q->out, q->n_out));
    TRY(tape_build(&p->tape, p->out, p->n_out, true));
    drop_those_by_host(&p->tape);
    TRY(check_inputs(p));
    TRY(check_moves(p));
    TRY(find_sources(p));
    tape_release(&p->tape); /* nobody else knows its nodes */
    *out = p;
    p = NULL;
out:
    program_destroy(&p);
    return err;
}

void program_destroy(struct program **pp)
{
    struct program *p = *pp;

    *pp = NULL;
    if (!p)
        return;
    for (size_t i = 0; i < p->n_in; i++)
        arr_unref(&p->in[i]);
    for (size_t i = 0; i < p->n_out; i++)
        arr_unref(&p->out[i]);
    tape_fini(&p->tape);
    mem_free(p->in);
    mem_free(p->out);
    mem_free(p->source);
    mem_free(p->move);
    mem_free(p);
}

size_t program_n_out(const struct program *p)
{
    return p->n_out;
}

/* ---- calling ---- */

static void advance(const struct program_move *m, int32_t by)
{
    struct node *n = m->a->node;
    struct slice_params *region = n->params;

    switch (n->op) {
    case OP_ROPE:
        ((struct rope_params *)n->params)->offset += by;
        break;
    case OP_SLICE_UPDATE:
        region = &((struct slice_update_params *)n->params)->region;
        region->d[m->axis].start += by;
        region->d[m->axis].stop += by;
        break;
    default: /* OP_SLICE */
        region->d[m->axis].stop += by;
        m->a->shape[m->axis] += by;
        node_reset(n);
        break;
    }
}

void program_advance(struct program *p, int32_t by)
{
    for (size_t i = 0; i < p->n_moves && by; i++)
        advance(&p->move[i], by);
}

static bool is_alike(const struct arr *a, const struct arr *b)
{
    return a->dtype == b->dtype && arr_same_shape(a, b);
}

static struct arr *find(const struct source *s, struct arr *constant, struct arr *const *in,
                        struct arr *const *made)
{
    return s->kind == FROM_NODE ? made[s->index] : s->kind == FROM_CALLER ? in[s->index] : constant;
}

static enum err copy_nodes(struct arr **made, const struct source **at, const struct program *p,
                           struct arr *const *in)
{
    struct arr *small[16], **inputs = small, **next = made;
    enum err err = ERR_OK;

    for (size_t i = 0; i < p->tape.n; i++) {
        const struct node *n = p->tape.node[i];
        if (n->n_in > (int)ARRAY_LEN(small) &&
            !(inputs = mem_alloc_array((size_t)n->n_in, sizeof *inputs)))
            return ERR_NO_MEMORY;
        for (int k = 0; k < n->n_in; k++)
            inputs[k] = find((*at)++, n->in[k], in, made);
        err = node_copy(next, n, inputs);
        next += n->n_out;
        if (inputs != small)
            mem_free(inputs);
        inputs = small;
        if (err)
            return err;
    }
    return ERR_OK;
}

enum err program_call(const struct program *p, struct arr **in, struct arr **out)
{
    struct arr **made = mem_alloc_array(p->n_made, sizeof *made);
    const struct source *at = p->source;
    enum err err = ERR_NO_MEMORY;

    if (!made)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < p->n_in; i++)
        if (!is_alike(in[i], p->in[i])) {
            err = err_set(ERR_ARG, "[program] input %zu is not what the graph was built on", i);
            goto out;
        }
    TRY(copy_nodes(made, &at, p, in));
    for (size_t i = 0; i < p->n_out; i++)
        out[i] = arr_ref(find(at++, p->out[i], in, made));
    for (size_t i = 0; i < p->n_in; i++)
        arr_unref(&in[i]);
out:
    for (size_t i = p->n_made; i-- > 0;)
        arr_unref(&made[i]);
    mem_free(made);
    return err;
}
