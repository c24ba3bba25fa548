/* Softmax and logsumexp on the GPU against double precision on the host. */
#include <math.h>

#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "graph/op.h"
#include "support/nd.h"

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };

static struct arr *softmax_node(struct arr *in)
{
    struct softmax_params p = { .precise = 1 };
    struct out_desc out = { .dtype = (enum dtype)in->dtype };
    struct arr *r = NULL;

    arr_shape(&out.shape, in);
    assert_ok(arr_new_op(&r, .op = OP_SOFTMAX, .strm = nd_gpu, .in = &in, .n_in = 1, .params = &p,
                         .out = &out));
    return r;
}

static struct arr *logsumexp_node(struct arr *in)
{
    struct out_desc out = { .dtype = (enum dtype)in->dtype };
    struct arr *r = NULL;

    arr_shape(&out.shape, in);
    out.shape.d[out.shape.ndim - 1] = 1;
    assert_ok(
        arr_new_op(&r, .op = OP_LOGSUMEXP, .strm = nd_gpu, .in = &in, .n_in = 1, .out = &out));
    return r;
}

struct row {
    double largest, sum;
};

static struct row row_of(const struct nd *a, size_t row)
{
    size_t n = (size_t)a->shape.d[a->shape.ndim - 1];
    struct row r = { .largest = -INFINITY };

    for (size_t i = 0; i < n; i++)
        r.largest = fmax(r.largest, nd_get(a, row * n + i).re);
    for (size_t i = 0; i < n; i++)
        r.sum += exp(nd_get(a, row * n + i).re - r.largest);
    return r;
}

static void check_softmax(const struct nd *a)
{
    size_t n = (size_t)a->shape.d[a->shape.ndim - 1], item = dt_size(a->dtype);
    struct arr *out = softmax_node(a->arr);
    const char *got = nd_run(out);

    for (size_t row = 0; row < out->size / n; row++) {
        struct row r = row_of(a, row);
        for (size_t i = 0; i < n; i++) {
            struct num want = { .re = exp(nd_get(a, row * n + i).re - r.largest) / r.sum };
            nd_check(a->dtype, num_load(a->dtype, got + (row * n + i) * item), want, 0,
                     shp_text(&a->shape));
        }
    }
    arr_unref(&out);
}

static void check_logsumexp(const struct nd *a)
{
    struct arr *out = logsumexp_node(a->arr);
    const char *got = nd_run(out);

    for (size_t row = 0; row < out->size; row++) {
        struct row r = row_of(a, row);
        struct num want = { .re = isinf(r.largest) ? r.largest : r.largest + log(r.sum) };
        double scale = fabs(r.largest) + log(r.sum) + 1e-3; /* the two may cancel */
        nd_check(a->dtype, num_load(a->dtype, got + row * dt_size(a->dtype)), want, scale,
                 shp_text(&a->shape));
    }
    arr_unref(&out);
}

static void check_both(struct rng *r, enum dtype t, const struct shp *shape, enum nd_layout layout)
{
    struct nd a;

    nd_make(&a, r, t, shape, layout);
    check_softmax(&a);
    check_logsumexp(&a);
    nd_free(&a);
}

static void test_row_lengths(void **state)
{
    static const int32_t lengths[] = { 1,    2,    3,     4,     5,     8,     31,   32,
                                       33,   127,  129,   512,   1000,  1023,  2049, 4096,
                                       8192, 8193, 16384, 16385, 40000, 131075 };
    struct rng r = { 1 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        for (size_t k = 0; k < ARRAY_LEN(types); k++)
            check_both(&r, types[k], &(struct shp){ 2, { 3, lengths[i] } }, ND_ROW);
}

/* Workgroups of many subgroups, which a software device does not choose by itself. */
static void test_large_workgroups(void **state)
{
    static const int32_t lengths[] = { 1, 5, 33, 130, 513, 1024, 4095, 8192, 16385, 70001 };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    struct rng r = { 6 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        check_both(&r, types[i % ARRAY_LEN(types)], &(struct shp){ 2, { 5, lengths[i] } },
                   i % 2 ? ND_SHIFTED : ND_ROW);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static void test_layouts(void **state)
{
    static const struct shp shapes[] = {
        { 1, { 77 } },           { 3, { 4, 5, 64 } }, { 3, { 3, 7, 65 } },
        { 4, { 2, 3, 4, 100 } }, { 2, { 1000, 3 } },  { 3, { 2, 3, 20000 } },
    };
    struct rng r = { 2 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int layout = 0; layout < ND_LAYOUTS; layout++)
            for (size_t k = 0; k < ARRAY_LEN(types); k++)
                check_both(&r, types[k], &shapes[i], (enum nd_layout)layout);
}

static void test_many_rows(void **state)
{
    struct rng r = { 3 };

    (void)state;
    check_both(&r, DT_FLOAT32, &(struct shp){ 2, { 70000, 5 } }, ND_ROW);
    check_both(&r, DT_FLOAT16, &(struct shp){ 2, { 20000, 16 } }, ND_ROW);
    check_both(&r, DT_FLOAT32, &(struct shp){ 2, { 1, 1000003 } }, ND_ROW);
}

/* Values far from zero, infinities and NaN; expected as MLX gives them. */
static void test_special_values(void **state)
{
    enum { ROWS = 6, COLS = 40 };
    static const struct {
        double first, rest; /* element 17 of the row, and the others */
        double softmax, logsumexp;
    } rows[ROWS] = {
        { -INFINITY, -INFINITY, NAN, -INFINITY },
        { INFINITY, 1, NAN, INFINITY },
        { NAN, 1, NAN, NAN },
        { 1, -INFINITY, 1, 1 },
        { 60000, 0, 1, 60000 },
        { -60000, -60000, 1.0 / COLS, -59996.311 },
    };
    struct shp shape = { 2, { ROWS, COLS } };
    struct rng r = { 4 };
    struct nd a;

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(types); k++) {
        nd_make(&a, &r, types[k], &shape, ND_ROW);
        for (size_t i = 0; i < ROWS * COLS; i++)
            num_store(
                types[k], nd_at(&a, i),
                (struct num){ .re = i % COLS == 17 ? rows[i / COLS].first : rows[i / COLS].rest });
        nd_view(&a);
        struct arr *s = softmax_node(a.arr), *l = logsumexp_node(a.arr);
        const char *got_s = nd_run(s), *got_l = nd_run(l);
        for (size_t i = 0; i < ROWS; i++) {
            nd_check(types[k], num_load(types[k], got_s + (i * COLS + 17) * dt_size(types[k])),
                     (struct num){ .re = rows[i].softmax }, 0, "softmax");
            nd_check(types[k], num_load(types[k], got_l + i * dt_size(types[k])),
                     (struct num){ .re = rows[i].logsumexp }, 0, "logsumexp");
        }
        arr_unref(&s);
        arr_unref(&l);
        nd_free(&a);
    }
}

/* log(1 + small) must not lose the small part. */
static void test_logsumexp_near_zero(void **state)
{
    static const float values[2] = { 0, -9.21034f };
    struct arr *in = NULL;

    (void)state;
    assert_ok(arr_new_data(&in, values, &(struct shp){ 1, { 2 } }, DT_FLOAT32));
    struct arr *out = logsumexp_node(in);
    double got = *(const float *)nd_run(out), want = log1p(exp(values[1]));
    assert_true(fabs(got - want) < 1e-7);
    arr_unref(&out);
    arr_unref(&in);
}

/* The result of one softmax feeds the next, so that its buffer is reused in place. */
static void check_in_place(int32_t length)
{
    struct rng r = { 5 };
    struct shp shape = { 2, { 9, length } };
    size_t n = (size_t)length;
    struct nd a;

    nd_make(&a, &r, DT_FLOAT32, &shape, ND_ROW);
    uint64_t before = stat_get(STAT_DONATIONS);
    struct arr *once = softmax_node(a.arr);
    struct arr *twice = softmax_node(once);
    arr_unref(&once);
    const float *got = nd_run(twice);
    for (size_t row = 0; row < 9; row++) {
        struct row x = row_of(&a, row);
        double sum = 0;
        for (size_t i = 0; i < n; i++)
            sum += exp(exp(nd_get(&a, row * n + i).re - x.largest) / x.sum);
        for (size_t i = 0; i < n; i++) {
            double p = exp(nd_get(&a, row * n + i).re - x.largest) / x.sum;
            nd_check(DT_FLOAT32, (struct num){ .re = got[row * n + i] },
                     (struct num){ .re = exp(p) / sum }, 0, "softmax of softmax");
        }
    }
    assert_true(stat_get(STAT_DONATIONS) > before);
    arr_unref(&twice);
    nd_free(&a);
}

static void test_in_place(void **state)
{
    (void)state;
    check_in_place(301);
    check_in_place(1300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row_lengths),    cmocka_unit_test(test_large_workgroups),
        cmocka_unit_test(test_layouts),        cmocka_unit_test(test_many_rows),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_logsumexp_near_zero),
        cmocka_unit_test(test_in_place),       cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open, NULL);
}
