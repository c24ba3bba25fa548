/* Ops that need no kernel of their own: views, and movements made of strided copies. They use only
 * the stream's be->copy, so every backend takes them from here. */
#pragma once

#include "backend/backend.h"

/* By op family; NULL where a backend must bring its own function. */
extern const be_op_fn be_common_families[OP_FAMILY_COUNT];

enum err be_view(const struct exec *x);
enum err be_concatenate(const struct exec *x);
enum err be_pad(const struct exec *x);
enum err be_full(const struct exec *x);

/* Gives out its own row-major storage and fills it with src, which has the same number of elements
 * in row-major order; converts to out's dtype. */
MUST_CHECK enum err be_copy_dense(struct strm *s, struct arr *out, struct arr *src);
