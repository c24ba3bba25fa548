/* Groups of nodes as one dispatch (plan/group.h). */
#pragma once

#include "backend/backend.h"

/* By kind. */
extern const be_group_fn vk_groups[GROUP_KIND_COUNT];

/* recording_move of the backend table. */
bool vk_group_move(struct be_recording *r, struct strm *s, size_t step, const struct group *g);

/* ---- what the kinds share ---- */

/* A node of the group as a step of its own; *out is to live as long as the result. */
struct exec vk_group_exec(const struct exec *x, const struct node *n, struct arr **out);
/* Runs the node of that slot, if there is one, by itself. */
MUST_CHECK enum err vk_group_run(const struct exec *x, int slot);
/* A result that stays inside of the group lives as long as its inputs do. */
MUST_CHECK enum err vk_group_hold(const struct exec *x, int slot);

/* GROUP_PRODUCT. */
enum err vk_group_product(const struct exec *x, enum group_reason *why);
