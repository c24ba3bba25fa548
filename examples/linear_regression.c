/* Linear regression by gradient descent, with the gradient written out.
 *
 * y = X w + noise; the loss is the mean of (X w - y)^2, its gradient 2 / n * X^T (X w - y). Uses
 * only calls of mlx-c. */
#include <stdio.h>

#include "mlx/c/mlx.h"

#define SAMPLES 1000
#define FEATURES 10
#define STEPS 200
#define RATE 0.1f

/* res = normal numbers of the given shape times scale, from the next key of *key. */
static void normal(mlx_array *res, int rows, int columns, float scale, mlx_array *key)
{
    mlx_stream s = mlx_stream_new();
    mlx_array now = mlx_array_new();

    mlx_random_split(key, &now, *key, s);
    mlx_random_normal(res, (int[]){ rows, columns }, 2, MLX_FLOAT32, 0, scale, now, s);
    mlx_array_free(now);
}

/* error = X w - y */
static void residual(mlx_array *error, mlx_array x, mlx_array w, mlx_array y, mlx_stream s)
{
    mlx_matmul(error, x, w, s);
    mlx_subtract(error, *error, y, s);
}

/* w -= RATE * 2 / n * X^T (X w - y) */
static void descend(mlx_array *w, mlx_array x, mlx_array y, mlx_stream s)
{
    mlx_array grad = mlx_array_new(), xt = mlx_array_new();
    mlx_array rate = mlx_array_new_float(RATE * 2 / SAMPLES);

    residual(&grad, x, *w, y, s);
    mlx_transpose(&xt, x, s);
    mlx_matmul(&grad, xt, grad, s);
    mlx_multiply(&grad, grad, rate, s);
    mlx_subtract(w, *w, grad, s);
    mlx_array_eval(*w); /* the graph of one step; without this it would grow with every step */
    mlx_array_free(grad);
    mlx_array_free(xt);
    mlx_array_free(rate);
}

static float loss(mlx_array x, mlx_array w, mlx_array y, mlx_stream s)
{
    mlx_array error = mlx_array_new();
    float value = 0;

    residual(&error, x, w, y, s);
    mlx_square(&error, error, s);
    mlx_mean(&error, error, false, s);
    mlx_array_item_float32(&value, error);
    mlx_array_free(error);
    return value;
}

/* The largest difference between two arrays. */
static float distance(mlx_array a, mlx_array b, mlx_stream s)
{
    mlx_array d = mlx_array_new();
    float value = 0;

    mlx_subtract(&d, a, b, s);
    mlx_abs(&d, d, s);
    mlx_max(&d, d, false, s);
    mlx_array_item_float32(&value, d);
    mlx_array_free(d);
    return value;
}

int main(void)
{
    mlx_stream s = mlx_stream_new();
    mlx_array key = mlx_array_new(), x = mlx_array_new(), y = mlx_array_new();
    mlx_array noise = mlx_array_new(), truth = mlx_array_new(), w = mlx_array_new();

    mlx_random_key(&key, 42);
    normal(&truth, FEATURES, 1, 1, &key);
    normal(&x, SAMPLES, FEATURES, 1, &key);
    normal(&noise, SAMPLES, 1, 0.01f, &key);
    mlx_matmul(&y, x, truth, s);
    mlx_add(&y, y, noise, s);
    mlx_zeros(&w, (int[]){ FEATURES, 1 }, 2, MLX_FLOAT32, s);

    printf("step %4d: loss %.6f\n", 0, loss(x, w, y, s));
    for (int step = 1; step <= STEPS; step++) {
        descend(&w, x, y, s);
        if (step % 50 == 0)
            printf("step %4d: loss %.6f\n", step, loss(x, w, y, s));
    }
    float error = distance(w, truth, s);
    printf("largest error of the weights: %.6f\n", error);

    mlx_array_free(key);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(noise);
    mlx_array_free(truth);
    mlx_array_free(w);
    mlx_stream_free(s);
    return error < 0.01f ? 0 : 1;
}
