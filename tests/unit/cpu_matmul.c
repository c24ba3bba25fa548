/* Matrix products on the CPU against triple loops in float64: types, layouts, batches, edges. */
#include "eval/eval.h"
#include "support/arrays.h"

#include <math.h>

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_FLOAT64, DT_COMPLEX64 };

struct problem {
    int batch, m, n, k;
};

static struct shp matrices(int batch, int rows, int cols)
{
    return batch ? (struct shp){ .ndim = 3, .d = { batch, rows, cols } }
                 : (struct shp){ .ndim = 2, .d = { rows, cols } };
}

static double complex *product_ref(const struct problem *p, const double complex *a,
                                   const double complex *b)
{
    int batch = MAX(p->batch, 1);
    double complex *out = mem_alloc_array((size_t)(batch * p->m * p->n) + 1, sizeof *out);

    assert_non_null(out);
    for (int x = 0; x < batch; x++)
        for (int i = 0; i < p->m; i++)
            for (int j = 0; j < p->n; j++)
                for (int l = 0; l < p->k; l++)
                    out[(x * p->m + i) * p->n + j] +=
                        a[(x * p->m + i) * p->k + l] * b[(x * p->k + l) * p->n + j];
    return out;
}

static void check_close(struct arr *a, const double complex *want, double scale)
{
    double complex *got = arr_values(a);
    double tol = tolerance_of((enum dtype)a->dtype) * scale;

    for (size_t i = 0; i < a->size; i++)
        if (!(cabs(got[i] - want[i]) <= tol * (4 + cabs(want[i]))))
            fail_msg("%s: element %zu is %g%+gi, not %g%+gi", dt_name((enum dtype)a->dtype), i,
                     creal(got[i]), cimag(got[i]), creal(want[i]), cimag(want[i]));
    mem_free(got);
}

/* The product of a and b, which are given up. */
static void check_product(const struct problem *p, struct arr *a, struct arr *b, double scale)
{
    double complex *va = arr_values(a), *vb = arr_values(b), *want = product_ref(p, va, vb);
    struct arr *out = NULL;

    assert_ok(ops_matmul(&out, a, b, test_stream()));
    check_close(out, want, scale);
    mem_free(va);
    mem_free(vb);
    mem_free(want);
    arr_unref(&out);
    arr_unref(&a);
    arr_unref(&b);
}

static void matmul_case(struct rng *r, const struct problem *p, enum dtype t,
                        const enum layout layouts[2])
{
    struct shp sa = matrices(p->batch, p->m, p->k), sb = matrices(p->batch, p->k, p->n);
    struct arr *a = arr_random(r, &sa, t, layouts[0]);

    check_product(p, a, arr_random(r, &sb, t, layouts[1]), 4);
}

static void test_matmul(void **state)
{
    static const struct problem problems[] = {
        { 0, 1, 1, 1 }, { 0, 3, 4, 5 },  { 0, 1, 40, 33 }, { 0, 40, 1, 33 },   { 0, 7, 6, 1 },
        { 5, 3, 4, 2 }, { 20, 1, 9, 4 }, { 4, 8, 1, 8 },   { 0, 130, 70, 90 }, { 2, 64, 65, 66 },
    };
    struct rng r = { 1 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(problems); k++)
        for (size_t t = 0; t < ARRAY_LEN(types); t++)
            for (int l = 0; l < LAY_COUNT * LAY_COUNT; l++)
                matmul_case(
                    &r, &problems[k], types[t],
                    (enum layout[]){ (enum layout)(l % LAY_COUNT), (enum layout)(l / LAY_COUNT) });
}

/* b is one matrix for all batches: read once, and folded into the rows of a. */
static void test_broadcast_batch(void **state)
{
    struct rng r = { 2 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (int l = 0; l < LAY_COUNT; l++) {
            struct problem p = { 6, 3, 5, 4 };
            struct arr *a = arr_random(&r, SHAPE(6, 3, 4), types[t], (enum layout)l);
            struct arr *b = arr_random(&r, SHAPE(1, 4, 5), types[t], LAY_TRANSPOSED);
            struct arr *wide = NULL, *out = NULL;
            int32_t shape[] = { 6, 4, 5 };
            assert_ok(ops_broadcast_to(&wide, b, (struct ints){ shape, 3 }, test_stream()));
            double complex *va = arr_values(a), *vb = arr_values(wide);
            double complex *want = product_ref(&p, va, vb);
            assert_ok(ops_matmul(&out, a, b, test_stream()));
            check_close(out, want, 4);
            mem_free(va);
            mem_free(vb);
            mem_free(want);
            arr_unref(&out);
            arr_unref(&wide);
            arr_unref(&a);
            arr_unref(&b);
        }
}

static void test_addmm(void **state)
{
    static const enum dtype real_types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16, DT_FLOAT64 };
    struct rng r = { 3 };

    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(real_types); t++)
        for (int l = 0; l < LAY_COUNT; l++) {
            struct problem p = { 0, 9, 7, 5 };
            struct arr *a = arr_random(&r, SHAPE(9, 5), real_types[t], LAY_DENSE);
            struct arr *b = arr_random(&r, SHAPE(5, 7), real_types[t], (enum layout)l);
            struct arr *c = arr_random(&r, SHAPE(1, 7), real_types[t], LAY_DENSE), *out = NULL;
            double complex *va = arr_values(a), *vb = arr_values(b), *vc = arr_values(c);
            double complex *want = product_ref(&p, va, vb);
            for (int i = 0; i < 63; i++)
                want[i] = 0.5 * want[i] + 2 * vc[i % 7];
            assert_ok(ops_addmm(&out, &(struct ops_addmm){ c, a, b, 0.5f, 2.0f }, test_stream()));
            check_close(out, want, 4);
            double complex *values[] = { va, vb, vc, want };
            struct arr *arrays[] = { a, b, c, out };
            for (int i = 0; i < 4; i++) {
                mem_free(values[i]);
                arr_unref(&arrays[i]);
            }
        }
}

static void test_empty_inner_dimension(void **state)
{
    struct arr *a = arr_of(NULL, SHAPE(3, 0), DT_FLOAT32),
               *b = arr_of(NULL, SHAPE(0, 2), DT_FLOAT32);
    struct arr *c = arr_of((double complex[]){ 1, 2 }, SHAPE(2), DT_FLOAT32), *out = NULL;

    (void)state;
    assert_ok(ops_matmul(&out, a, b, test_stream()));
    check_close(out, (double complex[]){ 0, 0, 0, 0, 0, 0 }, 1);
    arr_unref(&out);
    assert_ok(ops_addmm(&out, &(struct ops_addmm){ c, a, b, 1.0f, 3.0f }, test_stream()));
    check_close(out, (double complex[]){ 3, 6, 3, 6, 3, 6 }, 1);
    arr_unref(&out);
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
}

/* Blocks of rows: larger than one block of widened rows. */
static void test_half_in_blocks(void **state)
{
    struct rng r = { 4 };
    struct problem p = { 0, 300, 5, 9000 };
    struct arr *a = arr_random(&r, SHAPE(300, 9000), DT_BFLOAT16, LAY_DENSE);

    (void)state;
    check_product(&p, a, arr_random(&r, SHAPE(9000, 5), DT_BFLOAT16, LAY_DENSE), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul),         cmocka_unit_test(test_broadcast_batch),
        cmocka_unit_test(test_addmm),          cmocka_unit_test(test_empty_inner_dimension),
        cmocka_unit_test(test_half_in_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
