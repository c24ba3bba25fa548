/* Work for the GPU between the cases, so that its clock is up when one is measured.
 *
 * A GPU that has little to do for some time, as while operands and pipelines are made, lowers its
 * clock, an H200 to a third, and does not raise it at once: what a case reads would depend on the
 * cases before it. The load is always the same work, bound by arithmetic, so its time
 * by the GPU's own clock of constant rate shows the clock that the multiprocessors have. */
#include "backend/backend.h"
#include "base/gate.h"
#include "bench/bench.h"
#include "bench/steady.h"

/* About a millisecond of a large GPU, to which the gaps between submissions are nothing. Numbers
 * grow by the edge with each product and stay finite. */
#define EDGE 1024
#define PRODUCTS 10
/* How far from the shortest time ever seen the clock is up. */
#define SLACK 0.03

static struct {
    mlx_stream stream;
    mlx_array a;
    double best; /* seconds that it takes with the clock up; 0: not known yet */
    bool is_open;
} load;

int bench_load_open(mlx_device_type type)
{
    const struct be *gpu = dev_backend(DEV_GPU);
    int shape[] = { EDGE, EDGE };

    /* A software device has the processor's clock, which the cases keep busy themselves. */
    if (type != MLX_GPU || !gpu || gpu->open() != ERR_OK || !gpu->is_hardware())
        return 0;
    mlx_device device = mlx_device_new_type(type, 0);
    load.stream = mlx_stream_new();
    load.a = mlx_array_new();
    load.is_open = true;
    int rc = mlx_get_default_stream(&load.stream, device) ||
             bench_fill(&load.a, shape, 2, MLX_FLOAT32, load.stream);
    mlx_device_free(device);
    return rc;
}

void bench_load_close(void)
{
    if (!load.is_open)
        return;
    mlx_array_free(load.a);
    mlx_stream_free(load.stream);
    load.is_open = false;
}

/* Cases switch timestamps off and try out variants of products; the load is the same for all. */
struct settings {
    int64_t timing;
    const char *variant;
};

static struct settings set_own(void)
{
    return (struct settings){ gate_set_int(GATE_VK_TIMING, 1),
                              gate_set_text(GATE_VK_MATMUL_VARIANT, NULL) };
}

static void set_back(struct settings s)
{
    gate_set_text(GATE_VK_MATMUL_VARIANT, s.variant);
    gate_set_int(GATE_VK_TIMING, s.timing);
}

static int run_load(double *seconds)
{
    double gpu = bench_gpu_seconds(), began = bench_now();
    mlx_array x = mlx_array_new();
    int rc = mlx_array_set(&x, load.a);

    for (int i = 0; i < PRODUCTS && rc == 0; i++)
        rc = mlx_matmul(&x, x, load.a, load.stream);
    rc = rc || mlx_array_eval(x);
    mlx_array_free(x);
    gpu = bench_gpu_seconds() - gpu;
    *seconds = gpu > 0 ? gpu : bench_now() - began; /* not every device has timestamps */
    return rc;
}

static int raise_clock(void)
{
    struct steady s;
    double seconds, shortest = 0;

    steady_begin(&s, load.best > 0 ? &steady_later : &steady_first, load.best * (1 + SLACK),
                 bench_now());
    do {
        if (run_load(&seconds))
            return 1;
        shortest = shortest > 0 && shortest < seconds ? shortest : seconds;
    } while (!steady_add(&s, seconds, bench_now()));
    double reached = s.is_settled ? s.high : shortest;
    if (load.best <= 0 || (s.is_settled && reached < load.best))
        load.best = reached;
    return 0;
}

bool bench_load_is_open(void)
{
    return load.is_open;
}

int bench_load_raise(void)
{
    struct settings before = set_own();
    int rc = raise_clock();
    set_back(before);
    return rc;
}

double bench_load_clock(void)
{
    double seconds;

    if (!load.is_open)
        return 0;
    struct settings before = set_own();
    int rc = run_load(&seconds);
    set_back(before);
    return rc ? 0 : load.best / seconds;
}
