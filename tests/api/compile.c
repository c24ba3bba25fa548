/* Compiled functions as a program uses them. A table of functions is called as they are and
 * compiled; what else mlx/c/compile.h promises has a test of its own. */
#include "api_test.h"
#include "mlx/c/ext.h"

#include <math.h>
#include <pthread.h>

static const mlx_stream s = { NULL };

/* ---- graphs in expressions: arrays live until the graph ends ---- */

enum { MADE = 300 };
struct graph {
    mlx_array made[MADE];
    int n, failed;
};

static mlx_array *next(struct graph *g)
{
    assert_true(g->n < MADE);
    g->made[g->n] = mlx_array_new();
    return &g->made[g->n++];
}

static mlx_array arg(struct graph *g, mlx_vector_array in, size_t at)
{
    mlx_array *a = next(g);

    g->failed |= mlx_vector_array_get(a, in, at);
    return *a;
}

static mlx_array num(struct graph *g, float v)
{
    mlx_array *a = next(g);

    *a = mlx_array_new_float32(v);
    return *a;
}

typedef int (*unary_fn)(mlx_array *, const mlx_array, const mlx_stream);
typedef int (*binary_fn)(mlx_array *, const mlx_array, const mlx_array, const mlx_stream);

static mlx_array un(struct graph *g, unary_fn op, mlx_array a)
{
    mlx_array *r = next(g);

    g->failed |= op(r, a, s);
    return *r;
}

static mlx_array bin(struct graph *g, binary_fn op, mlx_array a, mlx_array b)
{
    mlx_array *r = next(g);

    g->failed |= op(r, a, b, s);
    return *r;
}

static mlx_array cast(struct graph *g, mlx_array a, mlx_dtype t)
{
    mlx_array *r = next(g);

    g->failed |= mlx_astype(r, a, t, s);
    return *r;
}

static int finish(struct graph *g, mlx_vector_array *res, const mlx_array *out, size_t n)
{
    int failed = g->failed || mlx_vector_array_set_data(res, out, n);

    for (int i = 0; i < g->n; i++)
        mlx_array_free(g->made[i]);
    return failed;
}
#define RETURN(g, ...)                                                                             \
    return finish(g, res, (mlx_array[]){ __VA_ARGS__ },                                            \
                  sizeof((mlx_array[]){ __VA_ARGS__ }) / sizeof(mlx_array))

/* ---- functions of two float32 arrays of shape [2, 3] ---- */

#define FUNCTION(name) static int name(mlx_vector_array *res, const mlx_vector_array in)
#define ARGS                                                                                       \
    struct graph g = { .n = 0 };                                                                   \
    mlx_array x = arg(&g, in, 0), y = arg(&g, in, 1);                                              \
    (void)x, (void)y

static int calls;

FUNCTION(exp_of_sum)
{
    ARGS;
    calls++;
    RETURN(&g, un(&g, mlx_exp, bin(&g, mlx_add, x, y)));
}

FUNCTION(gelu)
{
    ARGS;
    mlx_array half = num(&g, 0.5f), root = num(&g, 1.4142135f), one = num(&g, 1);
    mlx_array part = un(&g, mlx_erf, bin(&g, mlx_divide, x, root));
    part = bin(&g, mlx_multiply, bin(&g, mlx_add, part, one), half);
    RETURN(&g, bin(&g, mlx_multiply, x, part));
}

/* 100 operations, where real MLX stops fusing after 11 */
FUNCTION(deep)
{
    ARGS;
    mlx_array z = x;
    for (int i = 0; i < 50; i++)
        z = bin(&g, mlx_subtract, bin(&g, mlx_multiply, z, y), x);
    RETURN(&g, z);
}

FUNCTION(repeated_input)
{
    ARGS;
    RETURN(&g, bin(&g, mlx_add, bin(&g, mlx_add, x, x), bin(&g, mlx_multiply, x, x)));
}

/* Something in the middle is a result, too. */
FUNCTION(inner_result)
{
    ARGS;
    mlx_array a = un(&g, mlx_exp, x), b = un(&g, mlx_negative, a);
    RETURN(&g, b, a, un(&g, mlx_sqrt, a));
}

/* A part of a chain is read by something that cannot be fused with it. */
FUNCTION(outside_reader)
{
    ARGS;
    mlx_array a = bin(&g, mlx_multiply, x, y), *total = next(&g);
    g.failed |= mlx_sum(total, a, false, s);
    RETURN(&g, bin(&g, mlx_divide, un(&g, mlx_abs, a), *total));
}

FUNCTION(not_finite)
{
    ARGS;
    mlx_array inf = num(&g, INFINITY), minus = num(&g, -INFINITY), nan = num(&g, NAN);
    mlx_array high = bin(&g, mlx_maximum, x, minus), *chosen = next(&g);
    g.failed |= mlx_where(chosen, bin(&g, mlx_greater, x, y), inf, nan, s);
    RETURN(&g, bin(&g, mlx_minimum, high, inf), *chosen, bin(&g, mlx_add, x, nan));
}

/* Numbers that differ in their last bit stay apart. */
FUNCTION(near_numbers)
{
    ARGS;
    mlx_array a = num(&g, 0.1f), b = num(&g, nextafterf(0.1f, 1)), zero = num(&g, 0),
              minus = num(&g, -0.0f);
    RETURN(&g, bin(&g, mlx_subtract, bin(&g, mlx_add, a, x), bin(&g, mlx_add, b, x)),
           bin(&g, mlx_divide, num(&g, 1), zero), bin(&g, mlx_divide, num(&g, 1), minus));
}

FUNCTION(half_types)
{
    ARGS;
    mlx_array a = cast(&g, x, MLX_FLOAT16), b = cast(&g, y, MLX_BFLOAT16);
    RETURN(&g, bin(&g, mlx_multiply, a, a), un(&g, mlx_sigmoid, b), bin(&g, mlx_add, a, b));
}

FUNCTION(integers)
{
    ARGS;
    mlx_array a = cast(&g, x, MLX_INT32), b = cast(&g, y, MLX_UINT8);
    RETURN(&g, un(&g, mlx_abs, b), bin(&g, mlx_floor_divide, a, b),
           bin(&g, mlx_left_shift, a, cast(&g, num(&g, 1), MLX_INT32)),
           bin(&g, mlx_equal, a, cast(&g, b, MLX_INT32)));
}

FUNCTION(bases_of_logarithms)
{
    ARGS;
    RETURN(&g, un(&g, mlx_log, y), un(&g, mlx_log2, y), un(&g, mlx_log10, y), un(&g, mlx_log1p, y));
}

FUNCTION(equal_with_nan)
{
    ARGS;
    mlx_array nan = bin(&g, mlx_divide, bin(&g, mlx_subtract, x, x), num(&g, 0)), *plain = next(&g),
              *with = next(&g);
    g.failed |= mlx_array_equal(plain, nan, nan, false, s);
    g.failed |= mlx_array_equal(with, nan, nan, true, s);
    RETURN(&g, *plain, *with);
}

FUNCTION(maximum_into_equal)
{
    ARGS;
    mlx_array *top = next(&g);
    g.failed |= mlx_max_axis(top, x, 1, true, s);
    RETURN(&g, bin(&g, mlx_equal, x, *top));
}

FUNCTION(only_broadcast)
{
    ARGS;
    mlx_array *wide = next(&g), *row = next(&g);
    g.failed |= mlx_broadcast_to(wide, x, (int[]){ 4, 2, 3 }, 3, s);
    g.failed |= mlx_sum_axis(row, y, 0, true, s);
    RETURN(&g, *wide, bin(&g, mlx_add, x, *row), bin(&g, mlx_multiply, y, *row));
}

FUNCTION(backwards)
{
    ARGS;
    mlx_array *r = next(&g);
    g.failed |= mlx_slice(r, x, (int[]){ 1, 2 }, 2, (int[]){ -3, -4 }, 2, (int[]){ -1, -1 }, 2, s);
    RETURN(&g, bin(&g, mlx_add, un(&g, mlx_exp, *r), *r));
}

/* The parts of a split, of which one is not read. */
FUNCTION(siblings)
{
    ARGS;
    mlx_vector_array parts = mlx_vector_array_new();
    g.failed |= mlx_split(&parts, x, 3, 1, s);
    mlx_array first = arg(&g, parts, 0), last = arg(&g, parts, 2);
    mlx_vector_array_free(parts);
    RETURN(&g, last, bin(&g, mlx_add, first, last));
}

FUNCTION(many)
{
    ARGS;
    mlx_array out[60];
    for (int i = 0; i < 60; i++)
        out[i] = bin(&g, mlx_add, i ? out[i - 1] : x, bin(&g, mlx_multiply, y, num(&g, (float)i)));
    return finish(&g, res, out, 60);
}

FUNCTION(made_inside)
{
    ARGS;
    mlx_array *zeros = next(&g), *range = next(&g);
    g.failed |= mlx_zeros(zeros, (int[]){ 2, 3 }, 2, MLX_FLOAT32, s);
    g.failed |= mlx_arange(range, 0, 3, 1, MLX_FLOAT32, s);
    RETURN(&g, bin(&g, mlx_add, *zeros, *range), bin(&g, mlx_add, x, *range));
}

/* Results that are arguments, and nothing computed at all */
FUNCTION(handed_through)
{
    ARGS;
    RETURN(&g, y, un(&g, mlx_stop_gradient, x), un(&g, mlx_copy, y), y);
}

static const struct {
    const char *name;
    int (*fn)(mlx_vector_array *, const mlx_vector_array);
} functions[] = {
    { "exp_of_sum", exp_of_sum },
    { "gelu", gelu },
    { "deep", deep },
    { "repeated_input", repeated_input },
    { "inner_result", inner_result },
    { "outside_reader", outside_reader },
    { "not_finite", not_finite },
    { "near_numbers", near_numbers },
    { "half_types", half_types },
    { "integers", integers },
    { "bases_of_logarithms", bases_of_logarithms },
    { "equal_with_nan", equal_with_nan },
    { "maximum_into_equal", maximum_into_equal },
    { "only_broadcast", only_broadcast },
    { "backwards", backwards },
    { "siblings", siblings },
    { "many", many },
    { "made_inside", made_inside },
    { "handed_through", handed_through },
};

/* ---- comparing ---- */

static mlx_array matrix(const float *v)
{
    return mlx_array_new_data(v, (int[]){ 2, 3 }, 2, MLX_FLOAT32);
}

static mlx_vector_array pair_of(mlx_array a, mlx_array b)
{
    mlx_vector_array v = mlx_vector_array_new_data((mlx_array[]){ a, b }, 2);

    mlx_array_free(a);
    mlx_array_free(b);
    return v;
}

static mlx_vector_array two_matrices(void)
{
    return pair_of(matrix((float[]){ 1, -2, 3.5f, 0, 5, -0.25f }),
                   matrix((float[]){ 2, 1, 3.5f, 4, 0.5f, 7 }));
}

/* NaN equals NaN here. */
static void assert_same(mlx_vector_array got, mlx_vector_array want, const char *what)
{
    assert_int_equal(mlx_vector_array_size(got), mlx_vector_array_size(want));
    for (size_t i = 0; i < mlx_vector_array_size(want); i++) {
        mlx_array a = mlx_array_new(), b = mlx_array_new(), same = mlx_array_new();
        bool is_same = false, is_inexact;
        assert_ok(mlx_vector_array_get(&a, got, i));
        assert_ok(mlx_vector_array_get(&b, want, i));
        is_inexact = mlx_array_dtype(b) >= MLX_FLOAT16;
        assert_ok(mlx_array_equal(&same, a, b, is_inexact, s));
        assert_ok(mlx_array_item_bool(&is_same, same));
        if (!is_same || mlx_array_dtype(a) != mlx_array_dtype(b))
            fail_msg("%s: result %zu is another one compiled", what, i);
        mlx_array_free(a);
        mlx_array_free(b);
        mlx_array_free(same);
    }
}

static void check_function(size_t i)
{
    mlx_closure f = mlx_closure_new_func(functions[i].fn), g = mlx_closure_new();
    mlx_vector_array in = two_matrices(), want = mlx_vector_array_new(),
                     got = mlx_vector_array_new();

    assert_ok(mlx_closure_apply(&want, f, in));
    assert_ok(mlx_compile(&g, f, false));
    for (int k = 0; k < 3; k++) {
        assert_ok(mlx_closure_apply(&got, g, in));
        assert_same(got, want, functions[i].name);
    }
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(want);
    mlx_vector_array_free(got);
}

static void test_functions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        check_function(i);
}

static void test_functions_on_the_gpu(void **state)
{
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0), cpu = mlx_device_new_type(MLX_CPU, 0);
    bool is_there = false;

    assert_ok(mlx_device_is_available(&is_there, gpu));
    if (is_there) {
        assert_ok(mlx_set_default_device(gpu));
        test_functions(state);
        assert_ok(mlx_set_default_device(cpu));
    }
    mlx_device_free(gpu);
    mlx_device_free(cpu);
}

/* ---- with other transformations ---- */

/* sum(x * x * y); evaluates what does not depend on its arguments. */
FUNCTION(loss)
{
    ARGS;
    mlx_array *total = next(&g), two = bin(&g, mlx_add, num(&g, 1), num(&g, 1));
    g.failed |= mlx_array_eval(two);
    mlx_array z = bin(&g, mlx_multiply, bin(&g, mlx_multiply, x, x), y);
    g.failed |= mlx_sum(total, bin(&g, mlx_multiply, z, two), false, s);
    RETURN(&g, *total);
}

/* Payload: a closure of values and gradients; the results of both. */
static int both(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();
    mlx_array a = mlx_array_new();
    int failed = mlx_closure_value_and_grad_apply(&values, &grads,
                                                  *(mlx_closure_value_and_grad *)payload, in);

    for (size_t i = 0; i < mlx_vector_array_size(grads) && !failed; i++)
        failed = mlx_vector_array_get(&a, grads, i) || mlx_vector_array_append_value(values, a);
    failed = failed || mlx_vector_array_set(res, values);
    mlx_array_free(a);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    return failed;
}

static void test_gradients(void **state)
{
    mlx_closure f = mlx_closure_new_func(loss), g = mlx_closure_new(), h = mlx_closure_new();
    mlx_closure_value_and_grad d[2] = { mlx_closure_value_and_grad_new(),
                                        mlx_closure_value_and_grad_new() };
    mlx_vector_array in = two_matrices(), want = mlx_vector_array_new(),
                     got = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    assert_ok(mlx_value_and_grad(&d[0], f, (int[]){ 0, 1 }, 2));
    assert_ok(mlx_value_and_grad(&d[1], g, (int[]){ 0, 1 }, 2));
    assert_ok(both(&want, in, &d[0]));
    assert_int_equal(mlx_vector_array_size(want), 3);
    assert_ok(both(&got, in, &d[1])); /* gradients of a compiled function */
    assert_same(got, want, "gradients of a compiled function");
    for (int i = 0; i < 2; i++) { /* compiled gradients, of a compiled function as well */
        mlx_closure step = mlx_closure_new_func_payload(both, &d[i], NULL);
        assert_ok(mlx_compile(&h, step, false));
        for (int k = 0; k < 2; k++) {
            assert_ok(mlx_closure_apply(&got, h, in));
            assert_same(got, want, "compiled gradients");
        }
        mlx_closure_free(step);
    }
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_closure_free(h);
    mlx_closure_value_and_grad_free(d[0]);
    mlx_closure_value_and_grad_free(d[1]);
    mlx_vector_array_free(in);
    mlx_vector_array_free(want);
    mlx_vector_array_free(got);
}

/* Payload: a closure, which is called twice in a row. */
static int twice(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array middle = mlx_vector_array_new();
    mlx_array a = mlx_array_new();
    int failed = mlx_closure_apply(&middle, *(mlx_closure *)payload, in) ||
                 mlx_vector_array_get(&a, in, 1) || mlx_vector_array_append_value(middle, a) ||
                 mlx_closure_apply(res, *(mlx_closure *)payload, middle);

    mlx_array_free(a);
    mlx_vector_array_free(middle);
    return failed;
}

static void test_compiled_inside_of_compiled(void **state)
{
    mlx_closure f = mlx_closure_new_func(gelu), g = mlx_closure_new(), h = mlx_closure_new();
    mlx_closure outer = mlx_closure_new_func_payload(twice, &g, NULL);
    mlx_vector_array in = two_matrices(), want = mlx_vector_array_new(),
                     got = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    assert_ok(twice(&want, in, &f));
    assert_ok(mlx_closure_apply(&got, outer, in));
    assert_same(got, want, "compiled, called twice");
    assert_ok(mlx_compile(&h, outer, false));
    for (int k = 0; k < 2; k++) {
        assert_ok(mlx_closure_apply(&got, h, in));
        assert_same(got, want, "compiled inside of compiled");
    }
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_closure_free(h);
    mlx_closure_free(outer);
    mlx_vector_array_free(in);
    mlx_vector_array_free(want);
    mlx_vector_array_free(got);
}

/* ---- the cache ---- */

/* Calls f and says how often exp_of_sum was. */
static int traces(mlx_closure f, mlx_vector_array in)
{
    mlx_vector_array out = mlx_vector_array_new();
    int before = calls;

    assert_ok(mlx_closure_apply(&out, f, in));
    assert_ok(mlx_eval(out));
    mlx_vector_array_free(out);
    return calls - before;
}

static void test_when_it_is_traced(void **state)
{
    mlx_closure f = mlx_closure_new_func(exp_of_sum), g = mlx_closure_new();
    mlx_vector_array in = two_matrices(),
                     numbers = pair_of(mlx_array_new_float32(1), mlx_array_new_float32(2)),
                     ints = pair_of(mlx_array_new_int(1), mlx_array_new_int(2));

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    assert_int_equal(traces(g, in), 1);
    assert_int_equal(traces(g, in), 0);
    assert_int_equal(traces(g, numbers), 1);
    assert_int_equal(traces(g, ints), 1);
    assert_int_equal(traces(g, numbers) + traces(g, ints) + traces(g, in), 0);
    assert_ok(mlx_detail_compile_clear_cache());
    assert_int_equal(traces(g, in), 1);
    /* Nodes without a stream of their own follow the default one. */
    mlx_device cpu = mlx_device_new_type(MLX_CPU, 0);
    mlx_stream old = mlx_stream_new(), other = mlx_stream_new_device(cpu);
    assert_ok(mlx_get_default_stream(&old, cpu));
    assert_ok(mlx_set_default_stream(other));
    assert_int_equal(traces(g, in), 1);
    assert_ok(mlx_set_default_stream(old));
    assert_int_equal(traces(g, in), 0);
    mlx_stream_free(old);
    mlx_stream_free(other);
    mlx_device_free(cpu);
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(numbers);
    mlx_vector_array_free(ints);
}

static void test_numbers_of_callers(void **state)
{
    mlx_closure f = mlx_closure_new_func(exp_of_sum), g = mlx_closure_new();
    mlx_vector_array in = two_matrices();
    const uint64_t constants[] = { 4, 5 };

    (void)state;
    assert_ok(mlx_detail_compile(&g, f, 11, false, NULL, 0));
    assert_int_equal(traces(g, in), 1);
    assert_ok(mlx_detail_compile(&g, f, 11, false, NULL, 0));
    assert_int_equal(traces(g, in), 0);
    assert_ok(mlx_detail_compile(&g, f, 11, false, constants, 2));
    assert_int_equal(traces(g, in), 1);
    assert_ok(mlx_detail_compile(&g, f, 12, false, constants, 2));
    assert_int_equal(traces(g, in), 1);
    assert_ok(mlx_detail_compile_erase(11));
    assert_int_equal(traces(g, in), 0);
    assert_ok(mlx_detail_compile_erase(12));
    assert_int_equal(traces(g, in), 1);
    assert_fails(mlx_detail_compile(&g, f, 12, false, NULL, 2));
    assert_ok(mlx_detail_compile_clear_cache());
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
}

static void test_disabled(void **state)
{
    mlx_closure f = mlx_closure_new_func(exp_of_sum), g = mlx_closure_new(), h = mlx_closure_new();
    mlx_vector_array in = two_matrices();

    (void)state;
    assert_ok(mlx_disable_compile());
    assert_ok(mlx_compile(&g, f, false));
    assert_int_equal(traces(g, in) + traces(g, in), 2);
    assert_ok(mlx_enable_compile());
    assert_int_equal(traces(g, in), 1); /* it was not compiled */
    assert_ok(mlx_set_compile_mode(MLX_COMPILE_MODE_NO_FUSE));
    assert_ok(mlx_compile(&g, f, false));
    assert_ok(mlx_set_compile_mode(MLX_COMPILE_MODE_ENABLED));
    assert_int_equal(traces(g, in) + traces(g, in), 1);
    assert_fails(mlx_set_compile_mode((mlx_compile_mode)4));
    assert_fails(mlx_compile(&h, mlx_closure_new(), false));
    assert_null(h.ctx);
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
}

/* ---- state ---- */

/* A step of training: the loss' gradient at the weights x is taken away, the results are the new
 * weights and how often it was done. */
FUNCTION(train)
{
    ARGS;
    mlx_array rate = num(&g, 0.125f), one = num(&g, 1);
    mlx_array d = bin(&g, mlx_multiply, x, num(&g, 2));
    RETURN(&g, bin(&g, mlx_subtract, x, bin(&g, mlx_multiply, rate, d)), bin(&g, mlx_add, y, one));
}

static void test_state_goes_in_and_out(void **state)
{
    mlx_closure f = mlx_closure_new_func(train), g = mlx_closure_new();
    mlx_vector_array weights = pair_of(mlx_array_new_float32(1024), mlx_array_new_float32(0));
    float w = 0, n = 0;

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    for (int i = 0; i < 10; i++) {
        assert_ok(mlx_closure_apply(&weights, g, weights));
        assert_ok(mlx_eval(weights));
    }
    mlx_array a = mlx_array_new();
    assert_ok(mlx_vector_array_get(&a, weights, 0));
    assert_ok(mlx_array_item_float32(&w, a));
    assert_ok(mlx_vector_array_get(&a, weights, 1));
    assert_ok(mlx_array_item_float32(&n, a));
    assert_true(w == 1024 * powf(0.75f, 10) && n == 10);
    mlx_array_free(a);
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(weights);
}

/* What is captured is a constant; nothing that happens to it outside is seen. */
static int add_captured(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    struct graph g = { .n = 0 };
    mlx_array x = arg(&g, in, 0);

    RETURN(&g, bin(&g, mlx_add, x, *(mlx_array *)payload));
}

static void test_captured_arrays(void **state)
{
    mlx_array captured = mlx_array_new_float32(10), a = mlx_array_new();
    mlx_closure f = mlx_closure_new_func_payload(add_captured, &captured, NULL),
                g = mlx_closure_new();
    mlx_vector_array in = mlx_vector_array_new(), out = mlx_vector_array_new();
    float v = 0;

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    assert_ok(mlx_vector_array_append_value(in, captured));
    assert_fails(mlx_closure_apply(&out, g, in));
    assert_non_null(strstr(errors.text, "uncaptured inputs"));
    mlx_vector_array_free(in);
    a = mlx_array_new_float32(1);
    in = mlx_vector_array_new_value(a);
    for (int k = 0; k < 2; k++) {
        assert_ok(mlx_closure_apply(&out, g, in));
        assert_ok(mlx_vector_array_get(&a, out, 0));
        assert_ok(mlx_array_item_float32(&v, a));
        assert_true(v == 11);
        assert_ok(mlx_array_set_float32(&captured, 20));
    }
    mlx_array_free(a);
    mlx_array_free(captured);
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
}

/* ---- where it is released ---- */

static void *release(void *closure)
{
    mlx_closure_free(*(mlx_closure *)closure);
    return NULL;
}

static void test_release_on_another_thread(void **state)
{
    mlx_closure f = mlx_closure_new_func(exp_of_sum), g = mlx_closure_new();
    mlx_vector_array in = two_matrices();
    pthread_t t;

    (void)state;
    assert_ok(mlx_compile(&g, f, false));
    assert_int_equal(traces(g, in), 1);
    assert_int_equal(pthread_create(&t, NULL, release, &g), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    mlx_closure_free(f);
    mlx_vector_array_free(in);
}

static uint64_t notes;

static int exp_with_note(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_compile_set_note(++notes);
    return exp_of_sum(res, in);
}

static void test_notes_stay_with_graphs(void **state)
{
    mlx_closure f = mlx_closure_new_func(exp_with_note), g = mlx_closure_new();
    mlx_vector_array in = two_matrices(), out = mlx_vector_array_new();
    mlx_array x = mlx_array_new_float32(1);
    mlx_vector_array other = mlx_vector_array_new_data((mlx_array[]){ x, x }, 2);

    (void)state;
    notes = 0;
    assert_ok(mlx_compile(&g, f, false));
    for (int k = 0; k < 2; k++) {
        assert_ok(mlx_closure_apply(&out, g, in));
        assert_int_equal(mlx_compile_get_note(), 1);
        assert_ok(mlx_closure_apply(&out, g, other));
        assert_int_equal(mlx_compile_get_note(), 2);
    }
    mlx_closure_free(f);
    mlx_closure_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_vector_array_free(other);
    mlx_array_free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_functions_on_the_gpu),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_compiled_inside_of_compiled),
        cmocka_unit_test(test_when_it_is_traced),
        cmocka_unit_test(test_numbers_of_callers),
        cmocka_unit_test(test_disabled),
        cmocka_unit_test(test_state_goes_in_and_out),
        cmocka_unit_test(test_captured_arrays),
        cmocka_unit_test(test_release_on_another_thread),
        cmocka_unit_test(test_notes_stay_with_graphs),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
