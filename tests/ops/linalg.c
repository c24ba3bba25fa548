/* Factors that are unique only up to signs or order, put together again: eigenvectors, singular
 * vectors, QR; of all dtypes and layouts, of many small matrices and of large ones. */
#include "ops/build.h"
#include "support/arrays.h"

#include "base/mem.h"

#include <math.h>

static struct rng rng = { 20240229 };

/* A batch of matrices on the host. */
struct mats {
    double complex *v;
    int n, rows, cols;
};

static struct mats mats_of(struct arr *a)
{
    struct mats m = { arr_values(a), 1, a->shape[a->ndim - 2], a->shape[a->ndim - 1] };

    for (int i = 0; i < a->ndim - 2; i++)
        m.n *= a->shape[i];
    return m;
}

static struct mats mats_new(int n, int rows, int cols)
{
    size_t size = (size_t)n * (size_t)rows * (size_t)cols;

    return (struct mats){ mem_alloc_array(MAX(size, 1), sizeof(double complex)), n, rows, cols };
}

static double complex *at(const struct mats *m, int i, int row, int col)
{
    return &m->v[((size_t)i * (size_t)m->rows + (size_t)row) * (size_t)m->cols + (size_t)col];
}

/* a x b. */
static struct mats product(const struct mats *a, const struct mats *b)
{
    struct mats c = mats_new(a->n, a->rows, b->cols);

    assert_int_equal(a->cols, b->rows);
    for (int i = 0; i < c.n; i++)
        for (int row = 0; row < c.rows; row++)
            for (int k = 0; k < a->cols; k++)
                for (int col = 0; col < c.cols; col++)
                    *at(&c, i, row, col) += *at(a, i, row, k) * *at(b, i, k, col);
    return c;
}

/* With column i multiplied by element i of a vector of each matrix, and as many columns. */
static struct mats scaled(const struct mats *a, struct arr *by)
{
    int n = by->shape[by->ndim - 1];
    struct mats c = mats_new(a->n, a->rows, n);
    double complex *v = arr_values(by);

    for (int i = 0; i < c.n; i++)
        for (int row = 0; row < c.rows; row++)
            for (int col = 0; col < n; col++)
                *at(&c, i, row, col) = *at(a, i, row, col) * v[i * n + col];
    mem_free(v);
    return c;
}

static struct mats first_rows(const struct mats *a, int rows)
{
    struct mats c = mats_new(a->n, rows, a->cols);

    for (int i = 0; i < c.n; i++)
        for (int row = 0; row < rows; row++)
            memcpy(at(&c, i, row, 0), at(a, i, row, 0), (size_t)c.cols * sizeof *c.v);
    return c;
}

static struct mats adjoint(const struct mats *a)
{
    struct mats c = mats_new(a->n, a->cols, a->rows);

    for (int i = 0; i < c.n; i++)
        for (int row = 0; row < c.rows; row++)
            for (int col = 0; col < c.cols; col++)
                *at(&c, i, row, col) = conj(*at(a, i, col, row));
    return c;
}

static double limit_of(enum dtype t, int n)
{
    return 10 * tolerance_of(t) * n;
}

/* Takes both over. */
static void assert_same(struct mats a, struct mats b, double limit, const char *what)
{
    assert_int_equal(a.n, b.n);
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.cols, b.cols);
    for (int i = 0; i < a.n; i++)
        for (int row = 0; row < a.rows; row++)
            for (int col = 0; col < a.cols; col++) {
                double complex x = *at(&a, i, row, col), y = *at(&b, i, row, col);
                if (!(cabs(x - y) <= limit))
                    fail_msg("%s: element (%d, %d) of matrix %d: %g%+gi for %g%+gi", what, row, col,
                             i, creal(x), cimag(x), creal(y), cimag(y));
            }
    mem_free(a.v);
    mem_free(b.v);
}

/* The columns are orthogonal and of length 1. */
static void assert_unitary(const struct mats *u, double limit, const char *what)
{
    struct mats back = adjoint(u), one = mats_new(u->n, u->cols, u->cols);

    for (int i = 0; i < one.n; i++)
        for (int k = 0; k < one.rows; k++)
            *at(&one, i, k, k) = 1;
    assert_same(product(&back, u), one, limit, what);
    mem_free(back.v);
}

/* ---- one array ---- */

/* a V = V diag(w), columns of length 1. */
static void check_eig(struct arr *a)
{
    struct arr *out[2] = { NULL, NULL }, *alone = NULL;
    double limit =
        limit_of(a->dtype == DT_FLOAT64 ? DT_FLOAT32 : (enum dtype)a->dtype, a->shape[a->ndim - 1]);

    assert_ok(ops_eig(out, a, true, test_stream()));
    assert_ok(ops_eig(&alone, a, false, test_stream()));
    assert_int_equal(out[0]->dtype, DT_COMPLEX64);
    assert_int_equal(out[1]->dtype, DT_COMPLEX64);
    struct mats m = mats_of(a), v = mats_of(out[1]);
    assert_same(product(&m, &v), scaled(&v, out[0]), limit, "eig");
    for (int i = 0; i < v.n; i++)
        for (int col = 0; col < v.cols; col++) {
            double length = 0;
            for (int row = 0; row < v.rows; row++)
                length += creal(*at(&v, i, row, col) * conj(*at(&v, i, row, col)));
            assert_true(fabs(length - 1) <= limit);
        }
    double complex *w = arr_values(out[0]), *w_alone = arr_values(alone);
    for (size_t i = 0; i < alone->size; i++)
        assert_true(cabs(w[i] - w_alone[i]) <= limit * (1 + cabs(w[i])));
    mem_free(w);
    mem_free(w_alone);
    mem_free(m.v);
    mem_free(v.v);
    arr_unref_all(out, 2);
    arr_unref(&alone);
}

static void check_svd(struct arr *a)
{
    struct arr *out[3] = { NULL, NULL, NULL };
    struct mats m = mats_of(a);
    int k = MIN(m.rows, m.cols);
    double limit = limit_of((enum dtype)a->dtype, MAX(m.rows, m.cols));

    assert_ok(ops_svd(out, a, true, test_stream()));
    struct mats u = mats_of(out[0]), vt = mats_of(out[2]), v = adjoint(&vt);
    assert_unitary(&u, limit, "svd: U");
    assert_unitary(&v, limit, "svd: V");
    assert_int_equal(out[1]->dtype, a->dtype == DT_COMPLEX64 ? DT_FLOAT32 : a->dtype);
    double complex *s = arr_values(out[1]);
    for (int i = 0; i < m.n * k; i++)
        assert_true(creal(s[i]) >= 0 && (i % k == 0 || creal(s[i]) <= creal(s[i - 1])));
    struct mats us = scaled(&u, out[1]), top = first_rows(&vt, k);
    assert_same(product(&us, &top), m, limit, "svd");
    mem_free(s);
    mem_free(u.v);
    mem_free(vt.v);
    mem_free(v.v);
    mem_free(us.v);
    mem_free(top.v);
    arr_unref_all(out, 3);
}

static void check_qr(struct arr *a)
{
    struct arr *out[2] = { NULL, NULL };
    struct mats m = mats_of(a);
    double limit = limit_of((enum dtype)a->dtype, MAX(m.rows, m.cols));

    assert_ok(ops_qr(out, a, test_stream()));
    struct mats q = mats_of(out[0]), r = mats_of(out[1]);
    assert_unitary(&q, limit, "qr: Q");
    for (int i = 0; i < r.n; i++)
        for (int row = 0; row < r.rows; row++)
            for (int col = 0; col < MIN(row, r.cols); col++)
                assert_true(*at(&r, i, row, col) == 0);
    assert_same(product(&q, &r), m, limit, "qr");
    mem_free(q.v);
    mem_free(r.v);
    arr_unref_all(out, 2);
}

static void check_inv(struct arr *a)
{
    struct arr *inv = NULL;
    struct mats m = mats_of(a), one = mats_new(m.n, m.rows, m.rows);

    for (int i = 0; i < one.n; i++)
        for (int k = 0; k < one.rows; k++)
            *at(&one, i, k, k) = 1;
    assert_ok(ops_inv(&inv, a, test_stream()));
    struct mats x = mats_of(inv);
    assert_same(product(&m, &x), one, 100 * limit_of((enum dtype)a->dtype, m.rows), "inv");
    mem_free(m.v);
    mem_free(x.v);
    arr_unref(&inv);
}

/* h is Hermitian; the other triangle of what is given holds other numbers. */
static void check_eigh(const struct shp *shape, enum dtype t, enum layout layout, bool upper)
{
    size_t n = shp_size(shape);
    double complex *x = random_values(&rng, n, t), *given = random_values(&rng, n, t);
    struct mats h = { x, 1, shape->d[shape->ndim - 1], shape->d[shape->ndim - 1] };
    struct arr *out[2] = { NULL, NULL };
    double limit = limit_of(t, h.rows);

    h.n = (int)n / (h.rows * h.rows);
    for (int i = 0; i < h.n; i++)
        for (int row = 0; row < h.rows; row++) {
            *at(&h, i, row, row) = creal(*at(&h, i, row, row));
            for (int col = 0; col < row; col++)
                *at(&h, i, col, row) = conj(*at(&h, i, row, col));
        }
    for (size_t i = 0; i < n; i++) {
        int row = (int)i / h.rows % h.rows, col = (int)i % h.rows;
        if (upper ? col >= row : col <= row)
            given[i] = x[i];
    }
    struct arr *a = arr_of_layout(given, shape, t, layout);
    assert_ok(ops_eigh(out, a, upper ? "U" : "L", true, test_stream()));
    struct mats v = mats_of(out[1]);
    assert_unitary(&v, limit, "eigh: vectors");
    double complex *w = arr_values(out[0]);
    for (int i = 0; i < h.n * h.rows; i++)
        assert_true(i % h.rows == 0 || creal(w[i]) >= creal(w[i - 1]));
    assert_same(product(&h, &v), scaled(&v, out[0]), limit, "eigh");
    mem_free(w);
    mem_free(h.v);
    mem_free(given);
    mem_free(v.v);
    arr_unref(&a);
    arr_unref_all(out, 2);
}

/* ---- many ---- */

static void check(void (*fn)(struct arr *), const struct shp *shape, enum dtype t,
                  enum layout layout)
{
    struct arr *a = arr_random(&rng, shape, t, layout);

    fn(a);
    arr_unref(&a);
}

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT64, DT_COMPLEX64 };
#define REAL_TYPES 2

static const struct shp squares[] = {
    { 2, { 1, 1 } }, { 2, { 2, 2 } }, { 2, { 5, 5 } }, { 4, { 2, 3, 4, 4 } }, { 2, { 40, 40 } }
};
static const struct shp others[] = { { 2, { 3, 5 } }, { 2, { 5, 3 } },       { 2, { 1, 4 } },
                                     { 2, { 4, 1 } }, { 4, { 2, 2, 3, 4 } }, { 3, { 3, 6, 2 } } };

static void on_all(void (*fn)(struct arr *), size_t n_types, bool is_square)
{
    const struct shp *shapes = is_square ? squares : others;
    size_t n_shapes = is_square ? ARRAY_LEN(squares) : ARRAY_LEN(others);

    for (size_t t = 0; t < n_types; t++)
        for (size_t i = 0; i < n_shapes; i++)
            for (int layout = 0; layout < LAY_BROADCAST; layout++)
                check(fn, &shapes[i], types[t], (enum layout)layout);
}

static void test_eig(void **state)
{
    static const double complex turn[] = { 0, 1, -1, 0 }, three[] = { 0, 0, 1, 1, 0, 0, 0, 1, 0 };

    (void)state;
    on_all(check_eig, ARRAY_LEN(types), true);
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        struct arr *a = arr_of(turn, SHAPE(2, 2), types[t]);
        struct arr *b = arr_of(three, SHAPE(3, 3), types[t]);
        check_eig(a);
        check_eig(b);
        arr_unref(&a);
        arr_unref(&b);
    }
}

static void test_eigh(void **state)
{
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++)
        for (size_t i = 0; i < ARRAY_LEN(squares); i++)
            for (int layout = 0; layout < LAY_BROADCAST; layout++) {
                check_eigh(&squares[i], types[t], (enum layout)layout, false);
                check_eigh(&squares[i], types[t], (enum layout)layout, true);
            }
}

static void test_svd(void **state)
{
    (void)state;
    on_all(check_svd, ARRAY_LEN(types), true);
    on_all(check_svd, ARRAY_LEN(types), false);
}

static void test_qr(void **state)
{
    (void)state;
    on_all(check_qr, REAL_TYPES, true);
    on_all(check_qr, REAL_TYPES, false);
}

/* Matrices that several threads share, and one that LAPACK shares between threads of its own. */
static void test_many_and_large(void **state)
{
    (void)state;
    for (size_t t = 0; t < ARRAY_LEN(types); t++) {
        check(check_eig, SHAPE(2000, 6, 6), types[t], LAY_TRANSPOSED);
        check(check_svd, SHAPE(2000, 6, 5), types[t], LAY_DENSE);
        check_eigh(SHAPE(2000, 6, 6), types[t], LAY_DENSE, true);
    }
    for (size_t t = 0; t < REAL_TYPES; t++) {
        check(check_qr, SHAPE(2000, 5, 6), types[t], LAY_DENSE);
        check(check_inv, SHAPE(150, 150), types[t], LAY_TRANSPOSED);
        check(check_svd, SHAPE(2, 70, 80), types[t], LAY_DENSE);
        check(check_qr, SHAPE(2, 100, 80), types[t], LAY_STEPPED);
    }
    check_eigh(SHAPE(90, 90), DT_FLOAT32, LAY_DENSE, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eig),
        cmocka_unit_test(test_eigh),
        cmocka_unit_test(test_svd),
        cmocka_unit_test(test_qr),
        cmocka_unit_test(test_many_and_large),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
