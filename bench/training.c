/* Gradients, in the shapes of training: of norms and attention alone, of a small network, and a
 * step of a language model's training. */
#include <math.h>
#include <stdio.h>

#include "bench/bench.h"

/* The model of the step. */
#define LAYERS 12
#define WIDTH 768
#define HEADS 12
#define HIDDEN 2048
#define BATCH 8
#define LENGTH 512
#define WORDS 32768
#define RATE 1e-4f

enum { NORM_1, QKV, PROJECTION, NORM_2, GATE, UP, DOWN, OF_LAYER };
enum { EMBEDDING = LAYERS * OF_LAYER, NORM, HEAD, WEIGHTS, INPUT = WEIGHTS, TARGET, MODEL_ARGS };

static mlx_stream stream; /* of the run */

/* A function whose gradients are measured: the first n_grads of its arguments have one. */
struct shape {
    const char *name, *what;
    double work; /* multiplications and additions, or bytes */
    double target;
    int n_args, n_grads;
    bool updates; /* the arguments get smaller by their gradients, which is measured, too */
    int (*setup)(mlx_vector_array args);
    int (*loss)(mlx_array *y, const mlx_array *a);
};
static const struct shape *current;

static mlx_array get(mlx_vector_array list, size_t at)
{
    mlx_array a = mlx_array_new();

    mlx_vector_array_get(&a, list, at);
    return a;
}

/* Normal numbers, scaled so that sums over n of them keep their size. */
static int add_weights(mlx_vector_array args, const int *shape, size_t ndim, mlx_dtype t)
{
    mlx_array a = mlx_array_new(), key = mlx_array_new();
    float scale = ndim > 1 ? 1.0f / sqrtf((float)shape[ndim - 2]) : 1.0f;
    int rc = mlx_random_key(&key, mlx_vector_array_size(args));

    rc |= mlx_random_normal(&a, shape, ndim, t, ndim > 1 ? 0.0f : 1.0f, scale, key, stream);
    rc |= mlx_array_eval(a);
    rc |= mlx_vector_array_append_value(args, a);
    mlx_array_free(a);
    mlx_array_free(key);
    return rc;
}

/* Tensors of random numbers, each as its dimensions up to a 0. */
static int add_all(mlx_vector_array args, const int (*shapes)[5], int n, mlx_dtype t)
{
    int rc = 0;

    for (int i = 0; i < n; i++) {
        size_t ndim = 0;
        while (shapes[i][ndim])
            ndim++;
        rc |= add_weights(args, shapes[i], ndim, t);
    }
    return rc;
}

/* The sum of y times w. */
static int weighed_sum(mlx_array *y, mlx_array w)
{
    int rc = mlx_multiply(y, *y, w, stream);

    return rc | mlx_sum(y, *y, false, stream);
}

/* ---- norms and attention: the cotangent is the last argument ---- */

static int setup_norm(mlx_vector_array args)
{
    static const int shapes[][5] = { { 8192, 4096 }, { 4096 }, { 4096 }, { 8192, 4096 } };

    return add_all(args, shapes, 4, MLX_BFLOAT16);
}

static int loss_rms_norm(mlx_array *y, const mlx_array *a)
{
    int rc = mlx_fast_rms_norm(y, a[0], a[1], 1e-6f, stream);

    return rc | weighed_sum(y, a[3]);
}

static int loss_layer_norm(mlx_array *y, const mlx_array *a)
{
    int rc = mlx_fast_layer_norm(y, a[0], a[1], a[2], 1e-6f, stream);

    return rc | weighed_sum(y, a[3]);
}

static int setup_attention(mlx_vector_array args, int length)
{
    int shape[5] = { 1, 16, length, 64, 0 };
    int rc = 0;

    for (int i = 0; i < 4; i++)
        rc |= add_weights(args, shape, 4, MLX_BFLOAT16);
    return rc;
}

static int setup_attention_1024(mlx_vector_array args)
{
    return setup_attention(args, 1024);
}

static int setup_attention_4096(mlx_vector_array args)
{
    return setup_attention(args, 4096);
}

static int loss_attention(mlx_array *y, const mlx_array *a)
{
    mlx_array none = mlx_array_new();
    int rc = mlx_fast_scaled_dot_product_attention(y, a[0], a[1], a[2], 0.125f, "causal", none,
                                                   none, stream);

    return rc | weighed_sum(y, a[3]);
}

/* ---- a network of two layers ---- */

static int setup_mlp(mlx_vector_array args)
{
    static const int shapes[][5] = { { 1024, 1024 }, { 1024 },      { 1024, 1024 },
                                     { 1024 },       { 256, 1024 }, { 256, 1024 } };

    return add_all(args, shapes, 6, MLX_FLOAT32);
}

static int loss_mlp(mlx_array *y, const mlx_array *a)
{
    mlx_array zero = mlx_array_new_float(0);
    int rc = mlx_addmm(y, a[1], a[4], a[0], 1, 1, stream);

    rc |= mlx_maximum(y, *y, zero, stream);
    rc |= mlx_addmm(y, a[3], *y, a[2], 1, 1, stream);
    rc |= mlx_subtract(y, *y, a[5], stream);
    rc |= mlx_square(y, *y, stream);
    rc |= mlx_mean(y, *y, false, stream);
    mlx_array_free(zero);
    return rc;
}

/* ---- a language model ---- */

static int add_words(mlx_vector_array args)
{
    mlx_array low = mlx_array_new_int(0), high = mlx_array_new_int(WORDS);
    mlx_array a = mlx_array_new(), key = mlx_array_new();
    int n = BATCH * LENGTH, rc = mlx_random_key(&key, mlx_vector_array_size(args));

    rc |= mlx_random_randint(&a, low, high, &n, 1, MLX_INT32, key, stream);
    rc |= mlx_array_eval(a);
    rc |= mlx_vector_array_append_value(args, a);
    mlx_array_free(low);
    mlx_array_free(high);
    mlx_array_free(a);
    mlx_array_free(key);
    return rc;
}

static int setup_model(mlx_vector_array args)
{
    static const int layer[OF_LAYER][5] = {
        [NORM_1] = { WIDTH },      [QKV] = { WIDTH, 3 * WIDTH }, [PROJECTION] = { WIDTH, WIDTH },
        [NORM_2] = { WIDTH },      [GATE] = { WIDTH, HIDDEN },   [UP] = { WIDTH, HIDDEN },
        [DOWN] = { HIDDEN, WIDTH }
    };
    static const int ends[][5] = { { WORDS, WIDTH }, { WIDTH }, { WIDTH, WORDS } };
    int rc = 0;

    for (int i = 0; i < LAYERS; i++)
        rc |= add_all(args, layer, OF_LAYER, MLX_BFLOAT16);
    rc |= add_all(args, ends, 3, MLX_BFLOAT16);
    rc |= add_words(args);
    return rc | add_words(args);
}

/* Heads of part k of x, whose rows hold queries, keys and values. */
static int heads_of(mlx_array *y, mlx_array x, int k)
{
    int start[] = { 0, k * WIDTH }, stop[] = { BATCH * LENGTH, (k + 1) * WIDTH }, step[] = { 1, 1 };
    int shape[] = { BATCH, LENGTH, HEADS, WIDTH / HEADS };
    int rc = mlx_slice(y, x, start, 2, stop, 2, step, 2, stream);

    rc |= mlx_reshape(y, *y, shape, 4, stream);
    return rc | mlx_swapaxes(y, *y, 1, 2, stream);
}

static int attend(mlx_array *x, const mlx_array *w)
{
    mlx_array part[3] = { mlx_array_new(), mlx_array_new(), mlx_array_new() };
    mlx_array none = mlx_array_new();
    mlx_optional_float base = { 1e4f, true };
    int shape[] = { BATCH * LENGTH, WIDTH };
    int rc = mlx_matmul(x, *x, w[QKV], stream);

    for (int k = 0; k < 3; k++)
        rc |= heads_of(&part[k], *x, k);
    for (int k = 0; k < 2; k++)
        rc |= mlx_fast_rope(&part[k], part[k], WIDTH / HEADS, false, base, 1, 0, none, stream);
    rc |= mlx_fast_scaled_dot_product_attention(x, part[0], part[1], part[2],
                                                1.0f / sqrtf((float)WIDTH / HEADS), "causal", none,
                                                none, stream);
    rc |= mlx_swapaxes(x, *x, 1, 2, stream);
    rc |= mlx_reshape(x, *x, shape, 2, stream);
    rc |= mlx_matmul(x, *x, w[PROJECTION], stream);
    for (int k = 0; k < 3; k++)
        mlx_array_free(part[k]);
    return rc;
}

/* silu(x gate) * (x up) down */
static int feed(mlx_array *x, const mlx_array *w)
{
    mlx_array gate = mlx_array_new(), up = mlx_array_new(), sigmoid = mlx_array_new();
    int rc = mlx_matmul(&gate, *x, w[GATE], stream);

    rc |= mlx_sigmoid(&sigmoid, gate, stream);
    rc |= mlx_multiply(&gate, gate, sigmoid, stream);
    rc |= mlx_matmul(&up, *x, w[UP], stream);
    rc |= mlx_multiply(&gate, gate, up, stream);
    rc |= mlx_matmul(x, gate, w[DOWN], stream);
    mlx_array_free(gate);
    mlx_array_free(up);
    mlx_array_free(sigmoid);
    return rc;
}

static int add_layer(mlx_array *x, const mlx_array *w)
{
    mlx_array h = mlx_array_new();
    int rc = mlx_fast_rms_norm(&h, *x, w[NORM_1], 1e-6f, stream);

    rc |= attend(&h, w);
    rc |= mlx_add(x, *x, h, stream);
    rc |= mlx_fast_rms_norm(&h, *x, w[NORM_2], 1e-6f, stream);
    rc |= feed(&h, w);
    rc |= mlx_add(x, *x, h, stream);
    mlx_array_free(h);
    return rc;
}

/* The mean of logsumexp(logits) less the target's logit. */
static int loss_model(mlx_array *y, const mlx_array *a)
{
    mlx_array all = mlx_array_new(), target = mlx_array_new();
    int rc = mlx_take_axis(y, a[EMBEDDING], a[INPUT], 0, stream);

    for (int i = 0; i < LAYERS; i++)
        rc |= add_layer(y, a + (ptrdiff_t)i * OF_LAYER);
    rc |= mlx_fast_rms_norm(y, *y, a[NORM], 1e-6f, stream);
    rc |= mlx_matmul(y, *y, a[HEAD], stream);
    rc |= mlx_logsumexp_axis(&all, *y, -1, false, stream);
    rc |= mlx_expand_dims(&target, a[TARGET], -1, stream);
    rc |= mlx_take_along_axis(y, *y, target, -1, stream);
    rc |= mlx_squeeze_axis(y, *y, -1, stream);
    rc |= mlx_subtract(y, all, *y, stream);
    rc |= mlx_mean(y, *y, false, stream);
    mlx_array_free(all);
    mlx_array_free(target);
    return rc;
}

/* ---- the table ---- */

/* Of a token and weight, forwards and twice as much backwards. */
#define MODEL_WORK                                                                                 \
    (6.0 * BATCH * LENGTH *                                                                        \
     (LAYERS * (4.0 * WIDTH * WIDTH + 3.0 * WIDTH * HIDDEN + 1.0 * LENGTH * WIDTH) +               \
      1.0 * WIDTH * WORDS))

static const struct shape shapes[] = {
    { "rms_norm_vjp", "8192 x 4096, bf16: forward and backward", 0x1p25, 0, 4, 2, false, setup_norm,
      loss_rms_norm },
    { "layer_norm_vjp", "8192 x 4096, bf16: forward and backward", 0x1p25, 0, 4, 3, false,
      setup_norm, loss_layer_norm },
    { "sdpa_vjp_1024", "16 heads x 64, causal, bf16: forward and backward", 0x1p34, 0, 4, 3, false,
      setup_attention_1024, loss_attention },
    { "sdpa_vjp_4096", "16 heads x 64, causal, bf16: forward and backward", 0x1p38, 0, 4, 3, false,
      setup_attention_4096, loss_attention },
    { "mlp_step", "two layers of 1024, 256 rows, f32: gradients", 0x1p31, 0, 6, 4, false, setup_mlp,
      loss_mlp },
    { "transformer_step", "12 layers of 768, 8 x 512 tokens, bf16: new weights", MODEL_WORK, 0,
      MODEL_ARGS, WEIGHTS, true, setup_model, loss_model },
};

/* ---- measuring ---- */

static int call_loss(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array a[MODEL_ARGS], y = mlx_array_new();

    for (int i = 0; i < current->n_args; i++)
        a[i] = get(in, (size_t)i);
    int rc = current->loss(&y, a);
    rc |= mlx_vector_array_set_value(res, y);
    for (int i = 0; i < current->n_args; i++)
        mlx_array_free(a[i]);
    mlx_array_free(y);
    return rc;
}

/* Gradients, or the arguments after a step. */
static int call_step(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new(),
                     weights = mlx_vector_array_new();
    mlx_array rate = mlx_array_new();
    int rc = mlx_closure_value_and_grad_apply(&values, &grads,
                                              *(mlx_closure_value_and_grad *)payload, in);

    for (size_t i = 0; i < (size_t)current->n_grads && current->updates; i++) {
        mlx_array g = get(grads, i), w = get(in, i);
        rc |= mlx_array_set_float32(&rate, RATE);
        rc |= mlx_astype(&rate, rate, mlx_array_dtype(w), stream);
        rc |= mlx_multiply(&g, g, rate, stream);
        rc |= mlx_subtract(&w, w, g, stream);
        rc |= mlx_vector_array_append_value(weights, w);
        mlx_array_free(g);
        mlx_array_free(w);
    }
    rc |= mlx_vector_array_set(res, current->updates ? weights : grads);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_vector_array_free(weights);
    mlx_array_free(rate);
    return rc;
}

struct run {
    mlx_closure step;
    mlx_vector_array args;
};

static int run_step(double *seconds, void *data)
{
    const struct run *r = data;
    mlx_vector_array out = mlx_vector_array_new();
    double began = bench_now();
    int rc = mlx_closure_apply(&out, r->step, r->args);

    rc |= mlx_eval(out);
    rc |= mlx_synchronize(stream);
    *seconds = bench_now() - began;
    mlx_vector_array_free(out);
    return rc;
}

static int run_shape(const struct shape *p)
{
    mlx_closure f = mlx_closure_new_func(call_loss), compiled = mlx_closure_new();
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    struct run r = { .args = mlx_vector_array_new() };
    struct bench_result result;
    int argnums[MODEL_ARGS], rc = p->setup(r.args);

    current = p;
    for (int i = 0; i < p->n_grads; i++)
        argnums[i] = i;
    rc |= mlx_value_and_grad(&g, f, argnums, (size_t)p->n_grads);
    r.step = mlx_closure_new_func_payload(call_step, &g, NULL);
    rc |= mlx_compile(&compiled, r.step, false);
    mlx_closure_free(r.step);
    r.step = compiled;
    if (rc == 0)
        rc = bench_measure_work(&result, &(struct bench_work){ run_step, &r });
    if (rc == 0)
        bench_report(p->name, p->what, (result.gpu > 0 ? result.gpu : result.wall) * 1e6, p->target,
                     &result);
    mlx_closure_free(f);
    mlx_closure_free(r.step);
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(r.args);
    mlx_clear_cache();
    return rc;
}

bool bench_wants_training(void)
{
    bool wants = false;

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        wants |= bench_wants(shapes[i].name);
    return wants;
}

/* Every shape that the device can do in reasonable time. */
int bench_training(mlx_stream s)
{
    double edge = bench_options.edge, most = 64.0 * edge * edge * edge;
    int failed = 0;

    stream = s;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        if (bench_wants(shapes[i].name) && shapes[i].work <= most)
            failed += run_shape(&shapes[i]) != 0;
    return failed;
}
