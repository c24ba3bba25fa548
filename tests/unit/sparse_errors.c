/* What products of which only parts count refuse, in MLX's words. */
#include "support/arrays.h"

static struct arr *zeros(const struct shp *shape, enum dtype t)
{
    struct arr *a = NULL;

    assert_ok(ops_fill(&a, (struct ints){ shape->d, (size_t)shape->ndim }, 0, t, test_stream()));
    return a;
}

static const struct wrong {
    const char *text;
    struct shp a, b, more; /* segments, or the mask of a */
    enum dtype dtype, more_dtype;
    int32_t block; /* 0: segments */
} wrong[] = {
    { "Only block_sizes 32, 64 are supported.Got block size 16.",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 2, { 1, 1 } },
      DT_FLOAT32,
      DT_BOOL,
      16 },
    { "Got 0 dimension input", { 0 }, { 2, { 4, 4 } }, { 2, { 1, 1 } }, DT_FLOAT32, DT_BOOL, 32 },
    { "with shape (4,3) must match second to last dimension of second input with shape (4,4).",
      { 2, { 4, 3 } },
      { 2, { 4, 4 } },
      { 2, { 1, 1 } },
      DT_FLOAT32,
      DT_BOOL,
      32 },
    { "Only real floating point types are supported but int32 and int32",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 2, { 1, 1 } },
      DT_INT32,
      DT_BOOL,
      32 },
    { "Cannot broadcast array of shape (2,1) into shape (1,1).",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 2, { 2, 1 } },
      DT_FLOAT32,
      DT_BOOL,
      32 },
    { "Batched matmul not supported",
      { 3, { 1, 4, 4 } },
      { 2, { 4, 4 } },
      { 2, { 1, 2 } },
      DT_FLOAT32,
      DT_INT32,
      0 },
    { "with shape (4,3) must match second to last dimension of second input with shape (4,4).",
      { 2, { 4, 3 } },
      { 2, { 4, 4 } },
      { 2, { 1, 2 } },
      DT_FLOAT32,
      DT_INT32,
      0 },
    { "should have shape (..., 2) but (3) was provided.",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 1, { 3 } },
      DT_FLOAT32,
      DT_INT32,
      0 },
    { "Only real floating point types are supported but complex64",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 1, { 2 } },
      DT_COMPLEX64,
      DT_INT32,
      0 },
    { "Segments must be integral.",
      { 2, { 4, 4 } },
      { 2, { 4, 4 } },
      { 1, { 2 } },
      DT_FLOAT32,
      DT_FLOAT32,
      0 },
};

static void test_wrong_arguments(void **state)
{
    struct strm *s = test_stream();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const struct wrong *w = &wrong[i];
        struct arr *out = NULL;
        struct ops_masked_mm v = { zeros(&w->a, w->dtype), zeros(&w->b, w->dtype), w->block,
                                   .lhs = zeros(&w->more, w->more_dtype) };
        if (w->block)
            assert_fails(ERR_ARG, ops_block_masked_mm(&out, &v, s));
        else
            assert_fails(ERR_ARG, ops_segmented_mm(&out, v.a, v.b, v.lhs, s));
        if (!strstr(err_text(), w->text))
            fail_msg("%s: not \"%s\"", err_text(), w->text);
        assert_null(out);
        arr_unref(&v.a);
        arr_unref(&v.b);
        arr_unref(&v.lhs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
