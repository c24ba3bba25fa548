/* Sorting for other families. */
#pragma once

#include "backend/backend.h"

/* Which elements of in are first, second and so on: out, uint32. Both are dense vectors; equal
 * elements keep their order. */
MUST_CHECK enum err vk_sort_places(struct strm *s, struct arr *out, const struct arr *in);
