#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "base/gate.h"
#include "cli/args.h"
#include "cli/cli.h"

struct bench_options bench_options = { .seconds = 1.0, .device = MLX_GPU };

double bench_target(double target)
{
    return bench_options.device == MLX_GPU ? target : 0;
}

static void report(const struct bench_case *c, const struct bench_result *r, double work)
{
    double seconds = r->gpu > 0 ? r->gpu : r->wall;
    double rate = work / seconds / c->scale, target = bench_target(c->target);

    if (bench_options.json) {
        printf("{\"case\": \"%s\", \"wall_us\": %.3f, \"best_us\": %.3f, \"gpu_us\": %.3f, "
               "\"runs\": %d, \"rate\": %.4f, \"unit\": \"%s\", ",
               c->name, r->wall * 1e6, r->best * 1e6, r->gpu * 1e6, r->runs, rate, c->unit);
        bench_put_steadiness(r);
        if (target > 0)
            printf(", \"target\": %.4f", target);
        puts("}");
        return;
    }
    printf("%-12s %-34s %12.1f %12.1f %6.1f%% %10.3f %-8s", c->name, c->what, r->wall * 1e6,
           r->gpu * 1e6, r->spread * 100, rate, c->unit);
    if (target > 0)
        printf(" %8.1f %s", target, rate >= target ? "yes" : "no");
    putchar('\n');
}

static int run_case(const struct bench_case *c, mlx_stream stream)
{
    struct bench_state s = { .c = c,
                             .stream = stream,
                             .bytes = (size_t)bench_options.megabytes << 20 };
    struct bench_result r;
    int rc = c->setup(&s);

    if (rc == 0)
        rc = bench_measure(&r, &s);
    if (rc == 0)
        report(c, &r, c->work(&s));
    for (int i = 0; i < BENCH_MAX_INPUTS; i++)
        mlx_array_free(s.in[i]);
    mlx_clear_cache();
    return rc;
}

static int run_cases(mlx_stream stream)
{
    int failed = 0;

    if (!bench_options.json)
        printf("%-12s %-34s %12s %12s %7s %10s %-8s %s\n", "case", "what", "wall us", "gpu us",
               "spread", "rate", "unit", bench_target(1) > 0 ? "  target reached" : "");
    for (size_t i = 0; i < bench_case_count; i++)
        if (bench_wants(bench_cases[i].name))
            failed += run_case(&bench_cases[i], stream) != 0;
    return failed;
}

static const char usage[] =
    "usage: mlx bench [--json] [--filter PART] [--mb N] [--edge N] [--seconds S] [--device "
    "cpu|gpu]\n"
    "       mlx bench llm (--model MODEL | --random SHAPE) [options]\n"
    "\n"
    "Measures the cases of the table with warm-up and medians; GPU times come from timestamps.\n"
    "Before each case runs a load that raises the clock of the GPU; --json says as \"clock\" what "
    "part\n"
    "of the highest it had after the case, and as \"spread\" how much the times of the case "
    "differ.\n"
    "--one-shot N adds N elements once and ends.\n"
    "Targets, for the GPU only, are those of an NVIDIA H200 with 512 MB operands and 4096 x 4096\n"
    "products. `mlx bench llm` measures language models; `mlx bench llm --help` says more.\n";

/* ---- options ---- */

/* What is wrong is said in one line. */
static int parse_number(double *out, const char *value, double least, double most)
{
    char *end;

    *out = strtod(value, &end);
    if (end != value && *end == '\0' && *out >= least && *out <= most)
        return 0;
    fprintf(stderr, "mlx bench: '%s' is not a number from %g to %g\n", value, least, most);
    return 1;
}

static int parse_count(int *out, const char *value, int most)
{
    double number;
    int rc = parse_number(&number, value, 1, most);

    if (rc == 0 && number != (int)number) {
        fprintf(stderr, "mlx bench: '%s' is not a whole number\n", value);
        rc = 1;
    }
    if (rc == 0)
        *out = (int)number;
    return rc;
}

static int parse_device(const char *value)
{
    bool is_cpu = strcmp(value, "cpu") == 0;

    if (!is_cpu && strcmp(value, "gpu") != 0) {
        fprintf(stderr, "mlx bench: '%s' is neither cpu nor gpu\n", value);
        return 1;
    }
    bench_options.device = is_cpu ? MLX_CPU : MLX_GPU;
    return 0;
}

bool bench_wants(const char *name)
{
    return !bench_options.filter || strstr(name, bench_options.filter);
}

static int parse_filter(const char *value)
{
    static const char *const tables[] = { "startup", "latency", "one_shot", "products" };
    bool matches;

    bench_options.filter = value;
    matches = bench_wants_quantized() || bench_wants_fast() || bench_wants_training();
    for (size_t i = 0; i < bench_case_count && !matches; i++)
        matches = bench_wants(bench_cases[i].name);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0] && !matches; i++)
        matches = bench_wants(tables[i]);
    if (!matches)
        fprintf(stderr, "mlx bench: no case has '%s' in its name\n", value);
    return !matches;
}

/* Arrays have at most 2^31 - 1 elements of float32 along one axis; products take the cube of their
 * edge. */
#define MAX_MEGABYTES 8191
#define MAX_EDGE 65536
#define MAX_SECONDS 3600.0

static int parse_option(const char *name, const char *value)
{
    if (strcmp(name, "--filter") == 0)
        return parse_filter(value);
    if (strcmp(name, "--mb") == 0)
        return parse_count(&bench_options.megabytes, value, MAX_MEGABYTES);
    if (strcmp(name, "--edge") == 0)
        return parse_count(&bench_options.edge, value, MAX_EDGE);
    if (strcmp(name, "--one-shot") == 0)
        return parse_count(&bench_options.one_shot, value, 1 << 28);
    if (strcmp(name, "--seconds") == 0)
        return parse_number(&bench_options.seconds, value, 0, MAX_SECONDS);
    if (strcmp(name, "--device") == 0)
        return parse_device(value);
    fprintf(stderr, "mlx bench: unknown option %s (mlx bench --help lists them)\n", name);
    return 1;
}

static int parse(int argc, char **argv)
{
    struct args a = { .argc = argc, .argv = argv };

    while (args_next(&a)) {
        if (args_is(&a, "--json", 0)) {
            bench_options.json = true;
            continue;
        }
        const char *value = args_value(&a);
        if (!value) {
            fprintf(stderr, "mlx bench: %s is no option or lacks its value\n", a.name);
            return 1;
        }
        if (parse_option(a.name, value))
            return 1;
    }
    return args_end(&a) ? 0 : 1;
}

static void size_by_device(void)
{
    const struct be *gpu = dev_backend(DEV_GPU);
    bool fast =
        bench_options.device == MLX_GPU && gpu && gpu->open() == ERR_OK && gpu->is_hardware();

    if (!bench_options.megabytes)
        bench_options.megabytes = fast ? 512 : 16;
    if (!bench_options.edge)
        bench_options.edge = fast ? 4096 : 512;
}

void bench_put_text(const char *key, const char *text)
{
    printf("\"%s\": \"", key);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        printf(c == '"' || c == '\\' ? "\\%c" : c < 0x20 ? "\\u%04x" : "%c", c);
    }
    printf("\", ");
}

void bench_begin_json(mlx_device device)
{
    static const char *const keys[][2] = { { "device", "device_name" }, { "driver", "driver" } };
    mlx_device_info info = mlx_device_info_new();
    bool known = mlx_device_info_get(&info, device) == 0;

    printf("{");
    bench_put_text("version", MLX_VULKAN_VERSION);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *text = "none";
        bool exists = false;
        if (known && mlx_device_info_has_key(&exists, info, keys[i][1]) == 0 && exists)
            mlx_device_info_get_string(&text, info, keys[i][1]);
        bench_put_text(keys[i][0], text);
    }
    mlx_device_info_free(info);
}

static int run_all(mlx_stream stream, mlx_device device, double began)
{
    if (bench_options.one_shot > 0)
        return bench_add_once(bench_options.one_shot, stream);
    if (bench_options.json) {
        bench_begin_json(device);
        printf("\"megabytes\": %d, \"edge\": %d}\n", bench_options.megabytes, bench_options.edge);
    }
    int failed = bench_startup(stream, began);
    if (bench_load_open(bench_options.device))
        return 1;
    return failed + run_cases(stream) + bench_latency(stream) + bench_fast(stream) +
           bench_training(stream) + bench_products(stream) + bench_quantized(stream);
}

int cmd_bench(int argc, char **argv)
{
    double began = bench_now();

    if (argc > 1 && strcmp(argv[1], "llm") == 0)
        return bench_llm(argc - 1, argv + 1);
    if (args_want_help(argc, argv)) {
        fputs(usage, stdout);
        return 0;
    }
    if (parse(argc, argv))
        return 1;
    bench_options.program = "/proc/self/exe";
    gate_set_int(GATE_VK_TIMING, 1);
    mlx_device device = mlx_device_new_type(bench_options.device, 0);
    int failed = 1;
    if (mlx_set_default_device(device) == 0) {
        mlx_stream stream = mlx_stream_new();
        size_by_device();
        failed = mlx_get_default_stream(&stream, device);
        if (!failed)
            failed = run_all(stream, device, began);
        bench_load_close();
        mlx_stream_free(stream);
    }
    mlx_device_free(device);
    return failed ? 1 : 0;
}
