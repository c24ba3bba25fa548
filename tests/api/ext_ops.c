/* Functions of MLX that mlx-c lacks: values, and what is refused. */
#include "api_test.h"

#include <math.h>

#include "mlx/c/ext.h"

static const mlx_stream s = { NULL };

static mlx_array vector(const float *v, int n)
{
    return mlx_array_new_data(v, &n, 1, MLX_FLOAT32);
}
#define VECTOR(...)                                                                                \
    vector((float[]){ __VA_ARGS__ }, sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

/* Elements of a, whatever it is, as float32. NaN equals NaN. */
static void assert_values(mlx_array a, const float *want, size_t n)
{
    mlx_array f = mlx_array_new();

    assert_ok(mlx_astype(&f, a, MLX_FLOAT32, s));
    assert_ok(mlx_contiguous(&f, f, false, s));
    assert_ok(mlx_array_eval(f));
    assert_int_equal(mlx_array_size(f), n);
    const float *got = mlx_array_data_float32(f);
    for (size_t i = 0; i < n; i++)
        if (!(got[i] == want[i] || (isnan(got[i]) && isnan(want[i]))))
            fail_msg("element %zu: %g instead of %g", i, (double)got[i], (double)want[i]);
    mlx_array_free(f);
}
#define assert_is(a, ...)                                                                          \
    assert_values(a, (float[]){ __VA_ARGS__ }, sizeof((float[]){ __VA_ARGS__ }) / sizeof(float))

static void assert_told(const char *text)
{
    if (!strstr(errors.text, text))
        fail_msg("%s is not in: %s", text, errors.text);
}

static void test_one_input(void **state)
{
    mlx_array a = VECTOR(-1.5f, -0.5f, 0, 2.7f, NAN), b = VECTOR(0, 1, 0, 1, 1),
              r = mlx_array_new();

    (void)state;
    assert_ok(mlx_positive(&r, a, s));
    assert_is(r, -1.5f, -0.5f, 0, 2.7f, NAN);
    assert_ok(mlx_trunc(&r, a, s));
    assert_is(r, -1, 0, 0, 2, NAN);
    assert_ok(mlx_logical_xor(&r, a, b, s));
    assert_is(r, 1, 0, 0, 0, 0);
    assert_int_equal(mlx_array_dtype(r), MLX_BOOL);
    assert_ok(mlx_flip(&r, a, s));
    assert_is(r, NAN, 2.7f, 0, -0.5f, -1.5f);
    assert_ok(mlx_flip_axis(&r, b, -1, s));
    assert_is(r, 1, 1, 0, 1, 0);
    assert_fails(mlx_flip_axis(&r, b, 1, s));
    assert_told("[flip] Axis 1 is out of bounds for array with 1 dimensions.");
    assert_ok(mlx_count_nonzero(&r, a, false, s));
    assert_is(r, 4);
    assert_int_equal(mlx_array_dtype(r), MLX_INT32);
    assert_ok(mlx_count_nonzero_axis(&r, b, 0, true, s));
    assert_is(r, 3);
    assert_ok(mlx_astype(&r, a, MLX_COMPLEX64, s));
    assert_fails(mlx_trunc(&r, r, s));
    assert_told("[trunc] Not supported for complex64.");
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(r);
}

static void test_along_an_axis(void **state)
{
    mlx_array a = VECTOR(1, 4, 9, 16), b = VECTOR(1, 0, 2, 1), r = mlx_array_new();

    (void)state;
    assert_ok(mlx_diff(&r, a, 1, -1, s));
    assert_is(r, 3, 5, 7);
    assert_ok(mlx_diff(&r, a, 2, 0, s));
    assert_is(r, 2, 2);
    assert_ok(mlx_diff(&r, a, 9, 0, s));
    assert_int_equal(mlx_array_size(r), 0);
    assert_fails(mlx_diff(&r, a, 1, 1, s));
    assert_told("[diff] Axis is out of bounds for the array.");
    assert_fails(mlx_diff(&r, a, -1, 0, s));
    assert_told("[diff] Order `n` must be non-negative.");
    assert_ok(mlx_vecdot(&r, a, b, -1, s));
    assert_is(r, 35);
    assert_fails(mlx_vecdot(&r, a, b, 1, s));
    assert_told("[vecdot] axis is out of bounds.");
    assert_ok(mlx_cumsum_dtype(&r, a, 0, false, true, MLX_INT64, s));
    assert_is(r, 1, 5, 14, 30);
    assert_int_equal(mlx_array_dtype(r), MLX_INT64);
    assert_ok(mlx_cumprod_dtype(&r, b, 0, true, false, MLX_FLOAT16, s));
    assert_is(r, 0, 2, 1, 1);
    assert_int_equal(mlx_array_dtype(r), MLX_FLOAT16);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(r);
}

/* As NumPy's, with NaN last and equal to itself. */
static void test_search(void **state)
{
    mlx_array a = VECTOR(1, 2, 2, 5, NAN), v = VECTOR(0, 1, 2, 3, 5, 9, NAN), r = mlx_array_new();
    mlx_array none = mlx_array_new();

    (void)state;
    assert_ok(mlx_searchsorted(&r, a, v, "left", s));
    assert_is(r, 0, 0, 1, 3, 3, 4, 4);
    assert_int_equal(mlx_array_dtype(r), MLX_UINT32);
    assert_ok(mlx_searchsorted(&r, a, v, "right", s));
    assert_is(r, 0, 1, 3, 3, 4, 4, 5);
    assert_ok(mlx_zeros(&none, (int[]){ 0 }, 1, MLX_FLOAT32, s));
    assert_ok(mlx_searchsorted(&r, none, v, "left", s));
    assert_is(r, 0, 0, 0, 0, 0, 0, 0);
    assert_fails(mlx_searchsorted(&r, a, v, "up", s));
    assert_told("[searchsorted] Invalid side 'up'. Expected 'left' or 'right'.");
    for (int n = 1; n <= 70; n++) { /* every size of the search */
        float want[70];
        assert_ok(mlx_arange(&a, 0, n, 1, MLX_INT32, s));
        for (int i = 0; i < n; i++)
            want[i] = (float)i;
        assert_ok(mlx_searchsorted(&r, a, a, "left", s));
        assert_values(r, want, (size_t)n);
    }
    mlx_array_free(a);
    mlx_array_free(v);
    mlx_array_free(r);
    mlx_array_free(none);
}

static void test_lists(void **state)
{
    mlx_array a = VECTOR(1, 2, 3), r = mlx_array_new(), one = mlx_array_new_float(7);
    mlx_vector_array list = mlx_vector_array_new(), in = mlx_vector_array_new_value(a);

    (void)state;
    assert_ok(mlx_unstack(&list, a, s));
    assert_int_equal(mlx_vector_array_size(list), 3);
    assert_ok(mlx_vector_array_get(&r, list, 1));
    assert_int_equal(mlx_array_ndim(r), 0);
    assert_is(r, 2);
    assert_fails(mlx_unstack_axis(&list, a, 1, s));
    assert_told("[unstack] Axis 1 is out of bounds for array with 1 dimensions.");
    assert_ok(mlx_vector_array_append_value(in, one));
    assert_ok(mlx_atleast_2d_list(&list, in, s));
    assert_int_equal(mlx_vector_array_size(list), 2);
    assert_ok(mlx_vector_array_get(&r, list, 1));
    assert_int_equal(mlx_array_ndim(r), 2);
    assert_is(r, 7);
    mlx_array_free(a);
    mlx_array_free(r);
    mlx_array_free(one);
    mlx_vector_array_free(list);
    mlx_vector_array_free(in);
}

static void test_creation(void **state)
{
    mlx_array a = VECTOR(0, 0, 1, 1), r = mlx_array_new(), key = mlx_array_new();

    (void)state;
    assert_ok(mlx_linspace_endpoint(&r, 0, 8, 4, false, MLX_FLOAT32, s));
    assert_is(r, 0, 2, 4, 6);
    assert_ok(mlx_linspace_endpoint(&r, 0, 6, 4, true, MLX_FLOAT32, s));
    assert_is(r, 0, 2, 4, 6);
    assert_ok(mlx_zeros_like_dtype(&r, a, MLX_INT8, s));
    assert_is(r, 0, 0, 0, 0);
    assert_int_equal(mlx_array_dtype(r), MLX_INT8);
    assert_ok(mlx_ones_like_dtype(&r, a, MLX_BFLOAT16, s));
    assert_is(r, 1, 1, 1, 1);
    assert_ok(mlx_random_key(&key, 3));
    assert_ok(mlx_random_bernoulli_like(&r, a, key, s));
    assert_is(r, 0, 0, 1, 1);
    mlx_array_free(a);
    mlx_array_free(r);
    mlx_array_free(key);
}

static void test_einsum_path(void **state)
{
    mlx_vector_int at = mlx_vector_int_new(), n = mlx_vector_int_new();
    mlx_vector_array in = mlx_vector_array_new();
    mlx_string info = mlx_string_new();
    static const int want[] = { 1, 2, 0, 1 };

    (void)state;
    for (int i = 2; i < 5; i++) {
        mlx_array a = mlx_array_new();
        assert_ok(mlx_zeros(&a, (int[]){ i, i + 1 }, 2, MLX_FLOAT32, s));
        assert_ok(mlx_vector_array_append_value(in, a));
        mlx_array_free(a);
    }
    assert_ok(mlx_einsum_path(&at, &n, &info, "ij,jk,kl->il", in));
    assert_int_equal(mlx_vector_int_size(at), 4);
    for (size_t i = 0; i < 4; i++) {
        int v;
        assert_ok(mlx_vector_int_get(&v, at, i));
        assert_int_equal(v, want[i]);
    }
    assert_int_equal(mlx_vector_int_size(n), 2);
    assert_string_equal(mlx_string_data(info), "  Complete contraction:  ij,jk,kl->il\n"
                                               "         Naive scaling:  4\n"
                                               "     Optimized scaling:  3\n"
                                               "      Naive FLOP count:  360\n"
                                               "  Optimized FLOP count:  180\n");
    mlx_vector_int_free(at);
    mlx_vector_int_free(n);
    mlx_vector_array_free(in);
    mlx_string_free(info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_input), cmocka_unit_test(test_along_an_axis),
        cmocka_unit_test(test_search),    cmocka_unit_test(test_lists),
        cmocka_unit_test(test_creation),  cmocka_unit_test(test_einsum_path),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
