/* Functions in files through the public interface. */
#include "api_test.h"

#include "mlx/c/ext.h"

#include <stdlib.h>
#include <unistd.h>

#define FILE_NAME "api_export.mlxfn"

static const mlx_stream s = { NULL };

static mlx_vector_array list_of(mlx_array a, mlx_array b)
{
    mlx_vector_array v = mlx_vector_array_new_value(a);

    if (b.ctx)
        mlx_vector_array_append_value(v, b);
    return v;
}

static const mlx_array none = { NULL };

/* x0 * 2 + x1, or x0 * 2 */
static int combine(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = mlx_array_new(), y = mlx_array_new(), two = mlx_array_new_float(2);
    int failed = mlx_vector_array_get(&x, in, 0) || mlx_multiply(&x, x, two, s);

    if (mlx_vector_array_size(in) > 1)
        failed |= mlx_vector_array_get(&y, in, 1) || mlx_add(&x, x, y, s);
    failed |= mlx_vector_array_append_value(*res, x);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(two);
    return failed;
}

static int combine_into(mlx_vector_array *res, const mlx_vector_array in)
{
    *res = mlx_vector_array_new();
    return combine(res, in);
}

/* x0 - scale */
static int with_scale(mlx_vector_array *res, const mlx_vector_array in,
                      const mlx_map_string_to_array named)
{
    mlx_array x = mlx_array_new(), scale = mlx_array_new();
    int failed = mlx_vector_array_get(&x, in, 0) ||
                 mlx_map_string_to_array_get(&scale, named, "scale") ||
                 mlx_subtract(&x, x, scale, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    mlx_array_free(scale);
    return failed;
}

static mlx_array first_of(mlx_vector_array v)
{
    mlx_array a = mlx_array_new();

    assert_ok(mlx_vector_array_get(&a, v, 0));
    return a;
}

static void assert_gives(mlx_imported_function f, mlx_vector_array in, const float *expected,
                         size_t n)
{
    mlx_vector_array out = mlx_vector_array_new();

    assert_ok(mlx_imported_function_apply(&out, f, in));
    assert_int_equal(mlx_vector_array_size(out), 1);
    mlx_array a = first_of(out);
    assert_floats(a, expected, n);
    mlx_array_free(a);
    mlx_vector_array_free(out);
}

static void test_function(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), y = vector_of((float[]){ 5, 5, 6 }, 3);
    mlx_closure f = mlx_closure_new_func(combine_into);
    mlx_vector_array in = list_of(x, y), other = list_of(x, none), out = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_export_function(FILE_NAME, f, in, false));
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_non_null(g.ctx);
    assert_gives(g, in, (float[]){ 7, 9, 12 }, 3);
    assert_fails(mlx_imported_function_apply(&out, g, other));
    assert_non_null(strstr(errors.text, "[import_function::call] No imported function found which "
                                        "matches the given positional and keyword arguments. "
                                        "Possible functions include:\n 1. Function with 2 "
                                        "positional inputs and 0 keyword inputs:\n   1: (3) "
                                        "float32\n   2: (3) float32\n\nCalled with 1 positional "
                                        "inputs and 0 keyword inputs:\n  1: (3) float32\n"));
    mlx_imported_function_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(other);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    unlink(FILE_NAME);
}

/* Arguments that were traced without names may be given with some, which order them. */
static void test_names_of_a_call_alone(void **state)
{
    mlx_array x = vector_of((float[]){ 3, 5 }, 2), y = vector_of((float[]){ 1, 2 }, 2);
    mlx_closure f = mlx_closure_new_func(combine_into);
    mlx_vector_array in = list_of(x, y), first = list_of(x, none), out = mlx_vector_array_new();
    mlx_map_string_to_array named = mlx_map_string_to_array_new();
    mlx_vector_array nothing = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_export_function(FILE_NAME, f, in, false));
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_ok(mlx_map_string_to_array_insert(named, "q", y));
    assert_ok(mlx_imported_function_apply_kwargs(&out, g, first, named));
    mlx_array a = first_of(out);
    assert_floats(a, (float[]){ 7, 12 }, 2);
    mlx_array_free(a);
    assert_ok(mlx_map_string_to_array_insert(named, "a", x));
    assert_ok(mlx_imported_function_apply_kwargs(&out, g, nothing, named));
    a = first_of(out);
    assert_floats(a, (float[]){ 7, 12 }, 2);
    assert_fails(mlx_imported_function_apply_kwargs(&out, g, first, named));
    mlx_array_free(a);
    mlx_imported_function_free(g);
    mlx_map_string_to_array_free(named);
    mlx_vector_array_free(nothing);
    mlx_vector_array_free(first);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    unlink(FILE_NAME);
}

static void test_names(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), scale = vector_of((float[]){ 1 }, 1);
    mlx_closure_kwargs f = mlx_closure_kwargs_new_func(with_scale);
    mlx_vector_array in = list_of(x, none), out = mlx_vector_array_new();
    mlx_map_string_to_array named = mlx_map_string_to_array_new();

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(named, "scale", scale));
    assert_ok(mlx_export_function_kwargs(FILE_NAME, f, in, named, false));
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_ok(mlx_imported_function_apply_kwargs(&out, g, in, named));
    mlx_array a = first_of(out);
    assert_floats(a, (float[]){ 0, 1, 2 }, 3);
    mlx_array_free(a);
    assert_fails(mlx_imported_function_apply(&out, g, in));
    assert_non_null(strstr(errors.text, "\"scale\": (1) float32"));
    mlx_imported_function_free(g);
    mlx_map_string_to_array_free(named);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_closure_kwargs_free(f);
    mlx_array_free(x);
    mlx_array_free(scale);
    unlink(FILE_NAME);
}

static void test_signatures(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), y = vector_of((float[]){ 5, 5 }, 2);
    mlx_closure f = mlx_closure_new_func(combine_into);
    mlx_vector_array one = list_of(x, none), two = list_of(y, y), three = list_of(y, none);

    (void)state;
    mlx_function_exporter e = mlx_function_exporter_new(FILE_NAME, f, false);
    assert_int_equal(access(FILE_NAME, F_OK), -1); /* nothing was exported */
    assert_ok(mlx_function_exporter_apply(e, one));
    mlx_imported_function early = mlx_imported_function_new(FILE_NAME);
    assert_ok(mlx_function_exporter_apply(e, two));
    assert_fails(mlx_function_exporter_apply(e, one));
    assert_non_null(strstr(errors.text, "[export_function] Attempting to export a function twice "
                                        "with the same signature is not allowed."));
    mlx_function_exporter_free(e);
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_gives(early, one, (float[]){ 2, 4, 6 }, 3);
    assert_gives(g, one, (float[]){ 2, 4, 6 }, 3);
    assert_gives(g, two, (float[]){ 15, 15 }, 2);
    assert_fails(mlx_imported_function_apply(&three, g, three));
    mlx_imported_function_free(early);
    mlx_imported_function_free(g);
    mlx_vector_array_free(one);
    mlx_vector_array_free(two);
    mlx_vector_array_free(three);
    mlx_closure_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    unlink(FILE_NAME);
}

/* x * x */
static int square(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in);
    int failed = mlx_multiply(&x, x, x, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    return failed;
}

static void test_sizes_of_shapeless(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), y = vector_of((float[]){ 5, 5 }, 2);
    mlx_closure f = mlx_closure_new_func(square);
    mlx_vector_array in = list_of(x, none), other = list_of(y, none);

    (void)state;
    assert_ok(mlx_export_function(FILE_NAME, f, in, true));
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_gives(g, in, (float[]){ 1, 4, 9 }, 3);
    assert_gives(g, other, (float[]){ 25, 25 }, 2);
    mlx_imported_function_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(other);
    mlx_closure_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    unlink(FILE_NAME);
}

/* x[1:] */
static int tail(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in);
    int size = mlx_array_dim(x, 0), begin = 1, step = 1;
    int failed = mlx_slice(&x, x, &begin, 1, &size, 1, &step, 1, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    return failed;
}

/* The file does not say whether 3 is the end of what was given or a number of the function's. */
static void test_slices_of_shapeless(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), y = vector_of((float[]){ 1, 2, 3, 4 }, 4);
    mlx_closure f = mlx_closure_new_func(tail);
    mlx_vector_array in = list_of(x, none), other = list_of(y, none);
    mlx_vector_array out = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_export_function(FILE_NAME, f, in, true));
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_gives(g, in, (float[]){ 2, 3 }, 2);
    assert_fails(mlx_imported_function_apply(&out, g, other));
    assert_non_null(strstr(mlx_last_error(), "[Primitive::output_shapes] Slice cannot infer output "
                                             "shapes."));
    mlx_imported_function_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(other);
    mlx_vector_array_free(out);
    mlx_closure_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    unlink(FILE_NAME);
}

/* ---- what ext.h adds ---- */

static void test_text_of_a_file(void **state)
{
    mlx_array x = vector_of((float[]){ 1, 2, 3 }, 3), scale = vector_of((float[]){ 1 }, 1);
    mlx_closure_kwargs f = mlx_closure_kwargs_new_func(with_scale);
    mlx_vector_array in = list_of(x, none), other = list_of(scale, none);
    mlx_map_string_to_array named = mlx_map_string_to_array_new();
    mlx_string text = mlx_string_new();

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(named, "scale", scale));
    mlx_function_exporter x_port = mlx_function_exporter_new_kwargs(FILE_NAME, f, false, "a text");
    assert_ok(mlx_function_exporter_apply_kwargs(x_port, in, named));
    assert_ok(mlx_function_exporter_apply_kwargs(x_port, other, named));
    assert_ok(mlx_function_exporter_close(x_port));
    assert_fails(mlx_function_exporter_apply(x_port, in));
    mlx_function_exporter_free(x_port);
    mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
    assert_ok(mlx_imported_function_metadata(&text, g));
    assert_string_equal(mlx_string_data(text), "a text");
    mlx_imported_function_free(g);
    mlx_string_free(text);
    mlx_map_string_to_array_free(named);
    mlx_vector_array_free(in);
    mlx_vector_array_free(other);
    mlx_closure_kwargs_free(f);
    mlx_array_free(x);
    mlx_array_free(scale);
    unlink(FILE_NAME);
}

/* x0 @ ones((2, 2)) */
static int product(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in), w = mlx_array_new();
    int failed = mlx_ones(&w, (int[]){ 2, 2 }, 2, MLX_FLOAT32, s) || mlx_matmul(&x, x, w, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    mlx_array_free(w);
    return failed;
}

/* Batches are no part of what the file says about a product. */
static void test_products_of_shapeless(void **state)
{
    mlx_closure f = mlx_closure_new_func(product);
    mlx_array x = mlx_array_new();

    (void)state;
    for (int n = 3; n < 6; n++) {
        assert_ok(mlx_ones(&x, (int[]){ 1, n, 2 }, 3, MLX_FLOAT32, s));
        mlx_vector_array in = list_of(x, none), out = mlx_vector_array_new();
        if (n == 3)
            assert_ok(mlx_export_function(FILE_NAME, f, in, true));
        mlx_imported_function g = mlx_imported_function_new(FILE_NAME);
        assert_ok(mlx_imported_function_apply(&out, g, in));
        mlx_array y = first_of(out);
        assert_int_equal(mlx_array_shape(y)[1], n);
        mlx_array_free(y);
        mlx_imported_function_free(g);
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
    }
    mlx_closure_free(f);
    mlx_array_free(x);
    unlink(FILE_NAME);
}

/* ---- errors ---- */

static mlx_array captured;

static int capturing(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in);
    int failed = mlx_add(&x, x, captured, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    return failed;
}

static int inverting(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in);
    int failed = mlx_astype(&x, x, MLX_INT32, s) || mlx_bitwise_invert(&x, x, s);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    return failed;
}

static int evaluating(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = first_of(in);
    int failed = mlx_array_eval(x);

    *res = mlx_vector_array_new_value(x);
    mlx_array_free(x);
    return failed;
}

static void assert_not_exported(int (*fun)(mlx_vector_array *, const mlx_vector_array),
                                mlx_vector_array in, const char *text)
{
    mlx_closure f = mlx_closure_new_func(fun);

    errors.count = 0;
    assert_int_equal(mlx_export_function(FILE_NAME, f, in, false), 1);
    assert_true(errors.count >= 1);
    assert_non_null(strstr(errors.text, text));
    assert_int_equal(access(FILE_NAME, F_OK), -1);
    mlx_closure_free(f);
}

static void test_errors(void **state)
{
    mlx_closure f = mlx_closure_new_func(combine_into);

    (void)state;
    captured = vector_of((float[]){ 1, 2, 3 }, 3);
    mlx_vector_array in = list_of(captured, none);
    assert_not_exported(capturing, in,
                        "[compile] Attempting to compile a function with uncaptured inputs is not "
                        "allowed.");
    assert_not_exported(inverting, in,
                        "[export_function] Unable to serialize primitive BitwiseInvert");
    assert_not_exported(evaluating, in, "");
    errors.count = 0;
    assert_null(mlx_function_exporter_new("no/such/folder/x.mlxfn", f, false).ctx);
    assert_non_null(strstr(errors.text, "[export_function] Failed to open no/such/folder/x.mlxfn"));
    assert_null(mlx_imported_function_new("no/such/file.mlxfn").ctx);
    assert_non_null(strstr(errors.text, "[import_function] Failed to open no/such/file.mlxfn"));
    assert_int_equal(errors.count, 2);
    mlx_vector_array_free(in);
    mlx_closure_free(f);
    mlx_array_free(captured);
}

/* The text is in the file, whose function is as without it. */
static void test_metadata(void **state)
{
    mlx_array x = mlx_array_new_float(3), y;
    mlx_closure fun = mlx_closure_new_func(combine_into);
    mlx_vector_array in = list_of(x, none), out = mlx_vector_array_new();
    char bytes[4096];

    (void)state;
    mlx_function_exporter e =
        mlx_function_exporter_new_metadata(FILE_NAME, fun, false, "made by a test");
    assert_ok(mlx_function_exporter_apply(e, in));
    mlx_function_exporter_free(e);
    FILE *file = fopen(FILE_NAME, "rb");
    assert_non_null(file);
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_non_null(memmem(bytes, n, "made by a test", 14));
    mlx_imported_function f = mlx_imported_function_new(FILE_NAME);
    assert_ok(mlx_imported_function_apply(&out, f, in));
    y = first_of(out);
    float v = 0;
    assert_ok(mlx_array_item_float32(&v, y));
    assert_true(v == 6);
    mlx_imported_function_free(f);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_closure_free(fun);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    unlink(FILE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_function),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_sizes_of_shapeless),
        cmocka_unit_test(test_slices_of_shapeless),
        cmocka_unit_test(test_text_of_a_file),
        cmocka_unit_test(test_products_of_shapeless),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_names_of_a_call_alone),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
