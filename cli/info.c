#include <stdio.h>

#include "backend/backend.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "graph/memory.h"

static void describe(enum dev_type type)
{
    const struct be *be = dev_backend(type);
    const char *label = dev_name(type);

    if (!be) {
        printf("%s: this build has no such backend\n", label);
        return;
    }
    if (!dev_is_available((struct dev){ type, 0 })) {
        printf("%s (%s): not available: %s\n", label, be->name, dev_why_not(type));
        return;
    }
    printf("%s (%s)\n", label, be->name);
    if (be->describe)
        be->describe(stdout);
}

int cmd_info(int argc, char **argv)
{
    if (argc > 1)
        return args_explain(
            argc, argv,
            "usage: mlx info\n\nShows every device, what it can do and what it lacks.\n");
    for (int t = DEV_TYPE_COUNT - 1; t >= 0; t--)
        describe((enum dev_type)t);
    printf("default device: %s\n", dev_name(dev_default().type));
    printf("memory limit: %.1f GB\n", (double)memory_limit() / 1e9);
    return 0;
}
