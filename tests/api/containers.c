/* Strings, lists and tables. */
#include "api_test.h"

static const mlx_stream s = { NULL };

/* ---- strings ---- */

static void test_string(void **state)
{
    char text[] = "text";
    mlx_string a = mlx_string_new_data(text), b = mlx_string_new();

    (void)state;
    text[0] = 'n'; /* the string is a copy */
    assert_string_equal(mlx_string_data(a), "text");
    assert_ok(mlx_string_set(&b, a));
    assert_ok(mlx_string_set(&a, a));
    assert_ptr_not_equal(mlx_string_data(a), mlx_string_data(b));
    mlx_string_free(a);
    assert_string_equal(mlx_string_data(b), "text");
    mlx_string_free(b);
}

/* ---- lists ---- */

static float first_item(mlx_vector_array list, size_t i)
{
    mlx_array a = mlx_array_new();
    float value = -1;

    assert_ok(mlx_vector_array_get(&a, list, i));
    assert_ok(mlx_array_item_float32(&value, a));
    mlx_array_free(a);
    return value;
}

static void test_vector_array(void **state)
{
    mlx_array a[3] = { mlx_array_new_float(0), mlx_array_new_float(1), mlx_array_new_float(2) };
    mlx_vector_array v = mlx_vector_array_new_data(a, 3), w = mlx_vector_array_new();

    (void)state;
    assert_int_equal(mlx_vector_array_size(v), 3);
    assert_int_equal(mlx_vector_array_size(w), 0);
    assert_ok(mlx_vector_array_append_value(w, a[2]));
    assert_ok(mlx_vector_array_append_data(w, a, 2));
    for (int i = 0; i < 3; i++)
        mlx_array_free(a[i]); /* lists keep their own references */
    assert_true(first_item(w, 0) == 2 && first_item(w, 1) == 0 && first_item(w, 2) == 1);
    assert_ok(mlx_vector_array_set(&v, w));
    assert_ok(mlx_vector_array_set(&v, v));
    mlx_vector_array_free(w);
    assert_true(first_item(v, 0) == 2);
    mlx_array x = mlx_array_new();
    assert_fails(mlx_vector_array_get(&x, v, 3));
    assert_null(x.ctx);
    mlx_vector_array_free(v);
}

/* An element that is refused leaves the list as it was. */
static void test_vector_all_or_nothing(void **state)
{
    mlx_array a[2] = { mlx_array_new_float(0), mlx_array_new() };
    mlx_vector_array v = mlx_vector_array_new_value(a[0]);
    const char *texts[2] = { "a", NULL };
    mlx_vector_string t = mlx_vector_string_new_value("b");

    (void)state;
    assert_fails(mlx_vector_array_append_data(v, a, 2));
    assert_fails(mlx_vector_array_set_data(&v, a, 2));
    assert_int_equal(mlx_vector_array_size(v), 1);
    assert_fails(mlx_vector_string_append_data(t, texts, 2));
    assert_int_equal(mlx_vector_string_size(t), 1);
    errors.count = 0;
    assert_null(mlx_vector_array_new_data(a, 2).ctx);
    assert_int_equal(errors.count, 1);
    mlx_vector_array_free(v);
    mlx_vector_string_free(t);
    mlx_array_free(a[0]);
}

static void test_vector_vector(void **state)
{
    mlx_array a = mlx_array_new_float(4);
    mlx_vector_array v = mlx_vector_array_new_value(a), back = mlx_vector_array_new();
    mlx_vector_vector_array vv = mlx_vector_vector_array_new_data((mlx_vector_array[]){ v, v }, 2);

    (void)state;
    assert_ok(mlx_vector_array_append_value(v, a)); /* the list of lists has copies */
    assert_ok(mlx_vector_vector_array_append_value(vv, v));
    assert_int_equal(mlx_vector_vector_array_size(vv), 3);
    assert_ok(mlx_vector_vector_array_get(&back, vv, 0));
    assert_int_equal(mlx_vector_array_size(back), 1);
    assert_ok(mlx_vector_vector_array_get(&back, vv, 2));
    assert_int_equal(mlx_vector_array_size(back), 2);
    assert_fails(mlx_vector_vector_array_get(&back, vv, 3));
    assert_ok(mlx_vector_vector_array_set_value(&vv, v));
    assert_int_equal(mlx_vector_vector_array_size(vv), 1);
    mlx_vector_array_free(v);
    mlx_vector_array_free(back);
    mlx_vector_vector_array_free(vv);
    mlx_array_free(a);
}

static void test_vector_int(void **state)
{
    int data[100], value = 0;
    mlx_vector_int v = mlx_vector_int_new();

    (void)state;
    for (int i = 0; i < 100; i++)
        data[i] = i * i;
    assert_ok(mlx_vector_int_append_value(v, -1));
    assert_ok(mlx_vector_int_append_data(v, data, 100));
    assert_ok(mlx_vector_int_get(&value, v, 100));
    assert_int_equal(value, 99 * 99);
    assert_fails(mlx_vector_int_get(&value, v, 101));
    assert_ok(mlx_vector_int_set_value(&v, 7));
    assert_int_equal(mlx_vector_int_size(v), 1);
    mlx_vector_int_free(v);
}

static void test_vector_string(void **state)
{
    const char *data[] = { "one", "two" };
    mlx_vector_string v = mlx_vector_string_new_data(data, 2), w = mlx_vector_string_new();
    char *text = NULL;

    (void)state;
    assert_ok(mlx_vector_string_set(&w, v));
    mlx_vector_string_free(v);
    assert_ok(mlx_vector_string_get(&text, w, 1));
    assert_string_equal(text, "two");
    mlx_vector_string_free(w);
}

/* Ops that take and give lists, in place. */
static void test_lists_of_ops(void **state)
{
    mlx_array a = vector_of((float[]){ 1, 2, 3, 4 }, 4);
    mlx_vector_array v = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_split(&v, a, 2, 0, s));
    assert_int_equal(mlx_vector_array_size(v), 2);
    assert_ok(mlx_stack_axis(&a, v, 1, s));
    assert_int_equal(mlx_array_dim(a, 1), 2);
    assert_ok(mlx_concatenate(&a, v, s));
    assert_floats(a, (float[]){ 1, 2, 3, 4 }, 4);
    assert_ok(mlx_broadcast_arrays(&v, v, s));
    assert_int_equal(mlx_vector_array_size(v), 2);
    mlx_vector_array_free(v);
    mlx_array_free(a);
}

/* ---- tables ---- */

static void test_map_array(void **state)
{
    mlx_map_string_to_array m = mlx_map_string_to_array_new(), n = mlx_map_string_to_array_new();
    mlx_array a = mlx_array_new_float(1), b = mlx_array_new_float(2), found = mlx_array_new();
    float value = 0;

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(m, "b", a));
    assert_ok(mlx_map_string_to_array_insert(m, "a", a));
    assert_ok(mlx_map_string_to_array_insert(m, "b", b));
    assert_ok(mlx_map_string_to_array_set(&n, m));
    mlx_array_free(a);
    mlx_array_free(b);
    mlx_map_string_to_array_free(m);
    errors.count = 0;
    assert_int_equal(mlx_map_string_to_array_get(&found, n, "c"), 2);
    assert_null(found.ctx);
    assert_int_equal(errors.count, 0); /* absence is no error */
    assert_ok(mlx_map_string_to_array_get(&found, n, "b"));
    assert_ok(mlx_array_item_float32(&value, found));
    assert_true(value == 2);
    mlx_array_free(found);
    mlx_map_string_to_array_free(n);
}

#define ENTRIES 1000

/* Every entry comes exactly once. */
static void test_map_iteration(void **state)
{
    mlx_map_string_to_string m = mlx_map_string_to_string_new();
    bool seen[ENTRIES] = { false };
    const char *key = NULL, *value = NULL;
    char text[32];
    int count = 0, status;

    (void)state;
    for (int i = 0; i < ENTRIES; i++) {
        snprintf(text, sizeof text, "%d", i * 7919 % ENTRIES);
        assert_ok(mlx_map_string_to_string_insert(m, text, text));
    }
    mlx_map_string_to_string_iterator it = mlx_map_string_to_string_iterator_new(m);
    while ((status = mlx_map_string_to_string_iterator_next(&key, &value, it)) == 0) {
        assert_string_equal(key, value);
        assert_false(seen[atoi(key)]);
        seen[atoi(key)] = true;
        count++;
    }
    assert_int_equal(status, 2);
    assert_int_equal(count, ENTRIES);
    assert_int_equal(mlx_map_string_to_string_iterator_next(&key, &value, it), 2);
    mlx_map_string_to_string_iterator_free(it);
    assert_ok(mlx_map_string_to_string_get(&value, m, "17"));
    assert_string_equal(value, "17");
    mlx_map_string_to_string_free(m);
}

static void test_map_array_iteration(void **state)
{
    mlx_map_string_to_array m = mlx_map_string_to_array_new();
    mlx_array a = mlx_array_new_float(3), value = mlx_array_new();
    const char *key = NULL;

    (void)state;
    assert_ok(mlx_map_string_to_array_insert(m, "only", a));
    mlx_map_string_to_array_iterator it = mlx_map_string_to_array_iterator_new(m);
    assert_ok(mlx_map_string_to_array_iterator_next(&key, &value, it));
    assert_string_equal(key, "only");
    assert_int_equal(mlx_map_string_to_array_iterator_next(&key, &value, it), 2);
    mlx_map_string_to_array_iterator_free(it);
    mlx_map_string_to_array_free(m);
    assert_floats(value, (float[]){ 3 }, 1);
    mlx_array_free(value);
    mlx_array_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_string),
        cmocka_unit_test(test_vector_array),
        cmocka_unit_test(test_vector_all_or_nothing),
        cmocka_unit_test(test_vector_vector),
        cmocka_unit_test(test_vector_int),
        cmocka_unit_test(test_vector_string),
        cmocka_unit_test(test_lists_of_ops),
        cmocka_unit_test(test_map_array),
        cmocka_unit_test(test_map_iteration),
        cmocka_unit_test(test_map_array_iteration),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
