/* Thousands of training steps leave memory as it is: the process's, and that of arrays. */
#include "api/api_test.h"

#include <unistd.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#define STEPS 10000
#define SETTLED 2000 /* steps after which nothing grows any more */
#define WIDTH 8

enum { W1, W2, WEIGHTS, X = WEIGHTS, Y, ARGUMENTS };

static const mlx_stream s = { NULL };

static mlx_array get(mlx_vector_array list, size_t at)
{
    mlx_array a = mlx_array_new();

    assert_ok(mlx_vector_array_get(&a, list, at));
    return a;
}

/* The mean of (tanh(x W1) W2 - y)^2 */
static int loss(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array a[ARGUMENTS], h = mlx_array_new();
    int failed = 0;

    for (size_t i = 0; i < ARGUMENTS; i++)
        a[i] = get(in, i);
    failed |= mlx_matmul(&h, a[X], a[W1], s);
    failed |= mlx_tanh(&h, h, s);
    failed |= mlx_matmul(&h, h, a[W2], s);
    failed |= mlx_subtract(&h, h, a[Y], s);
    failed |= mlx_square(&h, h, s);
    failed |= mlx_mean(&h, h, false, s);
    failed |= mlx_vector_array_set_value(res, h);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    mlx_array_free(h);
    return failed;
}

/* One step of gradient descent; the arguments have the new weights then. */
static void train(mlx_vector_array *args, mlx_closure_value_and_grad gradient)
{
    mlx_vector_array value = mlx_vector_array_new(), grads = mlx_vector_array_new();
    mlx_array a[ARGUMENTS], rate = mlx_array_new_float(0.05f);

    assert_ok(mlx_closure_value_and_grad_apply(&value, &grads, gradient, *args));
    for (size_t i = 0; i < ARGUMENTS; i++) {
        a[i] = get(*args, i);
        if (i >= WEIGHTS)
            continue;
        mlx_array g = get(grads, i);
        assert_ok(mlx_multiply(&g, g, rate, s));
        assert_ok(mlx_subtract(&a[i], a[i], g, s));
        mlx_array_free(g);
    }
    assert_ok(mlx_vector_array_set_data(args, a, ARGUMENTS));
    assert_ok(mlx_eval(*args));
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    mlx_array_free(rate);
    mlx_vector_array_free(value);
    mlx_vector_array_free(grads);
}

static mlx_vector_array start(void)
{
    static const int shapes[ARGUMENTS][2] = {
        [W1] = { 2, WIDTH }, [W2] = { WIDTH, 1 }, [X] = { 16, 2 }, [Y] = { 16, 1 }
    };
    mlx_array a[ARGUMENTS], none = mlx_array_new();

    for (size_t i = 0; i < ARGUMENTS; i++) {
        a[i] = mlx_array_new();
        assert_ok(mlx_random_normal(&a[i], shapes[i], 2, MLX_FLOAT32, 0, 0.5f, none, s));
    }
    mlx_vector_array list = mlx_vector_array_new_data(a, ARGUMENTS);
    assert_ok(mlx_eval(list));
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    return list;
}

/* Pages of the process that lie in memory. */
static long resident_pages(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident;
}

static void check_steps(void)
{
    mlx_closure f = mlx_closure_new_func(loss);
    mlx_closure_value_and_grad gradient = mlx_closure_value_and_grad_new();
    mlx_vector_array args = start();
    size_t active = 0, cache = 0, active_then = 0, cache_then = 0;
    long pages = 0;

    assert_ok(mlx_value_and_grad(&gradient, f, (int[]){ W1, W2 }, WEIGHTS));
    for (int i = 0; i < STEPS; i++) {
        if (i == SETTLED) {
            pages = resident_pages();
            assert_ok(mlx_get_active_memory(&active_then));
            assert_ok(mlx_get_cache_memory(&cache_then));
        }
        train(&args, gradient);
    }
    assert_ok(mlx_get_active_memory(&active));
    assert_ok(mlx_get_cache_memory(&cache));
    assert_int_equal(active, active_then);
    assert_true(cache <= cache_then);
    pages = resident_pages() - pages;
    if (!__has_feature(address_sanitizer)) /* it keeps what is freed */
        assert_true(pages * sysconf(_SC_PAGESIZE) < 1 << 20);
    mlx_vector_array_free(args);
    mlx_closure_free(f);
    mlx_closure_value_and_grad_free(gradient);
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    check_steps();
}

static void test_on_the_gpu(void **state)
{
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
    bool available = false;

    (void)state;
    assert_ok(mlx_device_is_available(&available, gpu));
    if (available) {
        assert_ok(mlx_set_default_device(gpu));
        check_steps();
    }
    mlx_device_free(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_on_the_cpu, setup_cpu),
        cmocka_unit_test_setup(test_on_the_gpu, setup_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
