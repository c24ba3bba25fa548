/* A block of a language model, differentiated on each device: by the kernels of its ops, and by
 * functions that are made of simpler ones. What the loss and the gradients add up to is MLX's. */
#include "lists.h"

#define BATCH 2
#define LENGTH 7
#define WIDTH 16
#define HEADS 4
#define KV_HEADS 2
#define SIZE (WIDTH / HEADS)
#define HIDDEN 24
#define WORDS 11
#define EPS 1e-5f

enum { X, NORM_1, Q, K, V, PROJECTION, NORM_2, GATE, UP, DOWN, HEAD, ARGUMENTS };

static const int shapes[ARGUMENTS][4] = { [X] = { BATCH, LENGTH, WIDTH },
                                          [NORM_1] = { WIDTH },
                                          [Q] = { WIDTH, WIDTH },
                                          [K] = { WIDTH, KV_HEADS *SIZE },
                                          [V] = { WIDTH, KV_HEADS *SIZE },
                                          [PROJECTION] = { WIDTH, WIDTH },
                                          [NORM_2] = { WIDTH },
                                          [GATE] = { WIDTH, HIDDEN },
                                          [UP] = { WIDTH, HIDDEN },
                                          [DOWN] = { HIDDEN, WIDTH },
                                          [HEAD] = { WIDTH, WORDS } };

/* Numbers between -1/2 and 1/2, of norms one more. */
static mlx_array argument(int k)
{
    float v[BATCH * LENGTH * WIDTH + WIDTH * HIDDEN];
    bool is_norm = k == NORM_1 || k == NORM_2;
    int n = 1, ndim = 0;

    for (; shapes[k][ndim]; ndim++)
        n *= shapes[k][ndim];
    for (int i = 0; i < n; i++)
        v[i] = (float)((i * 37 + k * 11) % 101) / 101.0f - 0.5f + (is_norm ? 1.0f : 0.0f);
    return mlx_array_new_data(v, shapes[k], ndim, MLX_FLOAT32);
}

/* ---- the ops, by parts ---- */

static bool by_parts;

static int rms_norm(mlx_array *y, mlx_array x, mlx_array w)
{
    mlx_array m = mlx_array_new(), eps = number(EPS);
    int rc = mlx_square(&m, x, s);

    if (!by_parts) {
        mlx_array_free(eps);
        mlx_array_free(m);
        return rc | mlx_fast_rms_norm(y, x, w, EPS, s);
    }
    rc |= mlx_mean_axis(&m, m, -1, true, s);
    rc |= mlx_add(&m, m, eps, s);
    rc |= mlx_rsqrt(&m, m, s);
    rc |= mlx_multiply(&m, m, x, s);
    rc |= mlx_multiply(y, m, w, s);
    mlx_array_free(eps);
    mlx_array_free(m);
    return rc;
}

/* Keys and values of a head for each query head. */
static int repeat_heads(mlx_array *x)
{
    return mlx_repeat_axis(x, *x, HEADS / KV_HEADS, 1, s);
}

static int attend(mlx_array *y, mlx_array q, mlx_array k, mlx_array v)
{
    mlx_array scale = number(0.5f), mask = mlx_array_new(), low = number(-1e30f),
              none = mlx_array_new();
    int rc = 0;

    if (!by_parts) {
        rc = mlx_fast_scaled_dot_product_attention(y, q, k, v, 0.5f, "causal", none, none, s);
    } else {
        rc |= repeat_heads(&k) | repeat_heads(&v);
        rc |= mlx_swapaxes(&k, k, 2, 3, s);
        rc |= mlx_matmul(y, q, k, s);
        rc |= mlx_multiply(y, *y, scale, s);
        rc |= mlx_tri(&mask, LENGTH, LENGTH, 0, MLX_BOOL, s);
        rc |= mlx_where(y, mask, *y, low, s);
        rc |= mlx_softmax_axis(y, *y, -1, true, s);
        rc |= mlx_matmul(y, *y, v, s);
    }
    mlx_array_free(scale);
    mlx_array_free(mask);
    mlx_array_free(low);
    mlx_array_free(q);
    mlx_array_free(k);
    mlx_array_free(v);
    return rc;
}

/* ---- the block ---- */

static int heads_of(mlx_array *y, mlx_array x, mlx_array w, int n, bool turns)
{
    mlx_optional_float base = { 100, true };
    int shape[] = { BATCH, LENGTH, n, SIZE };
    int rc = mlx_matmul(y, x, w, s);

    rc |= mlx_reshape(y, *y, shape, 4, s);
    rc |= mlx_swapaxes(y, *y, 1, 2, s);
    return turns ? rc | mlx_fast_rope(y, *y, SIZE, false, base, 1, 0, mlx_array_new(), s) : rc;
}

static int add_attention(mlx_array *x, const mlx_array *a)
{
    mlx_array h = mlx_array_new(), q = mlx_array_new(), k = mlx_array_new(), v = mlx_array_new();
    int shape[] = { BATCH, LENGTH, WIDTH };
    int rc = rms_norm(&h, *x, a[NORM_1]);

    rc |= heads_of(&q, h, a[Q], HEADS, true);
    rc |= heads_of(&k, h, a[K], KV_HEADS, true);
    rc |= heads_of(&v, h, a[V], KV_HEADS, false);
    rc |= attend(&h, q, k, v);
    rc |= mlx_swapaxes(&h, h, 1, 2, s);
    rc |= mlx_reshape(&h, h, shape, 3, s);
    rc |= mlx_matmul(&h, h, a[PROJECTION], s);
    rc |= mlx_add(x, *x, h, s);
    mlx_array_free(h);
    return rc;
}

static int add_network(mlx_array *x, const mlx_array *a)
{
    mlx_array h = mlx_array_new(), gate = mlx_array_new(), y = mlx_array_new();
    int rc = rms_norm(&h, *x, a[NORM_2]);

    rc |= mlx_matmul(&gate, h, a[GATE], s);
    rc |= mlx_sigmoid(&y, gate, s);
    rc |= mlx_multiply(&gate, gate, y, s);
    rc |= mlx_matmul(&y, h, a[UP], s);
    rc |= mlx_multiply(&y, gate, y, s);
    rc |= mlx_matmul(&y, y, a[DOWN], s);
    rc |= mlx_add(x, *x, y, s);
    mlx_array_free(h);
    mlx_array_free(gate);
    mlx_array_free(y);
    return rc;
}

/* Less the logarithm of the probability of word (5 * position) % WORDS. */
static int cross_entropy(mlx_array *y, mlx_array logits)
{
    mlx_array all = mlx_array_new(), target = mlx_array_new(), words = mlx_array_new_int(WORDS);
    int shape[] = { BATCH, LENGTH, 1 };
    int rc = mlx_logsumexp_axis(&all, logits, -1, true, s);

    rc |= mlx_arange(&target, 0, 5 * BATCH * LENGTH, 5, MLX_INT32, s);
    rc |= mlx_remainder(&target, target, words, s);
    rc |= mlx_reshape(&target, target, shape, 3, s);
    rc |= mlx_take_along_axis(y, logits, target, -1, s);
    rc |= mlx_subtract(y, all, *y, s);
    rc |= mlx_mean(y, *y, false, s);
    mlx_array_free(all);
    mlx_array_free(target);
    mlx_array_free(words);
    return rc;
}

static int loss(mlx_vector_array *res, const mlx_vector_array in)
{
    mlx_array a[ARGUMENTS], x = mlx_array_new(), y = mlx_array_new();
    int rc = 0;

    for (size_t i = 0; i < ARGUMENTS; i++)
        a[i] = get(in, i);
    rc |= mlx_array_set(&x, a[X]);
    rc |= add_attention(&x, a);
    rc |= add_network(&x, a);
    rc |= mlx_matmul(&x, x, a[HEAD], s);
    rc |= cross_entropy(&y, x);
    rc |= mlx_vector_array_set_value(res, y);
    for (size_t i = 0; i < ARGUMENTS; i++)
        mlx_array_free(a[i]);
    mlx_array_free(x);
    mlx_array_free(y);
    return rc;
}

/* ---- gradients ---- */

struct results {
    float loss;
    float grad[ARGUMENTS][BATCH * LENGTH * WIDTH + WIDTH * HIDDEN];
};

static void differentiate(struct results *r, mlx_device_type type, bool parts)
{
    mlx_device device = mlx_device_new_type(type, 0);
    mlx_closure f = mlx_closure_new_func(loss);
    mlx_closure_value_and_grad g = mlx_closure_value_and_grad_new();
    mlx_vector_array in = mlx_vector_array_new(), values = mlx_vector_array_new(),
                     grads = mlx_vector_array_new();
    int all[ARGUMENTS];

    assert_ok(mlx_set_default_device(device));
    by_parts = parts;
    for (int k = 0; k < ARGUMENTS; k++) {
        mlx_array a = argument(k);
        all[k] = k;
        assert_ok(mlx_vector_array_append_value(in, a));
        mlx_array_free(a);
    }
    assert_ok(mlx_value_and_grad(&g, f, all, ARGUMENTS));
    assert_ok(mlx_closure_value_and_grad_apply(&values, &grads, g, in));
    mlx_array value = get(values, 0);
    assert_ok(mlx_array_item_float32(&r->loss, value));
    mlx_array_free(value);
    for (size_t k = 0; k < ARGUMENTS; k++) {
        mlx_array a = get(grads, k);
        assert_ok(mlx_contiguous(&a, a, false, s));
        assert_ok(mlx_array_eval(a));
        memcpy(r->grad[k], mlx_array_data_float32(a), mlx_array_nbytes(a));
        mlx_array_free(a);
    }
    mlx_vector_array_free(in);
    mlx_vector_array_free(values);
    mlx_vector_array_free(grads);
    mlx_closure_value_and_grad_free(g);
    mlx_closure_free(f);
    mlx_device_free(device);
}

static size_t size_of(int k)
{
    size_t n = 1;

    for (int i = 0; shapes[k][i]; i++)
        n *= (size_t)shapes[k][i];
    return n;
}

static void assert_near(float got, float want, const char *what, int k)
{
    if (!(fabsf(got - want) <= 2e-5f * (1 + fabsf(want))))
        fail_msg("%s of argument %d: %.8g, not %.8g", what, k, (double)got, (double)want);
}

static void compare(const struct results *got, const struct results *want)
{
    assert_near(got->loss, want->loss, "loss", 0);
    for (int k = 0; k < ARGUMENTS; k++)
        for (size_t i = 0; i < size_of(k); i++)
            assert_near(got->grad[k][i], want->grad[k][i], "gradient", k);
}

static void test_devices(void **state)
{
    static struct results want, got;
    mlx_device gpu = mlx_device_new_type(MLX_GPU, 0);
    bool has_gpu = false;

    (void)state;
    differentiate(&want, MLX_CPU, true);
    differentiate(&got, MLX_CPU, false);
    compare(&got, &want);
    assert_ok(mlx_device_is_available(&has_gpu, gpu));
    mlx_device_free(gpu);
    if (!has_gpu)
        return;
    differentiate(&got, MLX_GPU, false);
    compare(&got, &want);
    differentiate(&got, MLX_GPU, true);
    compare(&got, &want);
}

/* The loss, and sums of (1 + i % 3) * element i. */
static void test_mlx(void **state)
{
    static const float want_loss = 2.81705427f,
                       want[ARGUMENTS] = { 1.4585108f,   0.24671323f, 0.87694448f, 0.48880704f,
                                           -0.91566579f, 0.08391068f, 1.2439555f,  1.3857874f,
                                           -1.3445145f,  -1.5164543f, -0.67229302f };
    static struct results got;

    (void)state;
    differentiate(&got, MLX_CPU, false);
    assert_near(got.loss, want_loss, "loss", 0);
    for (int k = 0; k < ARGUMENTS; k++) {
        float sum = 0;
        for (size_t i = 0; i < size_of(k); i++)
            sum += (float)(1 + i % 3) * got.grad[k][i];
        assert_near(sum, want[k], "sum", k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_mlx),
    };

    return cmocka_run_group_tests(tests, setup_cpu, NULL);
}
