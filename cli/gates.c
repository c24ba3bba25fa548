#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "core/gate.h"

static void print_value(enum gate id)
{
    if (gate_table[id].kind == GATE_KIND_TEXT)
        printf("%-10s", gate_text(id) ? gate_text(id) : "-");
    else
        printf("%-10" PRId64, gate_int(id));
}

int cmd_gates(int argc, char **argv)
{
    if (argc > 1) {
        fputs("usage: mlx gates\n\nLists every setting: variable, value, meaning.\n",
              strcmp(argv[1], "--help") == 0 ? stdout : stderr);
        return strcmp(argv[1], "--help") == 0 ? 0 : 1;
    }
    for (int i = 0; i < GATE_COUNT; i++) {
        printf("%-34s ", gate_table[i].variable);
        print_value((enum gate)i);
        printf(" %s\n", gate_table[i].text);
    }
    return 0;
}
