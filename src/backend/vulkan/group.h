/* Groups of nodes as one dispatch (core/group.h). */
#pragma once

#include "backend/backend.h"

/* By kind. */
extern const be_op_fn vk_groups[GROUP_KIND_COUNT];
enum group_reason vk_group_takes(const struct exec *x);
