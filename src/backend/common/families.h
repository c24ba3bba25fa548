/* Ops that need no kernel of their own: views, and movements made of strided copies. They use only
 * the stream's be->copy, so every backend takes them from here. */
#pragma once

#include "backend/backend.h"

#define COMMON(id, word) enum err be_##word(const struct exec *x);
#include "ops/families.def"

/* Gives out its own row-major storage and fills it with src, which has the same number of elements
 * in row-major order; converts to out's dtype. */
MUST_CHECK enum err be_copy_dense(struct strm *s, struct arr *out, struct arr *src);

/* Gives out storage with src's elements that may be written: src's own where nobody else needs
 * them, so that a cache that is updated step by step stays where it is. */
MUST_CHECK enum err be_take_over(struct strm *s, struct arr *out, struct arr *src);

/* Strides of the slice p of a; returns the element offset of its first element. */
int64_t be_slice_strides(int64_t *strides, const struct arr *a, const struct slice_params *p);

/* The loop nest of a copy, operands source and destination: dimensions in the order that writes the
 * destination from front to back, which lets the most of them merge. */
enum { BE_COPY_SRC, BE_COPY_DST, BE_COPY_OPERANDS };
void be_copy_nest(struct nest *out, const struct be_copy *c);
