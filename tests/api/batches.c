/* Public functions over batches, which lie in any dimension of what goes in and comes out. Rules
 * are held against loops in tests/unit. */
#include "functions.h"

/* ---- functions ---- */

FUNCTION(f_rows, mlx_reshape(&y, a, LIST(2, 2), s))
FUNCTION(f_flat, mlx_reshape(&y, a, LIST(4), s))
FUNCTION(f_broadcast, mlx_broadcast_to(&y, a, LIST(2, 2), s))
FUNCTION(f_transpose, mlx_transpose(&y, a, s))
FUNCTION(f_add, mlx_add(&y, a, b, s))
FUNCTION(f_second, mlx_add(&y, b, b, s))
FUNCTION(f_where, mlx_where(&y, a, b, c, s))
FUNCTION(f_full, mlx_full(&y, LIST(2), a, MLX_FLOAT32, s))
FUNCTION(f_slice, mlx_slice(&y, a, LIST(0, 1), LIST(2, 3), LIST(1, 1), s))
FUNCTION(f_stepped, mlx_slice(&y, a, LIST(1), LIST(4), LIST(2), s))
FUNCTION(f_sorted, mlx_sort(&y, a, s))
FUNCTION(f_partition, mlx_partition(&y, a, 1, s))
FUNCTION(f_cumsum, mlx_cumsum(&y, a, 0, true, false, s))
FUNCTION(f_cumprod, mlx_cumprod(&y, a, -1, false, true, s))
FUNCTION(f_prod, mlx_prod(&y, a, false, s))
FUNCTION(f_max, mlx_max_axis(&y, a, 0, true, s))
FUNCTION(f_logsumexp, mlx_logsumexp(&y, a, false, s))
FUNCTION(f_addmm, mlx_addmm(&y, a, b, c, 2, 3, s))
FUNCTION(f_stopped, (mlx_stop_gradient(&y, a, s) || mlx_add(&y, y, a, s)))

static int joined(mlx_array *y, mlx_array a, mlx_array b)
{
    mlx_vector_array parts = mlx_vector_array_new_data((mlx_array[]){ a, b }, 2);
    int status = mlx_concatenate(y, parts, s);

    mlx_vector_array_free(parts);
    return status;
}
FUNCTION(f_joined, joined(&y, a, b))

/* A slice of two from 1 on. */
static int window(mlx_array *y, mlx_array a)
{
    mlx_array at = mlx_array_new_int(1);

    int status = mlx_slice_dynamic(y, a, at, LIST(0), LIST(2), s);
    mlx_array_free(at);
    return status;
}
FUNCTION(f_window, window(&y, a))

/* a, but from 1 on it is b. */
static int updated(mlx_array *y, mlx_array a, mlx_array b)
{
    mlx_array at = mlx_array_new_int(1);

    int status = mlx_slice_update_dynamic(y, a, b, at, LIST(0), s);
    mlx_array_free(at);
    return status;
}
FUNCTION(f_updated, updated(&y, a, b))

/* ---- their batches ---- */

static const struct row {
    const char *name;
    int (*f)(mlx_vector_array *res, const mlx_vector_array in);
    int n;
    struct values in[3];
    int axis[3], out_axis;
    struct values want;
} rows[] = {
#define ROW(...) { __VA_ARGS__ },
#include "batch_rows.def"
#undef ROW
};

static void test_batches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        mlx_closure f = mlx_closure_new_func(r->f);
        mlx_vector_array in = arrays(r->in, r->n), out = mlx_vector_array_new();
        vmap(&out, f, in, r->axis, &r->out_axis);
        mlx_array y = get(out, 0);
        if ((int)mlx_array_ndim(y) != r->want.ndim)
            fail_msg("%s: %zu dimensions", r->name, mlx_array_ndim(y));
        for (int k = 0; k < r->want.ndim; k++)
            if (mlx_array_dim(y, k) != r->want.shape[k])
                fail_msg("%s: dimension %d is %d", r->name, k, mlx_array_dim(y, k));
        check(r->name, y, r->want.v);
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
        mlx_closure_free(f);
    }
}

/* ---- batches of batches, of gradients, with what is computed on the way ---- */

/* The payload over the first axis. */
static int batched(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    vmap(res, *(mlx_closure *)payload, in, (int[]){ 0, 0, 0 }, (int[]){ 0 });
    return 0;
}

static void test_batches_of_batches(void **state)
{
    static const struct values cube = TEN(2, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    mlx_closure f = mlx_closure_new_func(f_cumsum);
    mlx_closure g = mlx_closure_new_func_payload(batched, &f, NULL);
    mlx_vector_array in = arrays(&cube, 1), out = mlx_vector_array_new();

    (void)state;
    vmap(&out, g, in, (int[]){ 1 }, (int[]){ 1 });
    VALUES(out, 0, 3, 2, 0, 9, 5, 0, 15, 8, 0, 21, 11, 0);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

/* The gradient of the payload's sum. */
static int gradient(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array values = mlx_vector_array_new();
    mlx_array one = number(1);
    mlx_vector_array cotans = ONE(one);

    int status = mlx_vjp(&values, res, *(mlx_closure *)payload, in, cotans);
    mlx_vector_array_free(values);
    mlx_vector_array_free(cotans);
    return status;
}

static void test_batches_of_gradients(void **state)
{
    static const struct values lines = MAT(2, 3, 1, 0, 3, 2, 2, 1);
    mlx_closure f = mlx_closure_new_func(f_prod);
    mlx_closure g = mlx_closure_new_func_payload(gradient, &f, NULL);
    mlx_vector_array in = arrays(&lines, 1), out = mlx_vector_array_new();

    (void)state;
    vmap(&out, g, in, (int[]){ 0 }, (int[]){ 0 });
    VALUES(out, 0, 0, 3, 0, 2, 2, 4);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

/* a + 1, evaluated, + b. */
static int evaluating(mlx_array *y, mlx_array a, mlx_array b)
{
    mlx_array one = number(1);

    int status = mlx_add(y, a, one, s) || mlx_array_eval(*y) || mlx_add(y, *y, b, s);
    mlx_array_free(one);
    return status;
}
FUNCTION(f_evaluating, evaluating(&y, a, b))

/* What depends on no batch has values; what does has none. */
static void test_evaluation(void **state)
{
    static const struct values in_values[] = { S(1), VEC(2, 2, 3) };
    mlx_closure f = mlx_closure_new_func(f_evaluating);
    mlx_vector_array in = arrays(in_values, 2), out = mlx_vector_array_new(),
                     more = mlx_vector_array_new();

    (void)state;
    vmap(&out, f, in, (int[]){ -1, 0 }, (int[]){ 0 });
    VALUES(out, 0, 4, 5);
    mlx_vector_array_free(in);
    in = TWO(vector_of((float[]){ 2, 3 }, 2), number(1));
    assert_int_equal(mlx_detail_vmap_trace(&more, &out, f, in, (int[]){ 0, -1 }, 2), 1);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_vector_array_free(more);
    mlx_closure_free(f);
}

/* A result that depends on no batch is the same for all. */
FUNCTION(f_constant, mlx_zeros(&y, LIST(2), MLX_FLOAT32, s))
static void test_constant(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_constant);
    mlx_vector_array in = ONE(vector_of((float[]){ 1, 2, 3 }, 3)), out = mlx_vector_array_new();

    (void)state;
    vmap(&out, f, in, (int[]){ 0 }, (int[]){ 1 });
    VALUES(out, 0, 0, 0, 0, 0, 0, 0);
    mlx_array y = get(out, 0);
    assert_int_equal(mlx_array_dim(y, 0), 2);
    assert_int_equal(mlx_array_dim(y, 1), 3);
    mlx_array_free(y);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
}

/* The function fails on one element: nothing is left behind. */
static void test_misfit(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_rows);
    mlx_vector_array in = ONE(vector_of((float[]){ 1, 2, 3 }, 3)), a = mlx_vector_array_new(),
                     b = mlx_vector_array_new();

    (void)state;
    errors.count = 0;
    assert_int_equal(mlx_detail_vmap_trace(&a, &b, f, in, (int[]){ 0 }, 1), 1);
    assert_int_equal(mlx_vector_array_size(a), 0);
    mlx_vector_array_free(in);
    mlx_vector_array_free(a);
    mlx_vector_array_free(b);
    mlx_closure_free(f);
}

/* ---- integers ---- */

FUNCTION(f_quotient, mlx_floor_divide(&y, a, b, s))
FUNCTION(f_remainder, mlx_remainder(&y, a, b, s))
FUNCTION(f_argmax, mlx_argmax_axis(&y, a, 0, false, s))
FUNCTION(f_argsort, mlx_argsort(&y, a, s))
FUNCTION(f_int, mlx_astype(&y, a, MLX_INT32, s))
FUNCTION(f_equal, mlx_equal(&y, a, b, s))

static const struct integer_row {
    const char *name;
    int (*f)(mlx_vector_array *res, const mlx_vector_array in);
    mlx_dtype in, out;
    struct values x;
    float y; /* one for all */
    struct values want;
} integer_rows[] = {
    { "floor_divide", f_quotient, MLX_INT32, MLX_INT32, VEC(4, 7, -7, 10, 4), 5,
      VEC(4, 1, -2, 2, 0) },
    { "remainder", f_remainder, MLX_INT32, MLX_INT32, VEC(4, 7, -7, 10, 4), 5, VEC(4, 2, 3, 0, 4) },
    { "argmax", f_argmax, MLX_FLOAT32, MLX_UINT32, MAT(2, 3, 1, 5, 2, 6, 3, 4), 0, VEC(2, 1, 0) },
    { "argsort", f_argsort, MLX_FLOAT32, MLX_UINT32, MAT(2, 3, 1, 5, 2, 6, 3, 4), 0,
      MAT(2, 3, 0, 2, 1, 1, 2, 0) },
    { "astype", f_int, MLX_FLOAT32, MLX_INT32, VEC(2, 1.5f, -2.5f), 0, VEC(2, 1, -2) },
    { "equal", f_equal, MLX_FLOAT32, MLX_BOOL, VEC(3, 1, 2, 3), 2, VEC(3, 0, 1, 0) },
};

/* Dtypes are those of single elements. */
static void test_integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof integer_rows / sizeof integer_rows[0]; i++) {
        const struct integer_row *r = &integer_rows[i];
        mlx_closure f = mlx_closure_new_func(r->f);
        mlx_array x = array(&r->x), y = number(r->y);
        mlx_vector_array out = mlx_vector_array_new();
        assert_ok(mlx_astype(&x, x, r->in, s));
        assert_ok(mlx_astype(&y, y, r->in, s));
        mlx_vector_array in = TWO(x, y);
        vmap(&out, f, in, (int[]){ 0, -1 }, (int[]){ 0 });
        mlx_array z = get(out, 0);
        assert_int_equal(mlx_array_dtype(z), r->out);
        assert_ok(mlx_astype(&z, z, MLX_FLOAT32, s));
        check(r->name, z, r->want.v);
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
        mlx_closure_free(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_batches_of_batches),
        cmocka_unit_test(test_batches_of_gradients),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_constant),
        cmocka_unit_test(test_misfit),
        cmocka_unit_test(test_integers),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
