/* Reductions, argmin and argmax, softmax and log-sum-exp on the CPU against loops in float64. */
#include "eval/eval.h"
#include "support/arrays.h"

#include <math.h>

/* ---- reductions ---- */

static double complex combine(enum reduce_kind kind, double complex x, double complex y)
{
    switch (kind) {
    case REDUCE_AND:
        return x != 0 && y != 0;
    case REDUCE_OR:
        return x != 0 || y != 0;
    case REDUCE_SUM:
        return x + y;
    case REDUCE_PROD:
        return x * y;
    case REDUCE_MIN:
        return isnan(creal(x)) || creal(x) < creal(y) ? x : y;
    default:
        return isnan(creal(x)) || creal(x) > creal(y) ? x : y;
    }
}

static bool is_reduced(int axis, int mask)
{
    return mask >> axis & 1;
}

/* out[o] for every output in row-major order over the axes that stay. */
static double complex *reduce_ref(const double complex *v, const struct shp *s, int mask,
                                  enum reduce_kind kind, size_t n_out)
{
    double complex *out = mem_alloc_array(n_out + 1, sizeof *out);
    bool *seen = mem_alloc_array(n_out + 1, sizeof *seen);
    size_t n = shp_size(s);

    assert_non_null(out);
    assert_non_null(seen);
    for (size_t i = 0; i < n; i++) {
        size_t o = 0, step = 1, rest = i;
        for (int d = s->ndim - 1; d >= 0; d--) {
            if (!is_reduced(d, mask)) {
                o += rest % (size_t)s->d[d] * step;
                step *= (size_t)s->d[d];
            }
            rest /= (size_t)s->d[d];
        }
        double complex x = kind <= REDUCE_OR ? v[i] != 0 : v[i];
        out[o] = seen[o] ? combine(kind, out[o], x) : x;
        seen[o] = true;
    }
    mem_free(seen);
    return out;
}

static void check_close(struct arr *a, const double complex *want, double scale)
{
    double complex *got = arr_values(a);
    double tol = tolerance_of((enum dtype)a->dtype) * scale;

    for (size_t i = 0; i < a->size; i++) {
        double complex w = rounded_to(want[i], (enum dtype)a->dtype);
        bool both_nan = isnan(creal(w)) && isnan(creal(got[i]));
        bool both_inf = isinf(creal(w)) && creal(w) == creal(got[i]);
        if (!both_nan && !both_inf && !(cabs(got[i] - w) <= tol * (1 + cabs(w))))
            fail_msg("%s: element %zu is %.9g%+.9gi, not %.9g%+.9gi", dt_name((enum dtype)a->dtype),
                     i, creal(got[i]), cimag(got[i]), creal(w), cimag(w));
    }
    mem_free(got);
}

static void reduce_case(struct rng *r, const struct shp *s, enum dtype t, enum layout layout,
                        int mask, enum reduce_kind kind)
{
    struct arr *a = arr_random(r, s, t, layout), *out = NULL;
    int32_t axes[SHP_MAX];
    struct ops_axes x = { .axes = { axes, 0 } };

    for (int d = 0; d < s->ndim; d++)
        if (is_reduced(d, mask))
            axes[x.axes.n++] = d;
    double complex *v = arr_values(a);
    assert_ok(ops_reduce(&out, kind, a, &x, test_stream()));
    double complex *want = reduce_ref(v, s, mask, kind, out->size);
    /* Products of many small integers leave the range that a double counts exactly. */
    bool exact = kind != REDUCE_PROD || dt_is_inexact(t);
    if (exact)
        check_close(out, want, kind == REDUCE_SUM ? 8 : 1);
    else
        assert_ok(eval_arrays(&out, 1, false));
    mem_free(v);
    mem_free(want);
    arr_unref(&out);
    arr_unref(&a);
}

static int n_reduced(const struct shp *s, int mask)
{
    int n = 1;

    for (int d = 0; d < s->ndim; d++)
        n *= is_reduced(d, mask) ? s->d[d] : 1;
    return n;
}

static void test_reduce(void **state)
{
    static const struct shp shapes[] = {
        { 1, { 1 } },       { 1, { 5 } },       { 1, { 2500 } },      { 2, { 7, 9 } },
        { 2, { 300, 40 } }, { 3, { 4, 5, 6 } }, { 3, { 3, 70, 50 } }, { 4, { 2, 3, 1, 4 } },
    };
    struct rng r = { 1 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        for (int t = 0; t < DT_COUNT; t++)
            for (int l = 0; l < LAY_COUNT; l++)
                for (int mask = 1; mask < 1 << shapes[k].ndim; mask++) {
                    enum reduce_kind kind = (enum reduce_kind)rng_below(&r, 6);
                    if (t == DT_COMPLEX64 && kind >= REDUCE_MIN)
                        kind = REDUCE_SUM;
                    if (kind == REDUCE_PROD && n_reduced(&shapes[k], mask) > 10)
                        kind = REDUCE_SUM; /* the product would leave the range of float16 */
                    reduce_case(&r, &shapes[k], (enum dtype)t, (enum layout)l, mask, kind);
                }
}

/* Many pieces, rows and columns; float32 keeps its digits. */
static void test_reduce_large(void **state)
{
    static const struct shp shapes[] = {
        { 1, { 1000003 } }, { 2, { 1000, 1500 } }, { 2, { 300000, 3 } }, { 2, { 3, 300000 } }
    };
    struct rng r = { 2 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        for (int mask = 1; mask < 1 << shapes[k].ndim; mask++)
            for (int l = LAY_DENSE; l <= LAY_TRANSPOSED; l++) {
                reduce_case(&r, &shapes[k], DT_FLOAT32, (enum layout)l, mask, REDUCE_SUM);
                reduce_case(&r, &shapes[k], DT_INT32, (enum layout)l, mask, REDUCE_MAX);
            }
}

static void test_sum_is_accurate(void **state)
{
    size_t n = 4000000;
    float *x = mem_alloc_array(n, sizeof *x);
    struct rng r = { 3 };
    double want = 0;
    struct arr *a = NULL, *out = NULL;

    (void)state;
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(rng_next(&r) >> 40) * 0x1p-24f;
        want += (double)x[i];
    }
    for (int columns = 0; columns < 2; columns++) {
        /* As one column of two, so that the walk goes by columns. */
        const struct shp *s = columns ? SHAPE((int32_t)n / 2, 2) : SHAPE((int32_t)n);
        int32_t axes[] = { 0 };
        assert_ok(arr_new_data(&a, x, s, DT_FLOAT32));
        assert_ok(ops_reduce(&out, REDUCE_SUM, a, &(struct ops_axes){ { axes, 1 }, false },
                             test_stream()));
        double complex *v = arr_values(out);
        double got = columns ? creal(v[0] + v[1]) : creal(v[0]);
        assert_true(fabs(got - want) < 5e-7 * want);
        mem_free(v);
        arr_unref(&out);
        arr_unref(&a);
    }
    mem_free(x);
}

static void test_reduce_nan_and_empty(void **state)
{
    struct arr *a = arr_of((double complex[]){ 1, NAN, 3, 2 }, SHAPE(4), DT_FLOAT32), *out = NULL;
    struct arr *empty = arr_of(NULL, SHAPE(0, 3), DT_FLOAT32);
    int32_t axis = 0;
    struct ops_axes x = { { &axis, 1 }, false };
    static const struct {
        enum reduce_kind kind;
        double identity;
    } identities[] = { { REDUCE_SUM, 0 }, { REDUCE_PROD, 1 }, { REDUCE_AND, 1 }, { REDUCE_OR, 0 } };

    (void)state;
    for (int kind = REDUCE_MIN; kind <= REDUCE_MAX; kind++) {
        assert_ok(ops_reduce(&out, (enum reduce_kind)kind, a, &x, test_stream()));
        check_close(out, (double complex[]){ NAN }, 1);
        arr_unref(&out);
    }
    for (size_t i = 0; i < ARRAY_LEN(identities); i++) {
        double complex v = identities[i].identity;
        assert_ok(ops_reduce(&out, identities[i].kind, empty, &x, test_stream()));
        check_close(out, (double complex[]){ v, v, v }, 1);
        arr_unref(&out);
    }
    arr_unref(&a);
    arr_unref(&empty);
}

static void test_integer_sums_wrap(void **state)
{
    struct arr *a = arr_of((double complex[]){ 200, 200, 200 }, SHAPE(3), DT_UINT8), *out = NULL;
    struct arr *b = arr_of((double complex[]){ 2147483647, 1 }, SHAPE(2), DT_INT32);
    struct ops_axes all = { INTS_ALL, false };

    (void)state;
    assert_ok(ops_reduce(&out, REDUCE_SUM, a, &all, test_stream()));
    assert_int_equal(out->dtype, DT_UINT32);
    check_close(out, (double complex[]){ 600 }, 1);
    arr_unref(&out);
    assert_ok(ops_reduce(&out, REDUCE_SUM, b, &all, test_stream()));
    check_close(out, (double complex[]){ -2147483648.0 }, 1);
    arr_unref(&out);
    arr_unref(&a);
    arr_unref(&b);
}

/* The greatest and smallest bytes, in narrow and wide rows and as many as fill no, one and two
 * levels of partial sums. */
static void test_column_sums_of_bytes(void **state)
{
    static const struct {
        enum dtype type;
        double value;
    } bytes[] = { { DT_INT8, -128 }, { DT_INT8, 127 }, { DT_UINT8, 255 }, { DT_BOOL, 1 } };
    static const int32_t rows[] = { 1, 127, 128, 129, 1000, 128 * 128, 128 * 128 + 1, 40000 };
    static const int32_t columns[] = { 2, 48, 1500 };

    (void)state;
    for (size_t b = 0; b < ARRAY_LEN(bytes); b++)
        for (size_t i = 0; i < ARRAY_LEN(rows) * ARRAY_LEN(columns); i++) {
            int32_t n_rows = rows[i / ARRAY_LEN(columns)], n = columns[i % ARRAY_LEN(columns)];
            struct arr *a = NULL, *out = NULL;

            assert_ok(ops_fill(&a, (struct ints){ (int32_t[]){ n_rows, n }, 2 }, bytes[b].value,
                               bytes[b].type, test_stream()));
            assert_ok(eval_arrays(&a, 1, false));
            assert_int_equal(a->data_size, (size_t)n_rows * (size_t)n);
            assert_ok(ops_reduce(&out, REDUCE_SUM, a,
                                 &(struct ops_axes){ { &(int32_t){ 0 }, 1 }, false },
                                 test_stream()));
            double complex *got = arr_values(out);
            for (int32_t k = 0; k < n; k++)
                if (creal(got[k]) != bytes[b].value * n_rows)
                    fail_msg("%d times %g: %g", n_rows, bytes[b].value, creal(got[k]));
            mem_free(got);
            arr_unref(&out);
            arr_unref(&a);
        }
}

/* ---- argmin and argmax ---- */

static void arg_case(struct rng *r, enum dtype t, const struct shp *s, int axis, enum layout layout)
{
    bool is_max = rng_below(r, 2);
    struct arr *a = arr_random(r, s, t, layout), *out = NULL;
    double complex *v = arr_values(a);
    int32_t ax = axis;
    size_t inner = 1;

    for (int d = axis + 1; d < s->ndim; d++)
        inner *= (size_t)s->d[d];
    assert_ok(
        ops_arg_reduce(&out, is_max, a, &(struct ops_axes){ { &ax, 1 }, false }, test_stream()));
    double complex *got = arr_values(out);
    for (size_t o = 0; o < out->size; o++) {
        const double complex *first = v + o / inner * inner * (size_t)s->d[axis] + o % inner;
        int best = 0;
        for (int i = 1; i < s->d[axis]; i++) {
            double x = creal(first[(size_t)i * inner]), y = creal(first[(size_t)best * inner]);
            if (is_max ? x > y : x < y)
                best = i;
        }
        assert_int_equal((int)creal(got[o]), best);
    }
    mem_free(got);
    mem_free(v);
    arr_unref(&out);
    arr_unref(&a);
}

static void test_arg_reduce(void **state)
{
    static const struct shp shapes[] = {
        { 1, { 9 } }, { 1, { 5000 } }, { 2, { 30, 17 } }, { 3, { 4, 2100, 3 } }
    };
    struct rng r = { 4 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        for (int t = 0; t < DT_COMPLEX64; t++)
            for (int l = 0; l < LAY_COUNT; l++)
                for (int axis = 0; axis < shapes[k].ndim; axis++)
                    arg_case(&r, (enum dtype)t, &shapes[k], axis, (enum layout)l);
}

/* As MLX has it: the first NaN wins. */
static void test_arg_reduce_nan(void **state)
{
    float x[4000];
    struct arr *a = NULL, *out = NULL;
    struct ops_axes all = { INTS_ALL, false };
    static const struct {
        int nan_at, top_at, want;
    } cases[] = { { 0, 7, 0 }, { 3, 7, 3 }, { 2500, 3000, 2500 }, { 3999, 2000, 3999 } };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        for (int i = 0; i < 4000; i++)
            x[i] = 1;
        x[cases[k].top_at] = 2;
        x[cases[k].nan_at] = NAN;
        assert_ok(arr_new_data(&a, x, SHAPE(4000), DT_FLOAT32));
        assert_ok(ops_arg_reduce(&out, true, a, &all, test_stream()));
        double complex *v = arr_values(out);
        assert_int_equal((int)creal(v[0]), cases[k].want);
        mem_free(v);
        arr_unref(&out);
        arr_unref(&a);
    }
}

/* ---- softmax and log-sum-exp ---- */

static void softmax_ref(double complex *v, size_t rows, size_t length, double complex *lse)
{
    for (size_t r = 0; r < rows; r++) {
        double complex *x = v + r * length;
        double max = -INFINITY, sum = 0;
        for (size_t i = 0; i < length; i++)
            max = fmax(max, creal(x[i]));
        for (size_t i = 0; i < length; i++)
            sum += exp(creal(x[i]) - max);
        lse[r] = max + log(sum);
        for (size_t i = 0; i < length; i++)
            x[i] = exp(creal(x[i]) - creal(lse[r]));
    }
}

static void test_softmax(void **state)
{
    static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_FLOAT64 };
    static const struct shp shapes[] = {
        { 1, { 1 } }, { 1, { 3001 } }, { 2, { 40, 33 } }, { 3, { 2, 3, 1500 } }
    };
    struct rng r = { 5 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            for (int l = 0; l < LAY_COUNT; l++) {
                struct arr *a = arr_random(&r, &shapes[k], types[t], (enum layout)l);
                struct arr *soft = NULL, *lse = NULL;
                int32_t last = -1;
                size_t length = (size_t)shapes[k].d[shapes[k].ndim - 1], rows = a->size / length;
                double complex *v = arr_values(a), *want = mem_alloc_array(rows, sizeof *want);
                assert_non_null(want);
                softmax_ref(v, rows, length, want);
                assert_ok(ops_softmax(&soft, a, (struct ints){ &last, 1 }, false, test_stream()));
                assert_ok(ops_logsumexp(&lse, a, &(struct ops_axes){ { &last, 1 }, false },
                                        test_stream()));
                check_close(soft, v, 1);
                check_close(lse, want, 1);
                mem_free(v);
                mem_free(want);
                arr_unref(&soft);
                arr_unref(&lse);
                arr_unref(&a);
            }
}

static void test_logsumexp_of_infinities(void **state)
{
    struct arr *a =
        arr_of((double complex[]){ -INFINITY, -INFINITY, INFINITY, 1 }, SHAPE(2, 2), DT_FLOAT32);
    struct arr *out = NULL;
    int32_t last = 1;

    (void)state;
    assert_ok(ops_logsumexp(&out, a, &(struct ops_axes){ { &last, 1 }, false }, test_stream()));
    check_close(out, (double complex[]){ -INFINITY, INFINITY }, 1);
    arr_unref(&out);
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_reduce_large),
        cmocka_unit_test(test_sum_is_accurate),
        cmocka_unit_test(test_reduce_nan_and_empty),
        cmocka_unit_test(test_integer_sums_wrap),
        cmocka_unit_test(test_column_sums_of_bytes),
        cmocka_unit_test(test_arg_reduce),
        cmocka_unit_test(test_arg_reduce_nan),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_logsumexp_of_infinities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
