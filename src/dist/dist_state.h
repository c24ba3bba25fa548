/* The group of a node, which is its state. Every node has one of its own: no two of them count as
 * equal, because what is received twice is two things. */
#pragma once

#include "dist/group.h"
#include "graph/op_state.h"

MUST_CHECK enum err dist_state_new(struct op_state **out, struct dist_group *g);
/* Borrowed. */
struct dist_group *dist_group_of(const struct op_state *s);
