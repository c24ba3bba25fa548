/* What gathers and scatters refuse: every error names the function and what is wrong. */
#include "support/arrays.h"

#define A(...) zeros(SHAPE(__VA_ARGS__), DT_FLOAT32)
#define AT(...) zeros(SHAPE(__VA_ARGS__), DT_INT32)

static struct arr *made[8];
static size_t n_made;

/* Freed at the end of a call that must fail. */
static struct arr *zeros(const struct shp *shape, enum dtype t)
{
    struct arr *a = NULL;

    assert_ok(ops_fill(&a, (struct ints){ shape->d, (size_t)shape->ndim }, 0, t, test_stream()));
    assert_true(n_made < ARRAY_LEN(made));
    made[n_made++] = a;
    return a;
}

#define INTS_OF(...)                                                                               \
    (struct ints)                                                                                  \
    {                                                                                              \
        (int32_t[]){ __VA_ARGS__ }, sizeof((int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)           \
    }
#define ARRS_OF(...)                                                                               \
    (struct arrs)                                                                                  \
    {                                                                                              \
        (struct arr *[]){ __VA_ARGS__ }, sizeof((struct arr *[]){ __VA_ARGS__ }) / sizeof(void *)  \
    }
#define GATHER(a, indices, axes, sizes)                                                            \
    ops_gather(&result, a, &(struct ops_gather){ indices, axes, sizes }, test_stream())
#define SCATTER(a, indices, updates, axes)                                                         \
    ops_scatter(&result, a, &(struct ops_scatter){ indices, updates, axes, UPDATE_SUM },           \
                test_stream())
#define ALONG(a, at, updates, axis)                                                                \
    ops_scatter_axis(&result, a, &(struct ops_scatter_axis){ at, updates, axis, UPDATE_NONE },     \
                     test_stream())
#define MASKED(a, mask, values) ops_masked_scatter(&result, a, mask, values, test_stream())

#define refuses(call, text)                                                                        \
    do {                                                                                           \
        struct arr *result = NULL;                                                                 \
        assert_fails(ERR_ARG, call);                                                               \
        check_text(text);                                                                          \
        assert_null(result);                                                                       \
    } while (0)

static void check_text(const char *text)
{
    if (!strstr(err_text(), text))
        fail_msg("\"%s\" does not say \"%s\"", err_text(), text);
    while (n_made)
        arr_unref(&made[--n_made]);
}

static void test_index_arrays(void **state)
{
    (void)state;
    refuses(GATHER(A(4), ARRS_OF(AT(2), AT(2)), INTS_OF(0, 1), INTS_OF(1)), "[gather] Too many");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(2), INTS_OF(1, 3)), "Axis 2");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(-1), INTS_OF(1, 3)), "Axis -1");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2), AT(2)), INTS_OF(1, 1), INTS_OF(1, 1)), "Repeat");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(0, 1), INTS_OF(1, 1)), "(1) does not match");
    refuses(GATHER(A(4), ARRS_OF(A(2)), INTS_OF(0), INTS_OF(1)), "float32");
    refuses(GATHER(A(4), ARRS_OF(zeros(SHAPE(2), DT_BOOL)), INTS_OF(0), INTS_OF(1)), "Boolean");
    refuses(
        GATHER(A(4, 3), ARRS_OF(AT(2), zeros(SHAPE(2), DT_UINT64)), INTS_OF(0, 1), INTS_OF(1, 1)),
        "integral");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2), AT(3)), INTS_OF(0, 1), INTS_OF(1, 1)), "broadcast");
}

static void test_slices(void **state)
{
    (void)state;
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(0), INTS_OF(1)), "slice_sizes with size 1");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(0), INTS_OF(1, 4)), "(1,4)");
    refuses(GATHER(A(4, 3), ARRS_OF(AT(2)), INTS_OF(0), INTS_OF(1, -1)), "(1,-1)");
    refuses(GATHER(A(0, 3), ARRS_OF(AT(2)), INTS_OF(0), INTS_OF(1, 3)), "empty array");
}

static void test_updates(void **state)
{
    (void)state;
    refuses(SCATTER(A(4, 3), ARRS_OF(AT(2)), A(2, 3), INTS_OF(0)), "2 dimensions");
    refuses(SCATTER(A(4, 3), ARRS_OF(AT(2)), A(3, 1, 3), INTS_OF(0)), "(3,1,3)");
    refuses(SCATTER(A(4, 3), ARRS_OF(AT(2)), A(2, 1, 4), INTS_OF(0)), "too large");
    refuses(SCATTER(A(4, 3), ARRS_OF(AT(2)), A(2, 1, 3), INTS_OF(5)), "[scatter] Axis 5");
    refuses(SCATTER(A(4, 3), ARRS_OF(A(2)), A(2, 1, 3), INTS_OF(0)), "[scatter] Got indices");
}

static void test_along_an_axis(void **state)
{
    (void)state;
    refuses(ALONG(A(4, 3), AT(3), A(3), 0), "[put_along_axis] Indices of dimension 1");
    refuses(ALONG(A(4, 3), A(1, 3), A(1, 3), 0), "float32");
    refuses(ALONG(A(4, 3), AT(1, 2), A(1, 2), 0), "cannot be broadcast");
    refuses(ALONG(A(4, 3), AT(1, 3), A(2, 1, 3), 0), "squeeze");
}

static void test_masks(void **state)
{
    (void)state;
    refuses(MASKED(A(4, 3), AT(4), A(4)), "boolean");
    refuses(MASKED(A(4), zeros(SHAPE(4, 1), DT_BOOL), A(4)), "more than the array");
    refuses(MASKED(A(4, 3), zeros(SHAPE(3), DT_BOOL), A(3)), "(3)");
    refuses(MASKED(A(4, 3), zeros(SHAPE(4), DT_BOOL), A(4, 1, 3)), "broadcast");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_arrays), cmocka_unit_test(test_slices),
        cmocka_unit_test(test_updates),      cmocka_unit_test(test_along_an_axis),
        cmocka_unit_test(test_masks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
