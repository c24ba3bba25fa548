#include "support/rules.h"

#include <math.h>

#include "eval/eval.h"
#include "support/arrays.h"
#include "support/gpu.h"
#include "transforms/parts.h"

#define BATCH 3

static struct rng r;       /* the same numbers for each subject */
static struct strm *s;     /* of this run */
static enum dtype working; /* what float32 stands for */

/* ---- arrays ---- */

static double uniform(double low, double high)
{
    return low + (high - low) * rng_below(&r, 2000) / 2000.0;
}

/* A number of the range, an index that is inside of everything here, a scale of eight bits that is
 * a number, a word. */
static double complex random_element(enum dtype t, double low, double high)
{
    if (dt_is_float(t))
        return uniform(low, high);
    if (t == DT_COMPLEX64)
        return uniform(low, high) + uniform(low, high) * I;
    if (t == DT_INT32 || t == DT_BOOL)
        return rng_below(&r, t == DT_BOOL ? 2 : 3);
    if (t == DT_UINT8)
        return 112 + rng_below(&r, 15);
    return (double)(uint32_t)rng_next(&r);
}

static struct arr *random_array(const struct shp *shape, enum dtype t, double low, double high)
{
    size_t n = shp_size(shape);
    double complex *v = mem_alloc_array(n, sizeof *v);

    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = random_element(t, low, high);
    struct arr *a = arr_of(v, shape, t == DT_FLOAT32 ? working : t);
    mem_free(v);
    return a;
}

static struct arr *random_input(const struct rule_subject *f, int i, const struct shp *shape)
{
    bool has_range = f->low != 0 || f->high != 0;

    return random_array(shape, f->dtype[i], has_range ? f->low : -1, has_range ? f->high : 1);
}

/* A tangent or cotangent of a. */
static struct arr *random_change(const struct arr *a)
{
    struct shp shape;

    arr_shape(&shape, a);
    return random_array(&shape, (enum dtype)a->dtype, -1, 1);
}

static void random_inputs(struct arr **in, const struct rule_subject *f)
{
    for (int i = 0; i < f->n_in; i++)
        in[i] = random_input(f, i, &f->shape[i]);
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

/* Of complex numbers as of pairs. */
static double dot(struct arr *a, struct arr *b)
{
    double complex *x = arr_values(a), *y = arr_values(b);
    double sum = 0;

    for (size_t i = 0; i < a->size; i++)
        sum += creal(conj(x[i]) * y[i]);
    mem_free(x);
    mem_free(y);
    return sum;
}

static void check_close(const struct rule_subject *f, const char *what, double complex got,
                        double complex want)
{
    double tolerance = working == DT_FLOAT64 ? 1e-6 : 3e-3;

    if (!(cabs(got - want) <= tolerance * (1 + cabs(want))))
        fail_msg("%s of %s: %.9g%+.9gi instead of %.9g%+.9gi", what, f->name, creal(got),
                 cimag(got), creal(want), cimag(want));
}

static void check_equal(const struct rule_subject *f, const char *what, struct arr *got,
                        struct arr *want)
{
    if (!arr_same_shape(got, want) || got->dtype != want->dtype)
        fail_msg("%s of %s: another shape or dtype", what, f->name);
    double complex *x = arr_values(got), *y = arr_values(want);
    for (size_t i = 0; i < got->size; i++)
        check_close(f, what, x[i], y[i]);
    mem_free(x);
    mem_free(y);
}

/* ---- applications ---- */

enum err rules_node(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                    struct strm *strm)
{
    return ops_make(out, f->op, f->with, (struct arrs){ in, (size_t)f->n_in }, strm);
}

static size_t outputs_of(const struct rule_subject *f)
{
    return f->n_out ? (size_t)f->n_out : 1;
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

/* A node of the op; one that is evaluated forgets its inputs, so each check makes its own. */
struct application {
    struct arr *made[RULE_OUT];
    struct arr *out[RULE_OUT]; /* borrowed */
    struct op_apply f;
};

static struct op_apply apply_of(const struct arr *a)
{
    const struct node *n = a->node;

    return (struct op_apply){ .op = (enum op_id)n->op,
                              .params = n->params,
                              .state = n->state,
                              .in = n->in,
                              .n_in = (size_t)n->n_in,
                              .n_out = (size_t)n->n_out,
                              .strm = s,
                              .by_parts = &transform_by_parts };
}

static void application_init(struct application *a, const struct rule_subject *f,
                             struct arr *const *in)
{
    *a = (struct application){ { NULL } };
    assert_ok(f->make(a->made, f, in, s));
    memcpy(a->out, a->made, sizeof a->out);
    a->out[0] = find(a->out[0], f->op);
    a->f = apply_of(a->out[0]);
    assert_int_equal(a->f.n_out, outputs_of(f));
}

static void application_fini(struct application *a)
{
    arr_unref_all(a->made, RULE_OUT);
}

/* ---- what is differentiated ---- */

#define OUTPUTS (-1)

/* The outputs of a subject as a function of its inputs, or the gradient of one input. */
struct function {
    const struct rule_subject *f;
    int of; /* which input, or OUTPUTS */
    struct arr *const *cotan;
};

static size_t n_values(const struct function *g)
{
    return g->of == OUTPUTS ? outputs_of(g->f) : 1;
}

/* Rules may leave out what is zero. */
static void zeros_if_absent(struct arr **a, struct arr *like)
{
    if (!*a)
        assert_ok(ops_fill_like(a, like, 0, (enum dtype)like->dtype, s));
}

/* Values that are not evaluated yet. */
static void apply(struct arr **value, const struct function *g, struct arr *const *in)
{
    struct application a;

    application_init(&a, g->f, in);
    if (g->of == OUTPUTS) {
        for (size_t i = 0; i < a.f.n_out; i++)
            value[i] = arr_ref(a.out[i]);
    } else {
        struct vjp_call c = { a.f, a.out, g->cotan, &g->of, 1, value };
        assert_ok(op_table[g->f->op].vjp(&c));
        zeros_if_absent(value, in[g->of]);
    }
    application_fini(&a);
}

/* How one input moves, and the outputs with it. */
struct move {
    int i;
    struct arr *v;
    struct arr *slope[RULE_OUT];
};

/* (g(x + step * v) - g(x - step * v)) / (2 * step) */
static void difference(struct move *m, const struct function *g, struct arr *const *in)
{
    double step = !g->f->is_curved ? 0.5 : working == DT_FLOAT64 ? 1e-4 : 1e-2;
    struct arr *side[2][RULE_OUT] = { { NULL } };
    size_t n = n_values(g);

    for (int k = 0; k < 2; k++) {
        struct arr *x[RULE_IN];
        memcpy(x, in, sizeof x);
        x[m->i] = moved(in[m->i], m->v, k ? -step : step);
        apply(side[k], g, x);
        assert_ok(eval_arrays(side[k], n, false));
        arr_unref(&x[m->i]);
    }
    for (size_t k = 0; k < n; k++) {
        struct arr *d = moved(side[0][k], side[1][k], -1), *zero = moved(d, d, -1);
        m->slope[k] = moved(zero, d, 1 / (2 * step));
        arr_unref(&d);
        arr_unref(&zero);
        arr_unref(&side[0][k]);
        arr_unref(&side[1][k]);
    }
}

/* ---- first derivatives ---- */

static void check_jvp(const struct rule_subject *f, struct arr *const *in, const struct move *m)
{
    struct arr *tan[RULE_IN] = { NULL }, *got[RULE_OUT] = { NULL };
    struct application a;

    tan[m->i] = m->v;
    application_init(&a, f, in);
    struct jvp_call c = { a.f, a.out, tan, got };
    assert_ok(op_table[f->op].jvp(&c));
    for (size_t k = 0; k < a.f.n_out; k++) {
        zeros_if_absent(&got[k], a.out[k]);
        check_equal(f, "jvp", got[k], m->slope[k]);
        arr_unref(&got[k]);
    }
    application_fini(&a);
}

/* With a cotangent for each output but one, or for each. */
static void check_vjp(const struct rule_subject *f, struct arr *const *in, const struct move *m,
                      size_t left_out)
{
    struct arr *cotan[RULE_OUT] = { NULL }, *got = NULL;
    struct application a;
    double sum = 0;

    application_init(&a, f, in);
    for (size_t k = 0; k < a.f.n_out; k++)
        if (k != left_out)
            cotan[k] = random_change(a.out[k]);
    struct vjp_call c = { a.f, a.out, cotan, &m->i, 1, &got };
    assert_ok(op_table[f->op].vjp(&c));
    zeros_if_absent(&got, in[m->i]);
    assert_true(arr_same_shape(got, in[m->i]) && got->dtype == in[m->i]->dtype);
    for (size_t k = 0; k < a.f.n_out; k++)
        if (cotan[k])
            sum += dot(cotan[k], m->slope[k]);
    check_close(f, "vjp", dot(got, m->v), sum);
    arr_unref(&got);
    arr_unref_all(cotan, RULE_OUT);
    application_fini(&a);
}

static void check_input(const struct rule_subject *f, struct arr *const *in, int i)
{
    struct move m = { i, random_change(in[i]), { NULL } };
    size_t n = outputs_of(f);

    difference(&m, &(struct function){ f, OUTPUTS, NULL }, in);
    if (!f->no_jvp)
        check_jvp(f, in, &m);
    for (size_t left_out = n > 1 ? 0 : n; !f->no_vjp && left_out <= n; left_out++)
        check_vjp(f, in, &m, left_out);
    arr_unref(&m.v);
    arr_unref_all(m.slope, RULE_OUT);
}

/* All at once: tangents add up, and one call gives all cotangents. */
static void check_together(const struct rule_subject *f, struct arr *const *in)
{
    struct arr *tan[RULE_IN] = { NULL }, *cotan[RULE_OUT] = { NULL }, *t[RULE_OUT] = { NULL },
               *result[RULE_IN] = { NULL };
    struct application a;
    int wanted[RULE_IN];
    size_t n = 0;
    double forward = 0, back = 0;

    application_init(&a, f, in);
    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1) {
            tan[i] = random_change(in[i]);
            wanted[n++] = i;
        }
    for (size_t k = 0; k < a.f.n_out; k++)
        cotan[k] = random_change(a.out[k]);
    struct jvp_call j = { a.f, a.out, tan, t };
    struct vjp_call v = { a.f, a.out, cotan, wanted, n, result };
    assert_ok(op_table[f->op].jvp(&j));
    assert_ok(op_table[f->op].vjp(&v));
    for (size_t k = 0; k < a.f.n_out; k++) {
        zeros_if_absent(&t[k], a.out[k]);
        forward += dot(cotan[k], t[k]);
    }
    for (size_t i = 0; i < n; i++) {
        zeros_if_absent(&result[i], in[wanted[i]]);
        back += dot(result[i], tan[wanted[i]]);
    }
    check_close(f, "vjp and jvp", back, forward);
    arr_unref_all(tan, RULE_IN);
    arr_unref_all(result, RULE_IN);
    arr_unref_all(t, RULE_OUT);
    arr_unref_all(cotan, RULE_OUT);
    application_fini(&a);
}

/* Rules of what is constant are asked for everything and give nothing. */
static void check_flat(const struct rule_subject *f, struct arr *const *in)
{
    struct arr *result[RULE_IN] = { NULL }, *t[RULE_OUT] = { NULL };
    struct application a;
    int wanted[RULE_IN];

    for (int i = 0; i < f->n_in; i++)
        wanted[i] = i;
    application_init(&a, f, in);
    struct jvp_call j = { a.f, a.out, in, t };
    struct vjp_call v = { a.f, a.out, a.out, wanted, a.f.n_in, result };
    assert_ok(op_table[f->op].jvp(&j));
    assert_ok(op_table[f->op].vjp(&v));
    for (int i = 0; i < f->n_in; i++)
        assert_null(result[i]);
    for (size_t k = 0; k < a.f.n_out; k++)
        assert_null(t[k]);
    application_fini(&a);
}

/* ---- second derivatives ---- */

/* How a graph on x changes with v of x; NULL: not at all. */
static struct arr *tangent(struct arr *a, struct arr *x, struct arr *v)
{
    struct arr *tan[RULE_IN] = { NULL }, *out[RULE_OUT], *result[RULE_OUT] = { NULL };
    struct op_apply f = apply_of(a);
    ptrdiff_t which = a - a->node->out;
    bool changes = false;

    if (a == x)
        return arr_ref(v);
    assert_true(f.n_in <= RULE_IN && f.n_out <= RULE_OUT);
    for (size_t i = 0; i < f.n_in; i++) {
        tan[i] = tangent(f.in[i], x, v);
        changes |= tan[i] != NULL;
    }
    for (size_t k = 0; k < f.n_out; k++)
        out[k] = &a->node->out[k];
    struct jvp_call c = { f, out, tan, result };
    if (changes)
        assert_ok(op_table[f.op].jvp(&c));
    arr_unref_all(tan, RULE_IN);
    struct arr *t = result[which];
    result[which] = NULL;
    arr_unref_all(result, RULE_OUT);
    return t;
}

/* How the gradient of one input changes with another, or with itself. */
static void check_second(const struct rule_subject *f, struct arr *const *in, int of, int with)
{
    struct move m = { with, random_change(in[with]), { NULL } };
    struct arr *cotan[RULE_OUT] = { NULL }, *gradient = NULL;
    struct application a;

    application_init(&a, f, in);
    for (size_t k = 0; k < a.f.n_out; k++)
        cotan[k] = random_change(a.out[k]);
    application_fini(&a);
    struct function g = { f, of, cotan };
    difference(&m, &g, in);
    apply(&gradient, &g, in);
    struct arr *got = tangent(gradient, in[with], m.v);
    zeros_if_absent(&got, gradient);
    check_equal(f, "second derivative", got, m.slope[0]);
    arr_unref(&got);
    arr_unref(&gradient);
    arr_unref(&m.v);
    arr_unref_all(m.slope, RULE_OUT);
    arr_unref_all(cotan, RULE_OUT);
}

static void check_gradients(const struct rule_subject *f)
{
    struct arr *in[RULE_IN] = { NULL };

    random_inputs(in, f);
    if (f->is_flat)
        check_flat(f, in);
    for (int i = 0; i < f->n_in; i++)
        if (f->grads >> i & 1)
            check_input(f, in, i);
    if (f->grads && !f->no_vjp && !f->no_jvp)
        check_together(f, in);
    for (int i = 0; f->is_smooth && i < f->n_in * f->n_in; i++)
        if (f->grads >> i / f->n_in & f->grads >> i % f->n_in & 1)
            check_second(f, in, i / f->n_in, i % f->n_in);
    arr_unref_all(in, RULE_IN);
}

/* ---- batches ---- */

/* Element b of a's axis, which goes. */
static struct arr *element(struct arr *a, int axis, int b)
{
    struct arr *at = NULL, *x = NULL;

    if (axis == VMAP_NONE)
        return arr_ref(a);
    assert_ok(arr_new_number(&at, b, DT_INT32));
    assert_ok(ops_take(&x, a, at, axis, s));
    arr_unref(&at);
    return x;
}

/* The shape of input i with the batch at an axis. */
static struct shp batch_shape(const struct rule_subject *f, int i, int axis)
{
    struct shp shape = f->shape[i];

    if (axis == VMAP_NONE)
        return shape;
    memmove(&shape.d[axis + 1], &shape.d[axis], (size_t)(shape.ndim - axis) * sizeof shape.d[0]);
    shape.d[axis] = BATCH;
    shape.ndim++;
    return shape;
}

static void check_batch(const struct rule_subject *f, const struct op_apply *one, const int *axis)
{
    struct arr *in[RULE_IN] = { NULL }, *got[RULE_OUT] = { NULL };
    int out_axis[RULE_OUT];

    for (int i = 0; i < f->n_in; i++) {
        struct shp shape = batch_shape(f, i, axis[i]);
        in[i] = random_input(f, i, &shape);
    }
    struct vmap_call c = { *one, axis, got, out_axis };
    c.f.in = in;
    assert_ok(op_table[f->op].vmap(&c));
    for (int b = 0; b < BATCH; b++) {
        struct arr *x[RULE_IN] = { NULL }, *want[RULE_OUT] = { NULL };
        for (int i = 0; i < f->n_in; i++)
            x[i] = element(in[i], axis[i], b);
        assert_ok(ops_make(want, one->op, one->params, (struct arrs){ x, (size_t)f->n_in }, s));
        for (size_t k = 0; k < one->n_out; k++) {
            struct arr *part = element(got[k], out_axis[k], b);
            check_equal(f, "vmap", part, want[k]);
            arr_unref(&part);
        }
        arr_unref_all(x, RULE_IN);
        arr_unref_all(want, RULE_OUT);
    }
    arr_unref_all(got, RULE_OUT);
    arr_unref_all(in, RULE_IN);
}

/* The number of a way to give some inputs a batch, as their first or last axis, as axes; false if
 * one of them must have none. */
static bool axes_of(int *axis, const struct rule_subject *f, int way)
{
    for (int i = 0; i < f->n_in; i++, way /= 3) {
        axis[i] = way % 3 == 0 ? VMAP_NONE : way % 3 == 1 ? 0 : f->shape[i].ndim;
        if (axis[i] != VMAP_NONE && (f->whole >> i & 1))
            return false;
    }
    return true;
}

static void check_batches(const struct rule_subject *f)
{
    struct arr *in[RULE_IN] = { NULL };
    struct application a;
    int axis[RULE_IN], ways = 1;

    random_inputs(in, f);
    for (int i = 0; i < f->n_in; i++)
        ways *= 3;
    application_init(&a, f, in);
    for (int way = 1; way < ways; way++)
        if (axes_of(axis, f, way))
            check_batch(f, &a.f, axis);
    application_fini(&a);
    arr_unref_all(in, RULE_IN);
}

/* ---- memory ---- */

enum rule { VJP, JVP, VMAP, RULES };

/* Asks a rule of the application for all that it has. */
static enum err ask(struct arr **result, enum rule rule, const struct rule_subject *f,
                    const struct application *a, struct arr *const *batches)
{
    struct arr *tan[RULE_IN] = { NULL };
    int wanted[RULE_IN], axis[RULE_IN], out_axis[RULE_OUT];
    size_t n = 0;

    for (int i = 0; i < f->n_in; i++) {
        axis[i] = f->whole >> i & 1 ? VMAP_NONE : 0;
        if (f->grads >> i & 1) {
            tan[i] = a->f.in[i];
            wanted[n++] = i;
        }
    }
    struct vjp_call v = { a->f, a->out, a->out, wanted, n, result };
    struct jvp_call j = { a->f, a->out, tan, result };
    struct vmap_call m = { a->f, axis, result, out_axis };
    m.f.in = batches;
    return rule == VJP   ? op_table[f->op].vjp(&v)
           : rule == JVP ? op_table[f->op].jvp(&j)
                         : op_table[f->op].vmap(&m);
}

static void check_failures(const struct rule_subject *f, enum rule rule,
                           const struct application *a, struct arr *const *batches)
{
    struct arr *result[MAX(RULE_IN, RULE_OUT)] = { NULL };
    enum err err = ERR_NO_MEMORY;

    for (size_t n = 1; err; n++) {
        mem_fail_after(n);
        err = ask(result, rule, f, a, batches);
        mem_fail_after(0);
        if (err != ERR_OK && err != ERR_NO_MEMORY)
            fail_msg("%s: %s", f->name, err_text());
        for (size_t i = 0; err && i < ARRAY_LEN(result); i++)
            assert_null(result[i]);
    }
    arr_unref_all(result, ARRAY_LEN(result));
}

static void check_memory(const struct rule_subject *f)
{
    bool has_none[RULES] = { !f->grads || f->no_vjp, !f->grads || f->no_jvp, f->no_vmap };
    struct arr *in[RULE_IN] = { NULL }, *batches[RULE_IN] = { NULL };
    struct application a;

    random_inputs(in, f);
    for (int i = 0; i < f->n_in; i++) {
        struct shp shape = batch_shape(f, i, f->whole >> i & 1 ? VMAP_NONE : 0);
        batches[i] = random_input(f, i, &shape);
    }
    application_init(&a, f, in);
    for (int rule = 0; rule < RULES; rule++)
        if (!has_none[rule])
            check_failures(f, (enum rule)rule, &a, batches);
    application_fini(&a);
    arr_unref_all(in, RULE_IN);
    arr_unref_all(batches, RULE_IN);
}

void rules_check_memory(const struct rule_subject *subjects, size_t n)
{
    s = test_stream();
    working = DT_FLOAT32;
    for (size_t i = 0; i < n; i++)
        check_memory(&subjects[i]);
}

/* ---- */

static bool is_single(const struct rule_subject *f)
{
    bool is = f->is_single;

    for (int i = 0; i < f->n_in; i++)
        is |= f->dtype[i] == DT_COMPLEX64;
    return is;
}

static void check_all(const struct rule_subject *subjects, size_t n, enum dtype t)
{
    working = t;
    for (size_t i = 0; i < n; i++) {
        if (t == DT_FLOAT64 && is_single(&subjects[i]))
            continue;
        r = (struct rng){ 1 };
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
