/* Small work: cost per op of long graphs, and the round trip of one small add. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/gate.h"
#include "bench/bench.h"

#define TINY_OPS 1000
#define SHOTS 5

/* TINY_OPS adds, dependent or not; the fusion gate is off. */
struct tiny {
    mlx_array a, b;
    mlx_stream stream;
    bool dependent;
};

/* Builds, submits and awaits them. What counts is the processor's part, up to the submission. */
static int tiny_run(double *seconds, void *data)
{
    const struct tiny *t = data;
    mlx_vector_array outs = mlx_vector_array_new();
    mlx_array x = mlx_array_new();
    double start = bench_now();
    int rc = mlx_array_set(&x, t->a);

    for (int i = 0; i < TINY_OPS && rc == 0; i++) {
        rc = mlx_add(&x, t->dependent ? x : t->a, t->b, t->stream);
        if (!t->dependent && rc == 0)
            rc = mlx_vector_array_append_value(outs, x);
    }
    if (t->dependent)
        rc |= mlx_vector_array_append_value(outs, x);
    rc |= mlx_async_eval(outs);
    *seconds = bench_now() - start;
    rc |= mlx_synchronize(t->stream);
    mlx_array_free(x);
    mlx_vector_array_free(outs);
    return rc;
}

void bench_report(const char *name, const char *what, double us, double target,
                  const struct bench_result *r)
{
    target = bench_target(target);
    if (bench_options.json) {
        printf("{\"case\": \"%s\", \"us\": %.3f", name, us);
        if (target > 0)
            printf(", \"target_us\": %.1f", target);
        if (r) {
            printf(", ");
            bench_put_steadiness(r);
        }
        puts("}");
    } else if (target > 0)
        printf("%-24s %-44s %11.2f us  at most %8.1f  %s\n", name, what, us, target,
               us <= target ? "yes" : "no");
    else
        printf("%-24s %-44s %11.2f us\n", name, what, us);
}

/* The processor's part without timestamps, which are work of its own, and the GPU's with them. */
static int tiny_rows(struct tiny *t)
{
    const char *kind = t->dependent ? "dependent" : "independent";
    struct bench_work work = { tiny_run, t };
    struct bench_result gpu, cpu;
    char name[64];
    int64_t timing = gate_set_int(GATE_VK_TIMING, 0);
    int rc = bench_measure_work(&cpu, &work);

    gate_set_int(GATE_VK_TIMING, timing);
    rc = rc || bench_measure_work(&gpu, &work);
    if (rc)
        return 1;
    snprintf(name, sizeof name, "%s_gpu", kind);
    bench_report(name, "1000 tiny ops, GPU time of one", gpu.gpu / TINY_OPS * 1e6,
                 t->dependent ? 2.6 : 0.3, &gpu);
    snprintf(name, sizeof name, "%s_cpu", kind);
    bench_report(name, "1000 tiny ops, graph to submit, of one", cpu.wall / TINY_OPS * 1e6, 2.0,
                 &cpu);
    return 0;
}

static int tiny_ops(mlx_stream s)
{
    float ones[64];
    int shape = 64, rc = 0;
    int64_t fuse = gate_set_int(GATE_PLAN_FUSE, 0);

    for (int i = 0; i < 64; i++)
        ones[i] = 1.0f;
    struct tiny t = { mlx_array_new_data(ones, &shape, 1, MLX_FLOAT32),
                      mlx_array_new_data(ones, &shape, 1, MLX_FLOAT32), s, true };
    rc = tiny_rows(&t);
    t.dependent = false;
    rc = rc || tiny_rows(&t);
    gate_set_int(GATE_PLAN_FUSE, fuse);
    mlx_array_free(t.a);
    mlx_array_free(t.b);
    return rc;
}

/* ---- one small call: what the first costs a process, and what every further one costs ---- */

static int add_once(const float *data, int n, mlx_stream s)
{
    mlx_array a = mlx_array_new_data(data, &n, 1, MLX_FLOAT32);
    mlx_array b = mlx_array_new_data(data, &n, 1, MLX_FLOAT32);
    mlx_array c = mlx_array_new();
    int rc = mlx_add(&c, a, b, s) || mlx_array_eval(c);
    const float *r = rc ? NULL : mlx_array_data_float32(c);

    rc = !r || r[n - 1] != 2.0f * data[n - 1];
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
    return rc;
}

static float *ramp(int n)
{
    float *data = malloc((size_t)n * sizeof *data);

    for (int i = 0; data && i < n; i++)
        data[i] = (float)i;
    return data;
}

int bench_add_once(int n, mlx_stream s)
{
    float *data = ramp(n);
    int rc = data ? add_once(data, n, s) : 1;

    free(data);
    return rc;
}

struct trip {
    const float *data;
    int n;
    mlx_stream stream;
};

static int trip_run(double *seconds, void *data)
{
    const struct trip *t = data;
    double start = bench_now();
    int rc = add_once(t->data, t->n, t->stream);

    *seconds = bench_now() - start;
    return rc;
}

static int persistent(struct bench_result *r, int n, mlx_stream s)
{
    float *data = ramp(n);
    struct trip trip = { data, n, s };
    int rc = data ? bench_measure_work(r, &(struct bench_work){ trip_run, &trip }) : 1;

    free(data);
    return rc;
}

/* Runs the command again for one call of n elements; 0 if it went well. */
static int run_child(int n)
{
    char count[16];
    char *device = bench_options.device == MLX_GPU ? "gpu" : "cpu";
    int status = 1;

    snprintf(count, sizeof count, "%d", n);
    char *argv[] = { "mlx", "bench", "--one-shot", count, "--device", device, NULL };
    pid_t child = fork();
    if (child == 0) {
        execv(bench_options.program, argv);
        _exit(127);
    }
    return child < 0 || waitpid(child, &status, 0) < 0 || status;
}

/* A process for every call: library, device and pipelines are set up and torn down each time. */
static int one_shot(double *us, int n)
{
    double trip[SHOTS];

    for (int i = 0; i < SHOTS; i++) {
        double start = bench_now();
        if (run_child(n))
            return 1;
        trip[i] = (bench_now() - start) * 1e6;
    }
    *us = bench_median(trip, SHOTS);
    return 0;
}

static const struct {
    int n;
    double target;
} small_rows[] = { { 64, 60 }, { 1024, 60 }, { 4096, 60 }, { 16384, 80 }, { 65536, 100 } };
#define SMALL_ROWS (sizeof small_rows / sizeof small_rows[0])

/* Without timestamps, which every submission would wait for. */
static int persistent_calls(mlx_stream s)
{
    int64_t timing = gate_set_int(GATE_VK_TIMING, 0);
    int rc = 0;

    for (size_t i = 0; i < SMALL_ROWS && rc == 0; i++) {
        struct bench_result r;
        char name[32];
        rc = persistent(&r, small_rows[i].n, s);
        snprintf(name, sizeof name, "add_%d", small_rows[i].n);
        if (rc == 0)
            bench_report(name, "upload, add, read back", r.wall * 1e6, small_rows[i].target, &r);
    }
    gate_set_int(GATE_VK_TIMING, timing);
    return rc;
}

static int one_shot_calls(void)
{
    int rc = 0;

    for (size_t i = 0; i < SMALL_ROWS && rc == 0; i++) {
        double us = 0;
        char name[32];
        rc = one_shot(&us, small_rows[i].n);
        snprintf(name, sizeof name, "one_shot_add_%d", small_rows[i].n);
        if (rc == 0)
            bench_report(name, "a process for one add", us, 0, NULL);
    }
    return rc;
}

int bench_latency(mlx_stream s)
{
    int rc = 0;

    if (bench_wants("latency"))
        rc = tiny_ops(s) + persistent_calls(s);
    if (bench_wants("one_shot"))
        rc += one_shot_calls();
    return rc;
}
