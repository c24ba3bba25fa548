/* Gradients and batches of scans and sorting. */
#include <math.h>

#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64

#define SCAN(name, kind, type, dims, axis, reverse, inclusive, ...)                                \
    NODE(name, SCAN, type, DIMS dims, PARAMS(scan, { SCAN_##kind, axis, reverse, inclusive }),     \
         __VA_ARGS__)
#define LINEAR .grads = 1, .is_smooth = true
#define CURVED .grads = 1, .is_smooth = true, .is_curved = true
/* Hardly ever near each other. */
#define APART .grads = 1, .is_curved = true, .low = -100, .high = 100

static const struct rule_subject subjects[] = {
    SCAN("cumsum", SUM, F, (2, 3, 4), 1, false, true, LINEAR),
    SCAN("cumsum of columns", SUM, F, (2, 3, 2), 0, true, false, LINEAR),
    SCAN("cumsum of complex", SUM, C, (2, 2, 3), 1, false, false, .grads = 1),
    SCAN("cumprod", PROD, F, (2, 2, 4), 1, false, true, CURVED),
    SCAN("cumprod before", PROD, F, (1, 4), 0, false, false, CURVED),
    SCAN("cumprod from the end", PROD, F, (2, 3, 2), 0, true, true, CURVED),
    SCAN("cumprod behind", PROD, F, (1, 4), 0, true, false, CURVED),
    SCAN("cumprod of complex", PROD, C, (1, 4), 0, false, true, CURVED),
    SCAN("logcumsumexp", LOGADDEXP, F, (2, 2, 3), 1, false, true, CURVED),
    SCAN("logcumsumexp from the end", LOGADDEXP, F, (2, 3, 2), 0, true, true, CURVED),
    SCAN("logcumsumexp of complex", LOGADDEXP, C, (1, 4), 0, false, true, .grads = 1,
         .is_curved = true),
    SCAN("cummax", MAX, F, (2, 3, 5), 1, false, true, APART),
    SCAN("cummax from the end", MAX, F, (2, 5, 2), 0, true, true, APART),
    SCAN("cummin", MIN, F, (2, 3, 5), 1, false, true, APART),
    SCAN("cummin from the end", MIN, F, (1, 6), 0, true, true, APART),
    SCAN("scan of nothing", PROD, F, (2, 0, 3), 0, false, true, LINEAR),

    NODE("sort", SORT, F, DIMS(2, 3, 5), PARAMS(axis, { 1 }), APART),
    NODE("sort of columns", SORT, F, DIMS(2, 5, 2), PARAMS(axis, { 0 }), APART),
    NODE("partition", PARTITION, F, DIMS(2, 3, 5), PARAMS(partition, { 2, 1 }), APART),
    NODE("partition of columns", PARTITION, F, DIMS(2, 5, 2), PARAMS(partition, { 0, 0 }), APART),
    NODE("argsort", ARG_SORT, F, DIMS(2, 3, 4), PARAMS(axis, { 1 }), .is_flat = true),
    NODE("argpartition", ARG_PARTITION, F, DIMS(2, 3, 4), PARAMS(partition, { 2, 0 }),
         .is_flat = true),
};

TEST_RULES(subjects)

/* ---- what MLX makes of equal elements, zeros and infinities ---- */

#define SIZE 5
struct convention {
    enum op_id op;
    const void *params;
    int n;
    double x[SIZE], cotan[SIZE], gradient[SIZE];
    double tangent[SIZE], slope[SIZE];
};

#define ONES                                                                                       \
    {                                                                                              \
        1, 1, 1, 1, 1                                                                              \
    }
#define COUNT                                                                                      \
    {                                                                                              \
        1, 2, 3, 4, 5                                                                              \
    }
#define TIES                                                                                       \
    {                                                                                              \
        3, 3, 1, 5, 5                                                                              \
    }
#define OF_SCAN(kind, reverse, inclusive)                                                          \
    OP_SCAN, PARAMS(scan, { SCAN_##kind, 0, reverse, inclusive })

static const struct convention conventions[] = {
    { OF_SCAN(PROD, false, true),
      4,
      { 2, 0, 3, 4 },
      ONES,
      { 1, 32, 0, 0 },
      COUNT,
      { 1, 4, 12, 48 } },
    { OF_SCAN(PROD, false, true),
      5,
      { 2, 0, 3, 0, 5 },
      ONES,
      { 1, 8, 0, 0, 0 },
      COUNT,
      { 1, 4, 12, 0, 0 } },
    { OF_SCAN(PROD, true, false),
      4,
      { 2, 0, 3, 4 },
      ONES,
      { 0, 12, 4, 4 },
      COUNT,
      { 24, 24, 4, 0 } },
    { OF_SCAN(LOGADDEXP, false, true), 2, { -INFINITY, 1 }, ONES, { 0, 1 }, COUNT, { 0, 2 } },
    { OF_SCAN(LOGADDEXP, false, false), 2, { 1, 2 }, { 5, 7 }, { 7, 0 }, COUNT, { 0, 1 } },
    { OF_SCAN(MAX, false, true), 5, TIES, ONES, { 1, 2, 0, 1, 1 }, COUNT, { 1, 2, 2, 4, 5 } },
    { OF_SCAN(MAX, false, false), 5, TIES, ONES, { 1, 2, 0, 1, 0 }, COUNT, { 0, 1, 2, 2, 4 } },
    { OF_SCAN(MAX, true, true), 5, TIES, ONES, { 0, 0, 0, 4, 1 }, COUNT, { 4, 4, 4, 4, 5 } },
    { OF_SCAN(MAX, true, false), 5, TIES, ONES, { 0, 0, 0, 3, 1 }, COUNT, { 4, 4, 4, 5, 0 } },
};

static struct arr *array(const double *v, int n)
{
    double complex x[SIZE];

    for (int i = 0; i < n; i++)
        x[i] = v[i];
    return arr_of(x, SHAPE(n), F);
}

static void check_values(const char *what, size_t of, struct arr *a, const double *want)
{
    double complex *v = arr_values(a);

    for (size_t i = 0; i < a->size; i++)
        if (!(fabs(creal(v[i]) - want[i]) <= 1e-5))
            fail_msg("convention %zu: element %zu of the %s is %g, not %g", of, i, what,
                     creal(v[i]), want[i]);
    mem_free(v);
}

static void check_convention(size_t of, const struct convention *k, struct strm *s)
{
    struct arr *x = array(k->x, k->n), *t = array(k->tangent, k->n), *c = array(k->cotan, k->n),
               *y = NULL, *g = NULL, *slope = NULL;
    int first = 0;

    assert_ok(ops_make_one(&y, k->op, k->params, x, s));
    struct op_apply f = {
        .op = k->op, .params = k->params, .in = &x, .n_in = 1, .n_out = 1, .strm = s
    };
    struct vjp_call v = { f, &y, &c, &first, 1, &g };
    struct jvp_call j = { f, &y, &t, &slope };
    assert_ok(op_table[k->op].vjp(&v));
    assert_ok(op_table[k->op].jvp(&j));
    check_values("gradient", of, g, k->gradient);
    check_values("tangent", of, slope, k->slope);
    arr_unref_all((struct arr *[]){ x, t, c, y, g, slope }, 6);
}

static void test_conventions(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(conventions); i++)
        check_convention(i, &conventions[i], test_stream());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_conventions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
