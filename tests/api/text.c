/* Arrays and results of ops as text, against what MLX prints for the same. */
#include "api_test.h"

#include <math.h>

static const mlx_stream s = { NULL };

/* ---- values of one case; released together ---- */

#define POOL 64
static mlx_array pool[POOL];
static size_t pooled;

static mlx_array keep(mlx_array a)
{
    assert_true(pooled < POOL);
    assert_non_null(a.ctx);
    return pool[pooled++] = a;
}

static void release_all(void)
{
    while (pooled)
        mlx_array_free(pool[--pooled]);
}

/* ---- helpers of the cases ---- */

struct dims {
    int d[8];
    size_t n;
};
#define D(...)                                                                                     \
    (struct dims)                                                                                  \
    {                                                                                              \
        { __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)                              \
    }
#define NO_DIMS                                                                                    \
    (struct dims)                                                                                  \
    {                                                                                              \
        { 0 }, 0                                                                                   \
    }

/* Runs a call that writes res, and keeps the result. */
#define MADE(call)                                                                                 \
    do {                                                                                           \
        mlx_array res = mlx_array_new();                                                           \
        assert_ok(call);                                                                           \
        return keep(res);                                                                          \
    } while (0)

static mlx_array cast(mlx_array a, mlx_dtype t)
{
    MADE(mlx_astype(&res, a, t, s));
}

static mlx_array floats(const float *v, int n)
{
    return keep(mlx_array_new_data(v, &n, 1, MLX_FLOAT32));
}

static mlx_array ints(const int *v, int n)
{
    return keep(mlx_array_new_data(v, &n, 1, MLX_INT32));
}

static mlx_array complex_pairs(const float *v, int n)
{
    return keep(mlx_array_new_data(v, &n, 1, MLX_COMPLEX64));
}

static mlx_array arange(double start, double stop, double step, mlx_dtype t)
{
    MADE(mlx_arange(&res, start, stop, step, t, s));
}

static mlx_array iota(mlx_dtype t, struct dims shape)
{
    int n = 1;

    for (size_t i = 0; i < shape.n; i++)
        n *= shape.d[i];
    mlx_array a = arange(0, n, 1, MLX_INT32);
    assert_ok(mlx_reshape(&a, a, shape.d, shape.n, s));
    return cast(a, t);
}

static mlx_array special(mlx_dtype t)
{
    static const float values[] = { 0.0f,     -0.0f,     1.0f,       -1.5f, 1e-5f,
                                    1e5f,     123456.0f, 1234567.0f, 1e20f, 3.14159265f,
                                    1.0f / 3, INFINITY,  -INFINITY,  NAN,   -2.0f };

    return cast(keep(mlx_array_new_data(values, (int[]){ 3, 5 }, 2, MLX_FLOAT32)), t);
}

typedef int (*fn1)(mlx_array *, const mlx_array, const mlx_stream);
typedef int (*fn2)(mlx_array *, const mlx_array, const mlx_array, const mlx_stream);

static mlx_array call1(fn1 f, mlx_array a)
{
    MADE(f(&res, a, s));
}

static mlx_array call2(fn2 f, mlx_array a, mlx_array b)
{
    MADE(f(&res, a, b, s));
}

static mlx_array part(int (*f)(mlx_vector_array *, const mlx_array, const mlx_array,
                               const mlx_stream),
                      mlx_array a, mlx_array b, size_t i)
{
    mlx_vector_array parts = mlx_vector_array_new();
    mlx_array res = mlx_array_new();

    assert_ok(f(&parts, a, b, s));
    assert_ok(mlx_vector_array_get(&res, parts, i));
    mlx_vector_array_free(parts);
    return keep(res);
}

static mlx_array round_to(mlx_array a, int decimals)
{
    MADE(mlx_round(&res, a, decimals, s));
}

static mlx_array nan_to_num(mlx_array a, bool given)
{
    mlx_optional_float pos = { 4, given }, neg = { -4, given };

    MADE(mlx_nan_to_num(&res, a, given ? 3 : 0, pos, neg, s));
}

static mlx_array is_close(mlx_array a, mlx_array b, bool equal_nan)
{
    MADE(mlx_isclose(&res, a, b, 1e-5, 1e-8, equal_nan, s));
}

static mlx_array linspace(double start, double stop, int num, mlx_dtype t)
{
    MADE(mlx_linspace(&res, start, stop, num, t, s));
}

static mlx_array diagonal(int (*f)(mlx_array *, int, int, int, mlx_dtype, const mlx_stream), int n,
                          int m, int k, mlx_dtype t)
{
    MADE(f(&res, n, m, k, t, s));
}

static mlx_array triangle(int (*f)(mlx_array *, const mlx_array, int, const mlx_stream),
                          mlx_array a, int k)
{
    MADE(f(&res, a, k, s));
}

static mlx_array pad(mlx_array a, const int *low, const int *high, const char *mode)
{
    const int axes[] = { 0, 1 };
    mlx_array value = keep(mlx_array_new_int(9));

    MADE(mlx_pad(&res, a, axes, 2, low, 2, high, 2, value, mode, s));
}

static mlx_array repeat(mlx_array a, int n, int axis)
{
    MADE(mlx_repeat_axis(&res, a, n, axis, s));
}

static mlx_array tile(mlx_array a, const int *reps, size_t n)
{
    MADE(mlx_tile(&res, a, reps, n, s));
}

static mlx_array take(mlx_array a, mlx_array indices, int axis)
{
    MADE(mlx_take_axis(&res, a, indices, axis, s));
}

static mlx_array slice2(mlx_array a, const int *start, const int *stop, const int *step)
{
    MADE(mlx_slice(&res, a, start, 2, stop, 2, step, 2, s));
}

static mlx_array reduce(int (*f)(mlx_array *, const mlx_array, int, bool, const mlx_stream),
                        mlx_array a, int axis, bool keepdims)
{
    MADE(f(&res, a, axis, keepdims, s));
}

static mlx_array variance(int (*f)(mlx_array *, const mlx_array, bool, int, const mlx_stream),
                          mlx_array a, int ddof)
{
    MADE(f(&res, a, false, ddof, s));
}

static mlx_array addmm(mlx_array c, mlx_array a, mlx_array b)
{
    MADE(mlx_addmm(&res, c, a, b, 2, 3, s));
}

static mlx_array axes2(int (*f)(mlx_array *, const mlx_array, int, int, const mlx_stream),
                       mlx_array a, int x, int y)
{
    MADE(f(&res, a, x, y, s));
}

static mlx_array strided(mlx_array a, struct dims shape, const int64_t *strides, size_t offset)
{
    MADE(mlx_as_strided(&res, a, shape.d, shape.n, strides, shape.n, offset, s));
}

static mlx_array view_as(mlx_array a, mlx_dtype t)
{
    MADE(mlx_view(&res, a, t, s));
}

static mlx_array joined(int (*f)(mlx_array *, const mlx_vector_array, int, const mlx_stream),
                        mlx_array a, mlx_array b, int axis)
{
    mlx_vector_array list = mlx_vector_array_new_data((mlx_array[]){ a, b }, 2);
    mlx_array res = mlx_array_new();

    assert_ok(f(&res, list, axis, s));
    mlx_vector_array_free(list);
    return keep(res);
}

static mlx_array choose(mlx_array cond, mlx_array a, mlx_array b)
{
    MADE(mlx_where(&res, cond, a, b, s));
}

static mlx_array clip(mlx_array a, float low, float high)
{
    mlx_array x = keep(mlx_array_new_float(low)), y = keep(mlx_array_new_float(high));

    MADE(mlx_clip(&res, a, x, y, s));
}

/* ---- random numbers, all from key 0 ---- */

static mlx_array key0(void)
{
    MADE(mlx_random_key(&res, 0));
}

static mlx_array bits(struct dims shape, int width)
{
    MADE(mlx_random_bits(&res, shape.d, shape.n, width, key0(), s));
}

static mlx_array uniform(struct dims shape, mlx_dtype t, float low, float high)
{
    mlx_array a = keep(mlx_array_new_float(low)), b = keep(mlx_array_new_float(high));

    MADE(mlx_random_uniform(&res, a, b, shape.d, shape.n, t, key0(), s));
}

static mlx_array normal(struct dims shape, mlx_dtype t, float loc, float scale)
{
    MADE(mlx_random_normal(&res, shape.d, shape.n, t, loc, scale, key0(), s));
}

static mlx_array randint(struct dims shape, mlx_dtype t, int low, int high)
{
    mlx_array a = keep(mlx_array_new_int(low)), b = keep(mlx_array_new_int(high));

    MADE(mlx_random_randint(&res, a, b, shape.d, shape.n, t, key0(), s));
}

static mlx_array bernoulli(struct dims shape, float p)
{
    MADE(mlx_random_bernoulli(&res, keep(mlx_array_new_float(p)), shape.d, shape.n, key0(), s));
}

static mlx_array split_keys(int n)
{
    MADE(mlx_random_split_num(&res, key0(), n, s));
}

/* The n-th draw of two numbers after seeding. */
static mlx_array sequence(uint64_t seed, int n)
{
    mlx_array low = keep(mlx_array_new_float(0)), high = keep(mlx_array_new_float(1));
    mlx_array res = mlx_array_new();

    assert_ok(mlx_random_seed(seed));
    for (int i = 0; i < n; i++)
        assert_ok(
            mlx_random_uniform(&res, low, high, (int[]){ 2 }, 1, MLX_FLOAT32, mlx_array_empty, s));
    return keep(res);
}

/* ---- the cases ---- */

static int failures;

static void check(const char *expression, mlx_array a, const char *expected)
{
    mlx_string text = mlx_string_new();

    assert_ok(mlx_array_tostring(&text, a));
    if (strcmp(mlx_string_data(text), expected) != 0) {
        failures++;
        print_error("%s\n  gave     %s\n  expected %s\n", expression, mlx_string_data(text),
                    expected);
    }
    mlx_string_free(text);
    release_all();
}

/* float64 exists on the CPU only. */
#define TEXT(expected, ...)                                                                        \
    if (cpu || !strstr(expected, "float64"))                                                       \
        check(#__VA_ARGS__, __VA_ARGS__, expected);

static void run_cases(bool cpu)
{
    failures = 0;
#include "text_cases.def"
    assert_int_equal(failures, 0);
}

static void test_cpu(void **state)
{
    (void)state;
    run_cases(true);
}

static void test_gpu(void **state)
{
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
    bool available = false;

    (void)state;
    assert_ok(mlx_device_is_available(&available, gpu));
    if (available)
        assert_ok(mlx_set_default_device(gpu));
    mlx_device_free(gpu);
    if (!available)
        skip(); /* a build or a machine without Vulkan */
    run_cases(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cpu), cmocka_unit_test(test_gpu) };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
