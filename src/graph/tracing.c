#include "graph/tracing.h"

static _Thread_local struct {
    int depth, grads, retains;
    bool is_dynamic;
    VEC(struct node *) kept; /* pinned */
} mine;

void tracing_begin(enum trace_kind kind)
{
    if (mine.depth++ == 0)
        mine.is_dynamic = kind == TRACE_DYNAMIC;
    mine.grads += kind == TRACE_GRAD;
}

void tracing_end(enum trace_kind kind)
{
    mine.grads -= kind == TRACE_GRAD;
    if (--mine.depth > 0)
        return;
    mine.is_dynamic = false;
    for (size_t i = 0; i < mine.kept.n; i++) {
        node_detach(mine.kept.v[i]);
        node_unpin(mine.kept.v[i]);
    }
    VEC_FINI(&mine.kept);
}

bool tracing_is_on(void)
{
    return mine.depth > 0;
}

bool tracing_has_grads(void)
{
    return mine.grads > 0;
}

bool tracing_is_dynamic(void)
{
    return mine.is_dynamic;
}

void tracing_retain(bool on)
{
    mine.retains += on ? 1 : -1;
}

bool tracing_retains(void)
{
    return mine.retains > 0;
}

void tracing_keep(struct node *n)
{
    /* Without memory for the note the graph lives as long as its arrays do. */
    if (VEC_PUSH(&mine.kept, n) == ERR_OK)
        node_pin(n);
}
