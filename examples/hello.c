/* A first program: a lazy graph, evaluated on the GPU where there is one.
 *
 * Uses only calls of mlx-c. Return codes are not tested: the default error handler prints the
 * reason and ends the program. */
#include <stdio.h>
#include <time.h>

#include "mlx/c/mlx.h"

static double now_ms(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void print(const char *what, mlx_array a)
{
    mlx_string text = mlx_string_new();

    mlx_array_tostring(&text, a);
    printf("%s = %s\n", what, mlx_string_data(text));
    mlx_string_free(text);
}

/* Makes the first GPU the default device, if there is one, and says which device it is. */
static void choose_device(void)
{
    mlx_device dev = mlx_device_new_type(MLX_GPU, 0);
    mlx_device_info info = mlx_device_info_new();
    mlx_string text = mlx_string_new();
    const char *name = "";
    bool available = false;

    mlx_device_is_available(&available, dev);
    if (available)
        mlx_set_default_device(dev);
    mlx_get_default_device(&dev);
    mlx_device_tostring(&text, dev);
    mlx_device_info_get(&info, dev);
    mlx_device_info_get_string(&name, info, "device_name");
    printf("device = %s %s\n", mlx_string_data(text), name);
    mlx_string_free(text);
    mlx_device_info_free(info);
    mlx_device_free(dev);
}

/* The mean of sin(x)^2 + cos(x)^2 over n values, which is 1. */
static void build(mlx_array *res, int n, mlx_stream s)
{
    mlx_array c = mlx_array_new();

    mlx_linspace(res, 0, 100, n, MLX_FLOAT32, s);
    mlx_cos(&c, *res, s);
    mlx_square(&c, c, s);
    mlx_sin(res, *res, s);
    mlx_square(res, *res, s);
    mlx_add(res, *res, c, s);
    mlx_mean(res, *res, false, s);
    mlx_array_free(c);
}

int main(void)
{
    choose_device();

    mlx_stream s = mlx_stream_new(); /* empty: the default stream of the default device */
    float values[] = { 1, 2, 3, 4, 5, 6 };
    int shape[] = { 2, 3 };
    mlx_array a = mlx_array_new_data(values, shape, 2, MLX_FLOAT32);
    mlx_array b = mlx_array_new_float(10);

    mlx_add(&b, a, b, s); /* a handle may be input and output */
    print("a + 10", b);
    mlx_transpose(&b, b, s);
    mlx_matmul(&b, a, b, s);
    print("a @ (a + 10).T", b);

    mlx_array m = mlx_array_new();
    for (int run = 1; run <= 3; run++) {
        float mean = 0;
        double start = now_ms();
        build(&m, 1 << 20, s);
        double built = now_ms();
        mlx_array_eval(m);
        double done = now_ms();
        mlx_array_item_float32(&mean, m);
        printf("run %d: mean of sin^2 + cos^2 over 2^20 values = %.6f, graph %.3f ms, "
               "evaluation %.3f ms\n",
               run, mean, built - start, done - built);
    }

    mlx_array_free(m);
    mlx_array_free(b);
    mlx_array_free(a);
    mlx_stream_free(s);
    return 0;
}
