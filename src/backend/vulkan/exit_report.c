#include "backend/vulkan/exit_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/vulkan/check/hazard_check.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/pipeline.h"
#include "base/gate.h"
#include "base/stat.h"

static void report_hazards(void)
{
    struct hazard_report r;
    size_t n;
    const struct vk_rec *rec = vk_rec_get(&n);

    if (hazard_check(&r, rec, n) != ERR_OK) {
        fprintf(stderr, "mlx: hazard check failed: %s\n", err_text());
        return;
    }
    fprintf(stderr, "mlx: hazards: %zu in %zu dispatches; needless barriers: %zu of %zu%s%s\n",
            hazard_count(&r), r.dispatches, r.needless, r.barriers, r.text[0] ? "; " : "", r.text);
}

static void report(void)
{
    if (gate_on(GATE_VK_VALIDATE))
        fprintf(stderr, "mlx: validation messages: %" PRIu64 "\n",
                stat_get(STAT_VALIDATION_MESSAGES));
    if (gate_on(GATE_VK_RECORD))
        report_hazards();
}

void exit_report_register(void)
{
    if (gate_on(GATE_VK_VALIDATE) || gate_on(GATE_VK_RECORD))
        atexit(report);
}

void vk_stats(FILE *out, const char *family)
{
    variant_print(out, family);
    if (!family || strcmp(family, "PIPELINE") == 0)
        vk_pipe_print(out);
}
