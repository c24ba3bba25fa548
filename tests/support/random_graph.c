#include "support/random_graph.h"

#include <stdlib.h>
#include <string.h>

#include "eval/stream.h"
#include "eval/wait.h"
#include "graph/op.h"
#include "ops/ops.h"

/* ---- making ---- */

static enum op_id random_fusable(struct rng *r)
{
    for (;;) {
        enum op_id op = (enum op_id)rng_below(r, OP_COUNT);
        if (op_table[op].flags & OPF_FUSE)
            return op;
    }
}

static enum dtype random_dtype(struct graph *g)
{
    for (;;) {
        enum dtype t = (enum dtype)rng_below(&g->rng, DT_COUNT);
        if (t != DT_FLOAT64 || g->strm->dev.type == DEV_CPU)
            return t;
    }
}

/* Small ones, one that is no multiple of anything, one that counts as large on a device. */
static void choose_size(struct graph *g)
{
    static const int32_t sizes[][2] = { { 6, 5 }, { 4, 8 }, { 1, 30 }, { 33, 129 }, { 300, 301 } };
    int i = rng_one_in(&g->rng, 20) ? 4 : rng_one_in(&g->rng, 8) ? 3 : rng_below(&g->rng, 3);

    g->rows = sizes[i][0];
    g->columns = sizes[i][1];
}

static struct shp leaf_shape(struct graph *g)
{
    struct shp s = { .ndim = 2, .d = { g->rows, g->columns } };

    switch (rng_below(&g->rng, 7)) {
    case 0:
        return (struct shp){ .ndim = 1, .d = { g->columns } };
    case 1:
        s.d[1] = 1;
        return s;
    case 2:
        return (struct shp){ .ndim = rng_below(&g->rng, 2), .d = { 1 } };
    default:
        return s;
    }
}

/* Small integers, or numbers in [-2, 2). */
static void random_element(struct rng *r, enum dtype t, char *at)
{
    float f[2] = { (float)rng_below(r, 1024) / 256 - 2, (float)rng_below(r, 1024) / 256 - 2 };
    double d = f[0];
    int64_t i = rng_below(r, 9) - (dt_table[t].kind == DT_KIND_I ? 4 : 0);
    uint16_t half = t == DT_FLOAT16 ? dt_f32_to_f16(f[0]) : dt_f32_to_bf16(f[0]);
    const void *value = &i; /* little endian: the low bytes of an integer come first */

    i = t == DT_BOOL ? i & 1 : i;
    if (t == DT_FLOAT32 || t == DT_COMPLEX64)
        value = f;
    else if (t == DT_FLOAT64)
        value = &d;
    else if (dt_is_inexact(t))
        value = &half;
    memcpy(at, value, dt_size(t));
}

static struct arr *random_dense(struct graph *g, enum dtype t, const struct shp *s)
{
    size_t n = shp_size(s);
    char *bytes = mem_alloc_array(n, dt_size(t));
    struct arr *a = NULL;

    assert_non_null(bytes);
    for (size_t i = 0; i < n; i++)
        random_element(&g->rng, t, bytes + i * dt_size(t));
    assert_ok(arr_new_data(&a, bytes, s, t));
    mem_free(bytes);
    return a;
}

/* Some of a larger dense array, steps[i] apart, the last element first where a step is negative. */
static struct arr *stepped(struct graph *g, enum dtype t, struct shp s, const int32_t *steps)
{
    struct arr *dense, *a = NULL;
    int32_t start[SHP_MAX], stop[SHP_MAX];
    size_t n = (size_t)s.ndim;

    for (size_t i = 0; i < n; i++)
        s.d[i] *= abs(steps[i]);
    for (size_t i = 0; i < n; i++) {
        start[i] = steps[i] < 0 ? s.d[i] - 1 : 0;
        stop[i] = steps[i] < 0 ? -s.d[i] - 1 : s.d[i];
    }
    dense = random_dense(g, t, &s);
    assert_ok(ops_slice(&a, dense, &(struct ops_slice){ { start, n }, { stop, n }, { steps, n } },
                        g->strm));
    arr_unref(&dense);
    return a;
}

static struct arr *transposed(struct graph *g, enum dtype t, struct shp s)
{
    struct arr *dense, *a = NULL;

    for (int i = 0, j = s.ndim - 1; i < j; i++, j--) {
        int32_t d = s.d[i];
        s.d[i] = s.d[j];
        s.d[j] = d;
    }
    dense = random_dense(g, t, &s);
    assert_ok(ops_transpose(&a, dense, INTS_ALL, g->strm));
    arr_unref(&dense);
    return a;
}

static struct arr *random_leaf(struct graph *g)
{
    static const int32_t steps[][2] = { { 2, 3 }, { -1, -1 }, { 1, -2 }, { -3, 1 } };
    struct shp s = leaf_shape(g);
    enum dtype t = random_dtype(g);
    int layout = rng_below(&g->rng, 7);

    if (layout < 2)
        return random_dense(g, t, &s);
    if (layout == 2)
        return transposed(g, t, s);
    return stepped(g, t, s, steps[layout - 3]);
}

struct arr *graph_pick(struct graph *g)
{
    for (;;) {
        int reach = rng_one_in(&g->rng, 2) ? g->n : MIN(g->n, 4);
        struct arr *a = g->a[g->n - 1 - rng_below(&g->rng, reach)];
        if (a)
            return a;
    }
}

/* A view of the same shape, or of a shape that still broadcasts. */
static enum err random_view(struct graph *g, struct arr **out, struct arr *a)
{
    int32_t start[SHP_MAX], stop[SHP_MAX], step[SHP_MAX];
    size_t n = a->ndim;

    if (rng_one_in(&g->rng, 3))
        return ops_broadcast_to(out, a, (struct ints){ (int32_t[]){ g->rows, g->columns }, 2 },
                                g->strm);
    for (size_t i = 0; i < n; i++) {
        bool backwards = rng_one_in(&g->rng, 2);
        start[i] = backwards ? a->shape[i] - 1 : 0;
        stop[i] = backwards ? -a->shape[i] - 1 : a->shape[i];
        step[i] = backwards ? -1 : 1;
    }
    return ops_slice(out, a, &(struct ops_slice){ { start, n }, { stop, n }, { step, n } },
                     g->strm);
}

static enum err random_op(struct graph *g, struct arr **out)
{
    enum op_id op = random_fusable(&g->rng);
    struct arr *a = graph_pick(g), *b = graph_pick(g), *c = graph_pick(g);

    if (rng_one_in(&g->rng, 12))
        return random_view(g, out, a);
    if (op == OP_ASTYPE)
        return ops_astype(out, a, random_dtype(g), g->strm);
    if (op == OP_TO_FP8)
        return ops_to_fp8(out, a, g->strm);
    if (op == OP_FROM_FP8)
        return ops_from_fp8(out, a, random_dtype(g), g->strm);
    switch (op_table[op].family) {
    case OP_FAMILY_UNARY:
        return ops_unary(out, op, a, g->strm);
    case OP_FAMILY_BINARY:
        return ops_binary(out, op, a, b, g->strm);
    default:
        return ops_where(out, a, b, c, g->strm);
    }
}

void graph_make_leaves(struct graph *g, uint64_t seed, struct strm *s)
{
    *g = (struct graph){ .rng = { seed }, .strm = s };
    choose_size(g);
    while (g->n < GRAPH_LEAVES)
        g->a[g->n++] = random_leaf(g);
}

void graph_make_nodes(struct graph *g)
{
    for (int i = 4 + rng_below(&g->rng, GRAPH_NODES - 4); i > 0; i--) {
        struct arr *out = NULL;
        if (random_op(g, &out) == ERR_OK) /* else the op refuses the dtype */
            g->a[g->n++] = out;
    }
    for (int i = 0; i < g->n - 1; i++)
        if (!rng_one_in(&g->rng, 5))
            arr_unref(&g->a[i]);
}

void graph_drop(struct graph *g)
{
    for (int i = 0; i < g->n; i++)
        arr_unref(&g->a[i]);
}

/* ---- comparing ---- */

static const char *element(const struct arr *a, const char *first, size_t number)
{
    int64_t at = 0;

    for (int i = a->ndim - 1; i >= 0; i--) {
        at += (int64_t)(number % (size_t)a->shape[i]) * a->strides[i];
        number /= (size_t)a->shape[i];
    }
    return first + at * (int64_t)dt_size((enum dtype)a->dtype);
}

/* One component of a floating element is a NaN. */
static bool is_nan(enum dtype t, const char *at, int component)
{
    uint64_t bits = 0;

    memcpy(&bits, at + component * 4, t == DT_COMPLEX64 ? 4 : dt_size(t));
    switch (t) {
    case DT_FLOAT16:
        return (bits & 0x7fff) > 0x7c00;
    case DT_BFLOAT16:
        return (bits & 0x7fff) > 0x7f80;
    case DT_FLOAT64:
        return (bits & INT64_MAX) > 0x7ffull << 52;
    default:
        return (bits & 0x7fffffff) > 0x7f800000;
    }
}

static bool same_bits(enum dtype t, const char *x, const char *y)
{
    int components = t == DT_COMPLEX64 ? 2 : 1;
    size_t size = dt_size(t) / (size_t)components;

    for (int c = 0; c < components; c++)
        if (memcmp(x + (size_t)c * size, y + (size_t)c * size, size) != 0 &&
            !(dt_is_inexact(t) && is_nan(t, x, c) && is_nan(t, y, c)))
            return false;
    return true;
}

void graph_compare(const struct graph *one, const struct graph *other, const char *what)
{
    assert_int_equal(one->n, other->n);
    for (int i = 0; i < one->n; i++) {
        struct arr *a = one->a[i], *b = other->a[i];
        const void *pa = NULL, *pb = NULL;
        if (!a || !arr_is_scheduled(a))
            continue;
        assert_true(b && arr_is_scheduled(b));
        assert_ok(arr_host(&pa, a));
        assert_ok(arr_host(&pb, b));
        for (size_t k = 0; k < a->size; k++) {
            const char *x = element(a, pa, k), *y = element(b, pb, k);
            if (same_bits((enum dtype)a->dtype, x, y))
                continue;
            uint64_t u = 0, v = 0;
            memcpy(&u, x, dt_size((enum dtype)a->dtype));
            memcpy(&v, y, dt_size((enum dtype)a->dtype));
            fail_msg("%s: array %d (%s) element %zu: bits %llx instead of %llx", what, i,
                     dt_name((enum dtype)a->dtype), k, (unsigned long long)u,
                     (unsigned long long)v);
        }
    }
}
