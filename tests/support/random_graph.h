/* Random graphs over all fusable ops, dtypes, broadcasts and views, of which somebody holds random
 * intermediates, and comparison of what two of them gave. */
#pragma once

#include "graph/array.h"
#include "support/testing.h"

enum { GRAPH_NODES = 40, GRAPH_LEAVES = 5 };

struct graph {
    struct rng rng;
    struct strm *strm;
    int32_t rows, columns;                     /* of everything, after broadcasting */
    struct arr *a[GRAPH_LEAVES + GRAPH_NODES]; /* NULL where nobody holds it any more */
    int n;
};

/* The same seed gives the same graph: first its leaves, then nodes on what is there. */
void graph_make_leaves(struct graph *g, uint64_t seed, struct strm *s);
void graph_make_nodes(struct graph *g);
/* Some array that is held, borrowed. */
struct arr *graph_pick(struct graph *g);
void graph_drop(struct graph *g);

/* Arrays of `one` that are evaluated have the bits of the other's. Only those of a NaN are left
 * open: which operand's NaN a sum takes over is the compiler's choice. */
void graph_compare(const struct graph *one, const struct graph *other, const char *what);
