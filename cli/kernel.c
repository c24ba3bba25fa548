/* `mlx kernel`: runs a compute module of SPIR-V on arrays in files. */
#include "cli/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "mlx/c/ext.h"
#include "spirv/module.h"

static const char usage_text[] =
    "usage: mlx kernel FILE.spv [--in FILE.npy]... --out TYPE:SHAPE[=FILE.npy]...\n"
    "           --groups X[,Y[,Z]] | --grid X[,Y[,Z]]  [--local X[,Y[,Z]]]\n"
    "           [--push NUMBERS] [--spec ID=NUMBER]... [--init VALUE] [--repeat N]\n"
    "       mlx kernel FILE.spv --info\n\n"
    "Runs a compute module on the GPU. Arrays are its storage buffers, binding 0, 1, ... of\n"
    "set 0: first the inputs, then the outputs; a module without buffers is given their\n"
    "addresses in front of its push constants. --groups counts workgroups, --grid threads.\n"
    "SHAPE is 1024 or 32x32; outputs are written to out0.npy, out1.npy, ... unless they\n"
    "have names. NUMBERS are u32:7, f32:0.5, ... with commas between them. With --repeat N\n"
    "a table says how long N further runs take. --info prints what the module declares.\n"
    "TYPE is one of " KERNEL_WORDS ".\n";

#define MAX_ARRAYS SPIRV_MAX_BINDINGS

struct options {
    const char *file;
    const char *in[MAX_ARRAYS];
    struct kernel_out out[MAX_ARRAYS];
    int n_in, n_out;
    int grid[3], local[3];
    bool has_grid, in_groups, info, help, has_init;
    float init;
    struct kernel_bytes push;
    struct {
        uint32_t id, bits;
    } spec[SPIRV_MAX_SPEC];
    int n_spec;
    int repeat;
};

static bool complain(const char *what, const char *word)
{
    fprintf(stderr, "mlx kernel: %s%s\n`mlx kernel --help` says more.\n", what, word);
    return false;
}

/* ---- options ---- */

static bool take_in(struct options *o, const char *value)
{
    if (o->n_in == MAX_ARRAYS)
        return false;
    o->in[o->n_in++] = value;
    return true;
}

static bool take_out(struct options *o, const char *value)
{
    return o->n_out < MAX_ARRAYS && kernel_parse_out(&o->out[o->n_out++], value);
}

static bool take_groups(struct options *o, const char *value)
{
    bool is_second = o->has_grid;

    o->has_grid = o->in_groups = true;
    return !is_second && kernel_parse_three(o->grid, value);
}

static bool take_grid(struct options *o, const char *value)
{
    bool is_second = o->has_grid;

    o->has_grid = true;
    return !is_second && kernel_parse_three(o->grid, value);
}

static bool take_local(struct options *o, const char *value)
{
    return kernel_parse_three(o->local, value);
}

static bool take_push(struct options *o, const char *value)
{
    return kernel_parse_numbers(&o->push, value);
}

static bool take_spec(struct options *o, const char *value)
{
    if (o->n_spec == SPIRV_MAX_SPEC ||
        !kernel_parse_spec(&o->spec[o->n_spec].id, &o->spec[o->n_spec].bits, value))
        return false;
    o->n_spec++;
    return true;
}

static bool take_init(struct options *o, const char *value)
{
    char *end;

    o->init = strtof(value, &end);
    o->has_init = true;
    return end != value && !*end;
}

static bool take_repeat(struct options *o, const char *value)
{
    int three[3];

    if (!kernel_parse_three(three, value) || strchr(value, ',') || three[0] < 1)
        return false;
    o->repeat = three[0];
    return true;
}

static const struct {
    const char *name;
    bool (*take)(struct options *o, const char *value);
} option_rows[] = {
    { "--in", take_in },     { "--out", take_out },     { "--groups", take_groups },
    { "--grid", take_grid }, { "--local", take_local }, { "--push", take_push },
    { "--spec", take_spec }, { "--init", take_init },   { "--repeat", take_repeat },
};

/* False with a message if the option is none, or its value is no value. */
static bool take_option(struct options *o, struct args *a)
{
    for (size_t i = 0; i < ARRAY_LEN(option_rows); i++) {
        if (!args_is(a, option_rows[i].name, 0))
            continue;
        const char *value = args_value(a);
        if (!value)
            return complain(a->name, " needs a value");
        if (option_rows[i].take(o, value))
            return true;
        fprintf(stderr, "mlx kernel: %s cannot be %s\n`mlx kernel --help` says more.\n", a->name,
                value);
        return false;
    }
    return complain("unknown option ", a->word);
}

static bool parse(struct options *o, int argc, char **argv)
{
    struct args a = { .argc = argc, .argv = argv };
    bool ok = true;

    while (ok && args_next(&a)) {
        if (args_is(&a, "--help", 'h'))
            o->help = true;
        else if (args_is(&a, "--info", 0))
            o->info = true;
        else if (a.word[0] == '-')
            ok = take_option(o, &a);
        else if (o->file)
            ok = complain("more than one FILE: ", a.word);
        else
            o->file = a.word;
    }
    if (!ok || !args_end(&a))
        return false;
    if (o->help)
        return true;
    if (!o->file)
        return complain("FILE is missing", "");
    if (o->info)
        return true;
    if (!o->n_out)
        return complain("--out is missing", "");
    return o->has_grid || complain("--groups or --grid is missing", "");
}

/* ---- what a module declares ---- */

static void print_sizes(const struct spirv_info *info)
{
    printf("workgroup     %u x %u x %u", info->local_size[0], info->local_size[1],
           info->local_size[2]);
    for (int i = 0; i < 3; i++)
        if (info->local_spec[i] >= 0)
            printf(", %c by constant %u", "xyz"[i], info -> spec.v[info->local_spec[i]].id);
    putchar('\n');
    if (info->shared_size)
        printf("shared        %" PRIu64 " bytes\n", info->shared_size);
    if (info->push_size)
        printf("push          %u bytes\n", info->push_size);
}

static void print_spec(const struct spirv_spec *s)
{
    float f;

    memcpy(&f, &s->value, sizeof f);
    switch (s->kind) {
    case SPIRV_SPEC_BOOL:
        printf("constant %-4u bool, %s\n", s->id, s->value ? "true" : "false");
        break;
    case SPIRV_SPEC_INT:
        printf("constant %-4u i32, %d\n", s->id, (int32_t)s->value);
        break;
    case SPIRV_SPEC_UINT:
        printf("constant %-4u u32, %u\n", s->id, s->value);
        break;
    case SPIRV_SPEC_FLOAT:
        printf("constant %-4u f32, %g\n", s->id, (double)f);
        break;
    }
}

static void print_info(const struct spirv_info *info)
{
    printf("SPIR-V        %u.%u\n", info->version >> 16, info->version >> 8 & 0xff);
    printf("entry         %s\n", info->entry);
    print_sizes(info);
    for (size_t i = 0; i < info->binding.n; i++)
        printf("binding %-5u %" PRIu64 " bytes or more\n", info->binding.v[i].binding,
               info->binding.v[i].min_size);
    if (!info->binding.n)
        printf("arrays        by address\n");
    for (size_t i = 0; i < info->spec.n; i++)
        print_spec(&info->spec.v[i]);
    for (size_t i = 0; i < info->capability.n; i++)
        printf("capability    %u %s\n", info->capability.v[i],
               spirv_capability_name(info->capability.v[i]));
    for (size_t i = 0; i < info->extension.n; i++)
        printf("extension     %s\n", info->extension.v[i]);
}

static int show_info(const char *file)
{
    struct spirv_module *m = NULL;
    char *bytes = NULL;
    size_t n;
    enum err err = file_read(&bytes, &n, file, (size_t)64 << 20);

    if (!err)
        err = spirv_new(&m, bytes, n);
    if (err)
        fprintf(stderr, "mlx: %s\n", err_text());
    else
        print_info(&m->info);
    spirv_unref(&m);
    mem_free(bytes);
    return err ? 1 : 0;
}

/* ---- a run ---- */

struct job {
    const struct options *o;
    mlx_fast_vulkan_kernel kernel;
    mlx_fast_vulkan_kernel_config config;
    mlx_stream stream;
    mlx_vector_array in, out;
};

/* Failures of the library have said what they are. */
static int configure(struct job *j)
{
    const struct options *o = j->o;
    const int *g = o->grid;
    int rc = o->in_groups ? mlx_fast_vulkan_kernel_config_set_groups(j->config, g[0], g[1], g[2])
                          : mlx_fast_vulkan_kernel_config_set_grid(j->config, g[0], g[1], g[2]);

    for (int i = 0; !rc && i < o->n_out; i++)
        rc = mlx_fast_vulkan_kernel_config_add_output_arg(j->config, o->out[i].shape,
                                                          o->out[i].ndim, o->out[i].dtype);
    for (int i = 0; !rc && i < o->n_spec; i++)
        rc = mlx_fast_vulkan_kernel_config_set_specialization(j->config, o->spec[i].id,
                                                              o->spec[i].bits);
    if (!rc)
        rc = mlx_fast_vulkan_kernel_config_set_thread_group(j->config, o->local[0], o->local[1],
                                                            o->local[2]);
    if (!rc)
        rc = mlx_fast_vulkan_kernel_config_set_push_constants(j->config, o->push.v, o->push.n);
    if (!rc && o->has_init)
        rc = mlx_fast_vulkan_kernel_config_set_init_value(j->config, o->init);
    return rc;
}

static int load(struct job *j)
{
    mlx_stream cpu = mlx_default_cpu_stream_new();
    mlx_array a = mlx_array_new();
    int rc = 0;

    for (int i = 0; !rc && i < j->o->n_in; i++) {
        rc = mlx_load(&a, j->o->in[i], cpu);
        if (!rc)
            rc = mlx_vector_array_append_value(j->in, a);
    }
    mlx_array_free(a);
    mlx_stream_free(cpu);
    return rc ? rc : mlx_eval(j->in);
}

/* Once, until it is complete. */
static int run_once(struct job *j, double *seconds, double *gpu)
{
    uint64_t before = 0, after = 0;
    int64_t begin = clock_ns();
    int rc = mlx_stats_get(&before, "gpu_nanoseconds");

    if (!rc)
        rc = mlx_fast_vulkan_kernel_apply(&j->out, j->kernel, j->in, j->config, j->stream);
    if (!rc)
        rc = mlx_eval(j->out);
    *seconds = (double)(clock_ns() - begin) * 1e-9;
    if (!rc)
        rc = mlx_stats_get(&after, "gpu_nanoseconds");
    *gpu = (double)(after - before) * 1e-9;
    return rc;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print_times(const char *name, double *v, int n)
{
    double sum = 0;

    qsort(v, (size_t)n, sizeof *v, by_value);
    for (int i = 0; i < n; i++)
        sum += v[i];
    printf("%-10s %12.1f %12.1f %12.1f %12.1f\n", name, v[0] * 1e6, v[n / 2] * 1e6, sum / n * 1e6,
           v[n - 1] * 1e6);
}

static int repeat(struct job *j, double first, double first_gpu)
{
    int n = j->o->repeat, rc = 0;
    double *wall = mem_alloc_array((size_t)n, sizeof *wall);
    double *gpu = mem_alloc_array((size_t)n, sizeof *gpu);

    if (!wall || !gpu) {
        fprintf(stderr, "mlx: %s\n", err_text());
        rc = 1;
    }
    for (int i = 0; !rc && i < n; i++)
        rc = run_once(j, &wall[i], &gpu[i]);
    if (!rc) {
        printf("first      %12.1f us, GPU %.1f us\n", first * 1e6, first_gpu * 1e6);
        printf("us         %12s %12s %12s %12s\n", "least", "median", "mean", "most");
        print_times("wall", wall, n);
        print_times("GPU", gpu, n);
    }
    mem_free(wall);
    mem_free(gpu);
    return rc;
}

static int save(const struct job *j)
{
    mlx_array a = mlx_array_new();
    int rc = 0;

    for (int i = 0; !rc && i < j->o->n_out; i++) {
        char own[32];
        const char *file = j->o->out[i].file;
        snprintf(own, sizeof own, "out%d.npy", i);
        rc = mlx_vector_array_get(&a, j->out, (size_t)i);
        if (!rc)
            rc = mlx_save(file ? file : own, a);
        if (!rc)
            printf("wrote %s\n", file ? file : own);
    }
    mlx_array_free(a);
    return rc;
}

static int run(const struct options *o)
{
    double first, gpu;
    int rc = o->repeat ? mlx_setting_set("MLX_VK_TIMING", "1") : 0;
    struct job j = { .o = o, .stream = mlx_default_gpu_stream_new() };

    if (rc || !j.stream.ctx) /* which says why */
        return 1;
    j.kernel = mlx_fast_vulkan_kernel_new_file(o->file, o->file, true);
    j.config = mlx_fast_vulkan_kernel_config_new();
    j.in = mlx_vector_array_new();
    j.out = mlx_vector_array_new();
    rc = !j.kernel.ctx || configure(&j) || load(&j) || run_once(&j, &first, &gpu) ||
         (o->repeat && repeat(&j, first, gpu)) || save(&j);
    mlx_vector_array_free(j.out);
    mlx_vector_array_free(j.in);
    mlx_fast_vulkan_kernel_config_free(j.config);
    mlx_fast_vulkan_kernel_free(j.kernel);
    mlx_stream_free(j.stream);
    return rc ? 1 : 0;
}

int cmd_kernel(int argc, char **argv)
{
    struct options o = { .file = NULL };

    if (!parse(&o, argc, argv))
        return 1;
    if (o.help) {
        fputs(usage_text, stdout);
        return 0;
    }
    return o.info ? show_info(o.file) : run(&o);
}
