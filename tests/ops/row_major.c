/* Clients read results through a pointer to their elements: ops along any axis leave them
 * row-major, as MLX does. Values are the business of the case tables. */
#include "support/gpu.h"

#include "mlx/c/mlx.h"

#define AXES 3

static const int shape[AXES] = { 3, 4, 5 };

typedef int (*axis_op)(mlx_array *out, mlx_array a, int axis, mlx_stream s);

#define ROW_OP(name, call)                                                                         \
    static int name(mlx_array *out, mlx_array a, int axis, mlx_stream s)                           \
    {                                                                                              \
        return call;                                                                               \
    }
ROW_OP(sorted, mlx_sort_axis(out, a, axis, s))
ROW_OP(order, mlx_argsort_axis(out, a, axis, s))
ROW_OP(parted, mlx_partition_axis(out, a, 1, axis, s))
ROW_OP(part_order, mlx_argpartition_axis(out, a, 1, axis, s))
ROW_OP(top, mlx_topk_axis(out, a, 2, axis, s))
ROW_OP(sums, mlx_cumsum(out, a, axis, false, true, s))
ROW_OP(products, mlx_cumprod(out, a, axis, true, true, s))
ROW_OP(highest, mlx_cummax(out, a, axis, false, false, s))
ROW_OP(lowest, mlx_cummin(out, a, axis, false, true, s))
ROW_OP(log_sums, mlx_logcumsumexp(out, a, axis, false, true, s))
ROW_OP(softmax, mlx_softmax_axis(out, a, axis, true, s))

static const struct {
    const char *name;
    axis_op fn;
} ops[] = {
    { "sort", sorted },
    { "argsort", order },
    { "partition", parted },
    { "argpartition", part_order },
    { "topk", top }, /* a view of a partition */
    { "cumsum", sums },
    { "cumprod", products },
    { "cummax", highest },
    { "cummin", lowest },
    { "logcumsumexp", log_sums },
    { "softmax", softmax },
};

/* Elements between neighbours along the axes of a row-major array of this shape. */
static bool is_row_major(mlx_array a, const int *dims)
{
    const size_t *strides = mlx_array_strides(a);
    size_t step = 1;

    for (int i = AXES - 1; i >= 0; i--) {
        if (strides[i] != step)
            return false;
        step *= (size_t)dims[i];
    }
    return true;
}

/* The numbers 59, 58, ... in row-major order, or seen through a transposed array. */
static mlx_array input(bool is_transposed, mlx_dtype t, mlx_stream s)
{
    mlx_array a = mlx_array_new();
    int dims[AXES] = { shape[0], shape[1], shape[2] };

    if (is_transposed) {
        dims[0] = shape[2];
        dims[2] = shape[0];
    }
    assert_int_equal(mlx_arange(&a, 59, -1, -1, t, s), 0);
    assert_int_equal(mlx_reshape(&a, a, dims, AXES, s), 0);
    if (is_transposed)
        assert_int_equal(mlx_transpose(&a, a, s), 0);
    return a;
}

static void check_op(size_t op, mlx_dtype t, mlx_stream s)
{
    for (int i = 0; i < 2 * AXES; i++) {
        mlx_array a = input(i >= AXES, t, s), out = mlx_array_new();

        assert_int_equal(ops[op].fn(&out, a, i % AXES, s), 0);
        assert_int_equal(mlx_array_eval(out), 0);
        if (!is_row_major(out, shape))
            fail_msg("%s along axis %d: strides %zu %zu %zu", ops[op].name, i % AXES,
                     mlx_array_strides(out)[0], mlx_array_strides(out)[1],
                     mlx_array_strides(out)[2]);
        mlx_array_free(a);
        mlx_array_free(out);
    }
}

static void check_device(mlx_stream s)
{
    static const mlx_dtype types[] = { MLX_FLOAT32, MLX_FLOAT16, MLX_INT64 };

    assert_non_null(s.ctx);
    for (size_t op = 0; op < ARRAY_LEN(ops); op++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            check_op(op, types[t], s);
    mlx_stream_free(s);
}

static void test_cpu(void **state)
{
    (void)state;
    check_device(mlx_default_cpu_stream_new());
}

static void test_gpu(void **state)
{
    (void)state;
    if (!gpu_is_tested())
        skip();
    check_device(mlx_default_gpu_stream_new());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_gpu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
