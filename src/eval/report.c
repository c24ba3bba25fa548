#include "eval/report.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "backend/backend.h"
#include "base/gate.h"
#include "base/process.h"
#include "base/stat.h"
#include "base/times.h"
#include "plan/rewrite.h"

bool report_is_asked(void)
{
    return gate_on(GATE_VK_STATS);
}

static void print_part(const char *family)
{
    for (int type = 0; type < DEV_TYPE_COUNT; type++) {
        const struct be *be = dev_backend((enum dev_type)type);
        if (be && be->stats && dev_is_open((enum dev_type)type))
            be->stats(stderr, family);
    }
    times_print(stderr, family);
}

static void report(void)
{
    if (process_is_child()) /* what was counted is its parent's */
        return;
    if (gate_int(GATE_VK_STATS) == FAMILIES_ALL) {
        stat_print(stderr);
        rewrite_print(stderr);
        print_part(NULL);
        return;
    }
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (gate_has(GATE_VK_STATS, (enum family)i))
            print_part(family_names[i]);
}

void report_register(void)
{
    static atomic_bool is_registered;

    if (!atomic_exchange(&is_registered, true))
        atexit(report);
}
