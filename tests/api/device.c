/* Devices, streams, memory, settings, version. */
#include "api_test.h"

#include <pthread.h>

#include "mlx/c/ext.h"

static void test_device(void **state)
{
    mlx_device a = mlx_device_new_type(MLX_CPU, 0), b = mlx_device_new();
    mlx_string text = mlx_string_new();
    mlx_device_type type = MLX_GPU;
    int number = -1;
    bool there = false;

    (void)state;
    assert_ok(mlx_device_set(&b, a));
    assert_true(mlx_device_equal(a, b));
    assert_ok(mlx_device_get_type(&type, b));
    assert_ok(mlx_device_get_index(&number, b));
    assert_int_equal(type, MLX_CPU);
    assert_int_equal(number, 0);
    assert_ok(mlx_device_is_available(&there, b));
    assert_true(there);
    assert_ok(mlx_device_count(&number, MLX_CPU));
    assert_int_equal(number, 1);
    assert_ok(mlx_device_tostring(&text, b));
    assert_text(text, "Device(cpu, 0)");
    mlx_device_free(a);
    mlx_device_free(b);
}

static void test_missing_device(void **state)
{
    mlx_device dev = mlx_device_new_type(MLX_CPU, 5);
    mlx_device_info info = mlx_device_info_new();
    mlx_vector_string keys = mlx_vector_string_new();
    bool there = true;

    (void)state;
    assert_ok(mlx_device_is_available(&there, dev));
    assert_false(there);
    assert_fails(mlx_set_default_device(dev));
    errors.count = 0;
    assert_null(mlx_stream_new_device(dev).ctx);
    assert_null(mlx_device_new_type((mlx_device_type)7, 0).ctx);
    assert_int_equal(errors.count, 2);
    assert_ok(mlx_device_info_get(&info, dev)); /* no properties */
    assert_ok(mlx_device_info_get_keys(&keys, info));
    assert_int_equal(mlx_vector_string_size(keys), 0);
    mlx_vector_string_free(keys);
    mlx_device_info_free(info);
    mlx_device_free(dev);
}

static void test_device_info(void **state)
{
    mlx_device dev = mlx_device_new_type(MLX_CPU, 0);
    mlx_device_info info = mlx_device_info_new();
    mlx_vector_string keys = mlx_vector_string_new();
    const char *name = NULL;
    size_t size = 0;
    bool flag = false;

    (void)state;
    assert_ok(mlx_device_info_get(&info, dev));
    assert_ok(mlx_device_info_has_key(&flag, info, "device_name"));
    assert_true(flag);
    assert_ok(mlx_device_info_is_string(&flag, info, "device_name"));
    assert_true(flag);
    assert_ok(mlx_device_info_get_string(&name, info, "device_name"));
    assert_true(strlen(name) > 0);
    assert_ok(mlx_device_info_get_keys(&keys, info));
    assert_true(mlx_vector_string_size(keys) >= 2);
    errors.count = 0;
    assert_int_equal(mlx_device_info_get_size(&size, info, "device_name"), 2);
    assert_int_equal(mlx_device_info_get_string(&name, info, "colour"), 2);
    assert_int_equal(mlx_device_info_is_string(&flag, info, "colour"), 2);
    assert_int_equal(errors.count, 0);
    mlx_vector_string_free(keys);
    mlx_device_info_free(info);
    mlx_device_free(dev);
}

static void test_stream(void **state)
{
    mlx_device cpu = mlx_device_new_type(MLX_CPU, 0), dev = mlx_device_new();
    mlx_stream a = mlx_stream_new_device(cpu), b = mlx_stream_new(), def = mlx_stream_new();
    mlx_string text = mlx_string_new();
    char expected[64];
    int index = -1;

    (void)state;
    assert_ok(mlx_stream_set(&b, a));
    assert_true(mlx_stream_equal(a, b));
    assert_ok(mlx_stream_get_index(&index, b));
    snprintf(expected, sizeof expected, "Stream(Device(cpu, 0), %d)", index);
    assert_ok(mlx_stream_tostring(&text, b));
    assert_text(text, expected);
    assert_ok(mlx_stream_get_device(&dev, b));
    assert_true(mlx_device_equal(dev, cpu));
    assert_ok(mlx_get_default_stream(&def, cpu));
    assert_false(mlx_stream_equal(a, def));
    assert_ok(mlx_set_default_stream(a));
    assert_ok(mlx_get_default_stream(&b, cpu));
    assert_true(mlx_stream_equal(a, b));
    assert_ok(mlx_set_default_stream(def));
    mlx_device_free(dev);
    dev = mlx_device_new_type(MLX_CPU, 1);
    assert_fails(mlx_get_default_stream(&b, dev)); /* there is one CPU */
    assert_true(mlx_stream_equal(a, b));
    mlx_stream again = mlx_default_cpu_stream_new();
    assert_true(mlx_stream_equal(def, again));
    mlx_stream_free(again);
    mlx_stream_free(a);
    mlx_stream_free(b);
    mlx_stream_free(def);
    mlx_device_free(cpu);
    mlx_device_free(dev);
}

/* Two streams, and a result that needs both. */
static void test_streams_join(void **state)
{
    mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);
    mlx_stream s1 = mlx_stream_new_device(cpu), s2 = mlx_stream_new_device(cpu);
    mlx_array a = vector_of((float[]){ 1, 2 }, 2), b = mlx_array_new(), c = mlx_array_new();

    (void)state;
    assert_ok(mlx_square(&b, a, s1));
    assert_ok(mlx_negative(&c, a, s2));
    assert_ok(mlx_add(&c, b, c, s2));
    assert_floats(c, (float[]){ 0, 2 }, 2);
    assert_ok(mlx_synchronize(s1));
    assert_ok(mlx_synchronize(s2));
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
    mlx_stream_free(s1);
    mlx_stream_free(s2);
    mlx_device_free(cpu);
}

static void *eval_elsewhere(void *data)
{
    mlx_array *a = data;

    return (void *)(intptr_t)mlx_array_eval(*a);
}

/* Whoever evaluates a graph has streams for it; what is evaluated is shared freely. */
static void test_other_thread(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 4 }, 2);
    mlx_stream s = mlx_stream_new();
    pthread_t thread;
    void *status = NULL;

    (void)state;
    assert_ok(mlx_sqrt(&a, a, s));
    pthread_create(&thread, NULL, eval_elsewhere, &a);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, 0);
    assert_floats(a, (float[]){ 1, 2 }, 2);
    pthread_create(&thread, NULL, eval_elsewhere, &a);
    pthread_join(thread, &status);
    assert_int_equal((intptr_t)status, 0);
    mlx_array_free(a);
}

static void test_memory(void **state)
{
    size_t before = 0, during = 0, after = 0, old = 0, limit = 0;
    int n = 1 << 20;
    mlx_stream s = mlx_stream_new();
    mlx_array a = mlx_array_new();

    (void)state;
    assert_ok(mlx_get_active_memory(&before));
    assert_ok(mlx_zeros(&a, &n, 1, MLX_FLOAT32, s));
    assert_ok(mlx_contiguous(&a, a, false, s));
    assert_ok(mlx_array_eval(a));
    assert_ok(mlx_get_active_memory(&during));
    assert_true(during >= before + (size_t)n * sizeof(float));
    assert_ok(mlx_get_peak_memory(&old));
    assert_true(old >= during);
    mlx_array_free(a);
    assert_ok(mlx_get_active_memory(&after));
    assert_true(after < during);
    assert_ok(mlx_clear_cache());
    assert_ok(mlx_get_cache_memory(&after));
    assert_int_equal(after, 0);
    assert_ok(mlx_get_memory_limit(&limit));
    assert_ok(mlx_set_memory_limit(&old, 1 << 30));
    assert_int_equal(old, limit);
    assert_ok(mlx_set_memory_limit(&old, limit));
    assert_int_equal(old, 1 << 30);
    assert_ok(mlx_set_cache_limit(&limit, 0));
    assert_ok(mlx_set_cache_limit(&old, limit));
    assert_int_equal(old, 0);
    assert_ok(mlx_set_wired_limit(&old, 0));
    assert_ok(mlx_reset_peak_memory());
}

static void test_settings(void **state)
{
    mlx_string text = mlx_string_new();
    uint64_t evals = 0;

    (void)state;
    assert_ok(mlx_setting_get(&text, "MLX_BFS_MAX_WIDTH"));
    assert_string_equal(mlx_string_data(text), "20");
    assert_ok(mlx_setting_set("MLX_BFS_MAX_WIDTH", "30"));
    assert_fails(mlx_setting_set("MLX_BFS_MAX_WIDTH", "many"));
    assert_ok(mlx_setting_get(&text, "MLX_BFS_MAX_WIDTH"));
    assert_string_equal(mlx_string_data(text), "30");
    assert_ok(mlx_setting_set("MLX_BFS_MAX_WIDTH", NULL));
    assert_ok(mlx_setting_set("MLX_VK_PROFILE", "trace.json"));
    assert_ok(mlx_setting_get(&text, "MLX_VK_PROFILE"));
    assert_string_equal(mlx_string_data(text), "trace.json");
    assert_ok(mlx_setting_set("MLX_VK_PROFILE", NULL));
    assert_ok(mlx_setting_get(&text, "MLX_VK_PROFILE"));
    assert_text(text, "");
    errors.count = 0;
    assert_int_equal(mlx_setting_set("MLX_NO_SUCH", "1"), 2);
    assert_int_equal(mlx_stats_get(&evals, "no_such"), 2);
    assert_int_equal(errors.count, 0);
    assert_ok(mlx_stats_get(&evals, "evals"));
}

static void test_version(void **state)
{
    mlx_string text = mlx_string_new();

    (void)state;
    assert_ok(mlx_version(&text));
    assert_text(text, "0.32.4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device),       cmocka_unit_test(test_missing_device),
        cmocka_unit_test(test_device_info),  cmocka_unit_test(test_stream),
        cmocka_unit_test(test_streams_join), cmocka_unit_test(test_other_thread),
        cmocka_unit_test(test_memory),       cmocka_unit_test(test_settings),
        cmocka_unit_test(test_version),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
