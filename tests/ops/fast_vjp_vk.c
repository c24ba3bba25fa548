/* Gradients of norms and attention on the GPU, whose kernels and the CPU's are held against what
 * the parts of the op give in float32. */
#include <math.h>

#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "eval/eval.h"
#include "graph/op_call.h"
#include "ops/build.h"
#include "support/arrays.h"
#include "support/nd.h"
#include "transforms/parts.h"

#define IN_MAX 5

static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };

/* An op on operands of one dtype, but for a bool mask. */
struct subject {
    const char *name;
    enum op_id op;
    const void *params;
    int n_in;
    struct shp shape[IN_MAX];
    uint32_t fixed; /* operands without gradients, as bits: masks, which are bool, */
    bool is_added;  /* or of the dtype */
};

struct setup {
    const struct subject *f;
    enum dtype dtype;
    struct nd nd[IN_MAX], cotan;
    struct arr *in[IN_MAX];
};

static bool is_fixed(const struct subject *f, int i)
{
    return f->fixed >> i & 1;
}

static enum dtype dtype_in(const struct subject *f, int i, enum dtype t)
{
    return is_fixed(f, i) && !f->is_added ? DT_BOOL : t;
}

static void setup_init(struct setup *s, const struct subject *f, enum dtype t,
                       enum nd_layout layout)
{
    struct rng r = { 11 };
    struct arr *out = NULL;
    struct shp shape;

    *s = (struct setup){ .f = f, .dtype = t };
    for (int i = 0; i < f->n_in; i++) {
        nd_make(&s->nd[i], &r, dtype_in(f, i, t), &f->shape[i], layout);
        s->in[i] = s->nd[i].arr;
    }
    assert_ok(ops_make(&out, f->op, f->params, (struct arrs){ s->in, (size_t)f->n_in }, nd_gpu));
    arr_shape(&shape, out);
    arr_unref(&out);
    nd_make(&s->cotan, &r, t, &shape, layout);
}

static void setup_fini(struct setup *s)
{
    for (int i = 0; i < s->f->n_in; i++)
        nd_free(&s->nd[i]);
    nd_free(&s->cotan);
}

static size_t list_wanted(int *wanted, const struct subject *f)
{
    size_t n = 0;

    for (int i = 0; i < f->n_in; i++)
        if (!is_fixed(f, i))
            wanted[n++] = i;
    return n;
}

/* The cotangents of all inputs by the op's rule, or by its parts. */
static void gradients(struct arr **result, const struct setup *s, struct strm *strm, bool by_parts)
{
    const struct subject *f = s->f;
    struct arr *in[IN_MAX] = { NULL }, *cotan = NULL, *out = NULL;
    enum dtype t = by_parts ? DT_FLOAT32 : s->dtype;
    int wanted[IN_MAX];

    for (int i = 0; i < f->n_in; i++)
        assert_ok(ops_astype(&in[i], s->in[i], dtype_in(f, i, t), strm));
    assert_ok(ops_astype(&cotan, s->cotan.arr, t, strm));
    struct op_apply apply = { .op = f->op,
                              .params = f->params,
                              .in = in,
                              .n_in = (size_t)f->n_in,
                              .n_out = 1,
                              .strm = strm,
                              .by_parts = &transform_by_parts };
    assert_ok(ops_make(&out, f->op, f->params, (struct arrs){ in, (size_t)f->n_in }, strm));
    struct vjp_call c = { apply, &out, &cotan, wanted, list_wanted(wanted, f), result };
    assert_ok(by_parts ? transform_by_parts.vjp(&c) : op_table[f->op].vjp(&c));
    arr_unref_all(in, IN_MAX);
    arr_unref(&cotan);
    arr_unref(&out);
}

static double magnitude(const double complex *v, size_t n)
{
    double most = 0;

    for (size_t i = 0; i < n; i++)
        most = fmax(most, cabs(v[i]));
    return most;
}

static void compare(const struct setup *s, struct arr *got, struct arr *want)
{
    double complex *x = arr_values(got), *y = arr_values(want);
    double scale = 4 * magnitude(y, want->size) + 0.5;

    assert_true(arr_same_shape(got, want) && got->dtype == s->dtype);
    for (size_t i = 0; i < got->size; i++)
        nd_check(s->dtype, (struct num){ .re = creal(x[i]) }, (struct num){ .re = creal(y[i]) },
                 scale, s->f->name);
    mem_free(x);
    mem_free(y);
}

static void check(const struct subject *f, enum dtype t, enum nd_layout layout)
{
    struct arr *want[IN_MAX] = { NULL };
    struct setup s;
    int wanted[IN_MAX];
    size_t n = list_wanted(wanted, f);

    setup_init(&s, f, t, layout);
    gradients(want, &s, test_stream(), true);
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        struct arr *got[IN_MAX] = { NULL };
        gradients(got, &s, on_gpu ? nd_gpu : test_stream(), false);
        if (on_gpu)
            (void)nd_run(got[0]); /* which dispatches, or fails */
        for (size_t i = 0; i < n; i++)
            compare(&s, got[i], want[i]);
        arr_unref_all(got, IN_MAX);
    }
    arr_unref_all(want, IN_MAX);
    setup_fini(&s);
}

/* ---- norms ---- */

static const struct norm_params norms[] = {
    { 0.1f, true, true }, { 0.1f, true, false }, { 0.1f, false, true }, { 0.1f, false, false }
};

/* Both norms with the first n of these. */
static void check_norms(const struct shp *x, enum dtype t, enum nd_layout layout, size_t n)
{
    struct shp last = { 1, { x->d[x->ndim - 1] } };

    for (size_t i = 0; i < n; i++)
        for (int centred = 0; centred < 2; centred++) {
            struct subject f = { .name = centred ? "layer_norm" : "rms_norm",
                                 .op = centred ? OP_LAYER_NORM : OP_RMS_NORM,
                                 .params = &norms[i],
                                 .n_in = 1 + norms[i].has_weight + norms[i].has_bias,
                                 .shape = { *x, last, last } };
            check(&f, t, layout);
        }
}

static void test_norm_lengths(void **state)
{
    static const int32_t lengths[] = { 1, 7, 64, 255, 1024, 4097 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
        check_norms(&(struct shp){ 2, { 11, lengths[i] } }, types[i % ARRAY_LEN(types)], ND_ROW, 1);
}

static void test_norm_layouts(void **state)
{
    static const struct shp shapes[] = { { 1, { 77 } }, { 3, { 4, 5, 64 } } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
        for (int layout = 0; layout < ND_LAYOUTS; layout++)
            check_norms(&shapes[i], types[layout % 3], (enum nd_layout)layout, 1);
}

/* Workgroups of many subgroups, which a software device does not choose by itself. */
static void test_norm_large_workgroups(void **state)
{
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);

    (void)state;
    check_norms(&(struct shp){ 2, { 37, 64 } }, DT_BFLOAT16, ND_ROW, 2);
    check_norms(&(struct shp){ 2, { 5, 1000 } }, DT_FLOAT32, ND_SHIFTED, 1);
    check_norms(&(struct shp){ 2, { 3, 9000 } }, DT_FLOAT16, ND_ROW, 1);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static void test_norm_walk(void **state)
{
    uint64_t before = variant_hits(VARIANT_NORM_VJP_WALK);

    (void)state;
    gate_set_int(GATE_VK_NORM_VJP_ROW, 0);
    check_norms(&(struct shp){ 2, { 20, 96 } }, DT_BFLOAT16, ND_ROW, 4);
    gate_set_int(GATE_VK_NORM_VJP_ROW, 1);
    assert_int_equal(variant_hits(VARIANT_NORM_VJP_WALK) - before, 8);
}

/* More rows than the teams that share them. */
static void test_norm_many_rows(void **state)
{
    (void)state;
    check_norms(&(struct shp){ 2, { 5000, 16 } }, DT_FLOAT32, ND_ROW, 4);
}

/* ---- attention ---- */

struct sizes {
    int32_t batch, heads, n_kv, n_q, n_k, dim, v_dim;
};

static void check_masked(const struct sizes *n, const struct sdpa_params *p, enum dtype t,
                         enum nd_layout layout, bool is_added)
{
    struct subject f = { .name = "attention",
                         .op = OP_SDPA,
                         .params = p,
                         .n_in = 3,
                         .is_added = is_added,
                         .shape = { { 4, { n->batch, n->heads, n->n_q, n->dim } },
                                    { 4, { n->batch, n->n_kv, n->n_k, n->dim } },
                                    { 4, { n->batch, n->n_kv, n->n_k, n->v_dim } } } };

    if (p->has_mask) {
        f.fixed = 1u << f.n_in;
        f.shape[f.n_in++] = (struct shp){ 4, { n->batch, n->heads, n->n_q, n->n_k } };
    }
    if (p->has_sinks)
        f.shape[f.n_in++] = (struct shp){ 1, { n->heads } };
    check(&f, t, layout);
}

static void check_attention(const struct sizes *n, const struct sdpa_params *p, enum dtype t,
                            enum nd_layout layout)
{
    check_masked(n, p, t, layout, false);
}

static const struct sdpa_params plain = { 0.3f, false, false, false },
                                causal = { 0.3f, true, false, false },
                                masked = { 0.3f, false, true, false },
                                sinks = { 0.3f, true, false, true };

static void test_attention_sizes(void **state)
{
    static const struct {
        struct sizes sizes;
        const struct sdpa_params *params;
        bool is_added;
        enum nd_layout layout;
    } rows[] = {
        { { 1, 1, 1, 1, 1, 1, 1 }, &plain, false, ND_ROW },
        { { 2, 4, 2, 5, 7, 16, 16 }, &causal, false, ND_ROW },
        { { 2, 4, 2, 5, 7, 16, 16 }, &masked, false, ND_SHIFTED },
        { { 1, 3, 1, 33, 40, 24, 8 }, &masked, true, ND_ROW },
        { { 1, 2, 2, 70, 70, 64, 64 }, &causal, false, ND_ROW },
        { { 2, 2, 1, 17, 130, 80, 96 }, &sinks, false, ND_ROW },
        { { 1, 1, 1, 9, 12, 256, 128 }, &plain, false, ND_ROW },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        check_masked(&rows[i].sizes, rows[i].params, types[i % 3], rows[i].layout,
                     rows[i].is_added);
}

static void test_attention_layouts(void **state)
{
    static const struct sizes sizes = { 2, 4, 2, 9, 11, 16, 8 };

    (void)state;
    for (int layout = 0; layout < ND_LAYOUTS; layout++)
        check_attention(&sizes, layout % 2 ? &masked : &sinks, types[layout % 3],
                        (enum nd_layout)layout);
}

/* The tiles of hardware. */
static void test_attention_large_workgroups(void **state)
{
    static const struct sizes sizes = { 1, 4, 2, 70, 90, 72, 40 };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    uint64_t before = variant_hits(VARIANT_SDPA_VJP_TILED);

    (void)state;
    check_attention(&sizes, &causal, DT_FLOAT32, ND_ROW);
    check_attention(&sizes, &masked, DT_BFLOAT16, ND_SHIFTED);
    check_attention(&sizes, &sinks, DT_FLOAT16, ND_ROW);
    gate_set_int(GATE_VK_WORKGROUP, old);
    assert_int_equal(variant_hits(VARIANT_SDPA_VJP_TILED) - before, 3);
}

/* By the parts, on the GPU as well. */
static void test_attention_without_kernels(void **state)
{
    static const struct sizes sizes = { 1, 4, 2, 9, 12, 16, 8 };
    uint64_t before = variant_hits(VARIANT_SDPA_VJP_TILED);

    (void)state;
    gate_set_int(GATE_VK_SDPA_VJP_NATIVE, 0);
    check_attention(&sizes, &sinks, DT_FLOAT32, ND_ROW);
    gate_set_int(GATE_VK_SDPA_VJP_NATIVE, 1);
    assert_int_equal(variant_hits(VARIANT_SDPA_VJP_TILED), before);
}

/* The same bits every time. */
static void test_repeats(void **state)
{
    struct subject attention = {
        .name = "attention",
        .op = OP_SDPA,
        .params = &causal,
        .n_in = 3,
        .shape = { { 4, { 2, 4, 40, 32 } }, { 4, { 2, 2, 50, 32 } }, { 4, { 2, 2, 50, 32 } } }
    };
    static const struct norm_params params = { 0.1f, true, true };
    struct subject norm = { .name = "layer_norm",
                            .op = OP_LAYER_NORM,
                            .params = &params,
                            .n_in = 3,
                            .shape = { { 2, { 700, 40 } }, { 1, { 40 } }, { 1, { 40 } } } };
    const struct subject *subjects[] = { &attention, &norm };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(subjects); k++) {
        struct arr *a[2][IN_MAX] = { { NULL } };
        struct setup s;
        setup_init(&s, subjects[k], DT_FLOAT32, ND_ROW);
        for (int i = 0; i < 2; i++)
            gradients(a[i], &s, nd_gpu, false);
        for (int i = 0; i < subjects[k]->n_in; i++) {
            void *x = arr_bytes(a[0][i]), *y = arr_bytes(a[1][i]);
            assert_memory_equal(x, y, arr_nbytes(a[0][i]));
            mem_free(x);
            mem_free(y);
        }
        arr_unref_all(a[0], IN_MAX);
        arr_unref_all(a[1], IN_MAX);
        setup_fini(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_norm_lengths),
        cmocka_unit_test(test_norm_layouts),
        cmocka_unit_test(test_norm_large_workgroups),
        cmocka_unit_test(test_norm_walk),
        cmocka_unit_test(test_norm_many_rows),
        cmocka_unit_test(test_attention_sizes),
        cmocka_unit_test(test_attention_layouts),
        cmocka_unit_test(test_attention_large_workgroups),
        cmocka_unit_test(test_attention_without_kernels),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("fast_vjp_vk", tests, nd_open, NULL);
}
