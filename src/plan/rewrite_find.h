/* Finding the groups of a run. Internal to rewrite*.c: rewrite.c has the tools, a kind of group
 * with more than one matcher has a file of its own. */
#pragma once

#include "graph/op.h"
#include "plan/rewrite.h"

/* Members of a group lie at most this far apart on the tape. */
#define RW_WINDOW 96

struct rw_search {
    const struct plan_run *run;
    uint16_t *owner; /* anchor of the group that has the node, or PLAN_NO_NODE */
    struct rewrite_match *found;
    size_t n_found;
};

/* ---- looking around: nodes are named by their index in the run, PLAN_NO_NODE is none ---- */

static inline const struct node *rw_node(const struct rw_search *s, uint16_t i)
{
    return s->run->nodes[i];
}

/* A node of the op that belongs to no group yet. */
bool rw_is_free(const struct rw_search *s, uint16_t i, enum op_id op);
/* The node's result has so many readers in the run and none elsewhere. */
bool rw_is_private(const struct rw_search *s, uint16_t i, int uses);
/* The node that makes a, if it is in the run. */
uint16_t rw_producer(const struct rw_search *s, const struct arr *a);
bool rw_reads(const struct node *n, const struct arr *a);
/* The next reader of i's result behind `after`. */
uint16_t rw_next_reader(const struct rw_search *s, uint16_t i, uint16_t after);
/* The only reader of i's result, if it is a free node of the op. */
uint16_t rw_only_reader(const struct rw_search *s, uint16_t i, enum op_id op);
/* No input from `first` on is made in the run, so the node can run wherever input 0 is there. */
bool rw_others_from_outside(const struct rw_search *s, const struct node *n, int first);
/* Same dtype and shape. */
bool rw_is_alike(const struct arr *a, const struct arr *b);

/* ---- accepting a group ---- */

struct rewrite_match rw_empty(enum group_kind kind);
void rw_take(struct rewrite_match *m, enum rewrite id);
/* Everything that the members read is made before the place, and nobody reads them before it. */
bool rw_can_run_at(const struct rw_search *s, const struct rewrite_match *m, uint16_t place);
/* Adds the group to those found; its members belong to it from then on. */
void rw_accept(struct rw_search *s, struct rewrite_match *m, uint16_t anchor);

/* ---- the finders, by kind of group ---- */

void rw_find_products(struct rw_search *s);
void rw_find_attn(struct rw_search *s);
void rw_find_heads(struct rw_search *s);
