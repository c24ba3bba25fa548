/* Gradients and batches of reductions, of softmax and logsumexp. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64

#define REDUCTION(name, kind, type, dims, axes, ...)                                               \
    NODE(name, REDUCE, type, DIMS dims, PARAMS(reduce, { REDUCE_##kind, DIMS axes }), __VA_ARGS__)
#define LINEAR .grads = 1, .is_smooth = true
#define CURVED .grads = 1, .is_smooth = true, .is_curved = true
/* Hardly ever near each other. */
#define APART .grads = 1, .is_curved = true, .low = -100, .high = 100

static const struct rule_subject subjects[] = {
    REDUCTION("sum", SUM, F, (3, 3, 2, 4), (2, 0, 2), LINEAR),
    REDUCTION("sum of nothing", SUM, F, (2, 2, 0), (1, 1), LINEAR),
    REDUCTION("prod", PROD, F, (2, 3, 4), (1, 1), CURVED),
    REDUCTION("prod of columns", PROD, F, (2, 4, 2), (1, 0), CURVED),
    REDUCTION("prod over three", PROD, F, (4, 2, 2, 3, 2), (3, 0, 1, 3), CURVED),
    REDUCTION("prod of all", PROD, F, (2, 2, 3), (2, 0, 1), CURVED),
    REDUCTION("prod of nothing", PROD, F, (2, 2, 0), (1, 1), CURVED),
    REDUCTION("prod of complex", PROD, C, (2, 3, 3), (1, 1), CURVED),
    REDUCTION("max", MAX, F, (2, 3, 4), (1, 1), APART),
    REDUCTION("max over two", MAX, F, (3, 3, 2, 2), (2, 0, 2), APART, .is_smooth = true),
    REDUCTION("max of none", MAX, F, (2, 0, 4), (1, 1), APART),
    REDUCTION("min", MIN, F, (2, 3, 4), (1, 0), APART, .is_smooth = true),
    REDUCTION("all", AND, F, (2, 3, 2), (1, 1), .is_flat = true),
    REDUCTION("any", OR, F, (2, 3, 2), (2, 0, 1), .is_flat = true),

    NODE("argmax", ARG_REDUCE, F, DIMS(2, 3, 4), PARAMS(arg_reduce, { true, 1 }), .is_flat = true),
    NODE("argmin", ARG_REDUCE, F, DIMS(2, 3, 4), PARAMS(arg_reduce, { false, 0 }), .is_flat = true),

    NODE("logsumexp", LOGSUMEXP, F, DIMS(2, 3, 4), NULL, CURVED),
    NODE("logsumexp of a vector", LOGSUMEXP, F, DIMS(1, 5), NULL, CURVED),
    NODE("softmax", SOFTMAX, F, DIMS(2, 3, 4), PARAMS(softmax, { true }), CURVED),
};

TEST_RULES(subjects)

/* ---- what MLX makes of equal elements, zeros and small integers ---- */

#define SIZE 4
struct convention {
    enum reduce_kind kind;
    enum dtype dtype;
    double x[SIZE], tangent[SIZE];
    double gradient[SIZE], slope;
};

static const struct convention conventions[] = {
    { REDUCE_MAX, F, { 1, 3, 3, 2 }, { 1, 2, 3, 4 }, { 0, 0.5, 0.5, 0 }, 2 },
    { REDUCE_MIN, F, { 3, 1, 2, 1 }, { 1, 2, 3, 4 }, { 0, 0.5, 0, 0.5 }, 2 },
    { REDUCE_PROD, F, { 2, 0, 3, 4 }, { 1, 2, 3, 4 }, { 0, 24, 0, 0 }, 48 },
    { REDUCE_PROD, F, { 2, 0, 3, 0 }, { 1, 2, 3, 4 }, { 0, 0, 0, 0 }, 0 },
    { REDUCE_PROD, DT_INT8, { 2, 5, 3, 4 }, { 1, 1, 1, 1 }, { 60, 24, 40, 30 }, 154 },
    { REDUCE_SUM, DT_INT8, { 2, 5, 3, 4 }, { 100, 100, 1, 1 }, { 1, 1, 1, 1 }, 202 },
};

static struct arr *array(const double *v, enum dtype t)
{
    double complex x[SIZE];

    for (int i = 0; i < SIZE; i++)
        x[i] = v[i];
    return arr_of(x, SHAPE(SIZE), t);
}

static void check_values(struct arr *a, const double *want, size_t n)
{
    double complex *v = arr_values(a);

    assert_int_equal(a->size, n);
    for (size_t i = 0; i < n; i++)
        if (creal(v[i]) != want[i])
            fail_msg("element %zu is %g, not %g", i, creal(v[i]), want[i]);
    mem_free(v);
}

static void check_convention(const struct convention *k, struct strm *s)
{
    struct reduce_params p = { k->kind, 1, { 0 } };
    struct arr *x = array(k->x, k->dtype), *t = array(k->tangent, k->dtype), *y = NULL, *one = NULL,
               *g = NULL, *slope = NULL;
    int first = 0;

    assert_ok(ops_make_one(&y, OP_REDUCE, &p, x, s));
    assert_ok(ops_fill_like(&one, y, 1, (enum dtype)y->dtype, s));
    struct op_apply f = {
        .op = OP_REDUCE, .params = &p, .in = &x, .n_in = 1, .n_out = 1, .strm = s
    };
    struct vjp_call v = { f, &y, &one, &first, 1, &g };
    struct jvp_call j = { f, &y, &t, &slope };
    assert_ok(op_table[OP_REDUCE].vjp(&v));
    assert_ok(op_table[OP_REDUCE].jvp(&j));
    assert_true(g->dtype == x->dtype && slope->dtype == y->dtype);
    check_values(g, k->gradient, SIZE);
    check_values(slope, &k->slope, 1);
    arr_unref_all((struct arr *[]){ x, t, y, one, g, slope }, 6);
}

static void test_conventions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(conventions); i++)
        check_convention(&conventions[i], test_stream());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_conventions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
