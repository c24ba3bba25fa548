#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "cli/api_headers.h"
#include "cli/args.h"
#include "cli/cli.h"

static bool runs(const struct be *be, enum op_id op)
{
    if (!be)
        return false;
    return (op_table[op].flags & OPF_FUSE) ? be->elementwise != NULL
                                           : be->families[op_table[op].family] != NULL;
}

static int count_ops(const struct be *be)
{
    int n = 0;

    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        n += runs(be, (enum op_id)op);
    return n;
}

static void print_summary(void)
{
    int declared = 0, total = 0;

    for (size_t i = 0; i < api_header_count; i++) {
        declared += api_headers[i].declared;
        total += api_headers[i].total;
    }
    puts("| what | state |\n|---|---|");
    printf("| functions of mlx-c | %d of %d |\n", declared, total);
    printf("| ops on the CPU | %d of %d |\n", count_ops(&be_cpu), OP_COUNT - 1);
#if MLX_HAVE_VULKAN
    printf("| ops on Vulkan | %d of %d |\n", count_ops(&be_vulkan), OP_COUNT - 1);
#endif
    puts("\n| header of mlx-c | functions |\n|---|---|");
    for (size_t i = 0; i < api_header_count; i++)
        if (api_headers[i].declared)
            printf("| %s | %d of %d |\n", api_headers[i].name, api_headers[i].declared,
                   api_headers[i].total);
}

static void print_table(void)
{
    printf("%-16s %-5s %-7s %-6s\n", "op", "cpu", "vulkan", "fuses");
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        printf("%-16s %-5s %-7s %-6s\n", op_name((enum op_id)op),
               runs(dev_backend(DEV_CPU), (enum op_id)op) ? "yes" : "no",
               runs(dev_backend(DEV_GPU), (enum op_id)op) ? "yes" : "no",
               op_table[op].flags & OPF_FUSE ? "yes" : "-");
}

static void print_markdown(void)
{
    puts("# Ops\n\nEvery op of the graph and the backends that run it; written by `mlx ops "
         "--markdown`.\n");
    puts("| op | CPU | Vulkan | part of elementwise programs |\n|---|---|---|---|");
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        printf("| %s | %s | %s | %s |\n", op_name((enum op_id)op),
               runs(dev_backend(DEV_CPU), (enum op_id)op) ? "yes" : "no",
               runs(dev_backend(DEV_GPU), (enum op_id)op) ? "yes" : "no",
               op_table[op].flags & OPF_FUSE ? "yes" : "");
}

static const struct {
    const char *option;
    void (*print)(void);
} forms[] = { { "--summary", print_summary }, { "--markdown", print_markdown } };

int cmd_ops(int argc, char **argv)
{
    if (argc == 1) {
        print_table();
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (argc == 2 && strcmp(argv[1], forms[i].option) == 0) {
            forms[i].print();
            return 0;
        }
    return args_explain(
        argc, argv,
        "usage: mlx ops [--summary | --markdown]\n\nLists every op with the backends that run "
        "it. --summary prints the counts\nand the coverage of mlx-c, --markdown the whole list as "
        "Markdown.\n");
}
