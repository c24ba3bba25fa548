/* Gradients of products of two quantized matrices: the same products of what is not packed. */
#include "graph/op_call.h"
#include "support/arrays.h"

static struct rng rng = { 5 };
static const struct ops_quant mxfp8 = { NULL, NULL, "mxfp8" }, nvfp4 = { NULL, NULL, "nvfp4" };

static struct arr *node_of(struct arr *a)
{
    while (a->node->op != OP_QQMM)
        a = a->node->in[0];
    return a;
}

static struct arr *turned(struct arr *a)
{
    struct arr *t = NULL;

    assert_ok(ops_swapaxes(&t, a, -1, -2, test_stream()));
    return t;
}

static void check_close(struct arr *a, struct arr *b, double scale)
{
    double complex *x = arr_values(a), *y = arr_values(b);

    assert_true(arr_same_shape(a, b));
    for (size_t i = 0; i < a->size; i++)
        if (!(cabs(x[i] - y[i]) <= 1e-5 * scale))
            fail_msg("element %zu: %g instead of %g", i, creal(x[i]), creal(y[i]));
    mem_free(x);
    mem_free(y);
}

/* Each gradient by the rule, and as the product that it should be. */
static void check_gradients(const struct ops_quant *q, struct arr *gx, struct arr *gw)
{
    struct strm *s = test_stream();
    struct arr *x = arr_random(&rng, SHAPE(32, 64), DT_FLOAT32, LAY_DENSE);
    struct arr *w = arr_random(&rng, SHAPE(96, 64), DT_FLOAT32, LAY_DENSE);
    struct arr *cotan = arr_random(&rng, SHAPE(32, 96), DT_FLOAT32, LAY_DENSE);
    struct arr *y = NULL, *got[2] = { NULL, NULL };
    struct ops_qqmm v = { x, w, *q, NULL, gx, gw };

    assert_ok(ops_qqmm(&y, &v, s));
    struct arr *n = node_of(y);
    struct vjp_call c = {
        .f = { OP_QQMM, n->node->params, NULL, n->node->in, (size_t)n->node->n_in, 1, s },
        .out = &n,
        .cotan = &cotan,
        .wanted = (int[]){ 0, 1 },
        .n_wanted = 2,
        .result = got,
    };
    assert_ok(op_table[OP_QQMM].vjp(&c));
    if (!gx) {
        struct arr *wt = turned(w), *xt = turned(x), *ct = turned(cotan), *want[2] = { NULL, NULL };
        assert_ok(ops_qqmm(&want[0], &(struct ops_qqmm){ cotan, wt, *q }, s));
        assert_ok(ops_qqmm(&want[1], &(struct ops_qqmm){ ct, xt, *q }, s));
        for (int i = 0; i < 2; i++) {
            check_close(got[i], want[i], 100);
            arr_unref(&want[i]);
        }
        arr_unref(&wt);
        arr_unref(&xt);
        arr_unref(&ct);
    }
    assert_true(arr_same_shape(got[0], x) && arr_same_shape(got[1], w));
    arr_unref(&got[0]);
    arr_unref(&got[1]);
    arr_unref(&y);
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&cotan);
}

static void test_gradients(void **state)
{
    struct arr *gx = NULL, *gw = NULL;

    (void)state;
    assert_ok(arr_new_number(&gx, 4, DT_FLOAT32));
    assert_ok(arr_new_number(&gw, 5, DT_FLOAT32));
    check_gradients(&mxfp8, NULL, NULL);
    check_gradients(&nvfp4, NULL, NULL);
    check_gradients(&nvfp4, gx, gw);
    arr_unref(&gx);
    arr_unref(&gw);
}

/* What MLX says about the same. */
static void test_wrong_arguments(void **state)
{
    struct strm *s = test_stream();
    struct arr *x = arr_random(&rng, SHAPE(2, 64), DT_FLOAT32, LAY_DENSE);
    struct arr *n = arr_random(&rng, SHAPE(2, 64), DT_INT32, LAY_DENSE);
    struct arr *u = arr_random(&rng, SHAPE(2, 8), DT_UINT32, LAY_DENSE);
    struct arr *b = arr_random(&rng, SHAPE(1, 2, 64), DT_FLOAT32, LAY_DENSE), *g = NULL;
    static const char *const texts[] = {
        "Scales must be provided if second argument is quantized.",
        "but first argument dtype == int32.",
        "but second argument dtype == int32.",
        "either both global_scale_x and global_scale_w must be provided, or neither.",
        "Only 2D inputs are supported but x.ndim() == 2 and w.ndim() == 3.",
        "Not available for quantization mode 'affine'.",
        "Invalid quantization mode 'int4'.",
    };
    assert_ok(arr_new_number(&g, 1, DT_FLOAT32));
    const struct ops_qqmm calls[] = {
        { x, u, nvfp4 },
        { n, x, nvfp4 },
        { x, n, nvfp4 },
        { x, x, nvfp4, NULL, g, NULL },
        { x, b, nvfp4 },
        { x, x, { NULL, NULL, "affine" } },
        { x, x, { NULL, NULL, "int4" } },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        struct arr *out = NULL;
        assert_fails(ERR_ARG, ops_qqmm(&out, &calls[i], s));
        if (!strstr(err_text(), texts[i]))
            fail_msg("%s: not \"%s\"", err_text(), texts[i]);
        assert_null(out);
    }
    arr_unref(&x);
    arr_unref(&n);
    arr_unref(&u);
    arr_unref(&b);
    arr_unref(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_wrong_arguments),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
