/* Transformations of functions as a program uses them: gradients, tangents, batches, custom rules,
 * checkpoints, and all of these inside of each other. */
#include "lists.h"

/* ---- functions ---- */

/* sum(x * x * y) */
static int cube(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = get(in, 0), y = get(in, 1), z = mlx_array_new();

    int status = mlx_multiply(&z, x, x, s) || mlx_multiply(&z, z, y, s) ||
                 mlx_sum(&z, z, false, s) || mlx_vector_array_set_value(res, z);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(z);
    return status;
}

static int square(mlx_array *res, const mlx_array x)
{
    return mlx_multiply(res, x, x, s);
}

/* Two results: x * x, and x with its gradient stopped. */
static int with_stopped(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = get(in, 0), y = mlx_array_new(), z = mlx_array_new();

    int status = mlx_multiply(&y, x, x, s) || mlx_stop_gradient(&z, x, s) ||
                 mlx_vector_array_set_data(res, (mlx_array[]){ y, z }, 2);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(z);
    return status;
}

/* x * x * x, evaluated on the way, with a number that nobody else holds. */
static int evaluating(mlx_array *res, const mlx_array x)
{
    mlx_array y = mlx_array_new(), three = number(3), one = number(1);

    int status = mlx_multiply(&y, x, x, s) || mlx_multiply(&three, three, one, s) ||
                 mlx_multiply(&y, y, three, s);
    mlx_array_free(three);
    status = status || mlx_array_eval(y) || mlx_multiply(res, y, x, s);
    mlx_array_free(y);
    mlx_array_free(one);
    return status;
}

static int failing(mlx_vector_array *res, const mlx_vector_array in)
{
    (void)res;
    (void)in;
    return 7;
}

/* ---- gradients ---- */

static void test_vjp(void **state)
{
    mlx_closure f = mlx_closure_new_func(cube);
    mlx_vector_array in = TWO(vector_of((float[]){ 1, 2, 3 }, 3), number(2)),
                     cotans = ONE(number(2));
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_vjp(&values, &grads, f, in, cotans));
    VALUES(values, 0, 28);
    VALUES(grads, 0, 8, 16, 24);
    VALUES(grads, 1, 28);
    mlx_vector_array_free(cotans);
    cotans = ONE(vector_of((float[]){ 1, 1 }, 2));
    assert_fails(mlx_vjp(&values, &grads, f, in, cotans));
    assert_non_null(strstr(errors.text, "does not match cotangent shape"));
    mlx_vector_array_free(cotans);
    cotans = mlx_vector_array_new();
    assert_fails(mlx_vjp(&values, &grads, f, in, cotans));
    assert_non_null(strstr(errors.text, "does not match number of cotangents"));
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

static void test_jvp(void **state)
{
    mlx_closure f = mlx_closure_new_func(cube);
    mlx_vector_array in = TWO(vector_of((float[]){ 1, 2, 3 }, 3), number(2));
    mlx_vector_array tan = TWO(vector_of((float[]){ 1, 0, 2 }, 3), number(3));
    mlx_vector_array values = mlx_vector_array_new(), out = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_jvp(&values, &out, f, in, tan));
    VALUES(values, 0, 28);
    VALUES(out, 0, 4 * 1 * 1 + 4 * 3 * 2 + 14 * 3);
    mlx_vector_array_free(tan);
    tan = ONE(number(1));
    assert_fails(mlx_jvp(&values, &out, f, in, tan));
    assert_non_null(strstr(errors.text, "[jvp] Number of inputs"));
    mlx_vector_array_free(tan);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
}

static void test_stopped_outputs_have_no_cotangent(void **state)
{
    mlx_closure f = mlx_closure_new_func(with_stopped);
    mlx_vector_array in = ONE(number(3)), cotans = ONE(number(1));
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_vjp(&values, &grads, f, in, cotans));
    assert_int_equal(mlx_vector_array_size(values), 2);
    VALUES(grads, 0, 6);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

static void test_value_and_grad(void **state)
{
    mlx_closure f = mlx_closure_new_func(cube);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_vector_array in = TWO(vector_of((float[]){ 1, 2, 3 }, 3), number(2));
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ -1, 0 }, 2));
    assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
    VALUES(values, 0, 28);
    VALUES(grads, 0, 4, 8, 12); /* in the order of the arguments */
    VALUES(grads, 1, 14);
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ 0, -2 }, 2));
    assert_fails(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
    assert_non_null(strstr(errors.text, "Repeat argument"));
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ 2 }, 1));
    assert_fails(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
    assert_fails(mlx_value_and_grad(&g, f, NULL, 0));
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

static void test_failure_of_the_function(void **state)
{
    mlx_closure f = mlx_closure_new_func(failing);
    mlx_vector_array in = ONE(number(3)), res = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();

    (void)state;
    assert_fails(mlx_vjp(&res, &grads, f, in, in));
    assert_non_null(strstr(errors.text, "mlx_closure returned a non-zero value"));
    assert_fails(mlx_closure_apply(&res, f, in));
    mlx_vector_array_free(in);
    mlx_vector_array_free(res);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

/* A function that evaluates keeps its graph, and what it reads. */
static void test_evaluation_inside(void **state)
{
    mlx_closure f = mlx_closure_new_unary(evaluating);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_vector_array in = ONE(number(2)), values = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ 0 }, 1));
    assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
    VALUES(values, 0, 24);
    VALUES(grads, 0, 36);
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

/* ---- transformations of transformations ---- */

/* The gradient of the payload, a closure of one scalar argument. */
static int gradient(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_vector_array values = mlx_vector_array_new();

    int status = mlx_value_and_grad(&g, *(mlx_closure *)payload, (int[]){ 0 }, 1) ||
                 mlx_closure_value_and_grad_apply(&values, res, g, in);
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(values);
    return status;
}

static void test_higher_orders(void **state)
{
    mlx_closure f[4] = { mlx_closure_new_unary(evaluating) };
    const float want[] = { 24, 36, 36, 18 }; /* 3 x^3 at 2 */
    mlx_vector_array in = ONE(number(2)), out = mlx_vector_array_new();

    (void)state;
    for (int i = 1; i < 4; i++)
        f[i] = mlx_closure_new_func_payload(gradient, &f[i - 1], NULL);
    for (int i = 0; i < 4; i++) {
        assert_ok(mlx_closure_apply(&out, f[i], in));
        VALUES(out, 0, want[i]);
    }
    for (int i = 0; i < 4; i++)
        mlx_closure_free(f[i]);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
}

static void test_vmap(void **state)
{
    const float x[] = { 1, 2, 3, 4, 5, 6 };
    mlx_closure f = mlx_closure_new_func(cube);
    mlx_array a = mlx_array_new_data(x, (int[]){ 2, 3 }, 2, MLX_FLOAT32);
    mlx_vector_array in = TWO(a, vector_of((float[]){ 1, 2 }, 2)), out = mlx_vector_array_new();

    (void)state;
    vmap(&out, f, in, (int[]){ 0, 0 }, (int[]){ 0 });
    VALUES(out, 0, 14, 154);
    mlx_vector_array_free(in);
    in = TWO(mlx_array_new_data(x, (int[]){ 2, 3 }, 2, MLX_FLOAT32), number(2));
    vmap(&out, f, in, (int[]){ 1, -1 }, (int[]){ 0 });
    VALUES(out, 0, 34, 58, 90);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
}

static void test_vmap_of_gradients(void **state)
{
    mlx_closure f = mlx_closure_new_unary(square);
    mlx_closure g = mlx_closure_new_func_payload(gradient, &f, NULL);
    mlx_vector_array in = ONE(vector_of((float[]){ 1, 2, 3 }, 3)), out = mlx_vector_array_new();

    (void)state;
    vmap(&out, g, in, (int[]){ 0 }, (int[]){ 0 });
    VALUES(out, 0, 2, 4, 6);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

static void test_vmap_errors(void **state)
{
    mlx_closure f = mlx_closure_new_unary(square);
    mlx_vector_array in = ONE(number(1)), a = mlx_vector_array_new(), b = mlx_vector_array_new();

    (void)state;
    assert_fails(mlx_detail_vmap_trace(&a, &b, f, in, (int[]){ 0 }, 1));
    assert_non_null(strstr(errors.text, "zero dimensions"));
    assert_fails(mlx_detail_vmap_trace(&a, &b, f, in, (int[]){ 0, 0 }, 2));
    assert_non_null(strstr(errors.text, "The number of in axes (2)"));
    assert_ok(mlx_detail_vmap_trace(&a, &b, f, in, (int[]){ -1 }, 1));
    assert_fails(mlx_detail_vmap_replace(&a, in, a, b, (int[]){ -1 }, 1, (int[]){ 0 }, 1));
    assert_non_null(strstr(errors.text, "At least one of in_axes"));
    mlx_vector_array_free(in);
    mlx_vector_array_free(a);
    mlx_vector_array_free(b);
    mlx_closure_free(f);
}

/* Placeholders have no values. */
static void test_no_evaluation_of_placeholders(void **state)
{
    mlx_closure f = mlx_closure_new_unary(evaluating);
    mlx_vector_array in = ONE(vector_of((float[]){ 1, 2 }, 2)), a = mlx_vector_array_new(),
                     b = mlx_vector_array_new();

    (void)state;
    errors.count = 0;
    assert_int_equal(mlx_detail_vmap_trace(&a, &b, f, in, (int[]){ 0 }, 1), 1);
    assert_int_equal(errors.count, 2); /* the evaluation's, and that of who called the function */
    mlx_vector_array_free(in);
    mlx_vector_array_free(a);
    mlx_vector_array_free(b);
    mlx_closure_free(f);
}

/* ---- custom functions ---- */

/* Ten times the cotangent. */
static int ten_times(mlx_vector_array *res, const mlx_vector_array primals,
                     const mlx_vector_array cotans, const mlx_vector_array outputs)
{
    mlx_array c = get(cotans, 0), ten = number(10);

    (void)primals;
    (void)outputs;
    int status = mlx_multiply(&c, c, ten, s) || mlx_vector_array_set_value(res, c);
    mlx_array_free(c);
    mlx_array_free(ten);
    return status;
}

static int same_tangent(mlx_vector_array *res, const mlx_vector_array primals,
                        const mlx_vector_array tangents, const int *argnums, size_t n)
{
    (void)primals;
    (void)argnums;
    return n != 1 || mlx_vector_array_set(res, tangents);
}

/* Minus the inputs, instead of their squares. */
static int negatives(mlx_vector_array *res, mlx_vector_int *out_axes, const mlx_vector_array in,
                     const int *axes, size_t n)
{
    mlx_array a = get(in, 0);

    int status = n != 1 || mlx_negative(&a, a, s) || mlx_vector_array_set_value(res, a) ||
                 mlx_vector_int_set_value(out_axes, axes[0]);
    mlx_array_free(a);
    return status;
}

static int freed;
static void count_free(void *payload)
{
    (void)payload;
    freed++;
}

static int square_payload(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_array x = get(in, 0);

    (void)payload;
    int status = square(&x, x) || mlx_vector_array_set_value(res, x);
    mlx_array_free(x);
    return status;
}

static void test_custom_function(void **state)
{
    mlx_closure f = mlx_closure_new_func_payload(square_payload, &freed, count_free), g = { NULL };
    mlx_closure_custom vjp = mlx_closure_custom_new_func(ten_times);
    mlx_closure_custom_jvp jvp = mlx_closure_custom_jvp_new_func(same_tangent);
    mlx_closure_custom_vmap batch = mlx_closure_custom_vmap_new_func(negatives);
    mlx_vector_array in = ONE(number(3)), out = mlx_vector_array_new(),
                     more = mlx_vector_array_new();

    (void)state;
    freed = 0;
    assert_ok(mlx_custom_function(&g, f, vjp, jvp, batch));
    mlx_closure_free(f);
    mlx_closure_custom_free(vjp);
    mlx_closure_custom_jvp_free(jvp);
    mlx_closure_custom_vmap_free(batch);
    assert_ok(mlx_closure_apply(&out, g, in));
    VALUES(out, 0, 9);
    assert_ok(mlx_vjp(&out, &more, g, in, in));
    VALUES(out, 0, 9);
    VALUES(more, 0, 30);
    assert_ok(mlx_jvp(&out, &more, g, in, in));
    VALUES(more, 0, 3);
    mlx_vector_array_free(in);
    in = ONE(vector_of((float[]){ 1, 2 }, 2));
    vmap(&out, g, in, (int[]){ 0 }, (int[]){ 0 });
    VALUES(out, 0, -1, -2);
    mlx_vector_array_free(in);
    mlx_closure_free(g);
    mlx_vector_array_free(out);
    mlx_vector_array_free(more);
    assert_int_equal(freed, 1);
}

/* What has no rule of its own follows from the function. */
static void test_custom_vjp_alone(void **state)
{
    mlx_closure f = mlx_closure_new_unary(square), g = mlx_closure_new();
    mlx_closure_custom vjp = mlx_closure_custom_new_func(ten_times);
    mlx_vector_array in = ONE(number(3)), out = mlx_vector_array_new(),
                     more = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_custom_vjp(&g, f, vjp));
    assert_ok(mlx_jvp(&out, &more, g, in, in));
    VALUES(more, 0, 18);
    mlx_vector_array_free(in);
    in = ONE(vector_of((float[]){ 1, 2 }, 2));
    vmap(&out, g, in, (int[]){ 0 }, (int[]){ 0 });
    VALUES(out, 0, 1, 4);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_vector_array_free(more);
    mlx_closure_custom_free(vjp);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

static int calls;
static int counted_cube(mlx_vector_array *res, const mlx_vector_array in)
{
    calls++;
    return cube(res, in);
}

static void test_checkpoint(void **state)
{
    mlx_closure f = mlx_closure_new_func(counted_cube), g = mlx_closure_new();
    mlx_vector_array in = TWO(vector_of((float[]){ 1, 2, 3 }, 3), number(2)),
                     cotans = ONE(number(1));
    mlx_vector_array out = mlx_vector_array_new(), grads = mlx_vector_array_new();

    (void)state;
    calls = 0;
    assert_ok(mlx_checkpoint(&g, f));
    assert_ok(mlx_vjp(&out, &grads, g, in, cotans));
    assert_int_equal(calls, 2);
    VALUES(out, 0, 28);
    VALUES(grads, 0, 4, 8, 12);
    VALUES(grads, 1, 14);
    mlx_vector_array_free(in);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

static void test_depends(void **state)
{
    mlx_vector_array a = TWO(number(1), vector_of((float[]){ 2, 3 }, 2)), b = ONE(number(4));
    mlx_vector_array out = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_depends(&out, a, b));
    assert_int_equal(mlx_vector_array_size(out), 2);
    VALUES(out, 0, 1);
    VALUES(out, 1, 2, 3);
    mlx_vector_array_free(a);
    mlx_vector_array_free(b);
    mlx_vector_array_free(out);
}

/* More results than most ops have. */
static int hundred(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = get(in, 0);
    int status = mlx_vector_array_set(res, in);

    for (int i = 1; i < 100 && !status; i++)
        status = mlx_add(&x, x, x, s) || mlx_vector_array_append_value(*res, x) ||
                 mlx_vector_array_get(&x, in, 0);
    mlx_array_free(x);
    return status;
}

static void test_many_results(void **state)
{
    mlx_closure f = mlx_closure_new_func(hundred), g = mlx_closure_new();
    mlx_vector_array in = ONE(number(1)), cotans = mlx_vector_array_new(),
                     out = mlx_vector_array_new(), grads = mlx_vector_array_new();
    mlx_array one = number(1);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_ok(mlx_vector_array_append_value(cotans, one));
    assert_ok(mlx_checkpoint(&g, f));
    assert_ok(mlx_vjp(&out, &grads, g, in, cotans));
    VALUES(out, 99, 2);
    VALUES(grads, 0, 199);
    mlx_array_free(one);
    mlx_vector_array_free(in);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_closure_free(g);
    mlx_closure_free(f);
}

/* Steps of training hold memory flat, also where each evaluates inside of what it differentiates.
 */
static void test_memory_is_flat(void **state)
{
    mlx_closure f = mlx_closure_new_unary(evaluating);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_array rate = number(1e-3f);
    mlx_vector_array in = ONE(number(0.5f)), values = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();
    size_t before = 0, after = 0;

    (void)state;
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ 0 }, 1));
    for (int i = 0; i < 2000; i++) {
        assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
        mlx_array x = get(in, 0), d = get(grads, 0);
        assert_ok(mlx_multiply(&d, d, rate, s));
        assert_ok(mlx_subtract(&x, x, d, s));
        assert_ok(mlx_vector_array_set_value(&in, x));
        assert_ok(mlx_eval(in));
        mlx_array_free(x);
        mlx_array_free(d);
        assert_ok(mlx_get_active_memory(i < 100 ? &before : &after));
    }
    assert_int_equal(before, after);
    mlx_array_free(rate);
    mlx_closure_value_and_grad_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vjp),
        cmocka_unit_test(test_jvp),
        cmocka_unit_test(test_stopped_outputs_have_no_cotangent),
        cmocka_unit_test(test_value_and_grad),
        cmocka_unit_test(test_failure_of_the_function),
        cmocka_unit_test(test_evaluation_inside),
        cmocka_unit_test(test_higher_orders),
        cmocka_unit_test(test_vmap),
        cmocka_unit_test(test_vmap_of_gradients),
        cmocka_unit_test(test_vmap_errors),
        cmocka_unit_test(test_no_evaluation_of_placeholders),
        cmocka_unit_test(test_custom_function),
        cmocka_unit_test(test_custom_vjp_alone),
        cmocka_unit_test(test_checkpoint),
        cmocka_unit_test(test_depends),
        cmocka_unit_test(test_many_results),
        cmocka_unit_test(test_memory_is_flat),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
