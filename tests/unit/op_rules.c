/* Rules of ops for transforms, called as transforms will call them: vjp and jvp against finite
 * differences, vmap against a loop over the batch. */
#include <math.h>

#include "eval/eval.h"
#include "graph/op_call.h"
#include "ops/build.h"
#include "support/arrays.h"
#include "support/gpu.h"

#define MAX_IN 4
#define BATCH 3

/* One application of an op, made by its constructor. */
struct subject {
    const char *name;
    enum op_id op;
    /* Nodes of the op are what it makes, or inputs of that. */
    enum err (*make)(struct arr **out, struct arr *const *in, struct strm *s);
    struct shp shape[MAX_IN];
    enum dtype dtype[MAX_IN]; /* float32 also stands for float64 */
    int n_in;
    unsigned grads;         /* inputs that have gradients, as bits */
    bool no_vjp, is_single; /* is_single: float32 only */
};

static enum err make_add(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_binary(out, OP_ADD, in[0], in[1], s);
}

static enum err make_sum(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_reduce(out, REDUCE_SUM, in[0],
                      &(struct ops_axes){ { (int32_t[]){ 0, -1 }, 2 }, true }, s);
}

static enum err make_matmul(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_matmul(out, in[0], in[1], s);
}

static enum err make_take(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_take(out, in[0], in[1], 1, s);
}

static enum err make_update(struct arr **out, struct arr *const *in, enum update_kind kind,
                            struct strm *s)
{
    struct ops_slice region = { { (int32_t[]){ 1, 3 }, 2 },
                                { (int32_t[]){ 4, 0 }, 2 },
                                { (int32_t[]){ 2, -1 }, 2 } };

    return ops_slice_update(
        out, in[0], &(struct ops_slice_update){ .update = in[1], .region = region, .kind = kind },
        s);
}

static enum err make_replace(struct arr **out, struct arr *const *in, struct strm *s)
{
    return make_update(out, in, UPDATE_NONE, s);
}

static enum err make_increase(struct arr **out, struct arr *const *in, struct strm *s)
{
    return make_update(out, in, UPDATE_SUM, s);
}

static enum err make_softmax(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_softmax(out, in[0], (struct ints){ (int32_t[]){ -1 }, 1 }, true, s);
}

static enum err make_qmm(struct arr **out, struct arr *const *in, bool transpose, struct strm *s)
{
    struct ops_packed w = { in[1], in[2], in[3], { &(int32_t){ 32 }, &(int32_t){ 4 }, "affine" } };

    return ops_quantized_matmul(out, in[0], &w, transpose, s);
}

static enum err make_qmm_transposed(struct arr **out, struct arr *const *in, struct strm *s)
{
    return make_qmm(out, in, true, s);
}

static enum err make_qmm_plain(struct arr **out, struct arr *const *in, struct strm *s)
{
    return make_qmm(out, in, false, s);
}

static enum err make_bits(struct arr **out, struct arr *const *in, struct strm *s)
{
    return ops_random_bits(out, (struct ints){ (int32_t[]){ 3, 2 }, 2 }, 4, in[0], s);
}

#define F DT_FLOAT32
#define N DT_INT32
#define U DT_UINT32
static const struct subject subjects[] = {
    { "add", OP_ADD, make_add, { { 2, { 2, 3 } }, { 2, { 2, 3 } } }, { F, F }, 2, .grads = 3 },
    { "add of scalars", OP_ADD, make_add, { { 0 }, { 0 } }, { F, F }, 2, .grads = 3 },
    { "sum", OP_REDUCE, make_sum, { { 3, { 3, 2, 4 } } }, { F }, 1, .grads = 1 },
    { "sum of a matrix", OP_REDUCE, make_sum, { { 2, { 5, 3 } } }, { F }, 1, .grads = 1 },
    { "matmul",
      OP_MATMUL,
      make_matmul,
      { { 2, { 4, 3 } }, { 2, { 3, 5 } } },
      { F, F },
      2,
      .grads = 3 },
    { "matmul of batches",
      OP_MATMUL,
      make_matmul,
      { { 3, { 2, 2, 3 } }, { 3, { 2, 3, 2 } } },
      { F, F },
      2,
      .grads = 3 },
    { "gather",
      OP_GATHER,
      make_take,
      { { 3, { 2, 4, 3 } }, { 1, { 3 } } },
      { F, N },
      2,
      .grads = 1,
      .no_vjp = true },
    { "gather by a matrix",
      OP_GATHER,
      make_take,
      { { 2, { 3, 4 } }, { 2, { 2, 2 } } },
      { F, N },
      2,
      .grads = 1,
      .no_vjp = true },
    { "slice_update",
      OP_SLICE_UPDATE,
      make_replace,
      { { 2, { 5, 4 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .grads = 3 },
    { "slice_update_add",
      OP_SLICE_UPDATE,
      make_increase,
      { { 2, { 5, 4 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .grads = 3 },
    { "softmax", OP_SOFTMAX, make_softmax, { { 2, { 3, 5 } } }, { F }, 1, .grads = 1 },
    { "softmax of a vector", OP_SOFTMAX, make_softmax, { { 1, { 4 } } }, { F }, 1, .grads = 1 },
    { "quantized_matmul",
      OP_QUANTIZED_MATMUL,
      make_qmm_transposed,
      { { 2, { 3, 64 } }, { 2, { 5, 8 } }, { 2, { 5, 2 } }, { 2, { 5, 2 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "quantized_matmul of a vector",
      OP_QUANTIZED_MATMUL,
      make_qmm_transposed,
      { { 1, { 32 } }, { 2, { 6, 4 } }, { 2, { 6, 1 } }, { 2, { 6, 1 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "quantized_matmul of batches",
      OP_QUANTIZED_MATMUL,
      make_qmm_plain,
      { { 3, { 2, 3, 4 } }, { 3, { 2, 4, 4 } }, { 3, { 2, 4, 1 } }, { 3, { 2, 4, 1 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "random bits", OP_RANDOM_BITS, make_bits, { { 1, { 2 } } }, { U }, 1 },
};

static struct rng r = { 1 };
static struct strm *s;     /* of this run */
static enum dtype working; /* what float32 stands for */

/* ---- arrays ---- */

/* Numbers in [-1, 1), indices that are inside of everything here, or words. */
static struct arr *random_input(const struct shp *shape, enum dtype t)
{
    size_t n = shp_size(shape);
    double complex *v = mem_alloc_array(n, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = t == F   ? rng_below(&r, 2000) / 1000.0 - 1
               : t == N ? rng_below(&r, 3)
                        : (double)(uint32_t)rng_next(&r);
    struct arr *a = arr_of(v, shape, t == F ? working : t);
    mem_free(v);
    return a;
}

/* a + step * b */
static struct arr *moved(struct arr *a, struct arr *b, double step)
{
    double complex *x = arr_values(a), *y = arr_values(b);
    struct shp shape;

    for (size_t i = 0; i < a->size; i++)
        x[i] += step * y[i];
    arr_shape(&shape, a);
    struct arr *m = arr_of(x, &shape, (enum dtype)a->dtype);
    mem_free(x);
    mem_free(y);
    return m;
}

static double dot(struct arr *a, struct arr *b)
{
    double complex *x = arr_values(a), *y = arr_values(b);
    double sum = 0;

    for (size_t i = 0; i < a->size; i++)
        sum += creal(x[i] * y[i]);
    mem_free(x);
    mem_free(y);
    return sum;
}

static void check_close(const struct subject *f, const char *what, double got, double want)
{
    double tolerance = working == DT_FLOAT64 ? 1e-6 : 3e-3;

    if (!(fabs(got - want) <= tolerance * (1 + fabs(want))))
        fail_msg("%s of %s: %.9g instead of %.9g", what, f->name, got, want);
}

/* The node of the op behind what a constructor made. */
static struct arr *find(struct arr *out, enum op_id op)
{
    while (out->node->op != op) {
        assert_true(out->node->n_in > 0);
        out = out->node->in[0];
    }
    return out;
}

static struct op_apply apply_of(const struct arr *a)
{
    const struct node *n = a->node;

    return (struct op_apply){ .op = (enum op_id)n->op,
                              .params = n->params,
                              .state = n->state,
                              .in = n->in,
                              .n_in = (size_t)n->n_in,
                              .strm = s };
}

/* ---- gradients ---- */

/* (f(x + step * v) - f(x - step * v)) / (2 * step) for input i. */
static struct arr *difference(const struct subject *f, struct arr *const *in, int i, struct arr *v)
{
    /* All but softmax are linear in each input. */
    double step = f->op == OP_SOFTMAX ? working == DT_FLOAT64 ? 1e-4 : 1e-2 : 0.5;
    struct arr *side[2] = { NULL, NULL };

    for (int k = 0; k < 2; k++) {
        struct arr *x[MAX_IN], *out = NULL;
        memcpy(x, in, sizeof x);
        x[i] = moved(in[i], v, k ? -step : step);
        assert_ok(f->make(&out, x, s));
        side[k] = arr_ref(find(out, f->op));
        assert_ok(eval_arrays(&side[k], 1, false));
        arr_unref(&out);
        arr_unref(&x[i]);
    }
    struct arr *d = moved(side[0], side[1], -1), *zero = moved(d, d, -1);
    struct arr *slope = moved(zero, d, 1 / (2 * step));
    arr_unref(&side[0]);
    arr_unref(&side[1]);
    arr_unref(&d);
    arr_unref(&zero);
    return slope;
}

static void check_jvp(const struct subject *f, struct arr *out, int i, struct arr *v,
                      struct arr *want)
{
    struct arr *tan[MAX_IN] = { NULL }, *got = NULL;

    tan[i] = v;
    struct jvp_call c = { apply_of(out), &out, tan, &got };
    assert_ok(op_table[f->op].jvp(&c));
    assert_non_null(got);
    assert_true(arr_same_shape(got, out) && got->dtype == out->dtype);
    double complex *x = arr_values(got), *y = arr_values(want);
    for (size_t k = 0; k < got->size; k++)
        check_close(f, "jvp", creal(x[k]), creal(y[k]));
    mem_free(x);
    mem_free(y);
    arr_unref(&got);
}

static void check_vjp(const struct subject *f, struct arr *out, int i, struct arr *v,
                      struct arr *want)
{
    struct shp shape;
    struct arr *got = NULL;

    arr_shape(&shape, out);
    struct arr *cotan = random_input(&shape, F);
    struct vjp_call c = { apply_of(out), &out, &cotan, &i, 1, &got };
    assert_ok(op_table[f->op].vjp(&c));
    assert_true(arr_same_shape(got, out->node->in[i]) && got->dtype == out->dtype);
    check_close(f, "vjp", dot(got, v), dot(cotan, want));
    arr_unref(&got);
    arr_unref(&cotan);
}

/* A node that is evaluated forgets its inputs: each check gets a new one. */
static void check_input(const struct subject *f, struct arr *const *in, int i)
{
    struct arr *v = random_input(&f->shape[i], F), *want = difference(f, in, i, v), *out = NULL;

    assert_ok(f->make(&out, in, s));
    check_jvp(f, find(out, f->op), i, v, want);
    arr_unref(&out);
    if (!f->no_vjp) {
        assert_ok(f->make(&out, in, s));
        check_vjp(f, find(out, f->op), i, v, want);
        arr_unref(&out);
    }
    arr_unref(&v);
    arr_unref(&want);
}

/* All at once: tangents add up, and one call gives all cotangents. */
static void check_together(const struct subject *f, struct arr *const *in)
{
    struct arr *tan[MAX_IN] = { NULL }, *out = NULL, *t = NULL, *result[MAX_IN] = { NULL };
    int wanted[MAX_IN];
    size_t n = 0;
    double sum = 0;
    struct shp shape;

    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1) {
            tan[i] = random_input(&f->shape[i], F);
            wanted[n++] = i;
        }
    assert_ok(f->make(&out, in, s));
    struct arr *node = find(out, f->op);
    arr_shape(&shape, node);
    struct arr *cotan = random_input(&shape, F);
    struct jvp_call j = { apply_of(node), &node, tan, &t };
    struct vjp_call v = { apply_of(node), &node, &cotan, wanted, n, result };
    assert_ok(op_table[f->op].jvp(&j));
    assert_ok(op_table[f->op].vjp(&v));
    for (size_t i = 0; i < n; i++)
        sum += dot(result[i], tan[wanted[i]]);
    check_close(f, "vjp and jvp", sum, dot(cotan, t));
    arr_unref_all(tan, MAX_IN);
    arr_unref_all(result, MAX_IN);
    arr_unref(&t);
    arr_unref(&cotan);
    arr_unref(&out);
}

static void check_gradients(const struct subject *f)
{
    struct arr *in[MAX_IN] = { NULL };

    for (int i = 0; i < f->n_in; i++)
        in[i] = random_input(&f->shape[i], f->dtype[i]);
    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1)
            check_input(f, in, i);
    if (f->grads && !f->no_vjp)
        check_together(f, in);
    arr_unref_all(in, MAX_IN);
}

/* ---- batches ---- */

/* Element b of a's axis, which goes. */
static struct arr *element(struct arr *a, int axis, int b)
{
    struct arr *at = NULL, *x = NULL;

    assert_ok(arr_new_number(&at, b, DT_INT32));
    assert_ok(ops_take(&x, a, at, axis, s));
    arr_unref(&at);
    return x;
}

static void compare(const struct subject *f, struct arr *got, struct arr *want)
{
    assert_true(arr_same_shape(got, want) && got->dtype == want->dtype);
    double complex *x = arr_values(got), *y = arr_values(want);
    for (size_t i = 0; i < got->size; i++)
        check_close(f, "vmap", creal(x[i]), creal(y[i]));
    mem_free(x);
    mem_free(y);
}

static void check_batch(const struct subject *f, const struct op_apply *one, const int *axis)
{
    struct arr *in[MAX_IN] = { NULL }, *got = NULL;
    int out_axis = VMAP_NONE;

    for (int i = 0; i < f->n_in; i++) {
        struct shp shape = f->shape[i];
        if (axis[i] != VMAP_NONE) {
            memmove(&shape.d[axis[i] + 1], &shape.d[axis[i]],
                    (size_t)(shape.ndim - axis[i]) * sizeof shape.d[0]);
            shape.d[axis[i]] = BATCH;
            shape.ndim++;
        }
        in[i] = random_input(&shape, f->dtype[i]);
    }
    struct vmap_call c = { *one, axis, &got, &out_axis };
    c.f.in = in;
    assert_ok(op_table[f->op].vmap(&c));
    for (int b = 0; b < BATCH; b++) {
        struct arr *x[MAX_IN] = { NULL }, *want = NULL, *part = element(got, out_axis, b);
        for (int i = 0; i < f->n_in; i++)
            x[i] = axis[i] == VMAP_NONE ? arr_ref(in[i]) : element(in[i], axis[i], b);
        assert_ok(ops_make(&want, one->op, one->params, (struct arrs){ x, (size_t)f->n_in }, s));
        compare(f, part, want);
        arr_unref_all(x, MAX_IN);
        arr_unref(&want);
        arr_unref(&part);
    }
    arr_unref(&got);
    arr_unref_all(in, MAX_IN);
}

/* Every way to give some inputs a batch, as their first or last axis. */
static void check_batches(const struct subject *f)
{
    struct arr *in[MAX_IN] = { NULL }, *out = NULL;
    int ways = 1;

    for (int i = 0; i < f->n_in; i++) {
        in[i] = random_input(&f->shape[i], f->dtype[i]);
        ways *= 3;
    }
    assert_ok(f->make(&out, in, s));
    struct op_apply one = apply_of(find(out, f->op));
    for (int way = 1; way < ways; way++) {
        int axis[MAX_IN];
        for (int i = 0, rest = way; i < f->n_in; i++, rest /= 3)
            axis[i] = rest % 3 == 0 ? VMAP_NONE : rest % 3 == 1 ? 0 : f->shape[i].ndim;
        check_batch(f, &one, axis);
    }
    arr_unref(&out);
    arr_unref_all(in, MAX_IN);
}

/* ---- */

static void check_all(struct strm *stream, enum dtype t)
{
    s = stream;
    working = t;
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
        if (t == DT_FLOAT64 && subjects[i].is_single)
            continue;
        check_gradients(&subjects[i]);
        check_batches(&subjects[i]);
    }
}

static void test_on_the_cpu(void **state)
{
    (void)state;
    check_all(test_stream(), DT_FLOAT64);
    check_all(test_stream(), DT_FLOAT32);
}

static void test_on_the_gpu(void **state)
{
    struct strm *gpu = NULL;

    (void)state;
    if (!gpu_is_tested())
        return;
    assert_ok(strm_default(&gpu, (struct dev){ DEV_GPU, 0 }));
    check_all(gpu, DT_FLOAT32);
}

/* What rules have no answer to is an error, not a wrong gradient. */
static void test_no_rule(void **state)
{
    struct arr *a = NULL, *max = NULL, *result = NULL;
    struct ops_axes all = { INTS_ALL, true };

    (void)state;
    s = test_stream();
    working = DT_FLOAT32;
    a = random_input(&(struct shp){ 1, { 4 } }, F);
    assert_ok(ops_reduce(&max, REDUCE_MAX, a, &all, s));
    struct vjp_call v = { apply_of(max), &max, &max, &(int){ 0 }, 1, &result };
    struct jvp_call j = { apply_of(max), &max, &a, &result };
    assert_fails(ERR_UNSUPPORTED, op_table[OP_REDUCE].vjp(&v));
    assert_fails(ERR_UNSUPPORTED, op_table[OP_REDUCE].jvp(&j));
    assert_null(result);
    assert_null(op_table[OP_RANDOM_BITS].vjp);
    arr_unref(&max);
    arr_unref(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
        cmocka_unit_test(test_no_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
