/* How a case is measured: warm-up, repetitions, medians. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/stat.h"
#include "bench/bench.h"
#include "bench/steady.h"

#define MIN_RUNS 5
#define MAX_RUNS 200
/* Runs before all: operands move, pipelines are built; the second has plans for what is there. */
#define FIRST_RUNS 2
/* Runs after the load, which took the place of the work's data in the caches. */
#define LAST_RUNS 2
/* Part of the time for a case that its own work has to settle. */
#define SETTLING 0.2

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

/* ---- warm-up ---- */

static int run_times(const struct bench_work *w, int n)
{
    double seconds;
    int rc = 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = w->run(&seconds, w->data);
    return rc;
}

/* Slow work, of a software device say, has no more than its first runs. */
static int settle(const struct bench_work *w, double began)
{
    struct steady_rule rule = { .samples = 5,
                                .tolerance = 0.02,
                                .most = SETTLING * bench_options.seconds };
    bool is_done = bench_now() - began >= rule.most;
    struct steady s;

    steady_begin(&s, &rule, 0, began);
    while (!is_done) {
        double seconds, gpu = bench_gpu_seconds();
        if (w->run(&seconds, w->data))
            return 1;
        gpu = bench_gpu_seconds() - gpu;
        is_done = steady_add(&s, gpu > 0 ? gpu : seconds, bench_now());
    }
    return 0;
}

int bench_warm(const struct bench_work *w)
{
    double began = bench_now();
    int rc = run_times(w, FIRST_RUNS) || settle(w, began);

    if (rc || !bench_load_is_open())
        return rc;
    return bench_load_raise() || run_times(w, LAST_RUNS);
}

/* ---- measuring ---- */

int bench_measure_work(struct bench_result *r, const struct bench_work *w)
{
    double wall[MAX_RUNS], gpu[MAX_RUNS], began = bench_now();
    int n = 0;

    if (bench_warm(w))
        return 1;
    r->warm = bench_now() - began;
    for (double start = bench_now();
         n < MAX_RUNS && (n < MIN_RUNS || bench_now() - start < bench_options.seconds); n++) {
        double g = bench_gpu_seconds();
        if (w->run(&wall[n], w->data))
            return 1;
        gpu[n] = bench_gpu_seconds() - g;
    }
    r->clock = bench_load_clock();
    r->runs = n;
    r->wall = bench_median(wall, n);
    r->best = wall[0];
    r->gpu = bench_median(gpu, n);
    r->spread = (wall[n * 9 / 10] - wall[n / 10]) / r->wall;
    return 0;
}

/* One result, from graph to completion. */
static int run_case(double *seconds, void *data)
{
    const struct bench_state *s = data;
    double began = bench_now();
    mlx_array out = mlx_array_new();
    int rc = s->c->build(&out, s);

    if (rc == 0)
        rc = mlx_array_eval(out);
    mlx_array_free(out);
    *seconds = bench_now() - began;
    return rc;
}

int bench_measure(struct bench_result *r, struct bench_state *s)
{
    return bench_measure_work(r, &(struct bench_work){ run_case, s });
}

void bench_put_steadiness(const struct bench_result *r)
{
    printf("\"spread\": %.4f, \"warm_ms\": %.1f", r->spread, r->warm * 1e3);
    if (r->clock > 0)
        printf(", \"clock\": %.3f", r->clock);
}
