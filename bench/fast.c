/* Norms, rotary positions and attention, in the shapes of language models: each op feeds the next
 * of its kind, so that a time is that of one op in a row of dependent ones. */
#include <math.h>
#include <stdio.h>

#include "bench/bench.h"

/* Attention of Qwen3-0.6B. */
#define HEADS 16
#define KV_HEADS 8
#define SIZE 128

struct shape {
    const char *name, *what;
    int rows, length; /* norms: rows of length; rope and attention: queries, keys */
    int chain;        /* ops in a row */
    double work;      /* of one op: multiplications and additions, or elements */
    double target;    /* microseconds on an H200; 0: none */
    int (*setup)(struct bench_state *s, const struct shape *p);
    int (*step)(mlx_array *x, const struct bench_state *s, const struct shape *p);
};

/* ---- norms ---- */

static int setup_norm(struct bench_state *s, const struct shape *p)
{
    int shape[] = { p->rows, p->length };
    int rc = bench_fill(&s->in[0], shape, 2, MLX_BFLOAT16, s->stream);

    return rc | bench_fill(&s->in[1], shape + 1, 1, MLX_BFLOAT16, s->stream);
}

static int step_rms_norm(mlx_array *x, const struct bench_state *s, const struct shape *p)
{
    (void)p;
    return mlx_fast_rms_norm(x, *x, s->in[1], 1e-6f, s->stream);
}

static int step_layer_norm(mlx_array *x, const struct bench_state *s, const struct shape *p)
{
    (void)p;
    return mlx_fast_layer_norm(x, *x, s->in[1], s->in[1], 1e-6f, s->stream);
}

/* ---- heads ---- */

/* x lies as positions of heads, and is seen as heads of positions. */
static int setup_heads(mlx_array *x, int positions, mlx_stream s)
{
    int shape[] = { 1, positions, HEADS, SIZE };
    int rc = bench_fill(x, shape, 4, MLX_BFLOAT16, s);

    rc |= mlx_swapaxes(x, *x, 1, 2, s);
    return rc | mlx_array_eval(*x);
}

static int setup_rope(struct bench_state *s, const struct shape *p)
{
    return setup_heads(&s->in[0], p->rows, s->stream);
}

static int step_rope(mlx_array *x, const struct bench_state *s, const struct shape *p)
{
    mlx_optional_float base = { 1e6f, true };

    return mlx_fast_rope(x, *x, SIZE, false, base, 1.0f, p->length, mlx_array_new(), s->stream);
}

/* Keys and values are the first part of a longer cache. */
static int setup_cache(mlx_array *x, int keys, mlx_stream s)
{
    int shape[] = { 1, KV_HEADS, keys + 256, SIZE }, start[4] = { 0 }, step[] = { 1, 1, 1, 1 };
    int rc = bench_fill(x, shape, 4, MLX_BFLOAT16, s);

    shape[2] = keys;
    rc |= mlx_slice(x, *x, start, 4, shape, 4, step, 4, s);
    return rc | mlx_array_eval(*x);
}

static int setup_attention(struct bench_state *s, const struct shape *p)
{
    int rc = setup_heads(&s->in[0], p->rows, s->stream);

    rc |= setup_cache(&s->in[1], p->length, s->stream);
    return rc | setup_cache(&s->in[2], p->length, s->stream);
}

static int step_attention(mlx_array *x, const struct bench_state *s, const struct shape *p)
{
    mlx_array none = mlx_array_new();

    return mlx_fast_scaled_dot_product_attention(x, *x, s->in[1], s->in[2], 1.0f / sqrtf(SIZE),
                                                 p->rows > 1 ? "causal" : "", none, none,
                                                 s->stream);
}

/* ---- the table ---- */

#define NORM(rows, length) rows, length
#define DECODE_WORK(keys) 4.0 * HEADS *SIZE *(keys)
#define PREFILL_WORK(n) 2.0 * HEADS *SIZE *(n) * (n)

static const struct shape shapes[] = {
    { "fast_rms_norm_row", "1 x 1024, bf16", NORM(1, 1024), 100, 1024, 3.0, setup_norm,
      step_rms_norm },
    { "fast_rms_norm", "8192 x 8192, bf16: 3 TB/s", NORM(8192, 8192), 4, 0x1p26, 89.5, setup_norm,
      step_rms_norm },
    { "fast_layer_norm", "8192 x 8192, bf16: 3 TB/s", NORM(8192, 8192), 4, 0x1p26, 89.5, setup_norm,
      step_layer_norm },
    { "fast_rope_1", "16 heads x 128, one position", 1, 300, 100, 2048, 3.0, setup_rope,
      step_rope },
    { "fast_rope_512", "16 heads x 128, 512 positions", 512, 0, 20, 0x1p20, 0, setup_rope,
      step_rope },
    { "fast_sdpa_256", "one query, 256 keys", 1, 256, 50, DECODE_WORK(256), 6.0, setup_attention,
      step_attention },
    { "fast_sdpa_2048", "one query, 2048 keys", 1, 2048, 50, DECODE_WORK(2048), 9.0,
      setup_attention, step_attention },
    { "fast_sdpa_8192", "one query, 8192 keys", 1, 8192, 50, DECODE_WORK(8192), 0, setup_attention,
      step_attention },
    { "fast_sdpa_prefill_512", "512 queries, causal", 512, 512, 8, PREFILL_WORK(512.0), 40.0,
      setup_attention, step_attention },
    { "fast_sdpa_prefill_2048", "2048 queries, causal", 2048, 2048, 4, PREFILL_WORK(2048.0), 150.0,
      setup_attention, step_attention },
    { "fast_sdpa_prefill_8192", "8192 queries, causal", 8192, 8192, 2, PREFILL_WORK(8192.0), 1300.0,
      setup_attention, step_attention },
};

/* The shape that is being measured. */
static const struct shape *current;

static int build_chain(mlx_array *out, const struct bench_state *s)
{
    int rc = mlx_array_set(out, s->in[0]);

    for (int i = 0; i < current->chain && rc == 0; i++)
        rc = current->step(out, s, current);
    return rc;
}

static int run_shape(const struct shape *p, mlx_stream stream)
{
    static const struct bench_case chain = { .build = build_chain };
    struct bench_state s = { .c = &chain, .stream = stream };
    struct bench_result r;
    int rc = p->setup(&s, p);

    current = p;
    if (rc == 0)
        rc = bench_measure(&r, &s);
    if (rc == 0)
        bench_report(p->name, p->what, (r.gpu > 0 ? r.gpu : r.wall) / p->chain * 1e6, p->target,
                     &r);
    for (int i = 0; i < BENCH_MAX_INPUTS; i++)
        mlx_array_free(s.in[i]);
    mlx_clear_cache();
    return rc;
}

bool bench_wants_fast(void)
{
    bool wants = false;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        wants |= bench_wants(shapes[i].name);
    return wants;
}

/* Every shape that the device can do in reasonable time. */
int bench_fast(mlx_stream stream)
{
    double edge = bench_options.edge, most = 16.0 * edge * edge * edge;
    int failed = 0;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (bench_wants(shapes[i].name) && shapes[i].work * shapes[i].chain <= most)
            failed += run_shape(&shapes[i], stream) != 0;
    return failed;
}
