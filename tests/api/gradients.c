/* Gradients of public functions where numbers are special: ties, zeros, infinities, empty parts,
 * other dtypes. Rules are held against differences in tests/unit. */
#include "functions.h"

/* ---- functions ---- */

FUNCTION(f_abs, mlx_abs(&y, a, s))
FUNCTION(f_sign, mlx_sign(&y, a, s))
FUNCTION(f_sqrt, mlx_sqrt(&y, a, s))
FUNCTION(f_rsqrt, mlx_rsqrt(&y, a, s))
FUNCTION(f_arctan, mlx_arctan(&y, a, s))
FUNCTION(f_log1p, mlx_log1p(&y, a, s))
FUNCTION(f_erf, mlx_erf(&y, a, s))
FUNCTION(f_erfinv, mlx_erfinv(&y, a, s))
FUNCTION(f_sigmoid, mlx_sigmoid(&y, a, s))
FUNCTION(f_copy, mlx_copy(&y, a, s))
FUNCTION(f_sum_3, (mlx_add(&y, a, a, s) || mlx_add(&y, y, a, s)))
FUNCTION(f_constant, (mlx_array_set_float32(&y, 1)))

FUNCTION(f_add, mlx_add(&y, a, b, s))
FUNCTION(f_subtract, mlx_subtract(&y, a, b, s))
FUNCTION(f_multiply, mlx_multiply(&y, a, b, s))
FUNCTION(f_divide, mlx_divide(&y, a, b, s))
FUNCTION(f_arctan2, mlx_arctan2(&y, a, b, s))
FUNCTION(f_maximum, mlx_maximum(&y, a, b, s))
FUNCTION(f_minimum, mlx_minimum(&y, a, b, s))
FUNCTION(f_logaddexp, mlx_logaddexp(&y, a, b, s))
FUNCTION(f_power, mlx_power(&y, a, b, s))
FUNCTION(f_where, mlx_where(&y, a, b, c, s))
FUNCTION(f_matmul, mlx_matmul(&y, a, b, s))
FUNCTION(f_addmm, mlx_addmm(&y, a, b, c, 2, 3, s))

FUNCTION(f_sum_none, mlx_sum_axes(&y, a, NULL, 0, false, s))
FUNCTION(f_sum_0, mlx_sum_axis(&y, a, 0, false, s))
FUNCTION(f_sum_1, mlx_sum_axis(&y, a, 1, false, s))
FUNCTION(f_prod_none, mlx_prod_axes(&y, a, NULL, 0, false, s))
FUNCTION(f_prod_0, mlx_prod_axis(&y, a, 0, false, s))
FUNCTION(f_prod, mlx_prod(&y, a, false, s))
FUNCTION(f_min_0, mlx_min_axis(&y, a, 0, false, s))
FUNCTION(f_min_02, mlx_min_axes(&y, a, LIST(0, 2), false, s))
FUNCTION(f_max_02, mlx_max_axes(&y, a, LIST(0, 2), false, s))
FUNCTION(f_max_none, mlx_max_axes(&y, a, NULL, 0, false, s))
FUNCTION(f_logsumexp, mlx_logsumexp(&y, a, false, s))
FUNCTION(f_logsumexp_0, mlx_logsumexp_axis(&y, a, 0, false, s))

FUNCTION(f_cumprod, mlx_cumprod(&y, a, 0, false, true, s))
FUNCTION(f_cumprod_behind, mlx_cumprod(&y, a, 0, true, false, s))

FUNCTION(f_full, mlx_full(&y, LIST(3, 2, 2), a, MLX_FLOAT32, s))
FUNCTION(f_transpose, mlx_transpose_axes(&y, a, LIST(1, 0), s))
FUNCTION(f_stepped, mlx_slice(&y, a, LIST(0, 0), LIST(2, 4), LIST(1, 2), s))
FUNCTION(f_slice_of_nothing, mlx_slice(&y, a, LIST(0, 0), LIST(0, 4), LIST(1, 2), s))
FUNCTION(f_replace, mlx_slice_update(&y, a, b, LIST(1), LIST(3), LIST(1), s))
FUNCTION(f_increase, mlx_slice_update_add(&y, a, b, LIST(1), LIST(3), LIST(1), s))

/* The first and the last third. */
static int ends(mlx_array *y, mlx_array a)
{
    mlx_vector_array parts = mlx_vector_array_new();

    int status = mlx_split(&parts, a, 3, 0, s);
    mlx_array x = get(parts, 0), z = get(parts, 2);
    status = status || mlx_multiply(y, x, z, s);
    mlx_array_free(x);
    mlx_array_free(z);
    mlx_vector_array_free(parts);
    return status;
}
FUNCTION(f_ends, ends(&y, a))

/* a, zeros, b */
static int around(mlx_array *y, mlx_array a, mlx_array b)
{
    mlx_array zeros = mlx_array_new();

    int status = mlx_zeros(&zeros, LIST(2), MLX_FLOAT32, s);
    mlx_vector_array parts = mlx_vector_array_new_data((mlx_array[]){ a, zeros, b }, 3);
    status = status || mlx_concatenate(y, parts, s);
    mlx_array_free(zeros);
    mlx_vector_array_free(parts);
    return status;
}
FUNCTION(f_around, around(&y, a, b))

static int window(mlx_array *y, mlx_array a)
{
    mlx_array at = mlx_array_new_int(1);

    int status = mlx_slice_dynamic(y, a, at, LIST(0), LIST(2), s);
    mlx_array_free(at);
    return status;
}
FUNCTION(f_window, window(&y, a))

FUNCTION(f_sort, mlx_sort_axis(&y, a, 1, s))
FUNCTION(f_partition, mlx_partition_axis(&y, a, 1, 0, s))

static int strided(mlx_array *y, mlx_array a)
{
    static const int64_t strides[] = { 1, 1 };

    return mlx_as_strided(y, a, LIST(3, 3), strides, 2, 1, s);
}
FUNCTION(f_strided, strided(&y, a))

/* The matrices of a times these of b. */
static int chosen(mlx_array *y, mlx_array a, mlx_array b)
{
    static const uint32_t numbers[] = { 1, 0, 1 };
    static const int n = 3;
    mlx_array at = mlx_array_new_data(numbers, &n, 1, MLX_UINT32), none = mlx_array_new();

    int status = mlx_gather_mm(y, a, b, none, at, false, s);
    mlx_array_free(at);
    return status;
}
FUNCTION(f_gather_mm, chosen(&y, a, b))

FUNCTION(f_rms_norm, mlx_fast_rms_norm(&y, a, b, 1e-5f, s))
FUNCTION(f_layer_norm, mlx_fast_layer_norm(&y, a, b, c, 1e-5f, s))

static int turned(mlx_array *y, mlx_array a, bool traditional, int offset)
{
    mlx_optional_float base = { 100, true };

    return mlx_fast_rope(y, a, 4, traditional, base, offset ? 0.5f : 1, offset, mlx_array_new(), s);
}
FUNCTION(f_rope, turned(&y, a, false, 3))
FUNCTION(f_rope_traditional, turned(&y, a, true, 0))

/* Of one head, whose rows the arrays are. */
static int attention(mlx_array *y, const mlx_array in[5], const char *mode)
{
    mlx_array part[3];
    int status = 0;

    for (int i = 0; i < 3; i++) {
        part[i] = mlx_array_new();
        status = status || mlx_expand_dims_axes(&part[i], in[i], LIST(0, 1), s);
    }
    status = status ||
             mlx_fast_scaled_dot_product_attention(y, part[0], part[1], part[2], 0.8f, mode, in[3],
                                                   in[4], s) ||
             mlx_squeeze_axes(y, *y, LIST(0, 1), s);
    for (int i = 0; i < 3; i++)
        mlx_array_free(part[i]);
    return status;
}
#define ATTENTION(...) attention(&y, (const mlx_array[5]){ __VA_ARGS__ }, "")
FUNCTION(f_attention, ATTENTION(a, b, c))
FUNCTION(f_attention_masked, attention(&y, (const mlx_array[5]){ a, b, b, c }, "array"))
FUNCTION(f_attention_sink, ATTENTION(a, b, b, { NULL }, c))
FUNCTION(f_attention_causal, attention(&y, (const mlx_array[5]){ a, b, c }, "causal"))

/* ---- their gradients ---- */

static const struct row {
    const char *name;
    int (*f)(mlx_vector_array *res, const mlx_vector_array in);
    int n;
    struct values in[3], cotan;
    float want[3][12];
} rows[] = {
#define ROW(...) { __VA_ARGS__ },
#include "gradient_rows.def"
#undef ROW
};

static void test_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        mlx_closure f = mlx_closure_new_func(r->f);
        mlx_vector_array in = arrays(r->in, r->n), cotans = arrays(&r->cotan, 1),
                         out = mlx_vector_array_new(), grads = mlx_vector_array_new();
        assert_ok(mlx_vjp(&out, &grads, f, in, cotans));
        for (int k = 0; k < r->n; k++)
            check(r->name, get(grads, (size_t)k), r->want[k]);
        mlx_vector_array_free(in);
        mlx_vector_array_free(cotans);
        mlx_vector_array_free(out);
        mlx_vector_array_free(grads);
        mlx_closure_free(f);
    }
}

/* The sum of the products of elements. Takes a over. */
static double dot(mlx_array a, const float *v)
{
    double sum = 0;

    assert_ok(mlx_contiguous(&a, a, false, s));
    assert_ok(mlx_array_eval(a));
    for (size_t i = 0; i < mlx_array_size(a); i++)
        sum += (double)mlx_array_data_float32(a)[i] * (double)v[i];
    mlx_array_free(a);
    return sum;
}

/* Tangents of one everywhere give what the gradients add up to. Where elements are equal the two
 * may take different ones; they add up to the same. */
static void test_tangents(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        mlx_closure f = mlx_closure_new_func(r->f);
        mlx_vector_array in = arrays(r->in, r->n), out = mlx_vector_array_new(),
                         tans = mlx_vector_array_new(), ones = mlx_vector_array_new();
        double want = 0;
        for (int k = 0; k < r->n; k++) {
            mlx_array a = get(in, (size_t)k);
            for (size_t j = 0; j < mlx_array_size(a); j++)
                want += (double)r->want[k][j];
            assert_ok(mlx_ones_like(&a, a, s));
            assert_ok(mlx_vector_array_append_value(ones, a));
            mlx_array_free(a);
        }
        assert_ok(mlx_jvp(&out, &tans, f, in, ones));
        double got = dot(get(tans, 0), r->cotan.v);
        if (isfinite(want) && !(fabs(got - want) <= 1e-4 * (1 + fabs(want))))
            fail_msg("%s: %g, not %g", r->name, got, want);
        mlx_vector_array_free(in);
        mlx_vector_array_free(out);
        mlx_vector_array_free(tans);
        mlx_vector_array_free(ones);
        mlx_closure_free(f);
    }
}

/* ---- gradients of gradients ---- */

FUNCTION(f_logcumsumexp, mlx_logcumsumexp(&y, a, 0, false, true, s))
FUNCTION(f_softmax, mlx_softmax(&y, a, false, s))
FUNCTION(f_max, mlx_max(&y, a, false, s))

/* The payload's result after its infinities, which have no gradient, are gone, squared and added
 * up. */
static int energy(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array out = mlx_vector_array_new();
    mlx_array y = mlx_array_new(), zero = number(0), bad = mlx_array_new();

    int status = mlx_closure_apply(&out, *(mlx_closure *)payload, in) ||
                 mlx_vector_array_get(&y, out, 0) || mlx_isinf(&bad, y, s) ||
                 mlx_where(&y, bad, zero, y, s) || mlx_multiply(&y, y, y, s) ||
                 mlx_sum(&y, y, false, s) || mlx_vector_array_set_value(res, y);
    mlx_vector_array_free(out);
    mlx_array_free(y);
    mlx_array_free(zero);
    mlx_array_free(bad);
    return status;
}

/* The gradient of the payload, whose result is a number. */
static int gradient(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_vector_array out = mlx_vector_array_new(), one = ONE(number(1));

    int status = mlx_vjp(&out, res, *(mlx_closure *)payload, in, one);
    mlx_vector_array_free(out);
    mlx_vector_array_free(one);
    return status;
}

#define POINTS 4

/* What g gives at x + step * v. */
static void along(float *out, mlx_closure g, const float *v, float step)
{
    static const float x[POINTS] = { 0.75f, -0.5f, 0.25f, 1.5f };
    float at[POINTS];
    mlx_vector_array y = mlx_vector_array_new();

    for (int i = 0; i < POINTS; i++)
        at[i] = x[i] + step * v[i];
    mlx_vector_array in = ONE(vector_of(at, POINTS));
    assert_ok(mlx_closure_apply(&y, g, in));
    mlx_array a = get(y, 0);
    assert_ok(mlx_array_eval(a));
    memcpy(out, mlx_array_data_float32(a), POINTS * sizeof *out);
    mlx_array_free(a);
    mlx_vector_array_free(in);
    mlx_vector_array_free(y);
}

/* The gradient of v times the gradient, and its change along v, which is the same. */
static void test_second_order(void **state)
{
    static const struct {
        const char *name;
        int (*f)(mlx_vector_array *res, const mlx_vector_array in);
    } smooth[] = {
        { "cumprod", f_cumprod },
        { "cumprod behind", f_cumprod_behind },
        { "logcumsumexp", f_logcumsumexp },
        { "prod", f_prod },
        { "max", f_max },
        { "logsumexp", f_logsumexp },
        { "softmax", f_softmax },
    };
    static const float v[POINTS] = { 1, -2, 0.5f, 1.5f };
    const float step = 1e-2f;

    (void)state;
    for (size_t i = 0; i < sizeof smooth / sizeof smooth[0]; i++) {
        mlx_closure f = mlx_closure_new_func(smooth[i].f);
        mlx_closure e = mlx_closure_new_func_payload(energy, &f, NULL);
        mlx_closure g = mlx_closure_new_func_payload(gradient, &e, NULL);
        float high[POINTS], low[POINTS], zero[POINTS];
        along(high, g, v, step);
        along(low, g, v, -step);
        along(zero, g, v, 0);
        mlx_vector_array in = ONE(vector_of((float[]){ 0.75f, -0.5f, 0.25f, 1.5f }, POINTS)),
                         cotans = ONE(vector_of(v, POINTS)), out = mlx_vector_array_new(),
                         grads = mlx_vector_array_new();
        assert_ok(mlx_vjp(&out, &grads, g, in, cotans));
        check(smooth[i].name, get(out, 0), zero);
        mlx_array h = get(grads, 0);
        assert_ok(mlx_array_eval(h));
        for (int k = 0; k < POINTS; k++) {
            float got = mlx_array_data_float32(h)[k], want = (high[k] - low[k]) / (2 * step);
            if (!(fabsf(got - want) <= 5e-3f * (1 + fabsf(want))))
                fail_msg("%s: element %d is %g, not %g", smooth[i].name, k, (double)got,
                         (double)want);
        }
        mlx_array_free(h);
        mlx_vector_array_free(in);
        mlx_vector_array_free(cotans);
        mlx_vector_array_free(out);
        mlx_vector_array_free(grads);
        mlx_closure_free(g);
        mlx_closure_free(e);
        mlx_closure_free(f);
    }
}

/* ---- tangents of some arguments only ---- */

/* Each argument has its own tangent, whichever others have one. */
static void test_partial_tangents(void **state)
{
    static const float tangents[3][2] = { { 1, 0 }, { 0, 1 }, { 1, 1 } };
    const float by_base = 12, by_exponent = 8 * logf(2);
    mlx_closure f = mlx_closure_new_func(f_power);
    mlx_vector_array in = TWO(number(2), number(3)), out = mlx_vector_array_new(),
                     slopes = mlx_vector_array_new();

    (void)state;
    for (int i = 0; i < 3; i++) {
        const float *t = tangents[i];
        mlx_vector_array tans = TWO(number(t[0]), number(t[1]));
        assert_ok(mlx_jvp(&out, &slopes, f, in, tans));
        VALUES(slopes, 0, t[0] * by_base + t[1] * by_exponent);
        mlx_vector_array_free(tans);
    }
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_vector_array_free(slopes);
    mlx_closure_free(f);
}

/* x + the number of conditions that hold, which has no tangent. */
static int conditions(mlx_array *y, mlx_array a)
{
    mlx_array zero = number(0), low = mlx_array_new(), high = mlx_array_new();

    int status = mlx_equal(&low, a, zero, s) || mlx_greater(&high, a, zero, s) ||
                 mlx_bitwise_or(&low, low, high, s) || mlx_astype(&low, low, MLX_FLOAT32, s) ||
                 mlx_add(y, a, low, s);
    mlx_array_free(zero);
    mlx_array_free(low);
    mlx_array_free(high);
    return status;
}
FUNCTION(f_conditions, conditions(&y, a))

static void test_conditions(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_conditions);
    mlx_vector_array in = ONE(vector_of((float[]){ 0, 1, -2 }, 3)), out = mlx_vector_array_new(),
                     slopes = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_jvp(&out, &slopes, f, in, in));
    VALUES(out, 0, 1, 2, -2);
    VALUES(slopes, 0, 0, 1, -2);
    mlx_vector_array_free(in);
    mlx_vector_array_free(out);
    mlx_vector_array_free(slopes);
    mlx_closure_free(f);
}

/* ---- dtypes ---- */

FUNCTION(f_sum, mlx_sum(&y, a, false, s))
FUNCTION(f_int, mlx_astype(&y, a, MLX_INT32, s))

/* A gradient has the dtype of its argument. */
static void test_small_floats(void **state)
{
    static const mlx_dtype dtypes[] = { MLX_FLOAT16, MLX_BFLOAT16, MLX_FLOAT32, MLX_FLOAT64 };
    mlx_closure f = mlx_closure_new_func(f_sum);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();

    (void)state;
    assert_ok(mlx_value_and_grad(&g, f, (int[]){ 0 }, 1));
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        mlx_array x = number(1), d = mlx_array_new();
        mlx_vector_array values = mlx_vector_array_new(), grads = mlx_vector_array_new();
        assert_ok(mlx_astype(&x, x, dtypes[i], s));
        mlx_vector_array in = ONE(x);
        assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
        assert_ok(mlx_vector_array_get(&d, grads, 0));
        assert_int_equal(mlx_array_dtype(d), dtypes[i]);
        mlx_array_free(d);
        mlx_vector_array_free(in);
        mlx_vector_array_free(values);
        mlx_vector_array_free(grads);
    }
    mlx_closure_value_and_grad_free(g);
    mlx_closure_free(f);
}

/* Casts cast what comes back, too. */
static void test_casts(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_int);
    mlx_array two = mlx_array_new_int(2);
    mlx_vector_array in = ONE(number(1.5f)), cotans = ONE(two), out = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_vjp(&out, &grads, f, in, cotans));
    check("astype", get(grads, 0), (float[]){ 2 });
    assert_ok(mlx_jvp(&out, &grads, f, in, in));
    mlx_array t = get(grads, 0);
    assert_int_equal(mlx_array_dtype(t), MLX_INT32);
    mlx_array_free(t);
    mlx_vector_array_free(in);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

/* ---- comparisons have none ---- */

#define COMPARISON(word) FUNCTION(f_##word, mlx_##word(&y, a, b, s))
COMPARISON(equal)
COMPARISON(greater)
COMPARISON(greater_equal)
COMPARISON(less)
COMPARISON(less_equal)

static void test_comparisons(void **state)
{
    int (*const fs[])(mlx_vector_array *, const mlx_vector_array) = { f_equal, f_greater,
                                                                      f_greater_equal, f_less,
                                                                      f_less_equal };
    mlx_vector_array in = TWO(vector_of((float[]){ 1, 1 }, 2), number(0)),
                     cotans = ONE(vector_of((float[]){ 1, 1 }, 2));
    mlx_vector_array out = mlx_vector_array_new(), grads = mlx_vector_array_new();

    (void)state;
    for (size_t i = 0; i < sizeof fs / sizeof fs[0]; i++) {
        mlx_closure f = mlx_closure_new_func(fs[i]);
        assert_ok(mlx_vjp(&out, &grads, f, in, cotans));
        VALUES(grads, 0, 0, 0);
        VALUES(grads, 1, 0);
        assert_ok(mlx_jvp(&out, &grads, f, in, in));
        VALUES(grads, 0, 0, 0); /* float32, as what is compared */
        mlx_closure_free(f);
    }
    mlx_vector_array_free(in);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
}

/* ---- complex numbers ---- */

struct complex_row {
    const char *name;
    int (*f)(mlx_vector_array *res, const mlx_vector_array in);
    float x[2], y[2], cotan[2], want[2][2]; /* real and imaginary parts */
};

static mlx_array complex_of(const float *v)
{
    return mlx_array_new_data(v, NULL, 0, MLX_COMPLEX64);
}

static void check_complex(const char *name, mlx_array a, const float *want)
{
    mlx_array part[2] = { mlx_array_new(), mlx_array_new() };

    assert_int_equal(mlx_array_dtype(a), MLX_COMPLEX64);
    assert_ok(mlx_real(&part[0], a, s));
    assert_ok(mlx_imag(&part[1], a, s));
    check(name, part[0], &want[0]);
    check(name, part[1], &want[1]);
    mlx_array_free(a);
}

static void test_complex(void **state)
{
    static const struct complex_row complex_rows[] = {
        { "add", f_add, { 1, 1 }, { 1, 1 }, { 3, 3 }, { { 3, 3 }, { 3, 3 } } },
        { "multiply", f_multiply, { 2, 4 }, { 3, 1 }, { 2, 3 }, { { 9, 7 }, { 16, -2 } } },
        { "divide", f_divide, { 2, 3 }, { 1, 2 }, { 2, -4 }, { { 2, 0 }, { -3.2f, -0.4f } } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof complex_rows / sizeof complex_rows[0]; i++) {
        const struct complex_row *r = &complex_rows[i];
        mlx_closure f = mlx_closure_new_func(r->f);
        mlx_vector_array in = TWO(complex_of(r->x), complex_of(r->y)),
                         cotans = ONE(complex_of(r->cotan)), out = mlx_vector_array_new(),
                         grads = mlx_vector_array_new();
        assert_ok(mlx_vjp(&out, &grads, f, in, cotans));
        check_complex(r->name, get(grads, 0), r->want[0]);
        check_complex(r->name, get(grads, 1), r->want[1]);
        mlx_vector_array_free(in);
        mlx_vector_array_free(cotans);
        mlx_vector_array_free(out);
        mlx_vector_array_free(grads);
        mlx_closure_free(f);
    }
}

/* The gradient of a real factor of complex numbers is real. */
static void test_mixed(void **state)
{
    mlx_closure f = mlx_closure_new_func(f_multiply);
    mlx_vector_array in = TWO(complex_of((float[]){ 2, 4 }), number(3)),
                     cotans = ONE(complex_of((float[]){ 2, 3 })), out = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_vjp(&out, &grads, f, in, cotans));
    check_complex("multiply", get(grads, 0), (float[]){ 6, 9 });
    check("multiply", get(grads, 1), (float[]){ 16 });
    mlx_vector_array_free(in);
    mlx_vector_array_free(cotans);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
}

/* ---- functions that are more than their graph ---- */

/* x * x where x + 2 is above 3, else 4 * x. */
static int branching(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array x = get(in, 0), y = number(2), four = number(4);
    float v = 0;

    int status = mlx_add(&y, x, y, s) || mlx_array_item_float32(&v, y);
    status = status || (v > 3 ? mlx_multiply(&y, y, y, s) : mlx_multiply(&y, y, four, s)) ||
             mlx_vector_array_set_value(res, y);
    mlx_array_free(x);
    mlx_array_free(y);
    mlx_array_free(four);
    return status;
}

static void test_branches(void **state)
{
    static const float x[] = { 0.5f, 1.5f }, want[] = { 4, 7 };
    mlx_closure f = mlx_closure_new_func(branching);
    mlx_vector_array out = mlx_vector_array_new(), grads = mlx_vector_array_new(),
                     one = ONE(number(1));

    (void)state;
    for (int i = 0; i < 2; i++) {
        mlx_vector_array in = ONE(number(x[i]));
        assert_ok(mlx_vjp(&out, &grads, f, in, one));
        VALUES(grads, 0, want[i]);
        assert_ok(mlx_jvp(&out, &grads, f, in, one));
        VALUES(grads, 0, want[i]);
        mlx_vector_array_free(in);
    }
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_vector_array_free(one);
    mlx_closure_free(f);
}

/* What a function has added up: x times itself, over calls. */
static int stateful(mlx_vector_array *res, const mlx_vector_array in, void *payload)
{
    mlx_array x = get(in, 0), y = mlx_array_new(), *total = payload;

    int status = mlx_multiply(&y, x, *total, s) || mlx_add(total, *total, y, s) ||
                 mlx_vector_array_set_value(res, y);
    mlx_array_free(x);
    mlx_array_free(y);
    return status;
}

/* What a function leaves outside is an array like others afterwards; what it takes from there is
 * no argument, even the array that is one as well. */
static void test_state(void **state)
{
    mlx_array total = number(3);
    mlx_closure f = mlx_closure_new_func_payload(stateful, &total, NULL);
    mlx_vector_array in = ONE(number(2)), one = ONE(number(1)), out = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();

    (void)state;
    assert_ok(mlx_vjp(&out, &grads, f, in, one));
    VALUES(grads, 0, 3);
    assert_floats(total, (float[]){ 9 }, 1);
    assert_ok(mlx_jvp(&out, &grads, f, in, one));
    VALUES(grads, 0, 9);
    mlx_vector_array_free(in);
    in = ONE(number(2));
    assert_ok(mlx_vector_array_get(&total, in, 0));
    assert_ok(mlx_vjp(&out, &grads, f, in, one));
    VALUES(out, 0, 4);
    VALUES(grads, 0, 2);
    mlx_vector_array_free(in);
    mlx_vector_array_free(one);
    mlx_vector_array_free(out);
    mlx_vector_array_free(grads);
    mlx_closure_free(f);
    mlx_array_free(total);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_tangents),
        cmocka_unit_test(test_small_floats),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_comparisons),
        cmocka_unit_test(test_complex),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_branches),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_second_order),
        cmocka_unit_test(test_partial_tangents),
        cmocka_unit_test(test_conditions),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
