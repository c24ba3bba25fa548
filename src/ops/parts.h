/* What ops_parts makes, by family. Private to ops. */
#pragma once

#include "graph/op_call.h"
#include "ops/ops.h"

MUST_CHECK enum err norm_parts(struct arr **out, const struct op_apply *f);
MUST_CHECK enum err rope_parts(struct arr **out, const struct op_apply *f);
MUST_CHECK enum err sdpa_parts(struct arr **out, const struct op_apply *f);
