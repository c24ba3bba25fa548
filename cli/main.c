#include <stdio.h>
#include <string.h>

#include "base/common.h"
#include "base/gate.h"
#include "cli/cli.h"
#include "mlx/c/mlx.h"

/* Whose names, types and values the public headers have (CHANGELOG.md). */
#define MLX_C_VERSION_MATCHED "0.6.0"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
} commands[] = {
    { "generate", cmd_generate, "write a model's answer to a prompt" },
    { "chat", cmd_chat, "talk with a model" },
    { "info", cmd_info, "show the devices, their drivers, memory and capabilities" },
    { "ops", cmd_ops, "list the ops and the backends that run them" },
    { "gates", cmd_gates, "list the settings and their values" },
    { "bench", cmd_bench, "measure throughput and latency" },
    { "kernel", cmd_kernel, "run a compute module of SPIR-V on arrays in files" },
    { "tokenize", cmd_tokenize, "show the token ids of a text, or the text of ids" },
};

static void usage(FILE *out)
{
    fputs("usage: mlx COMMAND [options]\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].text);
    fputs("\n`mlx COMMAND --help` says more, `mlx --version` which version this is.\n", out);
}

static void print_version(void)
{
    mlx_string version = mlx_string_new();

    if (mlx_version(&version) == 0)
        printf("mlx-vulkan %s, matching mlx-c %s and MLX %s\n", MLX_VULKAN_VERSION,
               MLX_C_VERSION_MATCHED, mlx_string_data(version));
    mlx_string_free(version);
}

/* The command reports failures itself and goes on to its own exit code. */
static void on_error(const char *msg, void *data)
{
    (void)data;
    fprintf(stderr, "mlx: %s\n", msg);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    return NULL;
}

static int run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "--help";
    const struct command *c = find_command(name);

    if (c)
        return c->run(argc - 1, argv + 1);
    if (strcmp(name, "help") == 0 && argc == 3 && (c = find_command(argv[2])))
        return c->run(2, (char *[]){ argv[2], (char *)"--help" });
    if (strcmp(name, "--version") == 0) {
        print_version();
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        usage(argc > 1 ? stdout : stderr);
        return argc > 1 ? 0 : 1;
    }
    fprintf(stderr, "mlx: unknown command '%s'\n\n", name);
    usage(stderr);
    return 1;
}

int main(int argc, char **argv)
{
    mlx_set_error_handler(on_error, NULL, NULL);
    gate_warn_unknown();
    int rc = run(argc, argv);
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout))) {
        fprintf(stderr, "mlx: standard output cannot be written\n");
        rc = 1;
    }
    return rc;
}
