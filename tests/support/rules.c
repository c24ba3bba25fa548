#include "support/rules.h"

#include <math.h>

#include "eval/eval.h"
#include "support/arrays.h"
#include "support/gpu.h"

#define BATCH 3

static struct rng r = { 1 };
static struct strm *s;     /* of this run */
static enum dtype working; /* what float32 stands for */

/* ---- arrays ---- */

/* Numbers of the subject's range, indices that are inside of everything here, or words. */
static struct arr *random_input(const struct rule_subject *f, const struct shp *shape, enum dtype t)
{
    size_t n = shp_size(shape);
    double complex *v = mem_alloc_array(n, sizeof *v);
    double low = f->low, width = f->high - low;

    assert_non_null(v);
    if (width == 0)
        low = -1, width = 2;
    for (size_t i = 0; i < n; i++)
        v[i] = t == DT_FLOAT32 ? low + width * rng_below(&r, 2000) / 2000.0
               : t == DT_INT32 ? rng_below(&r, 3)
                               : (double)(uint32_t)rng_next(&r);
    struct arr *a = arr_of(v, shape, t == DT_FLOAT32 ? working : t);
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

static void check_close(const struct rule_subject *f, const char *what, double got, double want)
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
                              .n_out = (size_t)n->n_out,
                              .strm = s };
}

/* ---- gradients ---- */

/* (f(x + step * v) - f(x - step * v)) / (2 * step) for input i. */
static struct arr *difference(const struct rule_subject *f, struct arr *const *in, int i,
                              struct arr *v)
{
    double step = !f->is_curved ? 0.5 : working == DT_FLOAT64 ? 1e-4 : 1e-2;
    struct arr *side[2] = { NULL, NULL };

    for (int k = 0; k < 2; k++) {
        struct arr *x[RULE_IN], *out = NULL;
        memcpy(x, in, sizeof x);
        x[i] = moved(in[i], v, k ? -step : step);
        assert_ok(f->make(&out, f, x, s));
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

/* Rules may leave out what is zero. */
static void zeros_if_absent(struct arr **a, struct arr *like)
{
    if (!*a)
        assert_ok(ops_fill_like(a, like, 0, (enum dtype)like->dtype, s));
}

static void check_jvp(const struct rule_subject *f, struct arr *out, int i, struct arr *v,
                      struct arr *want)
{
    struct arr *tan[RULE_IN] = { NULL }, *got = NULL;

    tan[i] = v;
    struct jvp_call c = { apply_of(out), &out, tan, &got };
    assert_ok(op_table[f->op].jvp(&c));
    zeros_if_absent(&got, out);
    assert_true(arr_same_shape(got, out) && got->dtype == out->dtype);
    double complex *x = arr_values(got), *y = arr_values(want);
    for (size_t k = 0; k < got->size; k++)
        check_close(f, "jvp", creal(x[k]), creal(y[k]));
    mem_free(x);
    mem_free(y);
    arr_unref(&got);
}

static void check_vjp(const struct rule_subject *f, struct arr *out, int i, struct arr *v,
                      struct arr *want)
{
    struct shp shape;
    struct arr *got = NULL;

    arr_shape(&shape, out);
    struct arr *cotan = random_input(f, &shape, DT_FLOAT32);
    struct vjp_call c = { apply_of(out), &out, &cotan, &i, 1, &got };
    assert_ok(op_table[f->op].vjp(&c));
    zeros_if_absent(&got, out->node->in[i]);
    assert_true(arr_same_shape(got, out->node->in[i]) && got->dtype == out->node->in[i]->dtype);
    check_close(f, "vjp", dot(got, v), dot(cotan, want));
    arr_unref(&got);
    arr_unref(&cotan);
}

/* A node that is evaluated forgets its inputs: each check gets a new one. */
static void check_input(const struct rule_subject *f, struct arr *const *in, int i)
{
    struct arr *v = random_input(f, &f->shape[i], DT_FLOAT32), *want = difference(f, in, i, v),
               *out = NULL;

    if (!f->no_jvp) {
        assert_ok(f->make(&out, f, in, s));
        check_jvp(f, find(out, f->op), i, v, want);
        arr_unref(&out);
    }
    if (!f->no_vjp) {
        assert_ok(f->make(&out, f, in, s));
        check_vjp(f, find(out, f->op), i, v, want);
        arr_unref(&out);
    }
    arr_unref(&v);
    arr_unref(&want);
}

/* All at once: tangents add up, and one call gives all cotangents. */
static void check_together(const struct rule_subject *f, struct arr *const *in)
{
    struct arr *tan[RULE_IN] = { NULL }, *out = NULL, *t = NULL, *result[RULE_IN] = { NULL };
    int wanted[RULE_IN];
    size_t n = 0;
    double sum = 0;
    struct shp shape;

    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1) {
            tan[i] = random_input(f, &f->shape[i], DT_FLOAT32);
            wanted[n++] = i;
        }
    assert_ok(f->make(&out, f, in, s));
    struct arr *node = find(out, f->op);
    arr_shape(&shape, node);
    struct arr *cotan = random_input(f, &shape, DT_FLOAT32);
    struct jvp_call j = { apply_of(node), &node, tan, &t };
    struct vjp_call v = { apply_of(node), &node, &cotan, wanted, n, result };
    assert_ok(op_table[f->op].jvp(&j));
    assert_ok(op_table[f->op].vjp(&v));
    zeros_if_absent(&t, node);
    for (size_t i = 0; i < n; i++) {
        zeros_if_absent(&result[i], in[wanted[i]]);
        sum += dot(result[i], tan[wanted[i]]);
    }
    check_close(f, "vjp and jvp", sum, dot(cotan, t));
    arr_unref_all(tan, RULE_IN);
    arr_unref_all(result, RULE_IN);
    arr_unref(&t);
    arr_unref(&cotan);
    arr_unref(&out);
}

static void check_gradients(const struct rule_subject *f)
{
    struct arr *in[RULE_IN] = { NULL };

    for (int i = 0; i < f->n_in; i++)
        in[i] = random_input(f, &f->shape[i], f->dtype[i]);
    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1)
            check_input(f, in, i);
    if (f->grads && !f->no_vjp && !f->no_jvp)
        check_together(f, in);
    arr_unref_all(in, RULE_IN);
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

static void compare(const struct rule_subject *f, struct arr *got, struct arr *want)
{
    assert_true(arr_same_shape(got, want) && got->dtype == want->dtype);
    double complex *x = arr_values(got), *y = arr_values(want);
    for (size_t i = 0; i < got->size; i++)
        check_close(f, "vmap", creal(x[i]), creal(y[i]));
    mem_free(x);
    mem_free(y);
}

static void check_batch(const struct rule_subject *f, const struct op_apply *one, const int *axis)
{
    struct arr *in[RULE_IN] = { NULL }, *got = NULL;
    int out_axis = VMAP_NONE;

    for (int i = 0; i < f->n_in; i++) {
        struct shp shape = f->shape[i];
        if (axis[i] != VMAP_NONE) {
            memmove(&shape.d[axis[i] + 1], &shape.d[axis[i]],
                    (size_t)(shape.ndim - axis[i]) * sizeof shape.d[0]);
            shape.d[axis[i]] = BATCH;
            shape.ndim++;
        }
        in[i] = random_input(f, &shape, f->dtype[i]);
    }
    struct vmap_call c = { *one, axis, &got, &out_axis };
    c.f.in = in;
    assert_ok(op_table[f->op].vmap(&c));
    for (int b = 0; b < BATCH; b++) {
        struct arr *x[RULE_IN] = { NULL }, *want = NULL, *part = element(got, out_axis, b);
        for (int i = 0; i < f->n_in; i++)
            x[i] = axis[i] == VMAP_NONE ? arr_ref(in[i]) : element(in[i], axis[i], b);
        assert_ok(ops_make(&want, one->op, one->params, (struct arrs){ x, (size_t)f->n_in }, s));
        compare(f, part, want);
        arr_unref_all(x, RULE_IN);
        arr_unref(&want);
        arr_unref(&part);
    }
    arr_unref(&got);
    arr_unref_all(in, RULE_IN);
}

/* Every way to give some inputs a batch, as their first or last axis. */
static void check_batches(const struct rule_subject *f)
{
    struct arr *in[RULE_IN] = { NULL }, *out = NULL;
    int ways = 1;

    for (int i = 0; i < f->n_in; i++) {
        in[i] = random_input(f, &f->shape[i], f->dtype[i]);
        ways *= 3;
    }
    assert_ok(f->make(&out, f, in, s));
    struct op_apply one = apply_of(find(out, f->op));
    for (int way = 1; way < ways; way++) {
        int axis[RULE_IN];
        for (int i = 0, rest = way; i < f->n_in; i++, rest /= 3)
            axis[i] = rest % 3 == 0 ? VMAP_NONE : rest % 3 == 1 ? 0 : f->shape[i].ndim;
        check_batch(f, &one, axis);
    }
    arr_unref(&out);
    arr_unref_all(in, RULE_IN);
}

/* ---- */

static void check_all(const struct rule_subject *subjects, size_t n, enum dtype t)
{
    working = t;
    for (size_t i = 0; i < n; i++) {
        if (t == DT_FLOAT64 && subjects[i].is_single)
            continue;
        check_gradients(&subjects[i]);
        if (!subjects[i].no_vmap)
            check_batches(&subjects[i]);
    }
}

void rules_check_cpu(const struct rule_subject *subjects, size_t n)
{
    s = test_stream();
    check_all(subjects, n, DT_FLOAT64);
    check_all(subjects, n, DT_FLOAT32);
}

void rules_check_gpu(const struct rule_subject *subjects, size_t n)
{
    if (!gpu_is_tested())
        return;
    assert_ok(strm_default(&s, (struct dev){ DEV_GPU, 0 }));
    check_all(subjects, n, DT_FLOAT32);
}
