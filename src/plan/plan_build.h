/* Building a plan from a run: fusion, then order. Internal to plan*.c. */
#pragma once

#include "graph/op.h"
#include "plan/plan.h"

struct be;

/* Fusable nodes have at most this many inputs. */
#define PLAN_MAX_ARGS 3
#define PLAN_OUTSIDE_SLOTS 4096

struct plan_node {
    uint16_t uses;      /* edges from consumers in the run */
    bool fusable, held; /* held: somebody outside the run needs the bytes */
};

/* An array that enters the run from outside; slots of an open-addressing table. */
struct plan_number {
    const struct arr *a;
    uint32_t run_number; /* the slot is free unless this is the current run's */
    uint32_t number;
};

struct plan_run {
    struct node *const *nodes;
    size_t n;
    struct plan_node info[PLAN_MAX_NODES];
    VEC(uint32_t) edges; /* of each input of each node, output << 16 | producer, or PLAN_NO_NODE */
    struct plan_number number[PLAN_OUTSIDE_SLOTS];
    const struct plan_number *last_number; /* looked for; the next one is often the same */
    uint32_t run_number;
    VEC(struct plan_outside) outside; /* by number */
    bool has_unnumbered;
    bool is_traced; /* somebody keeps the graph of some node */
    VEC(uint64_t) key;
    uint64_t hash;
};

/* Index within the run of the node that makes a, or run->n. */
static inline size_t plan_producer(const struct plan_run *r, const struct arr *a)
{
    size_t i = (size_t)(a->node->mark & PLAN_MARK_MASK);

    return i < r->n && r->nodes[i] == a->node ? i : r->n;
}

/* Products of matrices, of which groups may be made. */
static inline bool plan_is_product(enum op_id op)
{
    return op_table[op].family == OP_FAMILY_MATMUL ||
           op_table[op].family == OP_FAMILY_QUANTIZED_MATMUL;
}

/* Fills p's steps for a backend; memory from p->arena. */
MUST_CHECK enum err plan_build(struct plan *p, const struct plan_run *r, const struct be *be);
