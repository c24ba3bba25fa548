/* Handles on memory of the caller, numbers of any dtype, kinds of errors, how floats are printed:
 * what bindings use. */
#include "api_test.h"

#include "mlx/c/ext.h"

static const mlx_stream none = { NULL };

/* A result is written where the place is, and may be an argument of the call that writes it. */
static void test_results_in_places(void **state)
{
    mlx_array_place place = { NULL };
    mlx_array a = mlx_array_at(&place), one = mlx_array_new_float(1);
    float value = 0;

    (void)state;
    assert_ok(mlx_array_set(&a, one));
    assert_ptr_equal(a.ctx, &place);
    assert_ok(mlx_add(&a, a, one, none));
    assert_ok(mlx_add(&a, a, a, none));
    assert_ptr_equal(a.ctx, &place);
    assert_ok(mlx_array_item_float32(&value, a));
    assert_true(value == 4);
    mlx_array_place_clear(&place);
    assert_null(place.array);
    mlx_array_place_clear(&place);
    mlx_array_place_clear(NULL);
    mlx_array_free(one);
}

/* A failing call leaves a place as it was; moving a place moves the array. */
static void test_places_keep_and_move(void **state)
{
    mlx_array_place place = { NULL }, other;
    mlx_array a = mlx_array_at(&place), odd = mlx_array_new_int(3);
    int value = 0;

    (void)state;
    assert_ok(mlx_array_set(&a, odd));
    assert_fails(mlx_sum_axis(&a, a, 5, false, none));
    assert_int_equal(mlx_last_error_kind(), MLX_ERROR_RANGE);
    other = place;
    assert_ok(mlx_array_item_int32(&value, mlx_array_at(&other)));
    assert_int_equal(value, 3);
    mlx_array_place_clear(&other);
    mlx_array_free(odd);
}

static void test_numbers_of_every_dtype(void **state)
{
    (void)state;
    for (int t = MLX_BOOL; t <= MLX_COMPLEX64; t++) {
        mlx_array a = mlx_array_new(), wide = mlx_array_new();
        mlx_complex64_t value = 0;

        assert_ok(mlx_array_set_number(&a, 1, (mlx_dtype)t));
        assert_int_equal(mlx_array_dtype(a), t);
        assert_int_equal(mlx_array_ndim(a), 0);
        assert_ok(mlx_astype(&wide, a, MLX_COMPLEX64, none));
        assert_ok(mlx_array_item_complex64(&value, wide));
        assert_true(crealf(value) == 1 && cimagf(value) == 0);
        mlx_array_free(wide);
        mlx_array_free(a);
    }
    mlx_array a = mlx_array_new();
    assert_fails(mlx_array_set_number(&a, 1, (mlx_dtype)77));
    assert_int_equal(mlx_last_error_kind(), MLX_ERROR_ARGUMENT);
    assert_null(a.ctx);
}

static void test_kinds_of_errors(void **state)
{
    mlx_array a = mlx_array_new_float(1), b = mlx_array_new();
    int no[] = { 1 << 30, 1 << 30, 1 << 30 };

    (void)state;
    assert_fails(mlx_reshape(&b, a, no, 2, none));
    assert_int_equal(mlx_last_error_kind(), MLX_ERROR_ARGUMENT);
    assert_fails(mlx_zeros(&b, no, 3, MLX_FLOAT32, none));
    assert_int_equal(mlx_last_error_kind(), MLX_ERROR_OVERFLOW);
    mlx_array_free(a);
}

static void test_print_precision(void **state)
{
    mlx_array a = mlx_array_new_complex(1.53456f, -2);
    mlx_string text = mlx_string_new();
    int digits = 0;

    (void)state;
    assert_ok(mlx_get_print_precision(&digits));
    assert_int_equal(digits, -1);
    assert_ok(mlx_set_print_precision(2));
    assert_ok(mlx_array_tostring(&text, a));
    assert_string_equal(mlx_string_data(text), "array(1.53-2.00j, dtype=complex64)");
    assert_fails(mlx_set_print_precision(-2));
    assert_fails(mlx_set_print_precision(100000));
    assert_ok(mlx_set_print_precision(-1));
    assert_ok(mlx_array_tostring(&text, a));
    assert_string_equal(mlx_string_data(text), "array(1.53456-2j, dtype=complex64)");
    mlx_string_free(text);
    mlx_array_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_results_in_places, setup_cpu),
        cmocka_unit_test_setup(test_places_keep_and_move, setup_cpu),
        cmocka_unit_test_setup(test_numbers_of_every_dtype, setup_cpu),
        cmocka_unit_test_setup(test_kinds_of_errors, setup_cpu),
        cmocka_unit_test_setup(test_print_precision, setup_cpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
