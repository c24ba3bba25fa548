/* Graphs as text. */
#include "api/handle.h"

#include <inttypes.h>

#include "base/hash.h"
#include "base/text.h"
#include "eval/tape.h"

/* ---- from addresses to numbers: which nodes were seen, which arrays have a name ---- */

struct slot {
    const void *key; /* NULL: free */
    size_t value;
};

struct ptr_map {
    struct slot *slots;
    size_t n, cap; /* cap is 0 or a power of two */
};

static struct slot *ptr_slot(const struct ptr_map *m, const void *key)
{
    size_t i = (size_t)hash_mix(HASH_SEED, (uint64_t)(uintptr_t)key);

    for (;; i++) {
        struct slot *s = &m->slots[i & (m->cap - 1)];
        if (!s->key || s->key == key)
            return s;
    }
}

static enum err ptr_grow(struct ptr_map *m)
{
    struct ptr_map bigger = { .n = m->n, .cap = m->cap ? 2 * m->cap : 64 };

    if (!(bigger.slots = mem_alloc_array(bigger.cap, sizeof *bigger.slots)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slots[i].key)
            *ptr_slot(&bigger, m->slots[i].key) = m->slots[i];
    mem_free(m->slots);
    *m = bigger;
    return ERR_OK;
}

/* The number of key; added with the given value if it is new, which *fresh says. */
static enum err ptr_add(struct ptr_map *m, const void *key, size_t *value, bool *fresh)
{
    if (2 * m->n >= m->cap && ptr_grow(m))
        return ERR_NO_MEMORY;
    struct slot *s = ptr_slot(m, key);
    *fresh = !s->key;
    if (*fresh) {
        *s = (struct slot){ key, *value };
        m->n++;
    }
    *value = s->value;
    return ERR_OK;
}

static void ptr_fini(struct ptr_map *m)
{
    mem_free(m->slots);
    *m = (struct ptr_map){ 0 };
}

/* ---- names ---- */

struct namer {
    struct ptr_map index; /* array to position in names */
    VEC(char *) names;
};

static void namer_fini(struct namer *n)
{
    for (size_t i = 0; i < n->names.n; i++)
        mem_free(n->names.v[i]);
    VEC_FINI(&n->names);
    ptr_fini(&n->index);
}

/* A, B, ..., Z, AA, AB, ... */
static const char *letters(char buf[16], size_t number)
{
    char *p = buf + 15;

    *p = '\0';
    for (size_t left = number; left > 0; left = (left - 1) / 26)
        *--p = (char)('A' + (left - 1) % 26);
    return p;
}

/* Names key, replacing the name it had; name NULL generates one where there is none. */
static enum err namer_set(struct namer *n, const void *key, const char *name)
{
    size_t at = n->names.n;
    char buf[16], *copy;
    bool fresh;
    enum err err;

    TRY(VEC_RESERVE(&n->names, 1)); /* first, so that a failure leaves both tables alike */
    err = ERR_NO_MEMORY;
    if (!(copy = mem_strdup(name ? name : letters(buf, at + 1))))
        goto out;
    if ((err = ptr_add(&n->index, key, &at, &fresh)) != ERR_OK || (!fresh && !name)) {
        mem_free(copy);
        goto out;
    }
    if (fresh) {
        n->names.v[n->names.n++] = copy;
    } else {
        mem_free(n->names.v[at]);
        n->names.v[at] = copy;
    }
out:
    return err;
}

/* The name of key, generated if need be. Borrowed. */
static enum err namer_get(const char **name, struct namer *n, const void *key)
{
    size_t at = 0;
    bool fresh;
    enum err err;

    TRY(namer_set(n, key, NULL));
    TRY(ptr_add(&n->index, key, &at, &fresh));
    *name = n->names.v[at];
out:
    return err;
}

static enum err namer_copy(struct namer *out, const struct namer *src)
{
    enum err err = ERR_OK;
    const void **keys = NULL;

    *out = (struct namer){ 0 };
    if (!src || !src->names.n)
        return ERR_OK;
    err = ERR_NO_MEMORY;
    if (!(keys = mem_alloc_array(src->names.n, sizeof *keys)))
        goto out;
    for (size_t i = 0; i < src->index.cap; i++)
        if (src->index.slots[i].key)
            keys[src->index.slots[i].value] = src->index.slots[i].key;
    for (size_t i = 0; i < src->names.n; i++)
        TRY(namer_set(out, keys[i], src->names.v[i]));
out:
    mem_free(keys);
    if (err)
        namer_fini(out);
    return err;
}

mlx_node_namer mlx_node_namer_new(void)
{
    mlx_node_namer res = { NULL };
    struct call c = CALL_BARE;

    c.err = box_make(&res.ctx, sizeof(struct namer));
    CALL_END(&c);
    return res;
}

int mlx_node_namer_free(mlx_node_namer namer)
{
    if (namer.ctx)
        namer_fini(namer.ctx);
    mem_free(namer.ctx);
    return 0;
}

int mlx_node_namer_set_name(mlx_node_namer namer, const mlx_array arr, const char *name)
{
    struct call c = CALL_BARE;
    struct namer *n = call_box(&c, namer.ctx, "namer", "namer");
    struct arr *a = call_arr(&c, arr, "arr");

    call_ptr(&c, name, "name");
    if (call_ok(&c))
        c.err = namer_set(n, a, name);
    return CALL_END(&c);
}

int mlx_node_namer_get_name(const char **name, mlx_node_namer namer, const mlx_array arr)
{
    struct call c = CALL(name);
    struct namer *n = call_box(&c, namer.ctx, "namer", "namer");
    struct arr *a = call_arr(&c, arr, "arr");

    if (call_ok(&c))
        c.err = namer_get(name, n, a);
    return CALL_END(&c);
}

/* ---- order: inputs before what uses them, each once ---- */

struct graph {
    VEC(struct arr *) order; /* borrowed; one array per node, every leaf */
    struct ptr_map seen;     /* nodes with an op, and leaves */
    struct namer namer;
    struct text text; /* what is written of it */
};

static void graph_fini(struct graph *g)
{
    VEC_FINI(&g->order);
    ptr_fini(&g->seen);
    namer_fini(&g->namer);
    VEC_FINI(&g->text.s);
}

static bool is_leaf(const struct arr *a)
{
    return a->node->op == OP_NONE;
}

struct frame {
    struct arr *arr;
    int next; /* input to visit */
};

struct walk {
    VEC(struct frame) stack;
};

static enum err walk_push(struct graph *g, struct walk *w, struct arr *a)
{
    size_t number = g->seen.n;
    bool fresh;
    enum err err;

    TRY(ptr_add(&g->seen, is_leaf(a) ? (const void *)a : (const void *)a->node, &number, &fresh));
    if (fresh)
        err = VEC_PUSH(&w->stack, (struct frame){ a, 0 });
out:
    return err;
}

/* Goes on to the next input of the array on top, or takes it off when it has no more. */
static enum err walk_step(struct graph *g, struct walk *w)
{
    struct frame *top = &w->stack.v[w->stack.n - 1];
    const struct node *n = top->arr->node;

    if (top->next < n->n_in)
        return walk_push(g, w, n->in[top->next++]);
    w->stack.n--;
    return VEC_PUSH(&g->order, top->arr);
}

static enum err graph_order(struct graph *g, const struct list *outputs)
{
    struct arr *const *roots = outputs->v;
    struct walk w = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < outputs->n; i++) {
        TRY(walk_push(g, &w, roots[i]));
        while (w.stack.n)
            TRY(walk_step(g, &w));
    }
out:
    VEC_FINI(&w.stack);
    return err;
}

/* ---- text ---- */

static enum err print_one(struct graph *g, const struct arr *a, const char *before)
{
    const char *name = NULL;
    struct shp shape;
    enum err err = namer_get(&name, &g->namer, a);

    arr_shape(&shape, a);
    if (!err)
        err = text_add(&g->text, "%s%s [%s, %s]", before, name, shp_text(&shape),
                       dt_name((enum dtype)a->dtype));
    return err;
}

static enum err print_list(struct graph *g, struct arr *const *arrs, size_t n)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < n && !err; i++)
        err = print_one(g, arrs[i], i ? ", " : "");
    return err;
}

static enum err print_op(struct graph *g, const struct node *n)
{
    enum err err;

    TRY(text_add(&g->text, "%s ", op_name((enum op_id)n->op)));
    TRY(print_list(g, n->in, n->n_in));
    TRY(text_add(&g->text, " -> "));
    for (int i = 0; i < n->n_out; i++)
        TRY(print_one(g, &n->out[i], i ? ", " : ""));
    err = text_add(&g->text, "\n");
out:
    return err;
}

static enum err print_graph(struct graph *g, const struct list *outputs)
{
    bool first = true;
    enum err err = ERR_OK;

    TRY(text_add(&g->text, "Inputs: "));
    for (size_t i = 0; i < g->order.n; i++)
        if (is_leaf(g->order.v[i])) {
            TRY(print_one(g, g->order.v[i], first ? "" : ", "));
            first = false;
        }
    TRY(text_add(&g->text, "\nOutputs: "));
    TRY(print_list(g, outputs->v, outputs->n));
    TRY(text_add(&g->text, "\n"));
    for (size_t i = 0; i < g->order.n; i++)
        if (!is_leaf(g->order.v[i]))
            TRY(print_op(g, g->order.v[i]->node));
out:
    return err;
}

/* ---- dot ---- */

/* Arrays that some op of the graph reads. */
static enum err mark_inputs(struct ptr_map *used, const struct graph *g)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < g->order.n; i++) {
        const struct node *n = g->order.v[i]->node;
        for (int k = 0; k < n->n_in; k++) {
            size_t number = 0;
            bool fresh;
            TRY(ptr_add(used, n->in[k], &number, &fresh));
        }
    }
out:
    return err;
}

static enum err dot_op(struct graph *g, const struct node *n, size_t id, const struct ptr_map *used)
{
    const char *name = NULL;
    enum err err = ERR_OK;

    TRY(text_add(&g->text, "{ %zu [label =\"%s\", shape=rectangle]; }\n", id,
                 op_name((enum op_id)n->op)));
    for (int i = 0; i < n->n_in; i++) {
        TRY(namer_get(&name, &g->namer, n->in[i]));
        TRY(text_add(&g->text, "\"%s\" -> %zu\n", name, id));
    }
    for (int i = 0; i < n->n_out; i++) {
        bool inner = used->cap && ptr_slot(used, &n->out[i])->key;
        TRY(namer_get(&name, &g->namer, &n->out[i]));
        TRY(text_add(&g->text, "{ %s\"%s\"; }\n%zu -> \"%s\"\n", inner ? "" : "rank=sink; ", name,
                     id, name));
    }
out:
    return err;
}

static enum err print_dot(struct graph *g, const struct list *outputs)
{
    struct ptr_map used = { 0 };
    const char *name = NULL;
    enum err err;

    (void)outputs;
    TRY(mark_inputs(&used, g));
    TRY(text_add(&g->text, "digraph {\n"));
    for (size_t i = 0; i < g->order.n; i++) {
        struct arr *a = g->order.v[i];
        if (!is_leaf(a)) {
            TRY(dot_op(g, a->node, i, &used));
            continue;
        }
        TRY(namer_get(&name, &g->namer, a));
        TRY(text_add(&g->text, "{ rank=source; \"%s\"; }\n", name));
    }
    err = text_add(&g->text, "}");
out:
    ptr_fini(&used);
    return err;
}

/* Names that are generated on the way do not reach the caller's namer. Whoever reads the file may
 * be slow, or waiting for an eval, so nothing is written to it while evals wait. */
static int show(struct call *c, FILE *os, mlx_node_namer namer, mlx_vector_array outputs,
                enum err (*print)(struct graph *, const struct list *))
{
    const struct list *list = call_vec(c, outputs, "outputs");
    struct graph g = { 0 };

    if (call_ok(c))
        c->err = namer_copy(&g.namer, namer.ctx);
    tape_pause(); /* another thread may be evaluating some of it */
    if (call_ok(c))
        c->err = graph_order(&g, list);
    if (call_ok(c))
        c->err = print(&g, list);
    tape_resume();
    if (call_ok(c))
        fwrite(g.text.s.v, 1, g.text.s.n, os);
    graph_fini(&g);
    return CALL_END(c);
}

int mlx_print_graph(FILE *os, const mlx_node_namer namer, const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    call_ptr(&c, os, "os");
    return show(&c, os, namer, outputs, print_graph);
}

int mlx_export_to_dot(FILE *os, const mlx_node_namer namer, const mlx_vector_array outputs)
{
    struct call c = CALL_BARE;

    call_ptr(&c, os, "os");
    return show(&c, os, namer, outputs, print_dot);
}
