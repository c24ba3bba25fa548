/* Gradients and batches of convolutions, and what their constructor makes of arguments. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64

/* Numbers of an axis: stride, padding, dilation of weights and input. */
#define CONV(name_, x, w, t, groups_, flip_, n_, ...)                                              \
    {                                                                                              \
        .name = name_, .op = OP_CONVOLUTION, .make = rules_node, .shape = { x, w },                \
        .dtype = { t, t }, .n_in = 2, .grads = 3, .is_smooth = (t) == F,                           \
        .with = &(const struct conv_params)                                                        \
        {                                                                                          \
            groups_, flip_, n_,                                                                    \
            {                                                                                      \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    }
#define COUNT(...) (sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))
#define SHAPE_OF(...)                                                                              \
    {                                                                                              \
        COUNT(__VA_ARGS__),                                                                        \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define LIST(...)                                                                                  \
    {                                                                                              \
        (int[]){ __VA_ARGS__ }, COUNT(__VA_ARGS__)                                                 \
    }

static const struct rule_subject subjects[] = {
    CONV("1 axis", SHAPE_OF(2, 5, 3), SHAPE_OF(2, 2, 3), F, 1, 0, 1, { 1, 0, 0, 1, 1 }),
    CONV("strides leave a rest", SHAPE_OF(1, 8, 2), SHAPE_OF(3, 3, 2), F, 1, 0, 1,
         { 3, 1, 1, 1, 1 }),
    CONV("flipped, with different padding", SHAPE_OF(2, 4, 2), SHAPE_OF(2, 3, 2), F, 1, 1, 1,
         { 1, 0, 2, 1, 1 }),
    CONV("more padding than weights", SHAPE_OF(1, 3, 1), SHAPE_OF(2, 2, 1), F, 1, 0, 1,
         { 2, 4, 3, 1, 1 }),
    CONV("padding below 0", SHAPE_OF(1, 7, 1), SHAPE_OF(2, 2, 1), F, 1, 1, 1, { 2, -1, -2, 1, 2 }),
    CONV("2 axes", SHAPE_OF(1, 4, 5, 2), SHAPE_OF(2, 3, 2, 2), F, 1, 0, 2, { 1, 1, 1, 1, 1 },
         { 2, 0, 1, 2, 1 }),
    CONV("2 axes with all there is", SHAPE_OF(1, 3, 4, 4), SHAPE_OF(2, 2, 3, 2), F, 2, 1, 2,
         { 2, 1, 2, 2, 3 }, { 1, 2, 0, 1, 2 }),
    CONV("groups", SHAPE_OF(2, 4, 6), SHAPE_OF(6, 2, 2), F, 3, 0, 1, { 1, 1, 0, 1, 1 }),
    CONV("a channel per group", SHAPE_OF(1, 3, 4, 3), SHAPE_OF(6, 2, 2, 1), F, 3, 0, 2,
         { 1, 1, 1, 1, 1 }, { 2, 1, 0, 1, 1 }),
    CONV("3 axes", SHAPE_OF(1, 3, 2, 3, 2), SHAPE_OF(2, 2, 1, 2, 2), F, 1, 0, 3, { 1, 1, 0, 1, 1 },
         { 1, 0, 0, 1, 1 }, { 2, 0, 1, 1, 2 }),
    CONV("complex", SHAPE_OF(1, 4, 2), SHAPE_OF(2, 2, 2), C, 1, 0, 1, { 1, 1, 0, 1, 1 }),
};

static void test_on_the_cpu(void **state)
{
    (void)state;
    rules_check_cpu(subjects, ARRAY_LEN(subjects));
}

static void test_without_memory(void **state)
{
    (void)state;
    rules_check_memory(subjects, ARRAY_LEN(subjects));
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    rules_check_gpu(subjects, ARRAY_LEN(subjects));
}

/* ---- arguments ---- */

static struct arr *zeros(struct ints shape, enum dtype t)
{
    struct arr *a = NULL;

    assert_ok(ops_fill(&a, shape, 0, t, test_stream()));
    return a;
}

/* What MLX says about the same. */
static const struct wrong {
    const char *text;
    struct ints x, w;
    struct ops_conv v; /* without arrays */
    enum dtype dtype;
    enum err code;
} wrong[] = {
    { "Can only handle groups != 1 in 1D or 2D",
      LIST(1, 2, 2, 2, 2),
      LIST(4, 1, 1, 1, 1),
      { .groups = 2 },
      F,
      ERR_ARG },
    { "1-3 spatial dimensions", LIST(5, 2), LIST(3, 2, 2), { .groups = 1 }, F, ERR_ARG },
    { "1-3 spatial dimensions",
      LIST(1, 1, 1, 1, 5, 2),
      LIST(3, 2, 2),
      { .groups = 1 },
      F,
      ERR_ARG },
    { "Invalid input array with type int32",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .groups = 1 },
      DT_INT32,
      ERR_ARG },
    { "Invalid input array with type complex64",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .groups = 1 },
      C,
      ERR_ARG },
    { "Invalid weight array with 4 dimensions for 1D",
      LIST(1, 5, 2),
      LIST(3, 2, 2, 2),
      { .groups = 1 },
      F,
      ERR_ARG },
    { "The input channels must be divisible",
      LIST(1, 5, 3),
      LIST(4, 2, 1),
      { .groups = 2 },
      F,
      ERR_ARG },
    { "The input channels must be divisible",
      LIST(1, 5, 3),
      LIST(4, 2, 1),
      { .groups = 0 },
      F,
      ERR_ARG },
    { "If groups > 1, the output channels must be divisible",
      LIST(1, 5, 2),
      LIST(3, 2, 1),
      { .groups = 2 },
      F,
      ERR_ARG },
    { "Expect the input channels in the input and weight array to match",
      LIST(1, 5, 2),
      LIST(3, 2, 3),
      { .groups = 1 },
      F,
      ERR_ARG },
    { "Given groups=-1 and weights of shape (3,2,2), expected to have -2",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .groups = -1 },
      F,
      ERR_ARG },
    { "Given groups=2", LIST(1, 5, 4), LIST(4, 2, 1), { .groups = 2 }, F, ERR_ARG },
    { "Invalid strides (1,1) for 1D",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .stride = LIST(1, 1), .groups = 1 },
      F,
      ERR_ARG },
    { "Invalid padding (0,0) | (0) for 1D",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .pad_lo = LIST(0, 0), .pad_hi = LIST(0), .groups = 1 },
      F,
      ERR_ARG },
    { "Invalid kernel dilation (1,1) for 1D",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .kernel_dilation = LIST(1, 1), .groups = 1 },
      F,
      ERR_ARG },
    { "Invalid input dilation (1,1) for 1D",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .input_dilation = LIST(1, 1), .groups = 1 },
      F,
      ERR_ARG },
    { "Stride sizes must be positive. Got strides (0)",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .stride = LIST(0), .groups = 1 },
      F,
      ERR_ARG },
    { "Kernel dilation sizes must be positive",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .kernel_dilation = LIST(0), .groups = 1 },
      F,
      ERR_ARG },
    { "Input dilation sizes must be positive. Got input dilation (-1)",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .input_dilation = LIST(-1), .groups = 1 },
      F,
      ERR_ARG },
    { "cannot be smaller than weight spatial dimensions. Got error at axis 1",
      LIST(1, 5, 2),
      LIST(3, 9, 2),
      { .groups = 1 },
      F,
      ERR_ARG },
    { "cannot be smaller than weight spatial dimensions",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .pad_lo = LIST(-3), .pad_hi = LIST(-3), .groups = 1 },
      F,
      ERR_ARG },
    { "does not fit a dimension",
      LIST(1, 5, 2),
      LIST(3, 2, 2),
      { .pad_lo = LIST(1 << 30), .pad_hi = LIST(1 << 30), .groups = 1 },
      F,
      ERR_OVERFLOW },
};

static void test_wrong_arguments(void **state)
{
    struct strm *s = test_stream();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct ops_conv v = wrong[i].v;
        struct arr *out = NULL;
        v.x = zeros(wrong[i].x, wrong[i].dtype);
        v.w = zeros(wrong[i].w, wrong[i].dtype);
        assert_fails(wrong[i].code, ops_conv(&out, &v, s));
        if (!strstr(err_text(), wrong[i].text))
            fail_msg("%s: not \"%s\"", err_text(), wrong[i].text);
        assert_null(out);
        arr_unref(&v.x);
        arr_unref(&v.w);
    }
}

/* As many numbers as there are axes, and padding in range. */
static void test_wrong_transposes(void **state)
{
    struct ints one = LIST(1), two = LIST(1, 1), none = LIST(0), most = LIST(INT32_MIN),
                x = LIST(1, 5, 2), w = LIST(3, 2, 2);
    struct ops_conv_transpose v[] = {
        { NULL, NULL, two, two, two, two, 1 },
        { NULL, NULL, one, most, one, none, 1 },
    };
    static const enum err code[] = { ERR_ARG, ERR_OVERFLOW };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        struct arr *out = NULL;
        v[i].x = zeros(x, F);
        v[i].w = zeros(w, F);
        assert_fails(code[i], ops_conv_transpose(&out, &v[i], test_stream()));
        assert_null(out);
        arr_unref(&v[i].x);
        arr_unref(&v[i].w);
    }
}

/* Where each position is multiplied by the same matrix, it is a product of matrices. */
static void test_products(void **state)
{
    const struct {
        struct ints w;
        int stride, padding;
        enum op_id op;
    } cases[] = {
        { LIST(3, 1, 1, 2), 1, 0, OP_UNFLATTEN }, /* of a product */
        { LIST(3, 1, 2, 2), 1, 0, OP_CONVOLUTION },
        { LIST(3, 1, 1, 2), 2, 0, OP_CONVOLUTION },
        { LIST(3, 1, 1, 2), 1, 1, OP_CONVOLUTION },
    };
    const struct ints x = LIST(2, 5, 4, 2);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ops_conv v = { zeros(x, F),
                              zeros(cases[i].w, F),
                              { &cases[i].stride, 1 },
                              { &cases[i].padding, 1 },
                              { &cases[i].padding, 1 },
                              .groups = 1 };
        struct arr *out = NULL;
        assert_ok(ops_conv(&out, &v, test_stream()));
        assert_int_equal(cases[i].op, out->node->op);
        arr_unref(&out);
        arr_unref(&v.x);
        arr_unref(&v.w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),       cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_on_the_gpu),       cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_transposes), cmocka_unit_test(test_products),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
