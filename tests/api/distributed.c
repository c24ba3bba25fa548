/* Groups of one: no launcher has started this program, and without a library for MPI nothing can.
 */
#include "api_test.h"

#include "mlx/c/ext.h"

static mlx_distributed_group group_of(bool strict, const char *bk)
{
    mlx_distributed_group g = mlx_distributed_group_new();

    assert_ok(mlx_distributed_init(&g, strict, bk));
    return g;
}

static void test_no_library(void **state)
{
    mlx_distributed_group g = mlx_distributed_group_new();

    (void)state;
    assert_false(mlx_distributed_is_available(NULL));
    assert_false(mlx_distributed_is_available("any"));
    assert_false(mlx_distributed_is_available("mpi"));
    assert_fails(mlx_distributed_init(&g, true, "any"));
    assert_non_null(strstr(errors.text, "[distributed] Couldn't initialize any backend"));
    assert_non_null(strstr(errors.text, "libnothing.so"));
    assert_fails(mlx_distributed_init(&g, true, "mpi"));
    assert_null(g.ctx);
}

static void test_names(void **state)
{
    static const char *const others[] = { "ring", "nccl", "jaccl" };
    mlx_distributed_group g = mlx_distributed_group_new();
    char text[64];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_false(mlx_distributed_is_available(others[i]));
        assert_fails(mlx_distributed_init(&g, true, others[i]));
        snprintf(text, sizeof text, "Cannot initialize %s distributed backend.", others[i]);
        assert_non_null(strstr(errors.text, text));
        assert_ok(mlx_distributed_init(&g, false, others[i]));
        assert_int_equal(mlx_distributed_group_size(g), 1);
    }
    assert_false(mlx_distributed_is_available("other"));
    assert_fails(mlx_distributed_init(&g, false, "other"));
    assert_non_null(strstr(errors.text, "[distributed] The only valid values for backend are 'any',"
                                        " 'mpi', 'nccl', 'jaccl' and 'ring' but 'other' was "
                                        "provided."));
    mlx_distributed_group_free(g);
}

static void test_group_of_one(void **state)
{
    mlx_distributed_group g = group_of(false, NULL), part = mlx_distributed_group_new();

    (void)state;
    assert_int_equal(mlx_distributed_group_rank(g), 0);
    assert_int_equal(mlx_distributed_group_size(g), 1);
    assert_fails(mlx_distributed_group_split(&part, g, 0, 0));
    assert_non_null(strstr(errors.text, "Cannot split the distributed group further."));
    /* a live handle is overwritten */
    assert_ok(mlx_distributed_init(&g, false, "mpi"));
    assert_int_equal(mlx_distributed_group_size(g), 1);
    mlx_distributed_group_free(g);
    errors.count = 0;
    assert_int_equal(mlx_distributed_group_size(part), 0);
    assert_int_equal(errors.count, 1);
}

typedef int (*collective)(mlx_array *, const mlx_array, const mlx_distributed_group,
                          const mlx_stream);

/* x itself, whatever it is and wherever. */
static void test_ops(void **state)
{
    static const collective fns[] = { mlx_distributed_all_sum, mlx_distributed_all_max,
                                      mlx_distributed_all_min, mlx_distributed_all_gather,
                                      mlx_distributed_sum_scatter };
    static const float v[] = { 1, 2, 3 };
    mlx_distributed_group groups[] = { mlx_distributed_group_new(), group_of(false, "any") };
    mlx_stream s = mlx_stream_new();

    (void)state;
    for (size_t g = 0; g < 2; g++)
        for (size_t i = 0; i < sizeof fns / sizeof fns[0]; i++) {
            mlx_array x = vector_of(v, 3), y = mlx_array_new();
            assert_ok(fns[i](&y, x, groups[g], s));
            assert_floats(y, v, 3);
            assert_ok(mlx_array_set_float32(&x, 5));
            assert_ok(fns[i](&x, x, groups[g], s));
            assert_floats(x, (float[]){ 5 }, 1);
            assert_int_equal(mlx_array_ndim(x), 0);
            mlx_array_free(x);
            mlx_array_free(y);
        }
    mlx_distributed_group_free(groups[1]);
}

static void test_messages(void **state)
{
    static const float v[] = { 1, 2, 3 };
    mlx_array x = vector_of(v, 3), y = mlx_array_new();
    mlx_distributed_group g = mlx_distributed_group_new();
    mlx_stream s = mlx_stream_new();

    (void)state;
    assert_fails(mlx_distributed_send(&y, x, 0, g, s));
    assert_non_null(strstr(errors.text, "Cannot send to a singleton group"));
    assert_fails(mlx_distributed_recv(&y, (int[]){ 3 }, 1, MLX_FLOAT32, 0, g, s));
    assert_non_null(strstr(errors.text, "Cannot recv from a singleton group"));
    assert_fails(mlx_distributed_recv_like(&y, x, 5, g, s));
    assert_non_null(strstr(errors.text, "Cannot recv from a singleton group"));
    mlx_array_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_library),   cmocka_unit_test(test_names),
        cmocka_unit_test(test_group_of_one), cmocka_unit_test(test_ops),
        cmocka_unit_test(test_messages),
    };

    setup_cpu(NULL);
    if (mlx_setting_set("MLX_MPI_LIBNAME", "libnothing.so") != 0)
        return 1;
    return cmocka_run_group_tests_name("api_distributed", tests, NULL, NULL);
}
