/* Sums of products that subscripts describe: what they say (einsum_parse.c), and in which order
 * operands are multiplied (einsum_path.c). Private to ops. */
#pragma once

#include "ops/build.h"

/* A label is a letter, A to Z and then a to z, so that their order is that of the characters. Axes
 * behind an ellipsis get letters that are not used. */
#define EINSUM_LABELS 52

/* The labels of an array's axes. */
struct einsum_term {
    uint64_t set;
    int n;
    uint8_t label[SHP_MAX];
};

static inline uint64_t einsum_bit(int label)
{
    return (uint64_t)1 << label;
}

struct einsum {
    struct einsum_term *in; /* from mem_alloc, one for each operand */
    size_t n;
    struct einsum_term out;
    int32_t size[EINSUM_LABELS]; /* of the axes that have the label; 1 is stretched to others */
};

/* Errors name op. On failure there is nothing to release. */
MUST_CHECK enum err einsum_parse(struct einsum *e, const char *subscripts, struct arrs operands,
                                 const char *op);
static inline void einsum_fini(struct einsum *e)
{
    mem_free(e->in);
}

/* Operands a < b leave the list of those that are left, and their product joins it at the end. b ==
 * EINSUM_ALL: the product of all that are left. */
#define EINSUM_ALL (-1)
struct einsum_step {
    int32_t a, b;
};
struct einsum_path {
    struct einsum_step *step; /* from mem_alloc */
    size_t n;
    double naive_cost, cost;    /* multiplications and additions, all at once and step by step */
    int naive_scaling, scaling; /* the most labels that meet in one step */
};
/* Greedy: the pair whose product saves the most memory comes first, of these the cheapest. */
MUST_CHECK enum err einsum_path_find(struct einsum_path *p, const struct einsum *e);
static inline void einsum_path_fini(struct einsum_path *p)
{
    mem_free(p->step);
}
