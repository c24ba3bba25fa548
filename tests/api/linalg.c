/* Linear algebra as a program uses it: what is refused, in MLX's words, what fails when it is
 * evaluated, gradients of norms, cross products and small determinants. */
#include "api_test.h"

#include <math.h>

#include "mlx/c/ext.h"

static const mlx_stream s = { NULL };

static mlx_array matrix(const float *v, int rows, int cols)
{
    return mlx_array_new_data(v, (int[]){ rows, cols }, 2, MLX_FLOAT32);
}
#define MATRIX(rows, cols, ...) matrix((float[]){ __VA_ARGS__ }, rows, cols)

static mlx_array zeros(int ndim, int rows, int cols, mlx_dtype t)
{
    mlx_array a = mlx_array_new();

    assert_ok(mlx_zeros(&a, (int[]){ rows, cols }, (size_t)ndim, t, s));
    return a;
}

static void assert_told(const char *text)
{
    if (!strstr(errors.text, text))
        fail_msg("%s is not in: %s", text, errors.text);
}
/* The call fails with this text. */
#define assert_refused(status, ...)                                                                \
    do {                                                                                           \
        assert_fails(status);                                                                      \
        assert_told(__VA_ARGS__);                                                                  \
    } while (0)

/* ---- every function of one array, alike ---- */

#define ONE(name, ...)                                                                             \
    static int call_##name(const mlx_array a, const mlx_stream on)                                 \
    {                                                                                              \
        mlx_array res = mlx_array_new();                                                           \
        int status = mlx_linalg_##name(&res, a, ##__VA_ARGS__, on) || mlx_array_eval(res);         \
        mlx_array_free(res);                                                                       \
        return status;                                                                             \
    }
#define TWO(name, ...)                                                                             \
    static int call_##name(const mlx_array a, const mlx_stream on)                                 \
    {                                                                                              \
        mlx_array res_0 = mlx_array_new(), res_1 = mlx_array_new();                                \
        int status = mlx_linalg_##name(&res_0, &res_1, a, ##__VA_ARGS__, on) ||                    \
                     mlx_array_eval(res_0) || mlx_array_eval(res_1);                               \
        mlx_array_free(res_0);                                                                     \
        mlx_array_free(res_1);                                                                     \
        return status;                                                                             \
    }
#define LIST(name, ...)                                                                            \
    static int call_##name(const mlx_array a, const mlx_stream on)                                 \
    {                                                                                              \
        mlx_vector_array res = mlx_vector_array_new();                                             \
        int status = mlx_linalg_##name(&res, a, ##__VA_ARGS__, on) || mlx_eval(res);               \
        mlx_vector_array_free(res);                                                                \
        return status;                                                                             \
    }
ONE(cholesky, false)
ONE(cholesky_inv, false)
ONE(inv)
ONE(tri_inv, false)
ONE(pinv)
ONE(eigvals)
ONE(eigvalsh, "L")
ONE(det)
TWO(qr)
TWO(lu_factor)
TWO(eig)
TWO(eigh, "L")
TWO(slogdet)
LIST(lu)
LIST(svd, true)

enum types { REAL, COMPLEX, CAST };

static const struct {
    const char *name; /* in errors */
    int (*call)(const mlx_array a, const mlx_stream on);
    enum types types;
    const char *square; /* how it is said; NULL: not asked for */
} functions[] = {
    { "cholesky", call_cholesky, REAL,
      "Cholesky decomposition is only defined for square matrices." },
    { "cholesky_inv", call_cholesky_inv, REAL,
      "Cholesky inverse is only defined for square matrices." },
    { "inv", call_inv, REAL, "Inverses are only defined for square matrices." },
    { "inv", call_tri_inv, REAL, "Inverses are only defined for square matrices." },
    { "pinv", call_pinv, REAL, NULL },
    { "eigvals", call_eigvals, COMPLEX, "Only defined for square matrices." },
    { "eigvalsh", call_eigvalsh, COMPLEX, "Only defined for square matrices." },
    { "det", call_det, CAST, "Only defined for square matrices." },
    { "qr", call_qr, REAL, NULL },
    { "lu_factor", call_lu_factor, REAL, NULL },
    { "eig", call_eig, COMPLEX, "Only defined for square matrices." },
    { "eigh", call_eigh, COMPLEX, "Only defined for square matrices." },
    { "slogdet", call_slogdet, CAST, "Only defined for square matrices." },
    { "lu", call_lu, REAL, NULL },
    { "svd", call_svd, COMPLEX, NULL },
};
#define FUNCTIONS (sizeof functions / sizeof functions[0])

static void assert_says(const char *name, const char *what)
{
    char text[256];

    snprintf(text, sizeof text, "[linalg::%s] %s", name, what);
    if (errors.count != 1 || !strstr(errors.text, text))
        fail_msg("%s is not in: %s", text, errors.text);
}

static void test_dtypes(void **state)
{
    static const char *const wanted[] = {
        [REAL] = "Arrays must have type float32 or float64. Received array with type %s.",
        [COMPLEX] =
            "Arrays must have type float32, float64 or complex64. Received array with type %s.",
        [CAST] = "Complex inputs are not supported.",
    };
    mlx_array half = zeros(2, 2, 2, MLX_FLOAT16), parts = zeros(2, 2, 2, MLX_COMPLEX64);

    (void)state;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        enum types t = functions[i].types;
        char text[128];
        snprintf(text, sizeof text, wanted[t], "float16");
        if (t != CAST) {
            assert_fails(functions[i].call(half, s));
            assert_says(functions[i].name, text);
        }
        snprintf(text, sizeof text, wanted[t], "complex64");
        if (t != COMPLEX) {
            assert_fails(functions[i].call(parts, s));
            assert_says(functions[i].name, text);
        }
    }
    mlx_array_free(half);
    mlx_array_free(parts);
}

static void test_shapes(void **state)
{
    mlx_array vector = zeros(1, 2, 0, MLX_FLOAT32), wide = zeros(2, 2, 3, MLX_FLOAT32);

    (void)state;
    for (size_t i = 0; i < FUNCTIONS; i++) {
        assert_fails(functions[i].call(vector, s));
        assert_says(functions[i].name,
                    functions[i].call == call_svd
                        ? "Input array must have >= 2 dimensions. Received array with 1 dimensions."
                        : "Arrays must have >= 2 dimensions. Received array with 1 dimensions.");
        if (functions[i].square) {
            assert_fails(functions[i].call(wide, s));
            assert_says(functions[i].name, functions[i].square);
        } else {
            assert_ok(functions[i].call(wide, s));
        }
    }
    mlx_array_free(vector);
    mlx_array_free(wide);
}

/* Nothing of it runs on a GPU, and nothing is moved to the CPU without being asked for. */
static void test_gpu_streams(void **state)
{
    static const char text[] =
        "This op is not yet supported on the GPU. Explicitly pass a CPU stream "
        "to run it.";
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
    mlx_array eye = MATRIX(2, 2, 1, 0, 0, 1), res = mlx_array_new();
    mlx_stream on = mlx_stream_new();
    bool there = false;

    (void)state;
    assert_ok(mlx_device_is_available(&there, gpu));
    if (there) {
        assert_ok(mlx_get_default_stream(&on, gpu));
        for (size_t i = 0; i < FUNCTIONS; i++) {
            assert_fails(functions[i].call(eye, on));
            assert_says(functions[i].name, text);
        }
        assert_fails(mlx_linalg_solve(&res, eye, eye, on));
        assert_says("solve", text);
        assert_fails(mlx_linalg_solve_triangular(&res, eye, eye, true, on));
        assert_says("solve_triangular", text);
        assert_fails(mlx_linalg_norm(&res, eye, 2, NULL, 0, false, on));
        assert_says("svd", text);
    }
    mlx_stream_free(on);
    mlx_device_free(gpu);
    mlx_array_free(eye);
    mlx_array_free(res);
}

static void test_systems(void **state)
{
    mlx_array square = zeros(2, 2, 2, MLX_FLOAT32), wide = zeros(2, 2, 3, MLX_FLOAT32);
    mlx_array vector = zeros(1, 3, 0, MLX_FLOAT32), number = zeros(0, 0, 0, MLX_FLOAT32);
    mlx_array whole = zeros(2, 2, 2, MLX_INT32), res = mlx_array_new();

    (void)state;
    assert_refused(mlx_linalg_solve(&res, number, vector, s),
                   "[linalg::solve] First input must have >= 2 dimensions. Received array with 0 "
                   "dimensions.");
    assert_refused(mlx_linalg_solve(&res, square, number, s),
                   "[linalg::solve] Second input must have >= 1 dimensions. Received array with 0 "
                   "dimensions.");
    assert_refused(mlx_linalg_solve(&res, wide, vector, s),
                   "[linalg::solve] First input must be a square matrix. Received array with shape "
                   "(2,3).");
    assert_refused(mlx_linalg_solve_triangular(&res, square, vector, true, s),
                   "[linalg::solve_triangular] Last dimension of first input with shape (2,2) must "
                   "match second to last dimension of second input with shape (3).");
    assert_refused(mlx_linalg_solve(&res, whole, whole, s),
                   "[linalg::solve] Input arrays must promote to float32 or float64.");
    assert_refused(
        mlx_linalg_solve(&res, whole, square, s),
        "[linalg::lu] Arrays must have type float32 or float64. Received array with type "
        "int32.");
    mlx_array_free(square);
    mlx_array_free(wide);
    mlx_array_free(vector);
    mlx_array_free(number);
    mlx_array_free(whole);
    mlx_array_free(res);
}

static void test_norms_and_cross_products(void **state)
{
    mlx_array a = zeros(2, 2, 3, MLX_FLOAT32), v = zeros(1, 3, 0, MLX_FLOAT32);
    mlx_array four = zeros(1, 4, 0, MLX_FLOAT32), res = mlx_array_new();
    const int axes[] = { 0, 1, 0 };

    (void)state;
    assert_refused(mlx_linalg_norm(&res, a, 3, NULL, 0, false, s),
                   "[linalg::norm] Invalid ord 3 for matrix norm.");
    assert_refused(mlx_linalg_norm(&res, a, 1, axes, 0, false, s),
                   "[linalg::norm] Received too many axes for norm.");
    assert_refused(mlx_linalg_norm_l2(&res, a, axes, 3, false, s),
                   "[linalg::norm] Received too many axes for norm.");
    assert_refused(mlx_linalg_norm_matrix(&res, a, "x", NULL, 0, false, s),
                   "[linalg::norm] Invalid ord value 'x' for matrix norm.");
    assert_refused(mlx_linalg_norm_matrix(&res, v, "fro", NULL, 0, false, s),
                   "[linalg::norm] Norm 'fro' only supported for matrices, but received 1 "
                   "axis/axes.");
    assert_fails(mlx_linalg_norm(&res, a, 1, (int[]){ 7 }, 1, false, s));
    assert_fails(mlx_linalg_norm(&res, a, 2, (int[]){ 0, 7 }, 2, false, s));
    assert_refused(mlx_linalg_cross(&res, v, four, -1, s),
                   "[linalg::cross] The specified axis must have size 2 or 3.");
    assert_refused(mlx_linalg_cross(&res, a, v, 1, s),
                   "[linalg::cross] Axis 1 is out of bounds for array with 1 dimensions.");
    mlx_array_free(a);
    mlx_array_free(v);
    mlx_array_free(four);
    mlx_array_free(res);
}

/* ---- what is known when it is evaluated ---- */

static void test_failures(void **state)
{
    mlx_array singular = MATRIX(2, 2, 1, 2, 2, 4), fine = MATRIX(2, 2, 2, 0, 0, 1);
    mlx_array bad = MATRIX(2, 2, NAN, 1, 1, 2), infinite = MATRIX(2, 2, 1, INFINITY, 0, 1);
    mlx_array zero = zeros(2, 2, 2, MLX_FLOAT32);

    (void)state;
    assert_refused(call_inv(singular, s),
                   "[Inverse::eval_cpu] LU factorization failed with error code 2");
    assert_ok(call_inv(fine, s)); /* the stream goes on */
    assert_refused(call_tri_inv(zero, s),
                   "[Inverse::eval_cpu] triangular inversion failed with error code 1");
    assert_refused(call_svd(bad, s), "[SVD::eval_cpu] SVD failed with error code -4");
    assert_refused(call_svd(infinite, s), "[SVD::eval_cpu] SVD failed with error code -4");
    assert_refused(call_eig(bad, s),
                   "[Eig::eval_cpu] Eigenvalue decomposition failed with error code");
    assert_refused(call_eigvals(infinite, s),
                   "[Eig::eval_cpu] Eigenvalue decomposition failed with error code");
    assert_ok(call_lu(singular, s)); /* as in MLX no failures */
    assert_ok(call_cholesky(zero, s));
    assert_ok(call_slogdet(zero, s));
    mlx_array_free(singular);
    mlx_array_free(fine);
    mlx_array_free(bad);
    mlx_array_free(infinite);
    mlx_array_free(zero);
}

/* A matrix of many that cannot be inverted is found, whichever it is. */
static void test_failure_of_one(void **state)
{
    mlx_array res = mlx_array_new();
    float v[300][2][2];

    (void)state;
    for (int i = 0; i < 300; i++)
        memcpy(v[i], (float[2][2]){ { 1, 2 }, { 3, i == 250 ? 6 : 5 } }, sizeof v[i]);
    mlx_array a = mlx_array_new_data(v, (int[]){ 300, 2, 2 }, 3, MLX_FLOAT32);
    assert_ok(mlx_linalg_inv(&res, a, s));
    assert_refused(mlx_array_eval(res), "LU factorization failed with error code 2");
    const float *x = mlx_array_data_float32(res); /* told: it may be read, but is no number */
    assert_non_null(x);
    for (int i = 0; i < 300; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(isnan(x[4 * i + k]) != 0, i == 250);
    mlx_array_free(a);
    mlx_array_free(res);
}

/* Values, vectors and what is computed of them. */
static void test_what_failed_is_no_number(void **state)
{
    mlx_array a = MATRIX(2, 2, NAN, 1, 1, 2), values = mlx_array_new(), vectors = mlx_array_new();
    mlx_array sum = mlx_array_new();
    float v;

    (void)state;
    assert_ok(mlx_linalg_eig(&values, &vectors, a, s));
    assert_ok(mlx_abs(&sum, vectors, s));
    assert_ok(mlx_sum(&sum, sum, false, s));
    assert_refused(mlx_array_eval(sum), "Eigenvalue decomposition failed with error code");
    assert_ok(mlx_array_item_float32(&v, sum));
    assert_true(isnan(v));
    assert_ok(mlx_abs(&sum, values, s));
    assert_ok(mlx_max(&sum, sum, false, s));
    assert_ok(mlx_array_item_float32(&v, sum));
    assert_true(isnan(v));
    mlx_array_free(a);
    mlx_array_free(values);
    mlx_array_free(vectors);
    mlx_array_free(sum);
}

/* ---- gradients ---- */

typedef int (*function)(mlx_array *, const mlx_array);

static int norm_of_all(mlx_array *res, const mlx_array x)
{
    return mlx_linalg_norm_l2(res, x, NULL, 0, false, s);
}

static int norm_of_cubes(mlx_array *res, const mlx_array x)
{
    return mlx_linalg_norm(res, x, 3, (int[]){ 1 }, 1, false, s) || mlx_sum(res, *res, false, s);
}

static int largest_column(mlx_array *res, const mlx_array x)
{
    return mlx_linalg_norm(res, x, 1, NULL, 0, false, s);
}

static int frobenius(mlx_array *res, const mlx_array x)
{
    return mlx_linalg_norm_matrix(res, x, "fro", NULL, 0, false, s);
}

static int det_of(mlx_array *res, const mlx_array x)
{
    return mlx_linalg_det(res, x, s);
}

static int first_of_cross(mlx_array *res, const mlx_array x)
{
    mlx_array y = MATRIX(3, 3, 1, -2, 3, 0.5f, 1, 4, 2, 2, -1);

    int status = mlx_linalg_cross(res, x, y, -1, s) || mlx_multiply(res, *res, x, s) ||
                 mlx_multiply(res, *res, y, s) || mlx_sum(res, *res, false, s);
    mlx_array_free(y);
    return status;
}

static const float point[9] = { 3, -1, 2, 0.5f, 4, 1, -2, 1, 5 };

static float value_at(function f, const float *x)
{
    mlx_array a = matrix(x, 3, 3), y = mlx_array_new();
    float v = NAN;

    assert_ok(f(&y, a));
    assert_ok(mlx_array_item_float32(&v, y));
    mlx_array_free(a);
    mlx_array_free(y);
    return v;
}

static void check_gradient(function f)
{
    mlx_closure plain = mlx_closure_new_unary(f);
    mlx_closure_value_and_grad both = mlx_closure_value_and_grad_new();
    mlx_array a = matrix(point, 3, 3), g = mlx_array_new();
    mlx_vector_array in = mlx_vector_array_new_value(a), values = mlx_vector_array_new();
    mlx_vector_array grads = mlx_vector_array_new();

    assert_ok(mlx_value_and_grad(&both, plain, (int[]){ 0 }, 1));
    assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, both, in));
    assert_ok(mlx_vector_array_get(&g, grads, 0));
    assert_ok(mlx_contiguous(&g, g, false, s));
    assert_ok(mlx_array_eval(g));
    assert_int_equal(mlx_array_size(g), 9);
    for (int i = 0; i < 9; i++) {
        const float step = 1.0f / 64;
        float x[9];
        memcpy(x, point, sizeof x);
        x[i] += step;
        float high = value_at(f, x);
        x[i] -= 2 * step;
        float want = (high - value_at(f, x)) / (2 * step);
        float got = mlx_array_data_float32(g)[i];
        if (!(fabsf(got - want) <= 2e-3f * (1 + fabsf(want))))
            fail_msg("element %d: %g for %g", i, (double)got, (double)want);
    }
    mlx_closure_free(plain);
    mlx_closure_value_and_grad_free(both);
    mlx_array_free(a);
    mlx_array_free(g);
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
}

static void test_gradients(void **state)
{
    (void)state;
    check_gradient(norm_of_all);
    check_gradient(norm_of_cubes);
    check_gradient(largest_column);
    check_gradient(frobenius);
    check_gradient(det_of);
    check_gradient(first_of_cross);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_gpu_streams),
        cmocka_unit_test(test_systems),
        cmocka_unit_test(test_norms_and_cross_products),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_failure_of_one),
        cmocka_unit_test(test_what_failed_is_no_number),
        cmocka_unit_test(test_gradients),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
