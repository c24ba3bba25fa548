/* Kernels of callers as ops, through the public functions. */
#include <pthread.h>
#include <stdlib.h>

#include "api/api_test.h"
#include "base/mem.h"
#include "mlx/c/ext.h"
#include "spirv/glsl.h"
#include "support/data.h"

static mlx_stream gpu;

static int setup(void **state)
{
    (void)state;
    mlx_set_error_handler(count_error, &errors, NULL);
    gpu = mlx_default_gpu_stream_new();
    return gpu.ctx ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return mlx_stream_free(gpu);
}

static mlx_fast_vulkan_kernel kernel_or_none(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "kernels/%s.spv", name);
    return mlx_fast_vulkan_kernel_new_file(name, data_made(path).v, true);
}

static mlx_fast_vulkan_kernel kernel_of(const char *name)
{
    errors.count = 0;
    mlx_fast_vulkan_kernel k = kernel_or_none(name);
    if (!k.ctx)
        fail_msg("%s: %s", name, errors.text);
    return k;
}

static mlx_array ramp(int n, float first)
{
    float *v = malloc((size_t)n * sizeof *v);

    for (int i = 0; i < n; i++)
        v[i] = first + (float)i;
    mlx_array a = vector_of(v, n);
    free(v);
    return a;
}

/* A call under construction. */
struct trial {
    mlx_fast_vulkan_kernel k;
    mlx_fast_vulkan_kernel_config config;
    mlx_vector_array in, out;
};

static struct trial trial_of(mlx_fast_vulkan_kernel k)
{
    struct trial t = { k, mlx_fast_vulkan_kernel_config_new(), mlx_vector_array_new(),
                       mlx_vector_array_new() };

    assert_non_null(t.config.ctx);
    return t;
}

static void add_in(struct trial *t, mlx_array a)
{
    assert_ok(mlx_vector_array_append_value(t->in, a));
    mlx_array_free(a);
}

static void add_out(struct trial *t, int n, mlx_dtype dtype)
{
    assert_ok(mlx_fast_vulkan_kernel_config_add_output_arg(t->config, &n, 1, dtype));
}

static mlx_array run(struct trial *t)
{
    mlx_array out = mlx_array_new();

    assert_ok(mlx_fast_vulkan_kernel_apply(&t->out, t->k, t->in, t->config, gpu));
    assert_ok(mlx_vector_array_get(&out, t->out, 0));
    return out;
}

static void refuse(struct trial *t, const char *why)
{
    assert_fails(mlx_fast_vulkan_kernel_apply(&t->out, t->k, t->in, t->config, gpu));
    if (!strstr(errors.text, why))
        fail_msg("not \"%s\": %s", why, errors.text);
}

static void end(struct trial *t)
{
    mlx_fast_vulkan_kernel_free(t->k);
    mlx_fast_vulkan_kernel_config_free(t->config);
    mlx_vector_array_free(t->in);
    mlx_vector_array_free(t->out);
}

struct push {
    float scale;
    uint32_t n;
};

static struct trial scale_add(int n, struct push push)
{
    struct trial t = trial_of(kernel_of("scale_add"));

    add_out(&t, n, MLX_FLOAT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, n, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 64, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_push_constants(t.config, &push, sizeof push));
    return t;
}

/* ---- what calls give ---- */

static void test_bindings(void **state)
{
    enum { N = 1000 };
    struct trial t = scale_add(N, (struct push){ 3, N });
    float bias = 0.5f;
    uint32_t bits;

    (void)state;
    memcpy(&bits, &bias, sizeof bits);
    assert_ok(mlx_fast_vulkan_kernel_config_set_specialization(t.config, 1, bits));
    add_in(&t, ramp(N, 0));
    add_in(&t, ramp(N, 100));
    mlx_array y = run(&t);
    assert_ok(mlx_array_eval(y));
    const float *v = mlx_array_data_float32(y);
    for (int i = 0; i < N; i++)
        assert_true(v[i] == 3 * (float)i + (100 + (float)i) + bias);
    mlx_array_free(y);
    end(&t);
}

static void test_addresses(void **state)
{
    enum { N = 200 };
    struct trial t = trial_of(kernel_of("addresses"));
    uint32_t n = N;

    (void)state;
    add_in(&t, ramp(N, 1));
    add_out(&t, N, MLX_FLOAT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_groups(t.config, 4, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_push_constants(t.config, &n, sizeof n));
    mlx_array y = run(&t);
    assert_ok(mlx_array_eval(y));
    for (int i = 0; i < N; i++)
        assert_true(mlx_array_data_float32(y)[i] == 2 * (float)(1 + i));
    mlx_array_free(y);
    end(&t);
}

/* Atomics on top of an init value. */
static void test_init_value(void **state)
{
    enum { N = 96 };
    struct trial t = trial_of(kernel_of("count"));
    uint32_t x[N];
    int n = N;

    (void)state;
    for (uint32_t i = 0; i < N; i++)
        x[i] = i;
    add_in(&t, mlx_array_new_data(x, &n, 1, MLX_UINT32));
    add_out(&t, 8, MLX_UINT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_init_value(t.config, 5));
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, N, 1, 1));
    mlx_array y = run(&t);
    assert_ok(mlx_array_eval(y));
    for (int i = 0; i < 8; i++)
        assert_int_equal(mlx_array_data_uint32(y)[i], 5 + N / 8);
    mlx_array_free(y);
    end(&t);
}

/* Among other ops: what it reads is written before, and what reads it comes after; again and again,
 * so that runs are recorded and taken up. Inputs that begin at any byte and lie in any order. */
static void test_among_ops(void **state)
{
    enum { N = 300 };

    (void)state;
    for (int round = 0; round < 6; round++) {
        struct trial t = scale_add(N, (struct push){ 2, N });
        mlx_array base = ramp(2 * N + 1, (float)round), a = mlx_array_new(), b = mlx_array_new(),
                  two = mlx_array_new_float(2);
        assert_ok(mlx_multiply(&base, base, two, gpu));
        assert_ok(mlx_slice(&a, base, (int[]){ 1 }, 1, (int[]){ N + 1 }, 1, (int[]){ 1 }, 1, gpu));
        assert_ok(mlx_slice(&b, base, (int[]){ 2 * N }, 1, (int[]){ 0 }, 1, (int[]){ -2 }, 1, gpu));
        add_in(&t, a);
        add_in(&t, b);
        mlx_array y = run(&t);
        assert_ok(mlx_add(&y, y, two, gpu));
        assert_ok(mlx_array_eval(y));
        for (int i = 0; i < N; i++)
            assert_true(mlx_array_data_float32(y)[i] ==
                        4 * (float)(round + 1 + i) + 2 * (float)(round + 2 * N - 2 * i) + 2);
        mlx_array_free(two);
        mlx_array_free(base);
        mlx_array_free(y);
        end(&t);
    }
}

/* Calls one behind another, more than a pool of sets has. */
static void test_many(void **state)
{
    enum { N = 64, CALLS = 400 };
    struct trial t = scale_add(N, (struct push){ 1, N });
    mlx_array y = ramp(N, 0), one = mlx_array_new();
    int n = N;

    (void)state;
    assert_ok(mlx_ones(&one, &n, 1, MLX_FLOAT32, gpu));
    for (int i = 0; i < CALLS; i++) {
        mlx_array in[] = { y, one };
        assert_ok(mlx_vector_array_set_data(&t.in, in, 2));
        mlx_array next = run(&t);
        assert_ok(mlx_array_set(&y, next));
        mlx_array_free(next);
    }
    assert_ok(mlx_array_eval(y));
    for (int i = 0; i < N; i++)
        assert_true(mlx_array_data_float32(y)[i] == (float)(i + CALLS));
    mlx_array_free(y);
    mlx_array_free(one);
    end(&t);
}

static void test_glsl(void **state)
{
    enum { N = 77 };
    mlx_vector_string in = mlx_vector_string_new_value("x"), out = mlx_vector_string_new_value("y");
    mlx_fast_vulkan_kernel k = mlx_fast_vulkan_kernel_new(
        "power", in, out,
        "uint i = gl_GlobalInvocationID.x;\n"
        "if (twice) y[i] = T(pow_of(float(x[i])) * 2.0); else y[i] = T(pow_of(float(x[i])));",
        "float pow_of(float v) { return pow(v, float(p)); }", true, false);
    struct trial t = trial_of(k);

    (void)state;
    assert_non_null(k.ctx);
    add_in(&t, ramp(N, 1));
    add_out(&t, N, MLX_INT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, N, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 32, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_add_template_arg_dtype(t.config, "T", MLX_INT32));
    assert_ok(mlx_fast_vulkan_kernel_config_add_template_arg_int(t.config, "p", 1));
    assert_ok(mlx_fast_vulkan_kernel_config_add_template_arg_bool(t.config, "twice", true));
    assert_true(glsl_can_compile() || !getenv("TEST_GLSL"));
    if (!glsl_can_compile()) {
        refuse(&t, "glslc -fshader-stage=compute");
    } else {
        mlx_array y = run(&t);
        assert_ok(mlx_array_eval(y));
        for (int i = 0; i < N; i++)
            assert_true(abs(mlx_array_data_int32(y)[i] - 2 * (i + 1)) <= 1);
        mlx_array_free(y);
        assert_ok(mlx_fast_vulkan_kernel_config_add_template_arg_int(t.config, "no name", 1));
        refuse(&t, "is no name in GLSL");
    }
    mlx_vector_string_free(in);
    mlx_vector_string_free(out);
    end(&t);
}

static mlx_fast_vulkan_kernel glsl_of(const char *source, bool atomic)
{
    mlx_vector_string in = mlx_vector_string_new_value("x"), out = mlx_vector_string_new_value("y");
    mlx_fast_vulkan_kernel k =
        mlx_fast_vulkan_kernel_new("glsl", in, out, source, "", true, atomic);

    mlx_vector_string_free(in);
    mlx_vector_string_free(out);
    assert_non_null(k.ctx);
    return k;
}

/* Elements of every dtype that a GPU has, as they come. */
static void test_glsl_dtypes(void **state)
{
    enum { N = 45 };

    (void)state;
    for (int t = MLX_BOOL; t <= MLX_COMPLEX64 && glsl_can_compile(); t++) {
        struct trial trial =
            trial_of(glsl_of("y[gl_GlobalInvocationID.x] = x[gl_GlobalInvocationID.x];", false));
        mlx_array x = ramp(N, 0), same = mlx_array_new(), y;
        bool is_same = false;
        if (t == MLX_FLOAT64)
            goto next;
        assert_ok(mlx_astype(&x, x, (mlx_dtype)t, gpu));
        assert_ok(mlx_vector_array_append_value(trial.in, x));
        add_out(&trial, N, (mlx_dtype)t);
        assert_ok(mlx_fast_vulkan_kernel_config_set_grid(trial.config, N, 1, 1));
        assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(trial.config, 16, 1, 1));
        y = run(&trial);
        assert_ok(mlx_array_equal(&same, x, y, false, gpu));
        assert_ok(mlx_array_eval(same));
        assert_ok(mlx_array_item_bool(&is_same, same));
        if (!is_same)
            fail_msg("dtype %d", t);
        mlx_array_free(y);
    next:
        mlx_array_free(same);
        mlx_array_free(x);
        end(&trial);
    }
}

/* Atomics; threads beyond the grid do nothing. */
static void test_glsl_grid(void **state)
{
    struct trial t = trial_of(glsl_of("atomicAdd(y[0], int(x[0]));", true));

    (void)state;
    add_in(&t, mlx_array_new_int(2));
    add_out(&t, 1, MLX_INT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_init_value(t.config, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 37, 3, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 16, 2, 1));
    if (glsl_can_compile()) {
        mlx_array y = run(&t);
        assert_ok(mlx_array_eval(y));
        assert_int_equal(mlx_array_data_int32(y)[0], 1 + 2 * 37 * 3);
        mlx_array_free(y);
    }
    end(&t);
}

static void test_broken_glsl(void **state)
{
    mlx_vector_string none = mlx_vector_string_new(), out = mlx_vector_string_new_value("y");
    mlx_fast_vulkan_kernel k =
        mlx_fast_vulkan_kernel_new("broken", none, out, "y[0] = nothing;", "", true, true);
    struct trial t = trial_of(k);

    (void)state;
    assert_non_null(k.ctx);
    add_out(&t, 1, MLX_FLOAT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 1, 1, 1));
    refuse(&t, glsl_can_compile() ? "'nothing' : undeclared identifier" : "needs libshaderc");
    mlx_vector_string_free(none);
    mlx_vector_string_free(out);
    end(&t);
}

/* Inputs as they lie: the kernel gets their memory, or an error says why it cannot. */
static void test_strides(void **state)
{
    enum { N = 32 };
    static const struct {
        int start, stop, step;
        const char *why; /* NULL: it runs */
    } rows[] = { { 0, N, 1, NULL },
                 { 64, 64 + 2 * N, 2, NULL },
                 { N, 0, -1, "Input 0 has negative strides" },
                 { 1, N + 1, 1, "minStorageBufferOffsetAlignment" } };
    struct data_path file = data_made("kernels/scale_add.spv");

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct push push = { 1, N };
        struct trial t = trial_of(mlx_fast_vulkan_kernel_new_file("as_it_lies", file.v, false));
        mlx_array a = ramp(4 * N, 0), y;
        add_out(&t, N, MLX_FLOAT32);
        assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, N, 1, 1));
        assert_ok(mlx_fast_vulkan_kernel_config_set_push_constants(t.config, &push, sizeof push));
        assert_ok(mlx_add(&a, a, a, gpu)); /* memory of the GPU, from its beginning on */
        assert_ok(mlx_slice(&a, a, &rows[i].start, 1, &rows[i].stop, 1, &rows[i].step, 1, gpu));
        add_in(&t, a);
        add_in(&t, ramp(N, 0));
        y = run(&t);
        errors.count = 0;
        if (mlx_array_eval(y) == 0) { /* an alignment of 4 is as good as any */
            assert_true(!rows[i].why || strstr(rows[i].why, "Alignment"));
            for (int k = 0; k < N; k++)
                assert_true(mlx_array_data_float32(y)[k] == (float)(2 * (rows[i].start + k) + k));
        } else if (!rows[i].why || !strstr(errors.text, rows[i].why)) {
            fail_msg("row %zu: %s", i, errors.text);
        }
        mlx_array_free(y);
        end(&t);
    }
}

/* ---- several threads ---- */

static void *call_often(void *arg)
{
    enum { N = 100, CALLS = 30 };
    mlx_fast_vulkan_kernel *k = arg;
    mlx_stream s = mlx_default_gpu_stream_new();
    mlx_fast_vulkan_kernel_config config = mlx_fast_vulkan_kernel_config_new();
    const struct push push = { 1, N };
    const int n = N;
    mlx_array y = ramp(N, 0), one = mlx_array_new();
    mlx_vector_array in = mlx_vector_array_new(), out = mlx_vector_array_new();
    int failed = mlx_ones(&one, &n, 1, MLX_FLOAT32, s) ||
                 mlx_fast_vulkan_kernel_config_add_output_arg(config, &n, 1, MLX_FLOAT32) ||
                 mlx_fast_vulkan_kernel_config_set_grid(config, N, 1, 1) ||
                 mlx_fast_vulkan_kernel_config_set_push_constants(config, &push, sizeof push);

    for (int i = 0; i < CALLS && !failed; i++)
        failed = mlx_vector_array_set_data(&in, (mlx_array[]){ y, one }, 2) ||
                 mlx_fast_vulkan_kernel_apply(&out, *k, in, config, s) ||
                 mlx_vector_array_get(&y, out, 0) || (i % 7 == 0 && mlx_array_eval(y));
    failed = failed || mlx_array_eval(y) || mlx_array_data_float32(y)[N - 1] != N - 1 + CALLS;
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_array_free(one);
    mlx_array_free(y);
    mlx_fast_vulkan_kernel_config_free(config);
    mlx_stream_free(s);
    return failed ? arg : NULL;
}

static void test_threads(void **state)
{
    enum { THREADS = 4 };
    mlx_fast_vulkan_kernel k = kernel_of("scale_add");
    pthread_t thread[THREADS];
    void *failed;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, call_often, &k), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &failed), 0);
        assert_null(failed);
    }
    mlx_fast_vulkan_kernel_free(k);
}

/* ---- what fails on the way ---- */

/* A call with an input to be copied, from its handles to its values. */
static int whole_call(void)
{
    enum { N = 40 };
    const uint32_t push[] = { 0x40000000, N }; /* 2.0 */
    int n = N;
    mlx_fast_vulkan_kernel k = kernel_or_none("scale_add");
    mlx_fast_vulkan_kernel_config config = mlx_fast_vulkan_kernel_config_new();
    mlx_array a = mlx_array_new(), b = mlx_array_new(), y = mlx_array_new();
    mlx_vector_array in = mlx_vector_array_new(), out = mlx_vector_array_new();
    int failed = !k.ctx || !config.ctx || mlx_ones(&a, (int[]){ 2 * N }, 1, MLX_FLOAT32, gpu) ||
                 mlx_slice(&b, a, (int[]){ 1 }, 1, (int[]){ N + 1 }, 1, (int[]){ 1 }, 1, gpu) ||
                 mlx_vector_array_append_value(in, b) || mlx_vector_array_append_value(in, b) ||
                 mlx_fast_vulkan_kernel_config_add_output_arg(config, &n, 1, MLX_FLOAT32) ||
                 mlx_fast_vulkan_kernel_config_set_grid(config, N, 1, 1) ||
                 mlx_fast_vulkan_kernel_config_set_init_value(config, 1) ||
                 mlx_fast_vulkan_kernel_config_set_specialization(config, 0, 8) ||
                 mlx_fast_vulkan_kernel_config_set_push_constants(config, push, sizeof push) ||
                 mlx_fast_vulkan_kernel_apply(&out, k, in, config, gpu) ||
                 mlx_vector_array_get(&y, out, 0) || mlx_array_eval(y);

    if (!failed)
        assert_true(mlx_array_data_float32(y)[N - 1] == 3);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(y);
    mlx_fast_vulkan_kernel_config_free(config);
    mlx_fast_vulkan_kernel_free(k);
    return failed;
}

/* No memory from any allocation on: an error, nothing stays in use, and the next call is fine. */
static void test_no_memory(void **state)
{
    size_t baseline = 0, active = 0, failures = 0;
    int failed;

    (void)state;
    assert_int_equal(whole_call(), 0);
    mlx_synchronize(gpu);
    mlx_get_active_memory(&baseline);
    for (size_t n = 1;; n++) {
        mem_fail_after(n);
        failed = whole_call();
        mem_fail_after(0);
        mlx_synchronize(gpu);
        mlx_get_active_memory(&active);
        assert_true(active <= baseline);
        if (!failed)
            break;
        failures++;
    }
    assert_true(failures > 20);
    errors.count = 0;
}

/* ---- what does not fit ---- */

static void test_refusals(void **state)
{
    struct trial t = scale_add(10, (struct push){ 2, 10 });
    mlx_stream cpu = mlx_default_cpu_stream_new();

    (void)state;
    add_in(&t, ramp(10, 0));
    refuse(&t, "1 inputs and 1 outputs, but the module's bindings end with 2");
    add_in(&t, ramp(10, 0));
    assert_ok(mlx_fast_vulkan_kernel_config_set_push_constants(t.config, "1234", 4));
    refuse(&t, "4 bytes of push constants, but the module has 8");
    assert_ok(mlx_fast_vulkan_kernel_config_set_push_constants(t.config, "12345678", 8));
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 64, 2, 1));
    refuse(&t, "2 threads along axis 1, but the module's have 1");
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 1 << 20, 1, 1));
    refuse(&t, "Workgroups of 1048576 threads along axis 0: the device allows");
    assert_ok(mlx_fast_vulkan_kernel_config_set_thread_group(t.config, 1, 1, 1));
    assert_ok(mlx_fast_vulkan_kernel_config_set_groups(t.config, 1, 1 << 30, 1));
    refuse(&t, "A grid of 1073741824 workgroups along axis 1: the device allows");
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 0, 1, 1));
    refuse(&t, "A grid of 0 x 1 x 1 threads.");
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 10, 1, 1));
    assert_fails(mlx_fast_vulkan_kernel_apply(&t.out, t.k, t.in, t.config, cpu));
    assert_non_null(strstr(errors.text, "[vulkan_kernel] Only supports the GPU."));
    assert_ok(mlx_fast_vulkan_kernel_config_set_specialization(t.config, 9, 1));
    refuse(&t, "no specialization constant 9");
    mlx_stream_free(cpu);
    end(&t);

    t = trial_of(kernel_of("count"));
    add_in(&t, ramp(4, 0));
    add_out(&t, 7, MLX_UINT32);
    refuse(&t, "The configuration has no grid.");
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 1, 1, 1));
    refuse(&t, "Output 0 has 28 bytes, but binding 1 of the module at least 32.");
    end(&t);

    t = trial_of(kernel_of("clock"));
    add_out(&t, 2, MLX_UINT32);
    assert_ok(mlx_fast_vulkan_kernel_config_set_grid(t.config, 1, 1, 1));
    refuse(&t, "The module needs capability 5055");
    end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bindings),    cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_init_value),  cmocka_unit_test(test_among_ops),
        cmocka_unit_test(test_many),        cmocka_unit_test(test_glsl),
        cmocka_unit_test(test_glsl_dtypes), cmocka_unit_test(test_glsl_grid),
        cmocka_unit_test(test_broken_glsl), cmocka_unit_test(test_strides),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
