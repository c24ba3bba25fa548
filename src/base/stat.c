#include "base/stat.h"

#include <inttypes.h>

const char *const stat_text[STAT_COUNT] = {
#define STAT(id, text) [STAT_##id] = text,
#include "base/stat.def"
#undef STAT
};

void stat_reset(void)
{
    counter_reset(COUNTER_STAT, STAT_COUNT);
}

void stat_print(FILE *out)
{
    for (int i = 0; i < STAT_COUNT; i++)
        if (stat_get((enum stat)i))
            fprintf(out, "%12" PRIu64 "  %s\n", stat_get((enum stat)i), stat_text[i]);
}
