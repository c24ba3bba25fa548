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

static bool runs_on_cpu(enum op_id op)
{
    return runs(dev_backend(DEV_CPU), op);
}

static bool runs_on_gpu(enum op_id op)
{
    return runs(dev_backend(DEV_GPU), op);
}

static bool fuses(enum op_id op)
{
    return op_table[op].flags & OPF_FUSE;
}

static bool has_gradient(enum op_id op)
{
    return op_table[op].vjp != NULL;
}

static bool has_tangent(enum op_id op)
{
    return op_table[op].jvp != NULL;
}

static bool has_batch(enum op_id op)
{
    return op_table[op].vmap != NULL;
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

/* What the lists say of an op. "none" of a transform is an error in MLX's words. */
static const struct {
    const char *title;
    bool (*holds)(enum op_id op);
} columns[] = {
    { "CPU", runs_on_cpu },       { "Vulkan", runs_on_gpu },  { "fuses", fuses },
    { "gradient", has_gradient }, { "tangent", has_tangent }, { "batch", has_batch },
};

static void print_table(void)
{
    printf("%-26s", "op");
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        printf(" %-8s", columns[i].title);
    puts("");
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        printf("%-26s", op_name((enum op_id)op));
        for (size_t i = 0; i < ARRAY_LEN(columns); i++)
            printf(" %-8s", columns[i].holds((enum op_id)op) ? "yes" : "-");
        puts("");
    }
}

static void print_markdown(void)
{
    puts("# Ops\n\nEvery op of the graph: the backends that run it, whether it becomes part of "
         "elementwise\nprograms, and which transforms it has. Written by `mlx ops --markdown`.\n");
    printf("| op |");
    for (size_t i = 0; i < ARRAY_LEN(columns); i++)
        printf(" %s |", columns[i].title);
    puts("\n|---|---|---|---|---|---|---|");
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        printf("| %s |", op_name((enum op_id)op));
        for (size_t i = 0; i < ARRAY_LEN(columns); i++)
            printf(" %s |", columns[i].holds((enum op_id)op) ? "yes" : "");
        puts("");
    }
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
        "it and its transforms. --summary prints the\ncounts and the coverage of mlx-c, --markdown "
        "the whole list as Markdown.\n");
}
