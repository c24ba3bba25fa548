#include "transforms/walk.h"

#include "graph/tracing.h"

/* A node whose inputs are being looked at. */
struct cursor {
    struct node *node;
    int next;
};
typedef VEC(struct cursor) cursors;

/* While a node waits for its inputs it has this number. */
#define UNDER_WAY (PTR_NONE - 1)

static enum err enter(struct walk *w, cursors *stack, struct arr *a)
{
    bool is_part = w->goes_everywhere ? !arr_is_scheduled(a) : arr_is_tracer(a);
    enum err err = ERR_OK;

    if (!is_part || a->node->op == OP_NONE || ptr_map_get(&w->first, a->node) != PTR_NONE)
        return ERR_OK;
    TRY(ptr_map_put(&w->first, a->node, UNDER_WAY));
    err = VEC_PUSH(stack, (struct cursor){ a->node, 0 });
out:
    return err;
}

static enum err leave(struct walk *w, struct node *n)
{
    enum err err;

    TRY(ptr_map_put(&w->first, n, w->n_arrs));
    TRY(VEC_PUSH(&w->step, (struct walk_step){ n, w->n_arrs }));
    w->n_arrs += (size_t)n->n_out;
out:
    return err;
}

static enum err visit(struct walk *w, cursors *stack, struct arr *a)
{
    enum err err;

    TRY(enter(w, stack, a));
    while (stack->n) {
        struct cursor *c = &stack->v[stack->n - 1];
        if (c->next < c->node->n_in) {
            TRY(enter(w, stack, c->node->in[c->next++]));
            continue;
        }
        TRY(leave(w, c->node));
        stack->n--;
    }
out:
    return err;
}

static enum err walk(struct walk *w, struct arrs from, struct arrs stops)
{
    cursors stack = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; i < stops.n; i++)
        TRY(ptr_map_put(&w->first, stops.v[i]->node, w->n_arrs++));
    for (size_t i = 0; i < from.n; i++)
        TRY(visit(w, &stack, from.v[i]));
out:
    VEC_FINI(&stack);
    return err;
}

enum err walk_graph(struct walk *w, struct arrs from, struct arrs stops)
{
    *w = (struct walk){ 0 };
    return walk(w, from, stops);
}

enum err walk_whole_graph(struct walk *w, struct arrs from, struct arrs stops)
{
    *w = (struct walk){ .goes_everywhere = true };
    return walk(w, from, stops);
}

void walk_fini(struct walk *w)
{
    VEC_FINI(&w->step);
    ptr_map_fini(&w->first);
}
