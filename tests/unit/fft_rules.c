/* Gradients and batches of Fourier transforms, and what their constructors make of arguments. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64

#define FFT(name_, type, dims, inverse, real, odd, ...)                                            \
    NODE(name_, FFT, type, DIMS(dims), PARAMS(fft, { inverse, real, odd, __VA_ARGS__ }),           \
         .grads = 1, .is_single = true)
#define SHAPE_OF(...) sizeof((int[]){ __VA_ARGS__ }) / sizeof(int), __VA_ARGS__
#define AXES(n, ...)                                                                               \
    n,                                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static const struct rule_subject subjects[] = {
    FFT("fft", C, SHAPE_OF(2, 5), 0, 0, 0, AXES(1, 1)),
    FFT("fft along another axis", C, SHAPE_OF(4, 3), 0, 0, 0, AXES(1, 0)),
    FFT("fft along two", C, SHAPE_OF(4, 2, 3), 0, 0, 0, AXES(2, 2, 0)),
    FFT("ifft", C, SHAPE_OF(2, 6), 1, 0, 0, AXES(1, 1)),
    FFT("ifft along two", C, SHAPE_OF(2, 4, 3), 1, 0, 0, AXES(2, 1, 0)),
    FFT("rfft of an even number", F, SHAPE_OF(2, 6), 0, 1, 0, AXES(1, 1)),
    FFT("rfft of an odd number", F, SHAPE_OF(2, 5), 0, 1, 0, AXES(1, 1)),
    FFT("rfft of one", F, SHAPE_OF(2, 1), 0, 1, 0, AXES(1, 1)),
    FFT("rfft of two", F, SHAPE_OF(2), 0, 1, 0, AXES(1, 0)),
    FFT("rfft along two", F, SHAPE_OF(4, 2, 3), 0, 1, 0, AXES(2, 1, 0)),
    FFT("irfft of an even number", C, SHAPE_OF(2, 4), 1, 1, 0, AXES(1, 1)),
    FFT("irfft of an odd number", C, SHAPE_OF(3, 2), 1, 1, 1, AXES(1, 0)),
    FFT("irfft of one", C, SHAPE_OF(1, 2), 1, 1, 1, AXES(1, 0)),
    FFT("irfft along two", C, SHAPE_OF(3, 4), 1, 1, 0, AXES(2, 1, 0)),
};

TEST_RULES(subjects)

/* ---- cotangents of half a spectrum, which rules alone do not tell from their conjugates ---- */

static const struct convention {
    struct fft_params p;
    int32_t n, n_out;
    double complex x[5], cotan[5], want[5]; /* as MLX 0.32.4 has them */
} conventions[] = {
    { { 0, 1, 0, 1, { 0 } },
      5,
      3,
      { 1, 2, 3, 4, 5 },
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 6, 0.966181, 0.254296, -1.87233, -0.348147 } },
    { { 0, 1, 0, 1, { 0 } },
      4,
      3,
      { 1, 2, 3, 4 },
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 6, 0, 0, -2 } },
    { { 1, 1, 1, 1, { 0 } },
      3,
      5,
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 1, -2, 3, 4, 5 },
      { 2.2, -1.49443 + 2.89807 * I, 0.294427 + 1.26538 * I } },
    { { 1, 1, 0, 1, { 0 } },
      3,
      4,
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 1, -2, 3, 4 },
      { 1.5, -1 + 3 * I, 0.5 } },
    { { 0, 0, 0, 1, { 0 } },
      3,
      3,
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 1 + 2 * I, 3 - I, 2 + 0.5 * I },
      { 6 + 1.5 * I, -0.200962 + 3.11603 * I, -2.79904 + 1.38397 * I } },
};

static void test_conventions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(conventions); i++) {
        const struct convention *k = &conventions[i];
        bool is_back = k->p.real && k->p.inverse;
        struct arr *x = arr_of(k->x, SHAPE(k->n), k->p.real && !is_back ? F : C), *y = NULL;
        struct arr *cotan = arr_of(k->cotan, SHAPE(k->n_out), is_back ? F : C), *got = NULL;
        struct vjp_call c = { .f = { OP_FFT, &k->p, NULL, &x, 1, 1, test_stream() },
                              .out = &y,
                              .cotan = &cotan,
                              .wanted = (int[]){ 0 },
                              .n_wanted = 1,
                              .result = &got };
        assert_ok(ops_make_one(&y, OP_FFT, &k->p, x, test_stream()));
        assert_ok(op_table[OP_FFT].vjp(&c));
        double complex *v = arr_values(got);
        for (int j = 0; j < k->n; j++)
            assert_true(cabs(v[j] - k->want[j]) < 2e-5);
        mem_free(v);
        arr_unref(&x);
        arr_unref(&y);
        arr_unref(&cotan);
        arr_unref(&got);
    }
}

/* ---- arguments ---- */

#define LIST(...)                                                                                  \
    {                                                                                              \
        (int[]){ __VA_ARGS__ }, sizeof((int[]){ __VA_ARGS__ }) / sizeof(int)                       \
    }

/* What MLX says about the same, of an array of shape [3, 4]. */
static const struct wrong {
    const char *text;
    struct ops_fft v;
    enum err code;
} wrong[] = {
    { "[fftn] Duplicated axis received (0,0)", { LIST(2, 2), LIST(0, 0) }, ERR_ARG },
    { "[fftn] Duplicated axis received (0,-2)", { LIST(2, 2), LIST(0, -2) }, ERR_ARG },
    { "[fftn] Invalid axis received for array with 2 dimensions.",
      { LIST(2, 2), LIST(0, 5) },
      ERR_RANGE },
    { "[fftn] Invalid axis received for array with 2 dimensions.",
      { LIST(2, 2), LIST(0, -3) },
      ERR_RANGE },
    { "[fftn] Shape and axes have different sizes.", { LIST(2), LIST(0, 1) }, ERR_ARG },
    { "[fftn] Invalid FFT output size requested (2,0)", { LIST(2, 0), LIST(0, 1) }, ERR_ARG },
    { "[fftn] Invalid FFT output size requested (-1)", { LIST(-1), LIST(0), true, true }, ERR_ARG },
    { "[fftn] Invalid FFT normalization mode.",
      { LIST(2), LIST(0), .norm = (enum ops_fft_norm)3 },
      ERR_ARG },
};

static void test_wrong_arguments(void **state)
{
    struct arr *a = NULL, *number = NULL, *out = NULL;
    struct strm *s = test_stream();

    (void)state;
    assert_ok(ops_fill(&a, (struct ints)LIST(3, 4), 1, F, s));
    assert_ok(arr_new_number(&number, 1, F));
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_fails(wrong[i].code, ops_fft(&out, a, &wrong[i].v, s));
        assert_string_equal(err_text(), wrong[i].text);
        assert_null(out);
    }
    assert_fails(ERR_ARG, ops_fft(&out, number, &(struct ops_fft){ LIST(3), LIST(0) }, s));
    assert_string_equal(err_text(), "[fftn] Requires array with at least one dimension.");
    arr_unref(&a);
    arr_unref(&number);
}

static void test_wrong_frequencies(void **state)
{
    struct arr *a = NULL, *out = NULL;
    struct strm *s = test_stream();

    (void)state;
    assert_ok(ops_fill(&a, (struct ints)LIST(3, 4), 1, F, s));
    assert_fails(ERR_RANGE, ops_fftshift(&out, a, (struct ints)LIST(0, 5), false, s));
    assert_string_equal(err_text(), "[fftshift] Invalid axis 5 for array with 2 dimensions.");
    assert_fails(ERR_RANGE, ops_fftshift(&out, a, (struct ints)LIST(-3), true, s));
    assert_string_equal(err_text(), "[ifftshift] Invalid axis -3 for array with 2 dimensions.");
    assert_fails(ERR_ARG, ops_fftfreq(&out, 0, 1, false, s));
    assert_string_equal(err_text(), "[fftfreq] `n` must be greater than 0.");
    assert_fails(ERR_ARG, ops_fftfreq(&out, 4, 0, true, s));
    assert_string_equal(err_text(), "[rfftfreq] `d` must be non-zero.");
    arr_unref(&a);
}

/* Parameters that no constructor makes: a file may have them. */
static void test_unfit_nodes(void **state)
{
    static const struct {
        enum dtype dtype;
        struct fft_params p;
    } unfit[] = {
        { F, { 0, 0, 0, 1, { 0 } } },       { C, { 0, 1, 0, 1, { 0 } } },
        { C, { 0, 0, 0, 0, { 0 } } },       { C, { 0, 0, 0, 1, { 3 } } },
        { C, { 0, 0, 0, 1, { -1 } } },      { C, { 0, 0, 0, 2, { 1, 1 } } },
        { C, { 0, 0, 0, 4, { 0, 1, 2 } } }, { C, { 0, 0, 1, 1, { 1 } } },
        { C, { 1, 0, 1, 1, { 1 } } },       { C, { 1, 1, 0, 1, { 2 } } },
    };
    struct arr *a = NULL, *out = NULL;
    struct strm *s = test_stream();

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(unfit); i++) {
        assert_ok(ops_fill(&a, (struct ints)LIST(3, 4, 1), 1, unfit[i].dtype, s));
        assert_fails(ERR_ARG, ops_make_one(&out, OP_FFT, &unfit[i].p, a, s));
        assert_null(out);
        arr_unref(&a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_conventions),
        cmocka_unit_test(test_wrong_arguments),
        cmocka_unit_test(test_wrong_frequencies),
        cmocka_unit_test(test_unfit_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
