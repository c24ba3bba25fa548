/* Rewrites of a plan that put nodes of different ops into one step, and what became of them. */
#pragma once

#include <stdio.h>

#include "plan/group.h"
#include "plan/plan_build.h"

enum rewrite {
#define REWRITE(id, ...) REWRITE_##id,
#include "plan/rewrite.def"
#undef REWRITE
    REWRITE_COUNT
};

/* True if the setting of the row is on. */
bool rewrite_on(enum rewrite id);
/* One bit per row: what plans depend on. */
uint32_t rewrite_mask(void);

/* A group found in a run. */
struct rewrite_match {
    uint8_t kind;                       /* enum group_kind */
    uint16_t rewrites;                  /* bit of each row that it takes */
    uint16_t anchor;                    /* the member whose place on the tape is the group's */
    uint16_t member[GROUP_SLOTS];       /* node of the run by slot, or PLAN_NO_NODE */
    uint32_t wanted;                    /* as in struct group */
    const struct elem_program *program; /* likewise; made when the group becomes a step */
};

/* Finds the groups of the kinds that the backend has. Members get owner[node] = anchor of their
 * group; the others keep PLAN_NO_NODE. found has room for one match per node. */
struct be;
size_t rewrite_find(struct rewrite_match *found, uint16_t *owner, const struct plan_run *r,
                    const struct be *be);

/* Counts a group that ran as one step, or why it did not. */
void rewrite_count(uint32_t rewrites, enum group_reason why);
uint64_t rewrite_hits(enum rewrite id);
uint64_t rewrite_rejects(enum rewrite id, enum group_reason why);
void rewrite_reset(void);
/* Counters that are not zero, a line each. */
void rewrite_print(FILE *out);
