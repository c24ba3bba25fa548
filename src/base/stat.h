/* Counters over stat.def. Thread-safety: safe; a snapshot is not atomic over all counters. */
#pragma once

#include <assert.h>
#include <stdio.h>

#include "base/tally.h"

enum stat {
#define STAT(id, text) STAT_##id,
#include "base/stat.def"
#undef STAT
    STAT_COUNT
};
static_assert(TALLY_STAT + STAT_COUNT <= TALLY_REWRITE, "counters have room");

extern const char *const stat_text[STAT_COUNT];

static inline void stat_add(enum stat id, uint64_t n)
{
    tally_add(TALLY_STAT + id, n);
}

/* Of what a step does (tally.h). */
static inline void stat_add_step(enum stat id, uint64_t n)
{
    tally_add_step(TALLY_STAT + id, n);
}

static inline uint64_t stat_get(enum stat id)
{
    return tally_get(TALLY_STAT + id);
}

void stat_reset(void);
void stat_print(FILE *out);
