/* Gradients, batches and compiled functions of what processes do together. mpirun starts it, with
 * at least two processes.
 * usage: transforms PROCESSES */
#include "ranks.h"

FUNCTION(f_sum, mlx_distributed_all_sum(&y, a, everybody, s))
FUNCTION(f_max, mlx_distributed_all_max(&y, a, everybody, s))
FUNCTION(f_min, mlx_distributed_all_min(&y, a, everybody, s))
FUNCTION(f_gather, mlx_distributed_all_gather(&y, a, everybody, s))
FUNCTION(f_scatter, mlx_distributed_sum_scatter(&y, a, everybody, s))
FUNCTION(f_send, mlx_distributed_send(&y, a, 0, everybody, s))

typedef int (*array_fn)(mlx_vector_array *, const mlx_vector_array);

/* Rows of elements: this process's, or those of a number of processes. */
static mlx_array matrix_of(const float *v, int rows, int cols)
{
    return mlx_array_new_data(v, (int[]){ rows, cols }, 2, MLX_FLOAT32);
}

enum { ROWS = 2, COLS = 3, MOST = 16 };
static float elements[MOST][ROWS * COLS];

static void fill(void)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS * COLS; i++)
            elements[r][i] = (float)element(r, i);
}

/* ---- gradients ---- */

static void differentiate(bool forward, array_fn fn, mlx_array x, mlx_array t, mlx_array *res)
{
    mlx_vector_array values = mlx_vector_array_new(), results = mlx_vector_array_new();
    mlx_vector_array in = ONE(x), tangents = ONE(t);
    mlx_closure f = mlx_closure_new_func(fn);

    assert_ok((forward ? mlx_jvp : mlx_vjp)(&values, &results, f, in, tangents));
    *res = get(results, 0);
    mlx_vector_array_free(values);
    mlx_vector_array_free(results);
    mlx_vector_array_free(in);
    mlx_vector_array_free(tangents);
    mlx_closure_free(f);
}

static void test_gradients(void **state)
{
    static const array_fn reductions[] = { f_sum, f_max, f_min };
    float cotan[ROWS * COLS], whole[MOST * ROWS * COLS];
    mlx_array grad;

    (void)state;
    for (int i = 0; i < ROWS * COLS; i++)
        cotan[i] = (float)(rank + i);
    for (size_t r = 0; r < 3; r++) {
        differentiate(false, reductions[r], matrix_of(elements[rank], ROWS, COLS),
                      matrix_of(cotan, ROWS, COLS), &grad);
        assert_same(grad, matrix_of(cotan, ROWS, COLS));
    }
    for (int i = 0; i < size * ROWS * COLS; i++)
        whole[i] = (float)i;
    differentiate(false, f_gather, matrix_of(elements[rank], ROWS, COLS),
                  matrix_of(whole, size * ROWS, COLS), &grad);
    assert_same(grad, matrix_of(whole + rank * ROWS * COLS, ROWS, COLS));
    differentiate(false, f_gather, number(1), vector_of(whole, size), &grad);
    assert_same(grad, number((float)rank));
}

static void test_tangents(void **state)
{
    float sum[ROWS * COLS] = { 0 }, most[ROWS * COLS] = { 0 };
    mlx_array tan;

    (void)state;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS * COLS; i++) {
            sum[i] += elements[r][i];
            most[i] = fmaxf(most[i], elements[r][i]);
        }
    differentiate(true, f_sum, matrix_of(sum, ROWS, COLS), matrix_of(elements[rank], ROWS, COLS),
                  &tan);
    assert_same(tan, matrix_of(sum, ROWS, COLS));
    differentiate(true, f_max, matrix_of(sum, ROWS, COLS), matrix_of(elements[rank], ROWS, COLS),
                  &tan);
    assert_same(tan, matrix_of(most, ROWS, COLS));
    differentiate(true, f_gather, matrix_of(sum, ROWS, COLS), matrix_of(elements[rank], ROWS, COLS),
                  &tan);
    assert_same(tan, matrix_of(elements[0], size * ROWS, COLS));
}

static void test_no_gradients(void **state)
{
    static const struct {
        array_fn fn;
        const char *name;
    } rows[] = { { f_scatter, "Sum ReduceScatter" }, { f_send, "Send" } };
    float v[4 * COLS] = { 0 };
    char text[64];

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (int forward = 0; forward < 2; forward++) {
            mlx_vector_array a = mlx_vector_array_new(), b = mlx_vector_array_new();
            mlx_vector_array in = ONE(matrix_of(v, 4, COLS));
            mlx_vector_array t = ONE(matrix_of(v, i || forward ? 4 : 4 / size, COLS));
            mlx_closure f = mlx_closure_new_func(rows[i].fn);
            assert_fails((forward ? mlx_jvp : mlx_vjp)(&a, &b, f, in, t));
            snprintf(text, sizeof text, "[Primitive::%s] Not implemented for %s.",
                     forward ? "jvp" : "vjp", rows[i].name);
            assert_non_null(strstr(errors.text, text));
            mlx_vector_array_free(a);
            mlx_vector_array_free(b);
            mlx_vector_array_free(in);
            mlx_vector_array_free(t);
            mlx_closure_free(f);
        }
}

/* ---- batches ---- */

static mlx_array batch_of(array_fn fn, mlx_array x, int axis, int out_axis)
{
    mlx_vector_array in = ONE(x), out = mlx_vector_array_new();
    mlx_closure f = mlx_closure_new_func(fn);

    vmap(&out, f, in, &axis, &out_axis);
    mlx_array y = get(out, 0);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
    return y;
}

/* Each line of the batch is joined with those of the other processes. */
static void test_batches(void **state)
{
    float sum[ROWS * COLS] = { 0 }, lines[ROWS][MOST * COLS], columns[MOST * ROWS * COLS];

    (void)state;
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS * COLS; i++) {
            sum[i] += elements[r][i];
            lines[0][i / COLS * size * COLS + r * COLS + i % COLS] = elements[r][i];
            columns[i % COLS * size * ROWS + r * ROWS + i / COLS] = elements[r][i];
        }
    assert_same(batch_of(f_sum, matrix_of(elements[rank], ROWS, COLS), 1, 1),
                matrix_of(sum, ROWS, COLS));
    assert_same(batch_of(f_gather, matrix_of(elements[rank], ROWS, COLS), 0, 0),
                matrix_of(lines[0], ROWS, size * COLS));
    assert_same(batch_of(f_gather, matrix_of(elements[rank], ROWS, COLS), 1, 0),
                matrix_of(columns, COLS, size * ROWS));
    /* a batch of numbers */
    mlx_array x = vector_of(elements[rank], ROWS), y = mlx_array_new();
    assert_ok(mlx_distributed_all_gather(&y, x, everybody, s));
    y = reshaped(y, (int[]){ size, ROWS }, 2, s);
    assert_same(batch_of(f_gather, x, 0, 1), y);
}

static void test_no_batches(void **state)
{
    static const struct {
        array_fn fn;
        const char *name;
    } rows[] = { { f_scatter, "Sum ReduceScatter" } };
    float v[4 * COLS] = { 0 };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mlx_vector_array in = ONE(matrix_of(v, 4, COLS)), a = mlx_vector_array_new(),
                         b = mlx_vector_array_new(), out = mlx_vector_array_new();
        mlx_closure f = mlx_closure_new_func(rows[i].fn);
        const int axis = 1;
        assert_ok(mlx_detail_vmap_trace(&a, &b, f, in, &axis, 1));
        assert_fails(mlx_detail_vmap_replace(&out, in, a, b, &axis, 1, &axis, 1));
        snprintf(text, sizeof text, "[Primitive::vmap] Not implemented for %s.", rows[i].name);
        assert_non_null(strstr(errors.text, text));
        mlx_vector_array_free(in);
        mlx_vector_array_free(a);
        mlx_vector_array_free(b);
        mlx_vector_array_free(out);
        mlx_closure_free(f);
    }
}

/* ---- compiled functions ---- */

/* Process 0 sends x and 2 x to all others, each of which receives both, in whatever order, and does
 * not take them for one; then all add up what they have: 3 x everywhere. The sum comes after what
 * was sent, which nothing but a dependency says. */
static int conversation(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = get(in, 0), sum = number(0);
    mlx_vector_array sums = mlx_vector_array_new(), sent = mlx_vector_array_new();
    int failed = 0;

    for (int i = 0; i < 2; i++) {
        mlx_array y = mlx_array_new();
        failed |=
            rank == 0 ? mlx_array_set(&y, x) : mlx_distributed_recv_like(&y, x, 0, everybody, s);
        failed |= mlx_add(&sum, sum, y, s);
        for (int r = 1; r < size && rank == 0; r++) {
            failed |= mlx_distributed_send(&y, x, r, everybody, s);
            failed |= mlx_vector_array_append_value(sent, y);
        }
        failed |= mlx_add(&x, x, x, s);
        mlx_array_free(y);
    }
    failed |= mlx_vector_array_set_value(&sums, sum);
    failed |= mlx_depends(&sums, sums, sent);
    mlx_array_free(sum);
    sum = get(sums, 0);
    failed |= mlx_distributed_all_sum(&sum, sum, everybody, s);
    failed |= mlx_vector_array_set_value(res, sum);
    mlx_array_free(x);
    mlx_array_free(sum);
    mlx_vector_array_free(sums);
    mlx_vector_array_free(sent);
    return failed;
}

static void test_compiled(void **state)
{
    mlx_closure f = mlx_closure_new_func(conversation), compiled = mlx_closure_new();

    (void)state;
    assert_ok(mlx_compile(&compiled, f, false));
    for (int i = 0; i < 5; i++) {
        mlx_vector_array in = ONE(number((float)(rank + i))), out = mlx_vector_array_new();
        assert_ok(mlx_closure_apply(&out, compiled, in));
        assert_ok(mlx_eval(out));
        assert_same(get(out, 0), number((float)(size * 3 * i)));
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
    }
    mlx_closure_free(f);
    mlx_closure_free(compiled);
}

/* MLX has no file format for these. */
static void test_export(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_sum);
    mlx_vector_array in = ONE(number(1));

    (void)state;
    assert_fails(mlx_export_function("/dev/null", f, in, false));
    assert_non_null(strstr(errors.text, "Unable to serialize primitive AllReduce"));
    mlx_vector_array_free(in);
    mlx_closure_free(f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),    cmocka_unit_test(test_tangents),
        cmocka_unit_test(test_no_gradients), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_no_batches),   cmocka_unit_test(test_compiled),
        cmocka_unit_test(test_export),
    };

    if (start(argc, argv) || size > MOST)
        return 1;
    fill();
    int failed = cmocka_run_group_tests_name("dist_transforms", tests, NULL, NULL);
    finish();
    return failed;
}
