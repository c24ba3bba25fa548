/* Every public function with NULL pointers, empty handles and aliased handles: an error or a
 * result, never a crash. The calls are generated from the headers. */
#include "api_test.h"

#include "mlx/c/ext.h"

struct outcome {
    bool has_status; /* the function returns a status */
    int status;
    bool made;     /* else: a live handle or a value other than 0 */
    bool kept_box; /* the out-handle kept its ctx */
};

struct probe {
    const char *name;
    void (*null)(struct outcome *);
    void (*empty)(struct outcome *);
    void (*alias)(struct outcome *);
    bool null_fails, empty_fails;
};

static FILE *sink;

/* ---- live values ---- */

static mlx_array live_array(void)
{
    float values[] = { 1, 2, 3, 4 };
    int shape[] = { 2, 2 };

    return mlx_array_new_data(values, shape, 2, MLX_FLOAT32);
}

static mlx_distributed_group live_group(void)
{
    mlx_distributed_group group = mlx_distributed_group_new();

    mlx_distributed_init(&group, false, NULL);
    return group;
}

static mlx_device_info live_device_info(void)
{
    mlx_device dev = mlx_device_new_type(MLX_CPU, 0);
    mlx_device_info info = mlx_device_info_new();

    mlx_device_info_get(&info, dev);
    mlx_device_free(dev);
    return info;
}

static mlx_vector_array live_vector_array(void)
{
    mlx_array a = live_array();
    mlx_vector_array v = mlx_vector_array_new_value(a);

    mlx_array_free(a);
    return v;
}

static mlx_vector_vector_array live_vector_vector_array(void)
{
    mlx_vector_array v = live_vector_array();
    mlx_vector_vector_array vv = mlx_vector_vector_array_new_value(v);

    mlx_vector_array_free(v);
    return vv;
}

static mlx_map_string_to_array live_map_array(void)
{
    mlx_map_string_to_array m = mlx_map_string_to_array_new();
    mlx_array a = live_array();

    mlx_map_string_to_array_insert(m, "constant", a);
    mlx_array_free(a);
    return m;
}

static mlx_map_string_to_string live_map_string(void)
{
    mlx_map_string_to_string m = mlx_map_string_to_string_new();

    mlx_map_string_to_string_insert(m, "constant", "value");
    return m;
}

/* ---- readers and writers of nothing ---- */

static size_t stream_tell(void *desc)
{
    (void)desc;
    return 0;
}

static void stream_seek(void *desc, int64_t off, int whence)
{
    (void)desc;
    (void)off;
    (void)whence;
}

static void stream_read(void *desc, char *data, size_t n)
{
    (void)desc;
    memset(data, 0, n);
}

static void stream_write(void *desc, const char *data, size_t n)
{
    (void)desc;
    (void)data;
    (void)n;
}

static const mlx_io_vtable stream_functions = {
    .tell = stream_tell, .seek = stream_seek, .read = stream_read, .write = stream_write
};

static mlx_io_reader live_reader(void)
{
    return mlx_io_reader_new(NULL, stream_functions);
}

static mlx_io_writer live_writer(void)
{
    return mlx_io_writer_new(NULL, stream_functions);
}

/* ---- functions that give what they get ---- */

static int give(mlx_vector_array *res, const mlx_vector_array in)
{
    return mlx_vector_array_set(res, in);
}

static int give_unary(mlx_array *res, const mlx_array in)
{
    return mlx_array_set(res, in);
}

static int give_named(mlx_vector_array *res, const mlx_vector_array in,
                      const mlx_map_string_to_array named)
{
    (void)named;
    return give(res, in);
}

static int give_both(mlx_vector_array *res_0, mlx_vector_array *res_1, const mlx_vector_array in)
{
    return give(res_0, in) || give(res_1, in);
}

static int give_cotangents(mlx_vector_array *res, const mlx_vector_array primals,
                           const mlx_vector_array cotangents, const mlx_vector_array outputs)
{
    (void)primals;
    (void)outputs;
    return give(res, cotangents);
}

static int give_tangents(mlx_vector_array *res, const mlx_vector_array primals,
                         const mlx_vector_array tangents, const int *argnums, size_t n)
{
    (void)primals;
    (void)argnums;
    (void)n;
    return give(res, tangents);
}

static int give_batch(mlx_vector_array *res, mlx_vector_int *axes_out, const mlx_vector_array in,
                      const int *axes, size_t n)
{
    (void)axes;
    (void)n;
    int none[16];

    for (int i = 0; i < 16; i++)
        none[i] = -1;
    return give(res, in) || mlx_vector_int_set_data(axes_out, none, mlx_vector_array_size(in));
}

static mlx_closure live_closure(void)
{
    return mlx_closure_new_unary(give_unary);
}

static mlx_closure_kwargs live_closure_kwargs(void)
{
    return mlx_closure_kwargs_new_func(give_named);
}

static mlx_closure_value_and_grad live_closure_grad(void)
{
    return mlx_closure_value_and_grad_new_func(give_both);
}

static mlx_closure_custom live_closure_custom(void)
{
    return mlx_closure_custom_new_func(give_cotangents);
}

static mlx_closure_custom_jvp live_closure_custom_jvp(void)
{
    return mlx_closure_custom_jvp_new_func(give_tangents);
}

static mlx_closure_custom_vmap live_closure_custom_vmap(void)
{
    return mlx_closure_custom_vmap_new_func(give_batch);
}

/* A file of a function, which goes with the test. */
#define EXPORTED "handles.mlxfn"

static mlx_function_exporter live_exporter(void)
{
    mlx_closure f = live_closure();
    mlx_function_exporter x = mlx_function_exporter_new(EXPORTED, f, false);

    mlx_closure_free(f);
    return x;
}

static mlx_imported_function live_imported(void)
{
    mlx_function_exporter x = live_exporter();
    mlx_vector_array in = live_vector_array();

    mlx_function_exporter_apply(x, in);
    mlx_vector_array_free(in);
    mlx_function_exporter_free(x);
    return mlx_imported_function_new(EXPORTED);
}

/* ---- a kernel that is never run ---- */

static mlx_fast_metal_kernel live_metal_kernel(void)
{
    mlx_vector_string names = mlx_vector_string_new_value("x");
    mlx_fast_metal_kernel k = mlx_fast_metal_kernel_new("k", names, names, "", "", true, false);

    mlx_vector_string_free(names);
    return k;
}

static mlx_fast_vulkan_kernel live_vulkan_kernel(void)
{
    mlx_vector_string names = mlx_vector_string_new_value("x");
    mlx_fast_vulkan_kernel k = mlx_fast_vulkan_kernel_new("k", names, names, "", "", true, false);

    mlx_vector_string_free(names);
    return k;
}

static mlx_fast_metal_kernel_config live_metal_config(void)
{
    mlx_fast_metal_kernel_config config = mlx_fast_metal_kernel_config_new();

    mlx_fast_metal_kernel_config_add_output_arg(config, (int[]){ 2, 2 }, 2, MLX_FLOAT32);
    return config;
}

#include "null_calls.inc"

/* ---- what must hold ---- */

static struct outcome run(void (*call)(struct outcome *))
{
    struct outcome o = { 0 };

    errors.count = 0;
    call(&o);
    return o;
}

/* A status of 1 comes with exactly one report, any other with none; so does a missing value. */
static void assert_reported(const char *name, const struct outcome *o, bool fails)
{
    int expected = o->has_status ? o->status == 1 : fails;

    if (errors.count != expected)
        fail_msg("%s: %d errors reported, status %d: %s", name, errors.count, o->status,
                 errors.text);
    if (fails && (o->has_status ? o->status != 1 : o->made))
        fail_msg("%s: succeeded without its arguments", name);
    if (errors.count && !strstr(errors.text, ".c:"))
        fail_msg("%s: no place in \"%s\"", name, errors.text);
}

static void test_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        struct outcome o = run(probes[i].null);
        if (probes[i].null_fails || o.has_status)
            assert_reported(probes[i].name, &o, probes[i].null_fails);
    }
}

static void test_empty(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (!probes[i].empty)
            continue;
        struct outcome o = run(probes[i].empty);
        if (probes[i].empty_fails || o.has_status)
            assert_reported(probes[i].name, &o, probes[i].empty_fails);
    }
}

static void test_alias(void **state)
{
    int succeeded = 0;

    (void)state;
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (!probes[i].alias)
            continue;
        struct outcome o = run(probes[i].alias);
        assert_reported(probes[i].name, &o, false);
        if (!o.kept_box)
            fail_msg("%s: a live out-handle was replaced", probes[i].name);
        succeeded += o.status == 0;
    }
    assert_true(succeeded > 150); /* else the arguments are not what the ops want */
}

/* A failing call leaves its out-parameter as it was. */
static void test_failure_keeps_result(void **state)
{
    mlx_array res = live_array(), empty = mlx_array_new();
    mlx_vector_array list = live_vector_array();
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_fails(mlx_add(&res, res, empty, s));
    assert_fails(mlx_reshape(&res, res, (int[]){ 3 }, 1, s));
    assert_int_equal(mlx_array_ndim(res), 2);
    assert_fails(mlx_split(&list, res, 3, 0, s));
    assert_int_equal(mlx_vector_array_size(list), 1);
    assert_fails(mlx_add(&empty, empty, res, s));
    assert_null(empty.ctx);
    mlx_array_free(res);
    mlx_vector_array_free(list);
}

/* A handle that was freed and reset is empty again. */
static void test_freed_and_reset(void **state)
{
    mlx_array a = live_array(), b = live_array();
    mlx_stream s = mlx_stream_new();

    (void)state;
    mlx_array_free(a);
    a = mlx_array_new();
    assert_fails(mlx_exp(&b, a, s));
    assert_ok(mlx_exp(&a, b, s));
    assert_int_equal(mlx_array_size(a), 4);
    mlx_array_free(a);
    mlx_array_free(b);
}

/* Two results in one handle: the second stays. */
static void test_same_result_twice(void **state)
{
    mlx_array key = mlx_array_new(), res = mlx_array_new();
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_ok(mlx_random_key(&key, 0));
    assert_ok(mlx_random_split(&res, &res, key, s));
    assert_ok(mlx_array_eval(res));
    assert_int_equal(mlx_array_data_uint32(res)[0], 2718843009u);
    mlx_array_free(key);
    mlx_array_free(res);
}

/* All copies of a handle see what an out-parameter put into one of them. */
static void test_copies_share(void **state)
{
    mlx_array a = live_array(), copy = a;
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_ok(mlx_sum(&a, a, false, s));
    assert_ptr_equal(a.ctx, copy.ctx);
    assert_int_equal(mlx_array_ndim(copy), 0);
    float sum = 0;
    assert_ok(mlx_array_item_float32(&sum, copy));
    assert_true(sum == 10);
    mlx_array_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_alias),
        cmocka_unit_test(test_failure_keeps_result),
        cmocka_unit_test(test_freed_and_reset),
        cmocka_unit_test(test_same_result_twice),
        cmocka_unit_test(test_copies_share),
    };

    sink = tmpfile();
    int failed = sink ? cmocka_run_group_tests(tests, setup_cpu, NULL) : 1;
    if (sink)
        fclose(sink);
    remove(EXPORTED);
    return failed;
}
