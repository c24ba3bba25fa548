/* Groups of nodes as one dispatch (plan/group.h). */
#pragma once

#include "backend/backend.h"

/* By kind. */
extern const be_group_fn vk_groups[GROUP_KIND_COUNT];
