/* Reductions on the GPU against plain loops on the host, over dtypes, kinds, layouts and sizes. */
#include <math.h>
#include <stdio.h>

#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "graph/op.h"
#include "ops/ops.h"
#include "support/nd.h"

static const char *const kind_names[] = { "all", "any", "sum", "prod", "min", "max" };

static const enum dtype all_dtypes[] = {
    DT_BOOL,  DT_UINT8, DT_UINT16,  DT_UINT32,  DT_UINT64,   DT_INT8,      DT_INT16,
    DT_INT32, DT_INT64, DT_FLOAT16, DT_FLOAT32, DT_BFLOAT16, DT_COMPLEX64,
};

static enum dtype out_dtype(enum reduce_kind kind, enum dtype t)
{
    if (kind <= REDUCE_OR)
        return DT_BOOL;
    if (kind >= REDUCE_MIN)
        return t;
    if (t == DT_BOOL || t == DT_INT8 || t == DT_INT16)
        return DT_INT32;
    return t == DT_UINT8 || t == DT_UINT16 ? DT_UINT32 : t;
}

/* ---- the reference ---- */

static bool is_true(enum dtype t, struct num v)
{
    return dt_is_inexact(t) ? v.re != 0 || v.im != 0 : v.i != 0;
}

static bool is_less(enum dtype t, struct num a, struct num b)
{
    if (t == DT_UINT64)
        return (uint64_t)a.i < (uint64_t)b.i;
    if (!dt_is_inexact(t))
        return a.i < b.i;
    return a.re < b.re || (a.re == b.re && a.im < b.im);
}

static bool has_nan(struct num v)
{
    return isnan(v.re) || isnan(v.im);
}

static struct num identity(enum reduce_kind kind)
{
    bool one = kind == REDUCE_AND || kind == REDUCE_PROD;

    return (struct num){ .re = one, .i = one };
}

static struct num combine(enum reduce_kind kind, enum dtype t, struct num a, struct num v)
{
    switch (kind) {
    case REDUCE_AND:
        return (struct num){ .i = a.i && is_true(t, v) };
    case REDUCE_OR:
        return (struct num){ .i = a.i || is_true(t, v) };
    case REDUCE_SUM:
        return (struct num){ a.re + v.re, a.im + v.im, (int64_t)((uint64_t)a.i + (uint64_t)v.i) };
    case REDUCE_PROD:
        return (struct num){ a.re * v.re - a.im * v.im, a.re * v.im + a.im * v.re,
                             (int64_t)((uint64_t)a.i * (uint64_t)v.i) };
    case REDUCE_MIN:
        return has_nan(a) || (!has_nan(v) && !is_less(t, v, a)) ? a : v;
    default:
        return has_nan(a) || (!has_nan(v) && !is_less(t, a, v)) ? a : v;
    }
}

/* Position of the output that element n goes to. */
static size_t output_of(const struct shp *in, const struct shp *out, size_t n)
{
    int32_t at[SHP_MAX];
    size_t o = 0;

    nd_unravel(at, in, n);
    for (int i = 0; i < in->ndim; i++)
        o = o * (size_t)out->d[i] + (size_t)(out->d[i] == 1 ? 0 : at[i]);
    return o;
}

struct expected {
    struct num *v;
    double *scale; /* sum of magnitudes: what the error of a sum refers to */
};

static void reduce_on_host(struct expected *x, const struct nd *a, const struct shp *out,
                           enum reduce_kind kind)
{
    size_t n_out = shp_size(out), n = shp_size(&a->shape);
    bool *seen = mem_alloc(n_out + 1);

    x->v = mem_alloc_array(n_out + 1, sizeof *x->v);
    x->scale = mem_alloc_array(n_out + 1, sizeof *x->scale);
    assert_true(seen && x->v && x->scale);
    for (size_t i = 0; i < n_out; i++)
        x->v[i] = identity(kind);
    for (size_t i = 0; i < n; i++) {
        size_t o = output_of(&a->shape, out, i);
        struct num v = nd_get(a, i);
        x->v[o] = !seen[o] && kind >= REDUCE_MIN ? v : combine(kind, a->dtype, x->v[o], v);
        seen[o] = true;
        x->scale[o] += hypot(v.re, v.im);
    }
    mem_free(seen);
}

/* ---- running ---- */

static struct arr *reduce_node(struct arr *in, const struct reduce_params *p)
{
    struct out_desc out = { .dtype = out_dtype((enum reduce_kind)p->kind, (enum dtype)in->dtype) };
    struct arr *r = NULL;

    arr_shape(&out.shape, in);
    for (int i = 0; i < p->n; i++)
        out.shape.d[p->axis[i]] = 1;
    assert_ok(arr_new_op(&r, .op = OP_REDUCE, .strm = nd_gpu, .in = &in, .n_in = 1, .params = p,
                         .out = &out));
    return r;
}

/* Of magnitudes: none is allowed to differ. */
#define EXACT 1e-300

/* Integers are stored in the output's width. */
static struct num wrapped(enum dtype t, struct num v)
{
    char bytes[8];

    if (dt_is_inexact(t))
        return v;
    num_store(t, bytes, v);
    return num_load(t, bytes);
}

static void check_reduce(const struct nd *a, const struct reduce_params *p)
{
    enum reduce_kind kind = (enum reduce_kind)p->kind;
    struct arr *out = reduce_node(a->arr, p);
    enum dtype t = (enum dtype)out->dtype;
    struct expected want;
    struct shp shape;
    char what[64];

    arr_shape(&shape, out);
    reduce_on_host(&want, a, &shape, kind);
    const char *got = nd_run(out);
    for (size_t i = 0; i < out->size; i++) {
        snprintf(what, sizeof what, "%s of %s %s, output %zu", kind_names[kind], dt_name(a->dtype),
                 shp_text(&a->shape), i);
        double scale = EXACT;
        if (kind == REDUCE_SUM)
            scale = fmax(want.scale[i], 1e-3);
        else if (kind == REDUCE_PROD) /* errors of factors add up */
            scale = 20 * hypot(want.v[i].re, want.v[i].im);
        nd_check(t, num_load(t, got + i * dt_size(t)), wrapped(t, want.v[i]), scale, what);
    }
    mem_free(want.v);
    mem_free(want.scale);
    arr_unref(&out);
}

static void random_axes(struct reduce_params *p, struct rng *r, int ndim)
{
    p->n = 0;
    for (int i = 0; i < ndim; i++)
        if (rng_one_in(r, 2))
            p->axis[p->n++] = i;
    if (p->n == 0)
        p->axis[p->n++] = rng_below(r, ndim);
}

/* Magnitudes near 1, so that long products neither vanish nor overflow. */
static void tame(struct nd *a)
{
    size_t item = dt_size(a->dtype);

    for (size_t i = 0; i < a->n; i++) {
        struct num v = num_load(a->dtype, a->bytes + i * item);
        double size = hypot(v.re, v.im), by = (i % 2 ? 65 : 63) / 64.0 / (size + (size == 0));
        num_store(a->dtype, a->bytes + i * item, (struct num){ .re = v.re * by, .im = v.im * by });
    }
    nd_view(a);
}

static void check_random(struct rng *r, enum dtype t, enum reduce_kind kind, size_t max_size)
{
    struct reduce_params p = { .kind = kind };
    struct shp shape;
    struct nd a;

    nd_random_shape(&shape, r, 5, max_size);
    random_axes(&p, r, shape.ndim);
    nd_make(&a, r, t, &shape, (enum nd_layout)rng_below(r, ND_LAYOUTS));
    if (kind == REDUCE_PROD && dt_is_inexact(t))
        tame(&a);
    check_reduce(&a, &p);
    nd_free(&a);
}

/* One matrix of a shape, reduced over one axis or both. */
static void check_matrix(enum dtype t, enum reduce_kind kind, int32_t rows, int32_t cols, int axes)
{
    struct rng r = { (uint64_t)rows * 7919 + (uint64_t)cols };
    struct reduce_params p = { .kind = kind };
    struct shp shape = { 2, { rows, cols } };
    struct nd a;

    for (int i = 0; i < 2; i++)
        if (axes >> i & 1)
            p.axis[p.n++] = i;
    nd_make(&a, &r, t, &shape, ND_ROW);
    check_reduce(&a, &p);
    nd_free(&a);
}

/* ---- tests ---- */

static void test_every_dtype_and_layout(void **state)
{
    struct rng r = { 1 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_dtypes); i++)
        for (int kind = REDUCE_AND; kind <= REDUCE_MAX; kind++)
            for (int k = 0; k < 6; k++)
                check_random(&r, all_dtypes[i], (enum reduce_kind)kind, k ? 3000 : 30000);
}

static void test_without_wide_loads(void **state)
{
    struct rng r = { 2 };
    int64_t old = gate_set_int(GATE_VK_REDUCE_WIDE, 0);

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_dtypes); i++)
        for (int k = 0; k < 4; k++)
            check_random(&r, all_dtypes[i], REDUCE_SUM, 5000);
    check_matrix(DT_FLOAT32, REDUCE_SUM, 64, 2048, 1);
    check_matrix(DT_FLOAT32, REDUCE_MAX, 64, 2048, 2);
    gate_set_int(GATE_VK_REDUCE_WIDE, old);
}

/* Workgroups of many subgroups, which a software device does not choose by itself. */
static void test_large_workgroups(void **state)
{
    static const enum dtype types[] = { DT_FLOAT32, DT_UINT8, DT_INT64, DT_BFLOAT16 };
    static const int32_t sizes[] = { 3, 100, 1000, 4099 };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    struct rng r = { 7 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        for (int k = 0; k < 12; k++)
            check_random(&r, types[i], REDUCE_SUM, 20000);
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            check_matrix(types[i], REDUCE_SUM, 40, sizes[k], 1);
            check_matrix(types[i], REDUCE_SUM, sizes[k], 40, 1);
            check_matrix(types[i], REDUCE_SUM, 40, sizes[k], 2);
            check_matrix(types[i], REDUCE_SUM, 40, sizes[k], 3);
        }
        check_matrix(types[i], REDUCE_SUM, 1, 1048579, 3);
        check_matrix(types[i], REDUCE_SUM, 100000, 4, 1);
    }
    gate_set_int(GATE_VK_WORKGROUP, old);
}

/* The middle axis of three. */
static void test_lengths_of_everything(void **state)
{
    static const int32_t lengths[] = {
        1, 2, 3, 4, 5, 17, 63, 64, 65, 255, 257, 4095, 65537, 1048579
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        check_matrix(DT_FLOAT32, REDUCE_SUM, 1, lengths[i], 3);
        check_matrix(DT_UINT8, REDUCE_SUM, 1, lengths[i], 3);
        check_matrix(DT_FLOAT16, REDUCE_MAX, 1, lengths[i], 3);
        check_matrix(DT_INT64, REDUCE_MIN, 1, lengths[i], 3);
    }
}

/* Lengths at which slices begin or are joined otherwise, with 8 lanes and with 256: rounds of four
 * loads of 16 bytes each. */
static const int32_t sliced_bytes[] = { 3 << 9,  4 << 9,   12 << 9, 3 << 14,
                                        4 << 14, 12 << 14, 19 << 14 };
static const int around[] = { -16, -1, 0, 1, 9 };

/* The last workgroup, or another dispatch, joins the slices of one output or of a few. */
static void check_joined(enum dtype t, enum reduce_kind kind)
{
    for (size_t i = 0; i < ARRAY_LEN(sliced_bytes); i++)
        for (size_t k = 0; k < ARRAY_LEN(around); k++)
            check_matrix(t, kind, 1, sliced_bytes[i] / (int32_t)dt_size(t) + around[k], 3);
    check_matrix(t, kind, 3, 70001, 2);
    check_matrix(t, kind, 1, (256 << 14) / (int32_t)dt_size(t) + 1, 3);
}

static void test_joined_slices(void **state)
{
    static const enum dtype types[] = { DT_BFLOAT16, DT_INT64, DT_COMPLEX64 };

    (void)state;
    for (int lanes = 0; lanes <= 256; lanes += 256) {
        int64_t old = gate_set_int(GATE_VK_WORKGROUP, lanes);
        for (size_t i = 0; i < ARRAY_LEN(types); i++)
            check_joined(types[i], REDUCE_SUM);
        check_joined(DT_UINT8, REDUCE_MAX);
        check_matrix(DT_FLOAT32, REDUCE_SUM, 64, 40000, 2); /* as many outputs as are joined so */
        check_matrix(DT_FLOAT32, REDUCE_SUM, 65, 40000, 2);
        gate_set_int(GATE_VK_WORKGROUP, old);
    }
}

/* One dispatch with the setting, two without; the same number either way. */
static void test_join_is_one_dispatch(void **state)
{
    struct reduce_params p = { .kind = REDUCE_SUM, .n = 1, .axis = { 0 } };
    struct shp shape = { 1, { 20000 } };
    struct rng r = { 4 };
    struct nd a;

    (void)state;
    nd_make(&a, &r, DT_INT32, &shape, ND_ROW);
    assert_ok(eval_arrays(&a.arr, 1, false));
    int64_t lanes = gate_set_int(GATE_VK_WORKGROUP, 256);
    for (int joins = 0; joins < 2; joins++) {
        struct arr *out = reduce_node(a.arr, &p);
        int64_t old = gate_set_int(GATE_VK_REDUCE_JOIN, joins);
        uint64_t before = stat_get(STAT_DISPATCHES);
        assert_ok(eval_arrays(&out, 1, false));
        assert_int_equal(stat_get(STAT_DISPATCHES) - before, joins ? 1 : 2);
        gate_set_int(GATE_VK_REDUCE_JOIN, old);
        arr_unref(&out);
        check_reduce(&a, &p);
    }
    gate_set_int(GATE_VK_WORKGROUP, lanes);
    nd_free(&a);
}

static void test_rows_and_columns(void **state)
{
    static const int32_t sizes[] = { 1, 2, 3, 7, 16, 33, 128, 1000, 4096 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
            if ((int64_t)sizes[i] * sizes[k] > 600000)
                continue;
            check_matrix(DT_FLOAT32, REDUCE_SUM, sizes[i], sizes[k], 1);
            check_matrix(DT_FLOAT32, REDUCE_SUM, sizes[i], sizes[k], 2);
            check_matrix(DT_BFLOAT16, REDUCE_MAX, sizes[i], sizes[k], 1);
            check_matrix(DT_INT8, REDUCE_SUM, sizes[i], sizes[k], 1);
        }
    check_matrix(DT_FLOAT32, REDUCE_SUM, 3, 700001, 2);
    check_matrix(DT_FLOAT32, REDUCE_SUM, 700001, 3, 1);
    check_matrix(DT_FLOAT32, REDUCE_SUM, 300000, 4, 1);
}

static void test_empty_gives_the_identity(void **state)
{
    (void)state;
    for (int kind = REDUCE_AND; kind <= REDUCE_PROD; kind++)
        for (size_t i = 0; i < ARRAY_LEN(all_dtypes); i++) {
            check_matrix(all_dtypes[i], (enum reduce_kind)kind, 0, 5, 1);
            check_matrix(all_dtypes[i], (enum reduce_kind)kind, 0, 5, 3);
        }
}

static void test_nan_wins_min_and_max(void **state)
{
    static const enum dtype types[] = { DT_FLOAT16, DT_BFLOAT16, DT_FLOAT32 };
    struct rng r = { 3 };
    struct shp shape = { 2, { 5, 1000 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        for (int kind = REDUCE_MIN; kind <= REDUCE_MAX; kind++)
            for (int axis = 0; axis < 2; axis++) {
                struct reduce_params p = { .kind = kind, .n = 1, .axis = { axis } };
                struct nd a;
                nd_make(&a, &r, types[i], &shape, ND_ROW);
                for (int k = 0; k < 3; k++)
                    num_store(types[i], nd_at(&a, (size_t)rng_below(&r, 5000)),
                              (struct num){ .re = k ? NAN : INFINITY });
                nd_view(&a);
                check_reduce(&a, &p);
                nd_free(&a);
            }
}

/* A NaN in one component of a complex number stays in that component. */
static void test_complex_nan(void **state)
{
    static const float values[6] = { 1, NAN, 2, -3, -1, 5 };
    static const struct {
        enum reduce_kind kind;
        float re;
    } want[] = { { REDUCE_MIN, -1 }, { REDUCE_MAX, 2 } };
    struct shp shape = { 1, { 3 } };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        struct reduce_params p = { .kind = want[i].kind, .n = 1, .axis = { 0 } };
        struct arr *in = NULL;
        assert_ok(arr_new_data(&in, values, &shape, DT_COMPLEX64));
        struct arr *out = reduce_node(in, &p);
        struct num got = num_load(DT_COMPLEX64, nd_run(out));
        assert_true(got.re == want[i].re && isnan(got.im));
        arr_unref(&out);
        arr_unref(&in);
    }
}

/* Far more elements than an invocation may take trips, from one element in memory. */
static void test_long_broadcast(void **state)
{
    struct shp shape = { 3, { 1, 6000, 5003 } };
    struct reduce_params p = { .kind = REDUCE_SUM, .n = 2, .axis = { 1, 2 } };
    struct ops_as_strided view = { .shape = { shape.d, 3 },
                                   .strides = (int64_t[]){ 0, 0, 0 },
                                   .n_strides = 3 };
    struct arr *one = NULL, *in = NULL;

    (void)state;
    assert_ok(arr_new_number(&one, 1, DT_INT32));
    assert_ok(ops_as_strided(&in, one, &view, nd_gpu));
    struct arr *sum = reduce_node(in, &p);
    assert_int_equal(*(const int32_t *)nd_run(sum), 6000 * 5003);
    arr_unref(&sum);
    arr_unref(&in);
    arr_unref(&one);
}

static void test_many_small_axes(void **state)
{
    struct rng r = { 4 };
    struct shp shape = { 14, { 2, 2, 1, 2, 2, 2, 3, 2, 1, 2, 2, 2, 2, 2 } };

    (void)state;
    for (int k = 0; k < 12; k++) {
        struct reduce_params p = { .kind = REDUCE_SUM };
        struct nd a;
        random_axes(&p, &r, shape.ndim);
        nd_make(&a, &r, DT_FLOAT32, &shape, k % 2 ? ND_PERMUTED : ND_BROADCAST);
        check_reduce(&a, &p);
        nd_free(&a);
    }
}

static void test_unsupported_is_an_error(void **state)
{
    struct reduce_params p = { .kind = REDUCE_SUM, .n = 1, .axis = { 0 } };
    struct out_desc out = { { 1, { 1 } }, DT_FLOAT32 };
    struct arr *in = NULL, *r = NULL;

    (void)state;
    assert_ok(arr_new_data(&in, NULL, &(struct shp){ 1, { 4 } }, DT_INT8));
    assert_ok(arr_new_op(&r, .op = OP_REDUCE, .strm = nd_gpu, .in = &in, .n_in = 1, .params = &p,
                         .out = &out));
    assert_fails(ERR_UNSUPPORTED, eval_arrays(&r, 1, false));
    arr_unref(&r);
    arr_unref(&in);
}

/* ---- argmin, argmax ---- */

/* The first NaN wins, then the first of the best. */
static size_t best_on_host(const struct nd *a, size_t first, size_t step, bool is_max)
{
    size_t best = 0;
    struct num value = { .re = NAN };
    bool found = false;

    for (size_t i = 0; i < (size_t)a->shape.d[1]; i++) {
        struct num v = nd_get(a, first + i * step);
        if (dt_is_inexact(a->dtype) && has_nan(v))
            return i;
        if (!found || (is_max ? is_less(a->dtype, value, v) : is_less(a->dtype, v, value))) {
            best = i;
            value = v;
            found = true;
        }
    }
    return best;
}

/* a has three axes; the middle one is searched. */
static void check_arg(const struct nd *a, bool is_max)
{
    struct arg_reduce_params p = { .is_max = is_max, .axis = 1 };
    struct out_desc desc = { a->shape, DT_UINT32 };
    size_t inner = (size_t)a->shape.d[2], length = (size_t)a->shape.d[1];
    struct arr *out = NULL;

    desc.shape.d[1] = 1;
    assert_ok(arr_new_op(&out, .op = OP_ARG_REDUCE, .strm = nd_gpu, .in = &a->arr, .n_in = 1,
                         .params = &p, .out = &desc));
    const uint32_t *got = nd_run(out);
    for (size_t i = 0; i < out->size; i++) {
        size_t first = i / inner * inner * length + i % inner;
        size_t want = best_on_host(a, first, inner, is_max);
        if (got[i] != want)
            fail_msg("arg%s of %s %s, output %zu: %u, should be %zu", is_max ? "max" : "min",
                     dt_name(a->dtype), shp_text(&a->shape), i, got[i], want);
    }
    arr_unref(&out);
}

static void test_arg_every_dtype_and_layout(void **state)
{
    static const struct shp shapes[] = {
        { 3, { 3, 50, 4 } },   { 3, { 7, 300, 1 } }, { 3, { 1, 999, 33 } },
        { 3, { 2, 33, 128 } }, { 3, { 1, 1, 5 } },   { 3, { 1, 100001, 1 } },
    };
    struct rng r = { 5 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(all_dtypes); i++)
        for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
            struct nd a;
            nd_make(&a, &r, all_dtypes[i], &shapes[k], (enum nd_layout)rng_below(&r, ND_LAYOUTS));
            check_arg(&a, true);
            check_arg(&a, false);
            nd_free(&a);
        }
}

static void test_arg_large_workgroups(void **state)
{
    static const struct shp shapes[] = { { 3, { 3, 5000, 1 } }, { 3, { 1, 999, 32 } } };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    struct rng r = { 8 };

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(shapes); k++) {
        struct nd a;
        nd_make(&a, &r, DT_INT16, &shapes[k], ND_ROW);
        check_arg(&a, true);
        check_arg(&a, false);
        nd_free(&a);
    }
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static void test_arg_finds_nan(void **state)
{
    struct shp shape = { 3, { 2, 200, 1 } };
    struct rng r = { 6 };
    struct nd a;

    (void)state;
    nd_make(&a, &r, DT_FLOAT32, &shape, ND_ROW);
    for (size_t i = 0; i < 200; i++)
        num_store(DT_FLOAT32, nd_at(&a, i), (struct num){ .re = NAN });
    for (size_t i = 350; i < 360; i++)
        num_store(DT_FLOAT32, nd_at(&a, i), (struct num){ .re = NAN });
    nd_view(&a);
    check_arg(&a, true);
    check_arg(&a, false);
    nd_free(&a);
}

/* Long rows, whose slices are joined: the largest number in several of them, and NaN behind it. */
static void check_long_arg(enum dtype t, int32_t rows, int32_t length)
{
    struct num top = { .re = 100, .i = t == DT_BOOL ? 1 : 100 }, nan = { .re = NAN };
    bool has_nans = dt_is_inexact(t) && rows > 1;
    size_t n = (size_t)length;
    struct rng r = { 9 };
    struct nd a;

    nd_make(&a, &r, t, &(struct shp){ 3, { rows, length, 1 } }, ND_ROW);
    for (size_t row = 0; row < (size_t)rows * n; row += n)
        for (size_t i = 0; i < n; i += n / 3 + 1) {
            num_store(t, nd_at(&a, row + n - 1 - i), top);
            if (has_nans && row)
                num_store(t, nd_at(&a, row + n - 1 - i / 2), nan);
        }
    nd_view(&a);
    check_arg(&a, true);
    check_arg(&a, false);
    nd_free(&a);
}

static void test_arg_long_rows(void **state)
{
    (void)state;
    for (int lanes = 0; lanes <= 256; lanes += 256) {
        int64_t old = gate_set_int(GATE_VK_WORKGROUP, lanes);
        for (size_t i = 0; i < ARRAY_LEN(all_dtypes); i++) {
            int32_t item = (int32_t)dt_size(all_dtypes[i]);
            for (size_t k = 0; k < ARRAY_LEN(sliced_bytes); k++)
                check_long_arg(all_dtypes[i], 1,
                               sliced_bytes[k] / item + around[i % ARRAY_LEN(around)]);
            check_long_arg(all_dtypes[i], 3, 70001);
        }
        check_long_arg(DT_BFLOAT16, 1, 151936);
        gate_set_int(GATE_VK_WORKGROUP, old);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_dtype_and_layout),
        cmocka_unit_test(test_without_wide_loads),
        cmocka_unit_test(test_large_workgroups),
        cmocka_unit_test(test_lengths_of_everything),
        cmocka_unit_test(test_joined_slices),
        cmocka_unit_test(test_join_is_one_dispatch),
        cmocka_unit_test(test_rows_and_columns),
        cmocka_unit_test(test_empty_gives_the_identity),
        cmocka_unit_test(test_nan_wins_min_and_max),
        cmocka_unit_test(test_complex_nan),
        cmocka_unit_test(test_long_broadcast),
        cmocka_unit_test(test_many_small_axes),
        cmocka_unit_test(test_unsupported_is_an_error),
        cmocka_unit_test(test_arg_every_dtype_and_layout),
        cmocka_unit_test(test_arg_large_workgroups),
        cmocka_unit_test(test_arg_finds_nan),
        cmocka_unit_test(test_arg_long_rows),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests(tests, nd_open_for_counts, NULL);
}
