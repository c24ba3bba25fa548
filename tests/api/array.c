/* Arrays: creation, ownership, properties, values. */
#include "api_test.h"

#include <complex.h>
#include <stdlib.h>

static const mlx_stream s = { NULL };

/* ---- creation ---- */

static void test_scalars(void **state)
{
    struct {
        mlx_array a;
        mlx_dtype dtype;
    } made[] = {
        { mlx_array_new_bool(true), MLX_BOOL },          { mlx_array_new_int(-7), MLX_INT32 },
        { mlx_array_new_float32(0.5f), MLX_FLOAT32 },    { mlx_array_new_float(0.5f), MLX_FLOAT32 },
        { mlx_array_new_float64(0.1), MLX_FLOAT64 },     { mlx_array_new_double(0.1), MLX_FLOAT64 },
        { mlx_array_new_complex(1, -2), MLX_COMPLEX64 },
    };
    bool b = false;
    int32_t i = 0;
    float f = 0;
    double d = 0;
    mlx_complex64_t z = 0;

    (void)state;
    for (size_t k = 0; k < sizeof made / sizeof made[0]; k++) {
        assert_int_equal(mlx_array_dtype(made[k].a), made[k].dtype);
        assert_int_equal(mlx_array_ndim(made[k].a), 0);
        assert_int_equal(mlx_array_size(made[k].a), 1);
        assert_int_equal(mlx_array_nbytes(made[k].a), mlx_dtype_size(made[k].dtype));
    }
    assert_ok(mlx_array_item_bool(&b, made[0].a));
    assert_ok(mlx_array_item_int32(&i, made[1].a));
    assert_ok(mlx_array_item_float32(&f, made[3].a));
    assert_ok(mlx_array_item_float64(&d, made[5].a));
    assert_ok(mlx_array_item_complex64(&z, made[6].a));
    assert_true(b && i == -7 && f == 0.5f && d == 0.1 && crealf(z) == 1 && cimagf(z) == -2);
    for (size_t k = 0; k < sizeof made / sizeof made[0]; k++)
        mlx_array_free(made[k].a);
}

static void test_new_data(void **state)
{
    int16_t values[] = { 1, 2, 3, 4, 5, 6 };
    int shape[] = { 2, 3 };
    mlx_array a = mlx_array_new_data(values, shape, 2, MLX_INT16);

    (void)state;
    values[0] = 99; /* the array has its own copy */
    assert_int_equal(mlx_array_itemsize(a), 2);
    assert_int_equal(mlx_array_size(a), 6);
    assert_memory_equal(mlx_array_shape(a), shape, sizeof shape);
    assert_int_equal(mlx_array_strides(a)[0], 3);
    assert_int_equal(mlx_array_strides(a)[1], 1);
    assert_int_equal(mlx_array_dim(a, -1), 3);
    assert_int_equal(mlx_array_data_int16(a)[0], 1);
    assert_ok(mlx_array_set_data(&a, values, shape + 1, 1, MLX_INT16));
    assert_int_equal(mlx_array_ndim(a), 1);
    assert_int_equal(mlx_array_data_int16(a)[0], 99);
    mlx_array_free(a);
}

/* arm64 has C types for them, and so mlx-c's accessors. */
#if defined(HAS_FLOAT16) && defined(HAS_BFLOAT16)
static void test_halves(void **state)
{
    const uint16_t f16[] = { 0x3e00, 0xc000 }, bf16[] = { 0x3fc0, 0xc000 }; /* 1.5, -2 */
    mlx_array a = mlx_array_new_data(f16, &(int){ 2 }, 1, MLX_FLOAT16);
    mlx_array b = mlx_array_new_data(bf16, &(int){ 1 }, 1, MLX_BFLOAT16);
    mlx_array c = mlx_array_new_data(f16, &(int){ 1 }, 1, MLX_FLOAT16);
    float16_t half = 0;
    bfloat16_t brain;

    (void)state;
    assert_true(mlx_array_data_float16(a)[0] == 1.5f && mlx_array_data_float16(a)[1] == -2.0f);
    assert_memory_equal(mlx_array_data_bfloat16(b), bf16, sizeof brain);
    assert_ok(mlx_array_item_float16(&half, c));
    assert_ok(mlx_array_item_bfloat16(&brain, b));
    assert_true(half == 1.5f);
    assert_memory_equal(&brain, bf16, sizeof brain);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
}
#endif

static void test_bad_data(void **state)
{
    int shape[] = { 2, -1 };
    float value = 1;
    mlx_array a;

    (void)state;
    errors.count = 0;
    a = mlx_array_new_data(&value, shape, 2, MLX_FLOAT32);
    assert_null(a.ctx);
    a = mlx_array_new_data(&value, shape, -1, MLX_FLOAT32);
    assert_null(a.ctx);
    a = mlx_array_new_data(&value, shape, 1000, MLX_FLOAT32);
    assert_null(a.ctx);
    a = mlx_array_new_data(&value, NULL, 0, (mlx_dtype)99);
    assert_null(a.ctx);
    assert_int_equal(errors.count, 4);
    assert_int_equal(mlx_dtype_size((mlx_dtype)-1), 0);
    assert_int_equal(errors.count, 5);
}

static void test_empty_array(void **state)
{
    int shape[] = { 0, 3 };
    mlx_array a = mlx_array_new_data(NULL, shape, 2, MLX_FLOAT32);

    (void)state;
    assert_int_equal(mlx_array_size(a), 0);
    assert_ok(mlx_exp(&a, a, s));
    assert_ok(mlx_array_eval(a));
    assert_int_equal(mlx_array_nbytes(a), 0);
    mlx_array_free(a);
}

/* ---- buffers of the caller ---- */

static int released;

static void release(void *p)
{
    released++;
    free(p);
}

static void test_managed(void **state)
{
    int n = 1024;
    float *data = malloc((size_t)n * sizeof *data);
    mlx_array a, b = mlx_array_new();

    (void)state;
    for (int i = 0; i < n; i++)
        data[i] = (float)i;
    released = 0;
    a = mlx_array_new_data_managed(data, &n, 1, MLX_FLOAT32, release);
    assert_ok(mlx_sum(&b, a, false, s));
    mlx_array_free(a); /* the graph of b still needs it */
    float sum = 0;
    assert_ok(mlx_array_item_float32(&sum, b));
    assert_true(sum == 523776);
    mlx_array_free(b);
    mlx_synchronize(s);
    assert_int_equal(released, 1);
}

static void count_payload(void *p)
{
    ++*(int *)p;
}

/* The destructor runs exactly once, on failure and for arrays without elements as well. */
static void test_managed_payload(void **state)
{
    static float data[4] = { 1, 2, 3, 4 };
    int n = 4, bad = -4, none = 0, runs = 0;
    mlx_array a;

    (void)state;
    a = mlx_array_new_data_managed_payload(data, &n, 1, MLX_FLOAT32, &runs, count_payload);
    assert_floats(a, (float[]){ 1, 2, 3, 4 }, 4);
    mlx_array_free(a);
    assert_int_equal(runs, 1);
    a = mlx_array_new_data_managed_payload(data, &bad, 1, MLX_FLOAT32, &runs, count_payload);
    assert_null(a.ctx);
    assert_int_equal(runs, 2);
    a = mlx_array_new_data_managed_payload(NULL, &none, 1, MLX_FLOAT32, &runs, count_payload);
    assert_int_equal(mlx_array_size(a), 0);
    mlx_array_free(a);
    assert_int_equal(runs, 3);
}

/* Adopted memory is row-major, and ops know it. */
static void test_managed_layout(void **state)
{
    static float data[6] = { 1, 2, 3, 4, 5, 6 };
    int shape[] = { 2, 3 }, runs = 0;
    mlx_array a =
        mlx_array_new_data_managed_payload(data, shape, 2, MLX_FLOAT32, &runs, count_payload);
    mlx_array t = mlx_array_new();
    bool flag = true;

    (void)state;
    assert_ok(_mlx_array_is_row_contiguous(&flag, a));
    assert_true(flag);
    assert_ok(_mlx_array_is_col_contiguous(&flag, a));
    assert_false(flag);
    assert_ok(mlx_transpose(&t, a, s));
    assert_ok(mlx_matmul(&t, a, t, s));
    assert_floats(t, (float[]){ 14, 32, 32, 77 }, 4);
    mlx_array_free(a);
    mlx_array_free(t);
    assert_int_equal(runs, 1);
}

/* ---- references ---- */

static void test_set(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2 }, 2), b = mlx_array_new();

    (void)state;
    assert_ok(mlx_array_set(&b, a)); /* empty target: a new handle on the same array */
    assert_ptr_not_equal(a.ctx, b.ctx);
    assert_ok(mlx_array_set(&a, a));
    assert_ok(mlx_array_set_int(&a, 5));
    assert_floats(b, (float[]){ 1, 2 }, 2);
    assert_int_equal(mlx_array_dtype(a), MLX_INT32);
    mlx_array_free(a);
    mlx_array_free(b);
}

static void test_inputs_outlive_handles(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2, 3 }, 3), b = mlx_array_new();

    (void)state;
    assert_ok(mlx_add(&b, a, a, s));
    mlx_array_free(a);
    assert_floats(b, (float[]){ 2, 4, 6 }, 3);
    mlx_array_free(b);
}

/* ---- values ---- */

static void test_item(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2 }, 2), one = vector_of((float[]){ 3 }, 1);
    float f = 0;
    uint32_t raw = 0;

    (void)state;
    assert_fails(mlx_array_item_float32(&f, a));
    assert_ok(mlx_array_item_float32(&f, one));
    assert_true(f == 3);
    assert_ok(mlx_array_item_uint32(&raw, one)); /* read as it is, nothing is converted */
    assert_int_equal(raw, 0x40400000);
    double wide = 0;
    assert_ok(mlx_array_item_float64(&wide, one)); /* wider than the element: no read past it */
    mlx_array_free(a);
    mlx_array_free(one);
}

static void test_data_needs_evaluation(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 4, 9 }, 3);

    (void)state;
    assert_ok(mlx_sqrt(&a, a, s));
    errors.count = 0;
    assert_null(mlx_array_data_float32(a));
    assert_int_equal(errors.count, 0);
    assert_floats(a, (float[]){ 1, 2, 3 }, 3);
    mlx_array_free(a);
}

static void test_views(void **state)
{
    float values[] = { 0, 1, 2, 3, 4, 5 };
    mlx_array a = mlx_array_new_data(values, (int[]){ 2, 3 }, 2, MLX_FLOAT32);
    mlx_array t = mlx_array_new();
    bool flag = true;

    (void)state;
    assert_ok(mlx_transpose(&t, a, s));
    assert_ok(mlx_array_eval(t));
    assert_int_equal(mlx_array_strides(t)[0], 1);
    assert_int_equal(mlx_array_strides(t)[1], 3);
    assert_ptr_equal(mlx_array_data_float32(t), mlx_array_data_float32(a));
    assert_ok(_mlx_array_is_row_contiguous(&flag, t));
    assert_false(flag);
    assert_ok(_mlx_array_is_col_contiguous(&flag, t));
    assert_true(flag);
    assert_ok(_mlx_array_is_contiguous(&flag, t));
    assert_true(flag);
    assert_ok(mlx_slice(&t, a, (int[]){ 0, 2 }, 2, (int[]){ 2, -4 }, 2, (int[]){ 1, -1 }, 2, s));
    assert_ok(mlx_array_eval(t));
    assert_true(mlx_array_strides(t)[1] == (size_t)-1);
    assert_true(mlx_array_data_float32(t)[0] == 2);
    mlx_array_free(a);
    mlx_array_free(t);
}

static void test_async(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2, 3 }, 3), b = mlx_array_new();
    bool there = false;

    (void)state;
    assert_ok(mlx_square(&b, a, s));
    assert_ok(_mlx_array_is_available(&there, b));
    assert_false(there);
    assert_fails(_mlx_array_wait(b)); /* nothing was started */
    mlx_vector_array list = mlx_vector_array_new_data((mlx_array[]){ a, b }, 2);
    assert_ok(mlx_async_eval(list));
    assert_ok(_mlx_array_wait(b));
    assert_ok(_mlx_array_is_available(&there, b));
    assert_true(there);
    assert_floats(b, (float[]){ 1, 4, 9 }, 3);
    assert_ok(mlx_eval(list));
    mlx_vector_array_free(list);
    mlx_array_free(a);
    mlx_array_free(b);
}

/* A chain that would overflow the stack if it were freed or evaluated by recursion. */
static void test_deep_graph(void **state)
{
    mlx_array a = mlx_array_new_float(0), one = mlx_array_new_float(1), kept = mlx_array_new();
    float sum = 0;

    (void)state;
    for (int i = 0; i < 100000; i++)
        assert_ok(mlx_add(&a, a, one, s));
    assert_ok(mlx_array_set(&kept, a));
    assert_ok(mlx_array_set_int(&a, 0));
    assert_ok(mlx_array_item_float32(&sum, kept));
    assert_true(sum == 100000);
    for (int i = 0; i < 100000; i++)
        assert_ok(mlx_add(&kept, kept, one, s));
    mlx_array_free(kept); /* never evaluated */
    mlx_array_free(a);
    mlx_array_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_new_data),
#if defined(HAS_FLOAT16) && defined(HAS_BFLOAT16)
        cmocka_unit_test(test_halves),
#endif
        cmocka_unit_test(test_bad_data),
        cmocka_unit_test(test_empty_array),
        cmocka_unit_test(test_managed),
        cmocka_unit_test(test_managed_payload),
        cmocka_unit_test(test_managed_layout),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_inputs_outlive_handles),
        cmocka_unit_test(test_item),
        cmocka_unit_test(test_data_needs_evaluation),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_async),
        cmocka_unit_test(test_deep_graph),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
