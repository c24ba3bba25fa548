#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/gate.h"
#include "cli/args.h"
#include "cli/cli.h"

static void print_values(void)
{
    char room[GATE_ROOM];

    for (int i = 0; i < GATE_COUNT; i++) {
        const char *value = gate_format((enum gate)i, room);
        printf("%-34s %-10s %s\n", gate_table[i].variable, value[0] ? value : "-",
               gate_table[i].text);
    }
}

static void print_default(const struct gate_info *g)
{
    if (g->kind == GATE_KIND_TEXT)
        printf("unset");
    else if (g->kind == GATE_KIND_BOOL || g->kind == GATE_KIND_FAMILIES)
        printf("%s", g->def ? "on" : "off");
    else
        printf("%" PRId64 " (%" PRId64 " to %" PRId64 ")", g->def, g->min, g->max);
}

static void print_markdown(void)
{
    puts("# Settings\n\nEnvironment variables, read once; written by `mlx gates --markdown`.\n");
    puts("| variable | default | meaning |\n|---|---|---|");
    for (int i = 0; i < GATE_COUNT; i++) {
        printf("| `%s` | ", gate_table[i].variable);
        print_default(&gate_table[i]);
        printf(" | %s |\n", gate_table[i].text);
    }
    printf("\nFamilies:");
    for (int i = 0; i < FAMILY_COUNT; i++)
        printf("%s %s", i ? "," : "", family_names[i]);
    puts(". `MLX_VK_<FAMILY>_STATS=1` and `MLX_VK_DEBUG_<FAMILY>_REJECT=1` name one of them, too;\n"
         "`MLX_VK_ALGO_STATS=1` is that of pipelines.");
}

int cmd_gates(int argc, char **argv)
{
    if (argc == 1) {
        print_values();
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--markdown") == 0) {
        print_markdown();
        return 0;
    }
    return args_explain(
        argc, argv,
        "usage: mlx gates [--markdown]\n\nLists every setting: variable, value, meaning.\n");
}
