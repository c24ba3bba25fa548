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

/* Each prints only the families whose name contains this. */
static const struct filter {
    enum gate gate;
    const char *family;
} filters[] = {
    { GATE_VK_QMM_STATS, "QMM" },
    { GATE_VK_SDPA_STATS, "SDPA" },
    { GATE_VK_ALGO_STATS, "PIPELINE" },
};

bool report_is_asked(void)
{
    bool is_asked = gate_on(GATE_VK_STATS);

    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        is_asked |= gate_on(filters[i].gate);
    return is_asked;
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
    if (gate_on(GATE_VK_STATS)) {
        stat_print(stderr);
        rewrite_print(stderr);
        print_part(NULL);
        return;
    }
    for (size_t i = 0; i < ARRAY_LEN(filters); i++)
        if (gate_on(filters[i].gate))
            print_part(filters[i].family);
}

void report_register(void)
{
    static atomic_bool is_registered;

    if (!atomic_exchange(&is_registered, true))
        atexit(report);
}
