/* Splits one block of memory into ranges: two-level segregated fit over an offset space, so that
 * taking and giving back cost constant time and neighbours merge at once. The bookkeeping lives in
 * host memory, the block itself is never touched. Thread-safety: caller locks. */
#pragma once

#include "base/common.h"
#include "base/err.h"

/* Offsets and sizes are multiples of this; it covers every alignment a kernel or a copy asks for.
 */
#define SUBALLOC_GRANULE 256

struct suballoc;

MUST_CHECK enum err suballoc_create(struct suballoc **out, uint64_t size);
void suballoc_destroy(struct suballoc **s);

/* A range of at least size bytes. False when nothing fits (or the bookkeeping cannot grow). */
bool suballoc_take(struct suballoc *s, uint64_t size, uint64_t *offset, uint32_t *range);
void suballoc_give(struct suballoc *s, uint32_t range);
bool suballoc_is_empty(const struct suballoc *s);
