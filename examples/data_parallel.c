/* Processes that train one model together: each has samples of its own, and the mean of their
 * gradients moves the weights, which stay the same everywhere. Alone it trains on what it has.
 * Uses only calls of mlx-c.
 *
 *     mpirun -n 2 data_parallel */
#include <stdio.h>

#include "mlx/c/mlx.h"

#define SAMPLES 512 /* of each process */
#define FEATURES 8
#define STEPS 200
#define RATE 0.1f

enum { WEIGHTS, X, Y, ARGUMENTS };

static const mlx_stream s = { NULL }; /* the default one */

static mlx_array get(mlx_vector_array list, size_t at)
{
    mlx_array a = mlx_array_new();

    mlx_vector_array_get(&a, list, at);
    return a;
}

/* The mean of (x w - y)^2 */
static int loss(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array a[ARGUMENTS], e = mlx_array_new();
    int failed = 0;

    for (size_t i = 0; i < ARGUMENTS; i++)
        a[i] = get(in, i);
    failed |= mlx_matmul(&e, a[X], a[WEIGHTS], s);
    failed |= mlx_subtract(&e, e, a[Y], s);
    failed |= mlx_square(&e, e, s);
    failed |= mlx_mean(&e, e, false, s);
    failed |= mlx_vector_array_set_value(res, e);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    mlx_array_free(e);
    return failed;
}

static mlx_array normal(int rows, int columns, float scale, uint64_t seed)
{
    mlx_array key = mlx_array_new(), a = mlx_array_new();

    mlx_random_key(&key, seed);
    mlx_random_normal(&a, (int[]){ rows, columns }, 2, MLX_FLOAT32, 0, scale, key, s);
    mlx_array_free(key);
    return a;
}

/* Samples of the same truth, which are this process's alone. */
static void make_samples(mlx_array *x, mlx_array *y, mlx_array truth, int rank)
{
    mlx_array noise = normal(SAMPLES, 1, 0.01f, 1000 + (uint64_t)rank);

    *x = normal(SAMPLES, FEATURES, 1, 2000 + (uint64_t)rank);
    mlx_matmul(y, *x, truth, s);
    mlx_add(y, *y, noise, s);
    mlx_array_free(noise);
}

/* Replaces a by the mean of what all processes have. */
static void average(mlx_array *a, mlx_distributed_group group)
{
    mlx_array n = mlx_array_new_float((float)mlx_distributed_group_size(group));

    mlx_distributed_all_sum(a, *a, group, s);
    mlx_divide(a, *a, n, s);
    mlx_array_free(n);
}

/* Moves the weights; the loss over all samples. */
static float step(mlx_array *w, mlx_array x, mlx_array y, mlx_closure_value_and_grad g,
                  mlx_distributed_group group)
{
    mlx_vector_array in = mlx_vector_array_new_data((mlx_array[]){ *w, x, y }, ARGUMENTS);
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();
    mlx_array rate = mlx_array_new_float(RATE);
    float value = 0;

    mlx_closure_value_and_grad_apply(&values, &grads, g, in);
    mlx_array mean = get(values, 0), grad = get(grads, 0);
    average(&grad, group);
    average(&mean, group);
    mlx_multiply(&grad, grad, rate, s);
    mlx_subtract(w, *w, grad, s);
    mlx_vector_array both = mlx_vector_array_new_data((mlx_array[]){ *w, mean }, 2);
    mlx_eval(both);
    mlx_array_item_float32(&value, mean);
    mlx_vector_array_free(both);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_array_free(mean);
    mlx_array_free(grad);
    mlx_array_free(rate);
    return value;
}

/* How far the weights of the processes are apart. */
static float difference(mlx_array w, mlx_distributed_group group)
{
    mlx_array most = mlx_array_new(), least = mlx_array_new();
    float value = 1;

    mlx_distributed_all_max(&most, w, group, s);
    mlx_distributed_all_min(&least, w, group, s);
    mlx_subtract(&most, most, least, s);
    mlx_max(&most, most, false, s);
    mlx_array_item_float32(&value, most);
    mlx_array_free(most);
    mlx_array_free(least);
    return value;
}

int main(void)
{
    mlx_distributed_group group = mlx_distributed_group_new();
    mlx_closure f = mlx_closure_new_func(loss);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_array truth = normal(FEATURES, 1, 1, 1), w = normal(FEATURES, 1, 1, 2), x,
              y = mlx_array_new();
    float value = 1;

    mlx_distributed_init(&group, false, NULL);
    int rank = mlx_distributed_group_rank(group), size = mlx_distributed_group_size(group);
    make_samples(&x, &y, truth, rank);
    mlx_value_and_grad(&g, f, (int[]){ WEIGHTS }, 1);
    for (int i = 0; i < STEPS; i++) {
        value = step(&w, x, y, g, group);
        if (rank == 0 && i % 50 == 0)
            printf("%d processes, step %3d: loss %.6f\n", size, i, value);
    }
    float apart = difference(w, group);
    if (rank == 0)
        printf("%d processes, step %3d: loss %.6f\n", size, STEPS, value);
    mlx_array_free(truth);
    mlx_array_free(w);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_closure_free(f);
    mlx_closure_value_and_grad_free(g);
    mlx_distributed_group_free(group);
    return value < 0.001f && apart == 0 ? 0 : 1;
}
