/* Products with quantized matrices: microseconds of one among products that depend on each other,
 * so that each waits for the one before it, over enough matrices to leave the caches.
 *
 * The setting for the design of the mat-vec kernel may hold several of them, separated by blanks;
 * each is measured with every shape. */
#include <stdio.h>
#include <string.h>

#include "base/gate.h"
#include "bench/bench.h"

#define MAX_MATRICES 256
/* Packed bytes that no cache keeps. */
#define STREAMED_BYTES ((size_t)96 << 20)
#define STREAMED_SOFTWARE ((size_t)8 << 20)
#define MIN_LINKS 4
/* The most rows of x that the mat-vec kernels take. */
#define FEW_ROWS 16

struct shape {
    int m, n, k, bits, group;
    double target; /* microseconds on an H200; 0: none */
};

/* The products of Qwen3 0.6B and 8B, decoding one token; several tokens; prompts. The first result
 * is the next x, cut to length, so n is at least k; of {n, k} with n < k the way back is
 * subtracted.
 */
static const struct shape shapes[] = {
    { 1, 1024, 1024, 4, 128, 3.3 },   { 1, 2048, 1024, 4, 128, 0 },
    { 1, 3072, 1024, 4, 128, 0 },     { 1, 4096, 1024, 4, 128, 3.9 },
    { 1, 6144, 1024, 4, 128, 4.3 },   { 1, 1024, 2048, 4, 128, 0 },
    { 1, 1024, 3072, 4, 128, 4.4 },   { 1, 151936, 1024, 4, 128, 30 },
    { 1, 4096, 1024, 4, 64, 0 },      { 1, 4096, 1024, 8, 64, 0 },
    { 1, 4096, 4096, 4, 64, 0 },      { 1, 24576, 4096, 4, 64, 0 },
    { 1, 4096, 12288, 4, 64, 0 },     { 1, 6144, 4096, 4, 64, 0 },
    { 1, 151936, 4096, 4, 64, 0 },    { 2, 4096, 1024, 4, 128, 0 },
    { 4, 4096, 1024, 4, 128, 0 },     { 8, 4096, 1024, 4, 128, 0 },
    { 16, 4096, 1024, 4, 128, 0 },    { 32, 3072, 1024, 4, 128, 0 },
    { 64, 3072, 1024, 4, 128, 0 },    { 64, 4096, 4096, 4, 64, 0 },
    { 128, 3072, 1024, 4, 128, 0 },   { 512, 1024, 1024, 4, 128, 0 },
    { 512, 3072, 1024, 4, 128, 32 },  { 512, 6144, 1024, 4, 128, 0 },
    { 2048, 3072, 1024, 4, 128, 80 }, { 512, 4096, 4096, 4, 64, 0 },
};

struct packed {
    mlx_array w, scales, biases;
};

/* The chain that is being measured. */
static struct {
    const struct shape *shape;
    struct packed there[MAX_MATRICES], back[MAX_MATRICES];
    int n, links;
    bool is_back; /* n < k: every other product leads back; or only those are measured */
    bool only_back;
} chain;

/* ---- operands ---- */

static int make_packed(struct packed *p, int n, int k, const struct shape *s, mlx_stream stream)
{
    int words[] = { n, k * s->bits / 32 }, groups[] = { n, k / s->group };
    mlx_array key = mlx_array_new(), number = mlx_array_new_float(1e-4f);
    int rc = mlx_random_key(&key, (uint64_t)n * 31 + (uint64_t)k);

    *p = (struct packed){ mlx_array_new(), mlx_array_new(), mlx_array_new() };
    rc |= mlx_random_bits(&p->w, words, 2, 4, key, stream);
    rc |= bench_fill(&p->scales, groups, 2, MLX_FLOAT32, stream);
    rc |= mlx_multiply(&p->scales, p->scales, number, stream);
    rc |= mlx_array_set_float(&number, -7.5f);
    rc |= mlx_multiply(&p->biases, p->scales, number, stream);
    rc |= mlx_astype(&p->scales, p->scales, MLX_BFLOAT16, stream);
    rc |= mlx_astype(&p->biases, p->biases, MLX_BFLOAT16, stream);
    rc |= mlx_array_eval(p->w);
    rc |= mlx_array_eval(p->scales);
    rc |= mlx_array_eval(p->biases);
    mlx_array_free(key);
    mlx_array_free(number);
    return rc;
}

static void free_packed(struct packed *p)
{
    mlx_array_free(p->w);
    mlx_array_free(p->scales);
    mlx_array_free(p->biases);
}

static double packed_bytes(const struct shape *s)
{
    return (double)s->n * s->k * (s->bits / 8.0 + 4.0 / s->group);
}

static int setup(const struct shape *s, mlx_stream stream)
{
    size_t streamed = bench_options.edge > 512 ? STREAMED_BYTES : STREAMED_SOFTWARE;
    double wanted = (double)streamed / packed_bytes(s) + 1;
    int rc = 0;

    memset(&chain, 0, sizeof chain);
    chain.shape = s;
    chain.is_back = s->n < s->k;
    chain.n = wanted < 2 ? 2 : wanted < MAX_MATRICES ? (int)wanted : MAX_MATRICES;
    chain.links = chain.n < MIN_LINKS ? MIN_LINKS : chain.n > 64 ? 64 : chain.n;
    for (int i = 0; i < chain.n && !rc; i++) {
        rc = make_packed(&chain.there[i], s->n, s->k, s, stream);
        if (!rc && chain.is_back)
            rc = make_packed(&chain.back[i], s->k, s->n, s, stream);
    }
    return rc;
}

static void clean_up(void)
{
    for (int i = 0; i < chain.n; i++) {
        free_packed(&chain.there[i]);
        if (chain.is_back)
            free_packed(&chain.back[i]);
    }
    mlx_clear_cache();
}

/* ---- one run ---- */

/* x = the first k columns of x times a matrix. */
static int step(mlx_array *x, const struct packed *p, int k, mlx_stream stream)
{
    const struct shape *s = chain.shape;
    mlx_optional_int group = { s->group, true }, bits = { s->bits, true };
    int start[] = { 0, 0 }, stop[] = { s->m, k }, one[] = { 1, 1 };
    int rc = mlx_slice(x, *x, start, 2, stop, 2, one, 2, stream);

    return rc | mlx_quantized_matmul(x, *x, p->w, p->scales, p->biases, true, group, bits, "affine",
                                     stream);
}

/* The matrices of the next run follow those of the last one. */
static int build_chain(mlx_array *out, const struct bench_state *state)
{
    static int next;
    const struct shape *s = chain.shape;
    int rc = mlx_array_set(out, state->in[0]);

    for (int i = 0; i < chain.links && !rc; i++, next++) {
        if (!chain.only_back)
            rc = step(out, &chain.there[next % chain.n], s->k, state->stream);
        if (!rc && chain.is_back)
            rc = step(out, &chain.back[next % chain.n], s->n, state->stream);
    }
    return rc;
}

static int measure(struct bench_result *r, mlx_stream stream)
{
    static const struct bench_case product = { .build = build_chain };
    struct bench_state state = { .c = &product, .stream = stream, .in = { mlx_array_new() } };
    const struct shape *s = chain.shape;
    int shape[] = { s->m, s->n > s->k ? s->n : s->k };
    int rc = bench_fill(&state.in[0], shape, 2, MLX_BFLOAT16, stream);

    if (!rc)
        rc = bench_measure(r, &state);
    mlx_array_free(state.in[0]);
    return rc;
}

/* Microseconds of one product. */
static double us_of(const struct bench_result *r)
{
    return (r->gpu > 0 ? r->gpu : r->wall) * 1e6 / chain.links;
}

static void report(const struct shape *s, const char *design, double us,
                   const struct bench_result *r)
{
    double bytes = packed_bytes(s) + 2.0 * s->m * (s->n + s->k);
    double work = 2.0 * s->m * s->n * s->k, target = bench_target(s->target);

    if (bench_options.json) {
        printf("{\"case\": \"quantized\", \"m\": %d, \"n\": %d, \"k\": %d, \"bits\": %d, "
               "\"group\": %d, \"design\": \"%s\", \"us\": %.3f, \"gbs\": %.1f, \"tflops\": %.3f, ",
               s->m, s->n, s->k, s->bits, s->group, design, us, bytes / us * 1e-3,
               work / us * 1e-6);
        bench_put_steadiness(r);
    } else
        printf("%5d x %6d x %5d  %d bits g%-4d %-18s %10.2f %10.1f %10.3f", s->m, s->n, s->k,
               s->bits, s->group, design, us, bytes / us * 1e-3, work / us * 1e-6);
    if (target > 0 && bench_options.json)
        printf(", \"target_us\": %.1f", target);
    else if (target > 0)
        printf(" %8.1f %s", target, us > target ? "no" : "yes");
    puts(bench_options.json ? "}" : "");
    fflush(stdout); /* a sweep takes long */
}

static int run_design(const char *design, mlx_stream stream)
{
    struct bench_result r, back;
    int rc = measure(&r, stream);
    double us = rc ? 0 : us_of(&r);

    if (!rc && chain.is_back) {
        chain.only_back = true;
        rc = measure(&back, stream);
        chain.only_back = false;
        us -= rc ? 0 : us_of(&back);
    }
    if (!rc)
        report(chain.shape, design, us, &r);
    return rc;
}

/* Every design that the setting names. */
static int run_designs(const char *asked, mlx_stream stream)
{
    int failed = 0;

    for (const char *at = asked; *at; at += strspn(at, " ")) {
        char design[64];
        size_t n = strcspn(at, " ");
        snprintf(design, sizeof design, "%.*s", (int)n, at);
        gate_set_text(GATE_VK_QMV_DESIGN, design);
        failed += run_design(design, stream) != 0;
        at += n;
    }
    gate_set_text(GATE_VK_QMV_DESIGN, asked);
    return failed;
}

/* Named quantized_MxNxK. */
static bool is_wanted(const struct shape *s)
{
    char name[64];

    snprintf(name, sizeof name, "quantized_%dx%dx%d", s->m, s->n, s->k);
    return bench_options.filter && bench_wants(name);
}

bool bench_wants_quantized(void)
{
    bool wants = false;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        wants |= is_wanted(&shapes[i]);
    return wants;
}

int bench_quantized(mlx_stream stream)
{
    const char *asked = gate_text(GATE_VK_QMV_DESIGN);
    double edge = bench_options.edge, most = edge * edge * 64;
    int failed = 0;

    if (!bench_wants_quantized())
        return 0;
    if (!bench_options.json)
        printf("%-38s %-18s %10s %10s %10s %8s\n", "quantized product", "design", "us", "GB/s",
               "TFLOP/s", bench_target(1) > 0 ? "target" : "");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct shape *s = &shapes[i];
        if (!is_wanted(s) || (double)s->m * s->n * s->k > most * 16 || (asked && s->m > FEW_ROWS))
            continue;
        failed += setup(s, stream) != 0;
        failed += (asked ? run_designs(asked, stream) : run_design("chosen", stream)) != 0;
        clean_up();
    }
    return failed;
}
