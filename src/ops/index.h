/* What gathers and scatters share. Private to ops. */
#pragma once

#include "ops/build.h"
#include "ops/rules.h"

/* Index array i of a node, its input 1 + i: integers, of the shape of the others, along an axis of
 * the source that no other has. seen: axes of those before, as bits. */
MUST_CHECK enum err index_check(const struct infer_call *c, int i, int32_t axis, uint32_t *seen);

/* The caller's index arrays along the axes of a. */
struct index_list {
    struct arrs indices;
    struct ints axes;
    const char *op;
};
/* Index arrays as a node has them: broadcast to one shape, which is written there, and of one
 * dtype; in[] has room for SHP_MAX and begins as NULL, as it is after a failure. */
MUST_CHECK enum err index_prepare(struct arr **in, struct shp *shape, const struct arr *a,
                                  const struct index_list *l, struct strm *s);

/* The error for derivatives by what says where. */
enum err index_no_rule(const struct op_apply *f, const char *rule, const char *what);
