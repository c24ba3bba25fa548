/* Metal and CUDA are not there: what programs that know them are told. */
#include "api_test.h"

static void test_availability(void **state)
{
    bool metal = true, cuda = true;

    (void)state;
    assert_ok(mlx_metal_is_available(&metal));
    assert_ok(mlx_cuda_is_available(&cuda));
    assert_false(metal);
    assert_false(cuda);
    assert_ok(mlx_metal_start_capture("trace.gputrace"));
    assert_ok(mlx_metal_stop_capture());
    assert_fails(mlx_metal_start_capture(NULL));
}

/* Everything that a configuration can be told, right and wrong; two outputs in the end. */
#define FILL_CONFIG(backend, config)                                                               \
    do {                                                                                           \
        const int shape[] = { 2, 3 };                                                              \
        assert_non_null((config).ctx);                                                             \
        assert_ok(                                                                                 \
            mlx_fast_##backend##_kernel_config_add_output_arg(config, shape, 2, MLX_FLOAT32));     \
        assert_ok(mlx_fast_##backend##_kernel_config_add_output_arg(config, NULL, 0, MLX_INT32));  \
        assert_fails(                                                                              \
            mlx_fast_##backend##_kernel_config_add_output_arg(config, NULL, 2, MLX_INT32));        \
        assert_fails(                                                                              \
            mlx_fast_##backend##_kernel_config_add_output_arg(config, shape, 2, (mlx_dtype)99));   \
        assert_ok(mlx_fast_##backend##_kernel_config_set_grid(config, 4, 2, 1));                   \
        assert_ok(mlx_fast_##backend##_kernel_config_set_thread_group(config, 2, 1, 1));           \
        assert_ok(mlx_fast_##backend##_kernel_config_set_init_value(config, 0.5f));                \
        assert_ok(mlx_fast_##backend##_kernel_config_set_verbose(config, true));                   \
        assert_ok(                                                                                 \
            mlx_fast_##backend##_kernel_config_add_template_arg_dtype(config, "T", MLX_FLOAT16));  \
        assert_fails(mlx_fast_##backend##_kernel_config_add_template_arg_dtype(config, "T",        \
                                                                               (mlx_dtype)99));    \
        assert_ok(mlx_fast_##backend##_kernel_config_add_template_arg_int(config, "n", 3));        \
        assert_ok(mlx_fast_##backend##_kernel_config_add_template_arg_bool(config, "b", true));    \
        assert_fails(mlx_fast_##backend##_kernel_config_add_template_arg_int(config, NULL, 3));    \
    } while (0)

static void test_metal_kernel(void **state)
{
    mlx_vector_string in = mlx_vector_string_new_value("x"), none = mlx_vector_string_new();
    const char *two[] = { "y", "z" };
    mlx_vector_string out = mlx_vector_string_new_data(two, 2);
    mlx_array x = vector_of((float[]){ 1, 2 }, 2);
    mlx_vector_array inputs = mlx_vector_array_new_value(x), outputs = mlx_vector_array_new();
    mlx_fast_metal_kernel_config config = mlx_fast_metal_kernel_config_new();
    mlx_stream s = mlx_stream_new();

    (void)state;
    mlx_fast_metal_kernel k =
        mlx_fast_metal_kernel_new("copy", in, out, "y[0] = x[0];", "", true, false);
    assert_non_null(k.ctx);
    assert_fails(mlx_fast_metal_kernel_apply(&outputs, k, inputs, config, s));
    assert_non_null(strstr(
        errors.text, "[metal_kernel] Expected `output_shapes` to have size 2 but got size 0."));
    FILL_CONFIG(metal, config);
    assert_fails(mlx_fast_metal_kernel_apply(&outputs, k, inputs, config, s));
    assert_non_null(strstr(errors.text, "[metal_kernel] No Metal back-end."));
    assert_ok(mlx_vector_array_append_value(inputs, x));
    assert_fails(mlx_fast_metal_kernel_apply(&outputs, k, inputs, config, s));
    assert_non_null(
        strstr(errors.text, "[metal_kernel] Expected `inputs` to have size 1 but got size 2."));
    assert_int_equal(mlx_vector_array_size(outputs), 0);

    errors.count = 0;
    assert_null(mlx_fast_metal_kernel_new("copy", in, none, "", "", true, false).ctx);
    assert_int_equal(errors.count, 1);
    assert_non_null(strstr(errors.text, "[metal_kernel] Must specify at least one output."));
    mlx_fast_metal_kernel_free(k);
    mlx_fast_metal_kernel_config_free(config);
    mlx_vector_string_free(in);
    mlx_vector_string_free(out);
    mlx_vector_string_free(none);
    mlx_vector_array_free(inputs);
    mlx_vector_array_free(outputs);
    mlx_array_free(x);
}

static void test_cuda_kernel(void **state)
{
    mlx_vector_string names = mlx_vector_string_new_value("x");
    mlx_fast_cuda_kernel_config config = mlx_fast_cuda_kernel_config_new();

    (void)state;
    FILL_CONFIG(cuda, config);
    errors.count = 0;
    assert_null(mlx_fast_cuda_kernel_new("copy", names, names, "", "", true, 0).ctx);
    assert_int_equal(errors.count, 1);
    assert_non_null(strstr(errors.text, "[cuda_kernel] No CUDA back-end."));
    mlx_fast_cuda_kernel_config_free(config);
    mlx_vector_string_free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_availability),
        cmocka_unit_test(test_metal_kernel),
        cmocka_unit_test(test_cuda_kernel),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
