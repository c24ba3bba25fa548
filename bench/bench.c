#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/backend.h"
#include "cli/cli.h"
#include "core/gate.h"
#include "core/stat.h"

#define MAX_RUNS 200
#define WARM_UP 3

struct bench_options bench_options = { .seconds = 1.0, .device = MLX_GPU };

double bench_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_gpu_seconds(void)
{
    return (double)stat_get(STAT_GPU_NANOSECONDS) * 1e-9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, ascending);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* One result, from graph to completion. */
static int run_once(const struct bench_state *s)
{
    mlx_array out = mlx_array_new();
    int rc = s->c->build(&out, s);

    if (rc == 0)
        rc = mlx_array_eval(out);
    mlx_array_free(out);
    return rc;
}

int bench_measure(struct bench_result *r, const struct bench_state *s)
{
    double wall[MAX_RUNS], gpu[MAX_RUNS];
    int n = 0;

    for (int i = 0; i < WARM_UP; i++)
        if (run_once(s))
            return 1;
    for (double start = bench_now();
         n < MAX_RUNS && (n < 5 || bench_now() - start < bench_options.seconds); n++) {
        double t = bench_now(), g = bench_gpu_seconds();
        if (run_once(s))
            return 1;
        wall[n] = bench_now() - t;
        gpu[n] = bench_gpu_seconds() - g;
    }
    r->runs = n;
    r->wall = bench_median(wall, n);
    r->gpu = bench_median(gpu, n);
    r->spread = (wall[n * 9 / 10] - wall[n / 10]) / r->wall;
    return 0;
}

static void report(const struct bench_case *c, const struct bench_result *r, double work)
{
    double seconds = r->gpu > 0 ? r->gpu : r->wall;
    double rate = work / seconds / c->scale;

    if (bench_options.json)
        printf(
            "{\"case\": \"%s\", \"wall_us\": %.3f, \"gpu_us\": %.3f, \"spread\": %.4f, \"runs\": "
            "%d, \"rate\": %.4f, \"unit\": \"%s\", \"target\": %.4f}\n",
            c->name, r->wall * 1e6, r->gpu * 1e6, r->spread, r->runs, rate, c->unit, c->target);
    else
        printf("%-12s %-34s %12.1f %12.1f %6.1f%% %10.3f %-8s %8.1f %s\n", c->name, c->what,
               r->wall * 1e6, r->gpu * 1e6, r->spread * 100, rate, c->unit, c->target,
               rate >= c->target ? "yes" : "no");
}

static int run_case(const struct bench_case *c, mlx_stream stream)
{
    struct bench_state s = { .c = c, .stream = stream, .bytes = bench_options.megabytes << 20 };
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
        printf("%-12s %-34s %12s %12s %7s %10s %-8s %8s %s\n", "case", "what", "wall us", "gpu us",
               "spread", "rate", "unit", "target", "reached");
    for (size_t i = 0; i < bench_case_count; i++)
        if (!bench_options.filter || strstr(bench_cases[i].name, bench_options.filter))
            failed += run_case(&bench_cases[i], stream) != 0;
    return failed;
}

static const char usage[] =
    "usage: mlx bench [--json] [--filter PART] [--mb N] [--edge N] [--seconds S] [--device "
    "cpu|gpu]\n"
    "\n"
    "Measures the cases of the table with warm-up and medians; GPU times come from timestamps.\n"
    "--one-shot N adds N elements once and ends.\n"
    "Targets are those of an NVIDIA H200 with 512 MB operands and 4096 x 4096 products.\n";

static int parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--json") == 0) {
            bench_options.json = true;
            continue;
        }
        if (!value)
            return 1;
        if (strcmp(argv[i], "--filter") == 0)
            bench_options.filter = value;
        else if (strcmp(argv[i], "--mb") == 0)
            bench_options.megabytes = strtoul(value, NULL, 10);
        else if (strcmp(argv[i], "--edge") == 0)
            bench_options.edge = atoi(value);
        else if (strcmp(argv[i], "--one-shot") == 0)
            bench_options.one_shot = atoi(value);
        else if (strcmp(argv[i], "--seconds") == 0)
            bench_options.seconds = atof(value);
        else if (strcmp(argv[i], "--device") == 0 && strcmp(value, "cpu") == 0)
            bench_options.device = MLX_CPU;
        else if (strcmp(argv[i], "--device") == 0 && strcmp(value, "gpu") == 0)
            bench_options.device = MLX_GPU;
        else
            return 1;
        i++;
    }
    return 0;
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

static int run_all(mlx_stream stream, double began)
{
    if (bench_options.one_shot > 0)
        return bench_add_once(bench_options.one_shot, stream);
    return bench_startup(stream, began) + run_cases(stream) + bench_latency(stream) +
           bench_products(stream);
}

int cmd_bench(int argc, char **argv)
{
    double began = bench_now();

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    if (parse(argc, argv)) {
        fputs(usage, stderr);
        return 1;
    }
    bench_options.program = "/proc/self/exe";
    gate_set_int(GATE_VK_TIMING, 1);
    mlx_device device = mlx_device_new_type(bench_options.device, 0);
    int failed = 1;
    if (mlx_set_default_device(device) == 0) {
        mlx_stream stream = mlx_stream_new();
        size_by_device();
        failed = mlx_get_default_stream(&stream, device);
        if (!failed)
            failed = run_all(stream, began);
        mlx_stream_free(stream);
    }
    mlx_device_free(device);
    return failed ? 1 : 0;
}
