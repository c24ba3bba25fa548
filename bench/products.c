/* Matrix products by shape, dtype and variant of the kernel.
 *
 * The setting for the variant may hold several of them, separated by blanks; each is measured with
 * every shape it fits. Without the setting the backend chooses. */
#include <stdio.h>
#include <string.h>

#include "base/gate.h"
#include "bench/bench.h"

struct shape {
    int m, n, k, batch; /* batch 0: none */
    bool b_transposed;  /* b lies as n x k, the layout of weights */
};

/* Squares, the products of a transformer's prompt and decoding steps, thin ones, edges. */
static const struct shape shapes[] = {
    { 1024, 1024, 1024, 0, false }, { 2048, 2048, 2048, 0, false }, { 4096, 4096, 4096, 0, false },
    { 4096, 4096, 4096, 0, true },  { 8192, 8192, 8192, 0, true },  { 4095, 4097, 4099, 0, false },
    { 512, 3072, 1024, 0, true },   { 2048, 3072, 1024, 0, true },  { 512, 8192, 8192, 0, true },
    { 16, 4096, 4096, 0, true },    { 64, 4096, 4096, 0, true },    { 128, 128, 65536, 0, false },
    { 1, 4096, 4096, 0, true },     { 1, 4096, 4096, 0, false },    { 1, 14336, 4096, 0, true },
    { 4, 4096, 14336, 0, true },    { 8, 4096, 4096, 0, true },     { 4096, 1, 4096, 0, false },
    { 1, 1, 1 << 24, 0, true },     { 512, 512, 128, 32, true },    { 1, 2048, 128, 32, true },
    { 64, 64, 64, 1024, false },
};

static const struct {
    mlx_dtype dtype;
    const char *name;
} dtypes[] = { { MLX_FLOAT32, "f32" },
               { MLX_FLOAT16, "f16" },
               { MLX_BFLOAT16, "bf16" },
               { MLX_COMPLEX64, "c64" } };

static double work_of(const struct shape *p)
{
    return 2.0 * p->m * p->n * p->k * (p->batch ? p->batch : 1);
}

static double bytes_of(const struct shape *p, mlx_dtype dtype)
{
    double elements = (double)p->m * p->k + (double)p->k * p->n + (double)p->m * p->n;

    return elements * (double)mlx_dtype_size(dtype) * (p->batch ? p->batch : 1);
}

static int build_product(mlx_array *out, const struct bench_state *s)
{
    return mlx_matmul(out, s->in[0], s->in[1], s->stream);
}

static int make_operands(struct bench_state *s, const struct shape *p, mlx_dtype dtype)
{
    int a[3] = { p->batch, p->m, p->k }, b[3] = { p->batch, p->k, p->n };
    int first = p->batch ? 0 : 1;
    size_t n = p->batch ? 3 : 2;

    if (p->b_transposed) {
        b[1] = p->n;
        b[2] = p->k;
    }
    int rc = bench_fill(&s->in[0], a + first, n, dtype, s->stream);
    rc |= bench_fill(&s->in[1], b + first, n, dtype, s->stream);
    if (p->b_transposed) {
        rc |= mlx_swapaxes(&s->in[1], s->in[1], -1, -2, s->stream);
        rc |= mlx_array_eval(s->in[1]);
    }
    return rc;
}

static void report(const struct shape *p, size_t dtype, const char *variant,
                   const struct bench_result *r)
{
    double seconds = r->gpu > 0 ? r->gpu : r->wall;
    char name[64];

    snprintf(name, sizeof name, "%s%dx%dx%d%s", p->batch ? "batched " : "", p->m, p->n, p->k,
             p->b_transposed ? " nt" : "");
    if (bench_options.json) {
        printf("{\"case\": \"product\", \"m\": %d, \"n\": %d, \"k\": %d, \"batch\": %d, "
               "\"transposed\": %s, \"dtype\": \"%s\", \"variant\": \"%s\", \"us\": %.3f, "
               "\"tflops\": %.3f, ",
               p->m, p->n, p->k, p->batch, p->b_transposed ? "true" : "false", dtypes[dtype].name,
               variant, seconds * 1e6, work_of(p) / seconds * 1e-12);
        bench_put_steadiness(r);
        puts("}");
    } else
        printf("%-28s %-5s %-24s %12.1f %10.3f %8.3f\n", name, dtypes[dtype].name, variant,
               seconds * 1e6, work_of(p) / seconds * 1e-12,
               bytes_of(p, dtypes[dtype].dtype) / seconds * 1e-12);
}

static int run_product(const struct shape *p, size_t dtype, const char *variant, mlx_stream stream)
{
    static const struct bench_case product = { .build = build_product };
    struct bench_state s = { .c = &product, .stream = stream };
    struct bench_result r;
    int rc = make_operands(&s, p, dtypes[dtype].dtype);

    if (rc == 0)
        rc = bench_measure(&r, &s);
    if (rc == 0)
        report(p, dtype, variant, &r);
    for (int i = 0; i < BENCH_MAX_INPUTS; i++)
        mlx_array_free(s.in[i]);
    mlx_clear_cache();
    return rc;
}

/* Every shape that the device can do in reasonable time. */
static int run_variant(const char *variant, mlx_stream stream)
{
    double edge = bench_options.edge, most = 16.0 * edge * edge * edge;
    int failed = 0;

    for (size_t t = 0; t < sizeof dtypes / sizeof dtypes[0]; t++)
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            if (work_of(&shapes[i]) <= most)
                failed += run_product(&shapes[i], t, variant, stream) != 0;
    return failed;
}

int bench_products(mlx_stream stream)
{
    const char *asked = gate_text(GATE_VK_MATMUL_VARIANT);
    int failed = 0;

    if (!bench_options.filter || !bench_wants("products"))
        return 0;
    if (!bench_options.json)
        printf("%-28s %-5s %-24s %12s %10s %8s\n", "product", "dtype", "variant", "us", "TFLOP/s",
               "TB/s");
    if (!asked)
        return run_variant("chosen", stream);
    for (const char *at = asked; *at; at += strspn(at, " ")) {
        char variant[64];
        size_t n = strcspn(at, " ");
        snprintf(variant, sizeof variant, "%.*s", (int)n, at);
        gate_set_text(GATE_VK_MATMUL_VARIANT, variant);
        failed += run_variant(variant, stream);
        at += n;
    }
    gate_set_text(GATE_VK_MATMUL_VARIANT, asked);
    return failed;
}
