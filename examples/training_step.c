/* A small network learns the sine, with a step of training that is compiled as a whole: values,
 * gradients and the new weights are one graph, which is built once. Uses only calls of mlx-c. */
#include <stdio.h>

#include "mlx/c/mlx.h"

#define SAMPLES 256
#define HIDDEN 32
#define STEPS 2000
#define RATE 0.05f

enum { W1, B1, W2, B2, WEIGHTS, X = WEIGHTS, Y, ARGUMENTS };

static const mlx_stream s = { NULL }; /* the default one */

static mlx_array get(mlx_vector_array list, size_t at)
{
    mlx_array a = mlx_array_new();

    mlx_vector_array_get(&a, list, at);
    return a;
}

/* The mean of (tanh(x W1 + b1) W2 + b2 - y)^2 */
static int loss(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array a[ARGUMENTS], h = mlx_array_new();
    int failed = 0;

    for (size_t i = 0; i < ARGUMENTS; i++)
        a[i] = get(in, i);
    failed |= mlx_matmul(&h, a[X], a[W1], s);
    failed |= mlx_add(&h, h, a[B1], s);
    failed |= mlx_tanh(&h, h, s);
    failed |= mlx_matmul(&h, h, a[W2], s);
    failed |= mlx_add(&h, h, a[B2], s);
    failed |= mlx_subtract(&h, h, a[Y], s);
    failed |= mlx_square(&h, h, s);
    failed |= mlx_mean(&h, h, false, s);
    failed |= mlx_vector_array_set_value(res, h);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    mlx_array_free(h);
    return failed;
}

/* From weights, x and y to the new weights and the loss. payload: values and gradients of it. */
static int step(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();
    mlx_array out[WEIGHTS + 1], rate = mlx_array_new_float(RATE);
    int failed = mlx_closure_value_and_grad_apply(&values, &grads,
                                                  *(mlx_closure_value_and_grad *)payload, in);

    for (size_t i = 0; i < WEIGHTS; i++) {
        mlx_array g = get(grads, i);
        out[i] = get(in, i);
        failed |= mlx_multiply(&g, g, rate, s);
        failed |= mlx_subtract(&out[i], out[i], g, s);
        mlx_array_free(g);
    }
    out[WEIGHTS] = get(values, 0);
    failed |= mlx_vector_array_set_data(res, out, WEIGHTS + 1);
    for (size_t i = 0; i <= WEIGHTS; i++)
        mlx_array_free(out[i]);
    mlx_array_free(rate);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    return failed;
}

static mlx_array normal(int rows, int columns, uint64_t seed)
{
    mlx_array key = mlx_array_new(), a = mlx_array_new();

    mlx_random_key(&key, seed);
    mlx_random_normal(&a, (int[]){ rows, columns }, 2, MLX_FLOAT32, 0, 0.5f, key, s);
    mlx_array_free(key);
    return a;
}

/* The arguments of a step. */
static mlx_vector_array start(void)
{
    mlx_array a[ARGUMENTS] = {
        [W1] = normal(1, HIDDEN, 1), [B1] = normal(1, HIDDEN, 2), [W2] = normal(HIDDEN, 1, 3),
        [B2] = normal(1, 1, 4),      [X] = mlx_array_new(),       [Y] = mlx_array_new()
    };

    mlx_linspace(&a[X], -3, 3, SAMPLES, MLX_FLOAT32, s);
    mlx_expand_dims(&a[X], a[X], 1, s);
    mlx_sin(&a[Y], a[X], s);
    mlx_vector_array list = mlx_vector_array_new_data(a, ARGUMENTS);
    mlx_eval(list);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    return list;
}

/* One step; the arguments have the new weights then. */
static float train(mlx_vector_array *args, mlx_closure compiled)
{
    mlx_vector_array out = mlx_vector_array_new();
    mlx_array a[ARGUMENTS];
    float value = 0;

    mlx_closure_apply(&out, compiled, *args);
    for (size_t i = 0; i < ARGUMENTS; i++)
        a[i] = i < WEIGHTS ? get(out, i) : get(*args, i);
    mlx_vector_array_set_data(args, a, ARGUMENTS);
    mlx_eval(out);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    a[0] = get(out, WEIGHTS);
    mlx_array_item_float32(&value, a[0]);
    mlx_array_free(a[0]);
    mlx_vector_array_free(out);
    return value;
}

int main(void)
{
    mlx_closure f = mlx_closure_new_func(loss), compiled = mlx_closure_new();
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_vector_array args = start();
    float value = 1;

    mlx_value_and_grad(&g, f, (int[]){ W1, B1, W2, B2 }, WEIGHTS);
    mlx_closure whole = mlx_closure_new_func_payload(step, &g, NULL);
    mlx_compile(&compiled, whole, false);
    for (int i = 0; i < STEPS; i++) {
        value = train(&args, compiled);
        if (i % 500 == 0)
            printf("step %4d: loss %.6f\n", i, value);
    }
    printf("step %4d: loss %.6f\n", STEPS, value);
    mlx_closure_free(f);
    mlx_closure_free(whole);
    mlx_closure_free(compiled);
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(args);
    return value < 0.02f ? 0 : 1;
}
