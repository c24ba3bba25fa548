#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/gate.h"
#include "cli/args.h"
#include "cli/cli.h"

static void print_value(enum gate id)
{
    if (gate_table[id].kind == GATE_KIND_TEXT)
        printf("%-10s", gate_text(id) ? gate_text(id) : "-");
    else
        printf("%-10" PRId64, gate_int(id));
}

static void print_values(void)
{
    for (int i = 0; i < GATE_COUNT; i++) {
        printf("%-34s ", gate_table[i].variable);
        print_value((enum gate)i);
        printf(" %s\n", gate_table[i].text);
    }
}

static void print_default(const struct gate_info *g)
{
    if (g->kind == GATE_KIND_TEXT)
        printf("unset");
    else if (g->kind == GATE_KIND_BOOL)
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
