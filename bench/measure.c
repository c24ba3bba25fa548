/* How a case is measured: repetitions, medians. */
#include <stdlib.h>
#include <time.h>

#include "bench/bench.h"
#include "core/stat.h"

#define MAX_RUNS 200
#define WARM_UP 3

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
    r->best = wall[0];
    r->gpu = bench_median(gpu, n);
    r->spread = (wall[n * 9 / 10] - wall[n / 10]) / r->wall;
    return 0;
}
