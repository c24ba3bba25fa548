/* Counters over stat.def. Thread-safety: safe; a snapshot is not atomic over all counters. */
#pragma once

#include <assert.h>
#include <stdio.h>

#include "base/counter.h"

enum stat {
#define STAT(id, text) STAT_##id,
#include "base/stat.def"
#undef STAT
    STAT_COUNT
};
static_assert(COUNTER_STAT + STAT_COUNT <= COUNTER_REWRITE, "counters have room");

extern const char *const stat_text[STAT_COUNT];

static inline void stat_add(enum stat id, uint64_t n)
{
    counter_add(COUNTER_STAT + id, n);
}

/* Of what a step does (counter.h). */
static inline void stat_add_step(enum stat id, uint64_t n)
{
    counter_add_step(COUNTER_STAT + id, n);
}

static inline uint64_t stat_get(enum stat id)
{
    return counter_get(COUNTER_STAT + id);
}

void stat_reset(void);
void stat_print(FILE *out);
