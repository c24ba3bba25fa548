/* Counters over stat.def. Thread-safety: safe; a snapshot is not atomic over all counters. */
#pragma once

#include <stdatomic.h>
#include <stdio.h>

#include "core/common.h"

enum stat {
#define STAT(id, text) STAT_##id,
#include "core/stat.def"
#undef STAT
    STAT_COUNT
};

extern const char *const stat_text[STAT_COUNT];
extern _Atomic uint64_t stat_values[STAT_COUNT];

static inline void stat_add(enum stat id, uint64_t n)
{
    atomic_fetch_add_explicit(&stat_values[id], n, memory_order_relaxed);
}

static inline uint64_t stat_get(enum stat id)
{
    return atomic_load_explicit(&stat_values[id], memory_order_relaxed);
}

void stat_reset(void);
void stat_print(FILE *out);
