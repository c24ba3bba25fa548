/* What laziness buys: a chain of elementwise ops, evaluated as one graph and op by op.
 *
 * In one graph the library may run the whole chain as a single kernel, so that intermediate values
 * never reach memory; evaluating after every op forces each of them out. The results are the same
 * bits. Uses only calls of mlx-c. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mlx/c/mlx.h"

#define RUNS 5

static double now_ms(void)
{
    struct timespec t;

    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))); with step, every op at once. */
static void gelu(mlx_array *res, mlx_array x, bool step, mlx_stream s)
{
    mlx_array half = mlx_array_new_float(0.5f), one = mlx_array_new_float(1);
    mlx_array cubic = mlx_array_new_float(0.044715f), slope = mlx_array_new_float(0.7978845608f);
    mlx_array t = mlx_array_new();

    for (int i = 0; i < 8; i++) {
        switch (i) {
        case 0:
            mlx_square(&t, x, s);
            break;
        case 1:
            mlx_multiply(&t, t, cubic, s);
            break;
        case 2:
            mlx_add(&t, t, one, s);
            break;
        case 3:
            mlx_multiply(&t, t, x, s);
            break;
        case 4:
            mlx_multiply(&t, t, slope, s);
            break;
        case 5:
            mlx_tanh(&t, t, s);
            break;
        case 6:
            mlx_add(&t, t, one, s);
            break;
        case 7:
            mlx_multiply(&t, t, x, s);
            break;
        }
        if (step)
            mlx_array_eval(t);
    }
    mlx_multiply(res, t, half, s);
    mlx_array_eval(*res);

    mlx_array_free(t);
    mlx_array_free(half);
    mlx_array_free(one);
    mlx_array_free(cubic);
    mlx_array_free(slope);
}

/* The best time of a few runs. */
static double timed(mlx_array *res, mlx_array x, bool step, mlx_stream s)
{
    double best = 0;

    for (int run = 0; run < RUNS; run++) {
        double start = now_ms();
        gelu(res, x, step, s);
        double took = now_ms() - start;
        if (run == 0 || took < best)
            best = took;
    }
    return best;
}

int main(int argc, char **argv)
{
    int shape[] = { argc > 1 ? (int)strtol(argv[1], NULL, 10) : 1 << 22 };
    mlx_stream s = mlx_stream_new();
    mlx_array x = mlx_array_new(), key = mlx_array_new();
    mlx_array fused = mlx_array_new(), stepped = mlx_array_new(), equal = mlx_array_new();
    mlx_device dev = mlx_device_new();
    mlx_string name = mlx_string_new();
    bool same = false;

    mlx_get_default_device(&dev);
    mlx_device_tostring(&name, dev);
    mlx_random_key(&key, 0);
    mlx_random_normal(&x, shape, 1, MLX_FLOAT32, 0, 1, key, s);
    mlx_array_eval(x);

    double one = timed(&fused, x, false, s), many = timed(&stepped, x, true, s);
    mlx_array_equal(&equal, fused, stepped, false, s);
    mlx_array_item_bool(&same, equal);
    printf("gelu of %d values on %s\n", shape[0], mlx_string_data(name));
    printf("one graph:  %8.3f ms\n", one);
    printf("op by op:   %8.3f ms (%.1f times as long)\n", many, many / one);
    printf("same bits:  %s\n", same ? "yes" : "no");

    mlx_string_free(name);
    mlx_device_free(dev);
    mlx_array_free(x);
    mlx_array_free(key);
    mlx_array_free(fused);
    mlx_array_free(stepped);
    mlx_array_free(equal);
    mlx_stream_free(s);
    return same ? 0 : 1;
}
