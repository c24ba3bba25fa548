/* The part of a graph that a transformation looks at: the traced nodes behind some arrays, each
 * after those that it reads. Arrays of the walk have numbers, those it stops at the first ones. */
#pragma once

#include "base/ptr_map.h"
#include "graph/array.h"
#include "ops/ops.h"

struct walk_step {
    struct node *node; /* borrowed: the outputs keep the graph */
    size_t first;      /* number of its first output */
};

struct walk {
    bool goes_everywhere;
    VEC(struct walk_step) step;
    struct ptr_map first; /* by node: the number of its first output */
    size_t n_arrs;
};

/* Does not go beyond the arrays of `stops`, which have nodes of their own. Only tracers are gone
 * into: whatever depends on what a transformed function was given is one. */
MUST_CHECK enum err walk_graph(struct walk *w, struct arrs from, struct arrs stops);
/* Goes into everything that is not evaluated. Other threads may evaluate some of it: between
 * tape_pause and tape_resume. */
MUST_CHECK enum err walk_whole_graph(struct walk *w, struct arrs from, struct arrs stops);
void walk_fini(struct walk *w);

#define WALK_NONE PTR_NONE
/* The number of an array, WALK_NONE if it is not one of the walk's. */
static inline size_t walk_number(const struct walk *w, const struct arr *a)
{
    size_t first = ptr_map_get(&w->first, a->node);

    return first == PTR_NONE ? WALK_NONE : first + (size_t)(a - a->node->out);
}
