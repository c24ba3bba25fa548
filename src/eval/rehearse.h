/* Whether a new plan is worth a rehearsal (backend.h). */
#pragma once

#include "plan/plan.h"

/* True if the plan has a step of a kind that no plan had before: another op or program, other
 * dtypes, or another order of magnitude. False for most new plans, which are old ones in a slightly
 * different shape. Thread-safety: safe. */
bool rehearse_is_due(const struct plan *p, struct node *const *nodes);
