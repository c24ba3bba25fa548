/* Allocation failures: programs run again and again with the n-th allocation failing, n = 1, 2, ...
 * until they succeed. Every failure must be an error that leaves nothing behind; a leak checker
 * over this test sees what is not released. */
#include <stdio.h>

#include "support/testing.h"

#include "base/mem.h"
#include "mlx/c/mlx.h"

static const mlx_stream s = { NULL };

static void ignore(const char *msg, void *data)
{
    (void)msg;
    ++*(int *)data;
}

/* ---- programs: 0 if every call succeeded ---- */

/* Goes on after a failure, as a program that ignores status codes would. */
#define STEP(call) (failed |= (call))

static int elementwise(void)
{
    mlx_array a = mlx_array_new_data((float[]){ 1, 2, 3, 4 }, (int[]){ 2, 2 }, 2, MLX_FLOAT32);
    mlx_array b = mlx_array_new_float(3), r = mlx_array_new();
    mlx_string text = mlx_string_new();
    int failed = !a.ctx || !b.ctx;

    STEP(mlx_add(&r, a, b, s));
    STEP(mlx_exp(&r, r, s));
    STEP(mlx_where(&r, a, r, b, s));
    STEP(mlx_isclose(&b, r, a, 1e-5, 1e-8, true, s));
    STEP(mlx_array_eval(b));
    STEP(mlx_array_tostring(&text, r));
    mlx_string_free(text);
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(r);
    return failed;
}

static int matrices(void)
{
    mlx_array a = mlx_array_new(), b = mlx_array_new(), c = mlx_array_new_float(1);
    float sum = 0;
    int failed = !c.ctx;

    STEP(mlx_arange(&a, 0, 24, 1, MLX_FLOAT32, s));
    STEP(mlx_reshape(&a, a, (int[]){ 2, 3, 4 }, 3, s));
    STEP(mlx_swapaxes(&b, a, 1, 2, s));
    STEP(mlx_addmm(&b, c, a, b, 2, 3, s));
    STEP(mlx_softmax_axis(&b, b, 1, false, s));
    STEP(mlx_std_axis(&b, b, 0, true, 1, s));
    STEP(mlx_logsumexp(&b, b, false, s));
    STEP(mlx_array_item_float32(&sum, b));
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_array_free(c);
    return failed;
}

static int movement(void)
{
    mlx_array a = mlx_array_new(),
              at = mlx_array_new_data((int[]){ 1, 0 }, (int[]){ 2 }, 1, MLX_INT32);
    mlx_vector_array parts = mlx_vector_array_new();
    int failed = !at.ctx || !parts.ctx;

    STEP(mlx_eye(&a, 4, 4, 1, MLX_FLOAT32, s));
    STEP(mlx_split_sections(&parts, a, (int[]){ 1, 3 }, 2, 0, s));
    STEP(mlx_concatenate_axis(&a, parts, 0, s));
    STEP(mlx_take_axis(&a, a, at, 1, s));
    STEP(mlx_pad_symmetric(&a, a, 1, a, "reflect", s));
    STEP(mlx_tile(&a, a, (int[]){ 2, 1 }, 2, s));
    STEP(mlx_array_eval(a));
    mlx_array_free(a);
    mlx_array_free(at);
    mlx_vector_array_free(parts);
    return failed;
}

static int random_numbers(void)
{
    mlx_array key = mlx_array_new(), other = mlx_array_new(), r = mlx_array_new();
    int failed = 0;

    STEP(mlx_random_key(&key, 1));
    STEP(mlx_random_split(&key, &other, key, s));
    STEP(mlx_random_normal(&r, (int[]){ 3, 5 }, 2, MLX_FLOAT32, 1, 2, other, s));
    STEP(mlx_random_seed(3));
    STEP(mlx_random_bits(&r, (int[]){ 3 }, 1, 4, mlx_array_empty, s));
    STEP(mlx_array_eval(r));
    mlx_array_free(key);
    mlx_array_free(other);
    mlx_array_free(r);
    return failed;
}

static int containers(void)
{
    mlx_array a = mlx_array_new_float(1), b = mlx_array_new();
    mlx_vector_array v = mlx_vector_array_new(), w = mlx_vector_array_new();
    mlx_vector_string names = mlx_vector_string_new_data((const char *[]){ "a", "b", "c" }, 3);
    mlx_map_string_to_array m = mlx_map_string_to_array_new(), n = mlx_map_string_to_array_new();
    int failed = !a.ctx || !v.ctx || !w.ctx || !names.ctx || !m.ctx || !n.ctx;

    for (int i = 0; i < 20; i++)
        STEP(mlx_vector_array_append_value(v, a));
    STEP(mlx_vector_array_set(&w, v));
    STEP(mlx_vector_string_append_value(names, "d"));
    STEP(mlx_map_string_to_array_insert(m, "x", a));
    STEP(mlx_map_string_to_array_insert(m, "y", a));
    STEP(mlx_map_string_to_array_set(&n, m));
    STEP(mlx_map_string_to_array_get(&b, n, "y"));
    mlx_map_string_to_array_iterator it = mlx_map_string_to_array_iterator_new(n);
    failed |= !it.ctx;
    mlx_map_string_to_array_iterator_free(it);
    mlx_map_string_to_array_free(m);
    mlx_map_string_to_array_free(n);
    mlx_vector_string_free(names);
    mlx_vector_array_free(v);
    mlx_vector_array_free(w);
    mlx_array_free(a);
    mlx_array_free(b);
    return failed;
}

static FILE *sink;

static int graph(void)
{
    mlx_array a = mlx_array_new_float(1);
    mlx_node_namer namer = mlx_node_namer_new();
    int failed = !a.ctx || !namer.ctx;

    STEP(mlx_node_namer_set_name(namer, a, "input"));
    for (int i = 0; i < 50; i++)
        STEP(mlx_add(&a, a, a, s));
    mlx_vector_array outputs = mlx_vector_array_new_value(a);
    failed |= !outputs.ctx;
    STEP(mlx_print_graph(sink, namer, outputs));
    STEP(mlx_export_to_dot(sink, namer, outputs));
    mlx_vector_array_free(outputs);
    mlx_node_namer_free(namer);
    mlx_array_free(a);
    return failed;
}

static void release(void *p)
{
    ++*(int *)p;
}

static int adopted(void)
{
    static float data[256];
    int runs = 0, n = 256;
    mlx_array a = mlx_array_new_data_managed_payload(data, &n, 1, MLX_FLOAT32, &runs, release);
    int failed = !a.ctx;

    STEP(mlx_square(&a, a, s));
    STEP(mlx_array_eval(a));
    mlx_array_free(a);
    mem_fail_after(0);
    mlx_synchronize(s); /* the buffer may be held by work in flight */
    assert_int_equal(runs, 1);
    return failed;
}

static int difference(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = mlx_array_new(), y = mlx_array_new(), two = mlx_array_new_float(2);
    int failed = !two.ctx;

    STEP(mlx_vector_array_get(&x, in, 0));
    STEP(mlx_multiply(&y, x, two, s));
    STEP(mlx_multiply(&two, two, x, s));
    STEP(mlx_subtract(&y, y, two, s));
    STEP(mlx_vector_array_set_data(res, (mlx_array[]){ y, x }, 2));
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(two);
    return failed;
}

static int compiled(void)
{
    mlx_closure f = mlx_closure_new_func(difference), g = mlx_closure_new();
    mlx_array x = mlx_array_new_float(3);
    mlx_vector_array v = mlx_vector_array_new();
    int failed = !x.ctx || !f.ctx;

    STEP(mlx_vector_array_append_value(v, x));
    STEP(mlx_compile(&g, f, false));
    for (int i = 0; i < 2; i++)
        STEP(mlx_closure_apply(&v, g, v));
    STEP(mlx_eval(v));
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_array_free(x);
    mlx_vector_array_free(v);
    return failed;
}

/* ---- the loop ---- */

#define ENOUGH 20000

static void run(int (*program)(void))
{
    size_t active = 0, baseline = 0;
    int reported = 0, failures = 0;

    mlx_set_error_handler(ignore, &reported, NULL);
    assert_int_equal(program(), 0); /* caches and worker threads are set up */
    assert_int_equal(reported, 0);
    mlx_get_active_memory(&baseline);
    for (size_t n = 1; n < ENOUGH; n++) {
        reported = 0;
        mem_fail_after(n);
        int failed = program();
        mem_fail_after(0);
        if ((failed != 0) != (reported > 0))
            fail_msg("allocation %zu: status and reports disagree", n);
        mlx_get_active_memory(&active);
        if (active > baseline)
            fail_msg("allocation %zu: %zu bytes stay in use", n, active - baseline);
        if (!failed) {
            assert_true(failures > 0);
            return;
        }
        failures++;
    }
    fail_msg("still failing after %d allocations", ENOUGH);
}

#define TEST(name)                                                                                 \
    static void test_##name(void **state)                                                          \
    {                                                                                              \
        (void)state;                                                                               \
        run(name);                                                                                 \
    }
TEST(elementwise)
TEST(matrices)
TEST(movement)
TEST(random_numbers)
TEST(containers)
TEST(graph)
TEST(adopted)
TEST(compiled)

static int setup(void **state)
{
    mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);

    (void)state;
    int status = mlx_set_default_device(cpu);
    mlx_device_free(cpu);
    sink = tmpfile();
    return sink ? status : -1;
}

static int teardown(void **state)
{
    (void)state;
    return fclose(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_movement),    cmocka_unit_test(test_random_numbers),
        cmocka_unit_test(test_containers),  cmocka_unit_test(test_graph),
        cmocka_unit_test(test_adopted),     cmocka_unit_test(test_compiled),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
