/* Numbers by address, for walks over graphs. */
#pragma once

#include "base/common.h"
#include "base/err.h"

struct ptr_entry {
    const void *key; /* NULL: free */
    size_t value;
};

/* Empty when zeroed. */
struct ptr_map {
    struct ptr_entry *v;
    size_t n, cap; /* cap: a power of two, or 0 */
};

#define PTR_NONE SIZE_MAX

/* The number of key, PTR_NONE if it has none. */
size_t ptr_map_get(const struct ptr_map *m, const void *key);
/* Gives key a number, or another one. */
MUST_CHECK enum err ptr_map_put(struct ptr_map *m, const void *key, size_t value);
void ptr_map_fini(struct ptr_map *m);
