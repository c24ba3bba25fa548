/* Products and what follows on them as one step give the bits of single ops: random products
 * (dense, packed, gathered) of random sizes, random programs behind one or two of them, side inputs
 * of all layouts, random settings. Only the bits of a NaN are left open.
 *
 * usage: ops_epilogue_vk [seed [graphs]]; a failure prints the seed of its graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "plan/rewrite.h"
#include "support/nd.h"

enum { MAX_NODES = 24, SIDES = 5 };

static uint64_t first_seed = 1;
static int n_graphs = 40;

enum kind { MATMUL, ADDMM, GATHER_MM, QMM, GATHER_QMM, KINDS };

struct graph {
    struct rng rng;
    enum dtype dtype;
    enum kind kind;
    int32_t batch, m, n, k; /* batch 0: two dimensions */
    struct shp out;
    struct arr *x, *numbers[2];
    struct arr *side[SIDES];
    struct arr *a[MAX_NODES]; /* values of the program */
    int n_a;
};

static void drop_all(struct arr **a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        arr_unref(&a[i]);
}

/* ---- operands ---- */

/* Evaluated: no part of the plan. */
static struct arr *settled(struct arr *a)
{
    assert_ok(eval_arrays(&a, 1, false));
    return a;
}

static struct arr *random_array(struct graph *g, const struct shp *s, enum dtype t, double scale)
{
    size_t n = shp_size(s), item = dt_size(t);
    char *bytes = mem_alloc(n * item + 1);
    struct arr *a = NULL;

    for (size_t i = 0; i < n; i++) {
        double v = (rng_below(&g->rng, 4001) / 1000.0 - 2) * scale;
        num_store(t, bytes + i * item, (struct num){ .re = v, .i = rng_below(&g->rng, 3) });
    }
    assert_ok(arr_new_data(&a, bytes, s, t));
    mem_free(bytes);
    return a;
}

static struct arr *transposed(struct graph *g, struct shp s, enum dtype t, double scale)
{
    struct arr *dense, *a = NULL;
    int32_t d = s.d[s.ndim - 1];

    s.d[s.ndim - 1] = s.d[s.ndim - 2];
    s.d[s.ndim - 2] = d;
    dense = random_array(g, &s, t, scale);
    assert_ok(ops_swapaxes(&a, dense, -1, -2, nd_gpu));
    arr_unref(&dense);
    return settled(a);
}

/* All of the result, a row or column of it, one number; as they are, or every other element. */
static struct arr *random_side(struct graph *g)
{
    static const enum dtype others[] = { DT_BOOL, DT_INT8, DT_UINT16, DT_INT32 };
    enum dtype t = rng_one_in(&g->rng, 8) ? others[rng_below(&g->rng, 4)] : g->dtype;
    struct shp s = g->out;

    switch (rng_below(&g->rng, 7)) {
    case 0:
        return random_array(g, &(struct shp){ .ndim = 0 }, t, 1);
    case 1:
    case 2:
        return random_array(g, &(struct shp){ 1, { g->n } }, t, 1);
    case 3:
        s.d[s.ndim - 1] = 1;
        return random_array(g, &s, t, 1);
    case 4:
        return transposed(g, s, t, 1);
    default:
        return random_array(g, &s, t, 1);
    }
}

static struct arr *random_numbers(struct graph *g, int32_t n, int32_t below)
{
    uint32_t v[64];
    struct arr *a = NULL;

    for (int i = 0; i < n; i++)
        v[i] = (uint32_t)rng_below(&g->rng, below);
    assert_ok(arr_new_data(&a, v, &(struct shp){ 1, { n } }, DT_UINT32));
    return a;
}

/* Matrices of n x k, or of k x n. */
static struct arr *random_matrix(struct graph *g, bool along_k)
{
    struct shp s = { 2, { g->k, g->n } };

    if (g->kind == GATHER_MM || (g->kind != QMM && g->batch && rng_one_in(&g->rng, 2)))
        s = (struct shp){ 3, { MAX(g->batch, 1), g->k, g->n } };
    return along_k ? transposed(g, s, g->dtype, 0.1) : random_array(g, &s, g->dtype, 0.1);
}

static struct arr *packed_product(struct graph *g)
{
    static const int group = 32, bits = 4;
    struct shp s = { 2, { g->n, g->k } };
    struct ops_quantized q = { .n = 0 };
    struct ops_quant how = { &group, &bits, "affine" };
    struct arr *out = NULL, *w;

    if (g->kind == GATHER_QMM)
        s = (struct shp){ 3, { 3, g->n, g->k } };
    w = random_array(g, &s, g->dtype, 0.1);
    assert_ok(ops_quantize(&q, w, &how, NULL, nd_gpu));
    assert_ok(eval_arrays(q.v, q.n, false));
    struct ops_packed p = { q.v[0], q.v[1], q.v[2], how };
    if (g->kind == QMM)
        assert_ok(ops_quantized_matmul(&out, g->x, &p, true, nd_gpu));
    else
        assert_ok(ops_gather_qmm(&out, g->x, &p,
                                 &(struct ops_gather_qmm){ .lhs_indices = g->numbers[0],
                                                           .rhs_indices = g->numbers[1],
                                                           .transpose = true },
                                 nd_gpu));
    arr_unref(&w);
    drop_all(q.v, 3);
    return out;
}

static struct arr *product(struct graph *g)
{
    struct arr *out = NULL, *w;

    if (g->kind == QMM || g->kind == GATHER_QMM)
        return packed_product(g);
    w = random_matrix(g, rng_one_in(&g->rng, 2));
    if (g->kind == MATMUL) {
        assert_ok(ops_matmul(&out, g->x, w, nd_gpu));
    } else if (g->kind == ADDMM) {
        struct ops_addmm how = { g->side[0], g->x, w, 0.5f, 2 };
        assert_ok(ops_addmm(&out, &how, nd_gpu));
    } else {
        assert_ok(ops_gather_mm(
            &out, g->x, w,
            &(struct ops_gather_mm){ .lhs_indices = g->numbers[0], .rhs_indices = g->numbers[1] },
            nd_gpu));
    }
    arr_unref(&w);
    return out;
}

/* ---- programs ---- */

static struct arr *pick(struct graph *g)
{
    if (rng_one_in(&g->rng, 3))
        return g->side[rng_below(&g->rng, SIDES)];
    return g->a[rng_one_in(&g->rng, 3) ? rng_below(&g->rng, g->n_a) : g->n_a - 1];
}

static enum err random_op(struct graph *g, struct arr **out)
{
    static const enum op_id unary[] = { OP_SIGMOID, OP_TANH, OP_ERF,    OP_EXP,  OP_NEGATIVE,
                                        OP_ABS,     OP_SQRT, OP_SQUARE, OP_FLOOR };
    static const enum op_id binary[] = { OP_ADD,     OP_ADD,    OP_MULTIPLY, OP_MULTIPLY,
                                         OP_MAXIMUM, OP_DIVIDE, OP_SUBTRACT, OP_POWER };
    static const enum dtype types[] = { DT_FLOAT32, DT_BFLOAT16, DT_FLOAT16, DT_INT32 };
    struct arr *last = g->a[g->n_a - 1], *other = pick(g), *mask = NULL;
    enum err err;

    switch (rng_below(&g->rng, 9)) {
    case 0:
    case 1:
    case 2:
        return ops_unary(out, unary[rng_below(&g->rng, ARRAY_LEN(unary))], last, nd_gpu);
    case 3:
        return ops_astype(out, last, types[rng_below(&g->rng, ARRAY_LEN(types))], nd_gpu);
    case 4:
        if ((err = ops_binary(&mask, OP_GREATER, last, other, nd_gpu)))
            return err;
        err = ops_where(out, mask, last, pick(g), nd_gpu);
        arr_unref(&mask);
        return err;
    default:
        return ops_binary(out, binary[rng_below(&g->rng, ARRAY_LEN(binary))],
                          rng_one_in(&g->rng, 2) ? last : other,
                          rng_one_in(&g->rng, 2) ? last : other, nd_gpu);
    }
}

static void choose_sizes(struct graph *g)
{
    static const int32_t m[] = { 1, 1, 1, 2, 3, 7, 16, 17, 40, 130 };
    static const int32_t n[] = { 1, 5, 32, 45, 96, 130 }, k[] = { 32, 64, 96, 320, 1024 };

    g->dtype = (enum dtype[]){ DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 }[rng_below(&g->rng, 3)];
    g->kind = (enum kind)rng_below(&g->rng, KINDS);
    g->m = m[rng_below(&g->rng, ARRAY_LEN(m))];
    g->n = n[rng_below(&g->rng, ARRAY_LEN(n))];
    g->k = k[rng_below(&g->rng, ARRAY_LEN(k))];
    g->batch = rng_one_in(&g->rng, 3) ? 1 + rng_below(&g->rng, 3) : 0;
    if (g->kind == GATHER_MM || g->kind == GATHER_QMM)
        g->batch = 2;
    g->out =
        g->batch ? (struct shp){ 3, { g->batch, g->m, g->n } } : (struct shp){ 2, { g->m, g->n } };
}

/* The same seed gives the same graph. */
static void make_graph(struct graph *g, uint64_t seed)
{
    *g = (struct graph){ .rng = { seed } };
    choose_sizes(g);
    struct shp x = g->out;
    x.d[x.ndim - 1] = g->k;
    bool is_gather = g->kind == GATHER_MM || g->kind == GATHER_QMM;
    if (is_gather) { /* more pairs than matrices */
        g->out.d[0] = 5;
        g->numbers[0] = random_numbers(g, 5, 2);
        g->numbers[1] = random_numbers(g, 5, g->kind == GATHER_QMM ? 3 : 2);
    }
    g->x =
        rng_one_in(&g->rng, 5) ? transposed(g, x, g->dtype, 1) : random_array(g, &x, g->dtype, 1);
    for (int i = 0; i < SIDES; i++)
        g->side[i] = random_side(g);
    for (int i = 1 + rng_below(&g->rng, 2); i > 0; i--)
        g->a[g->n_a++] = product(g);
    if (g->n_a == 2 && rng_below(&g->rng, 4)) {
        enum op_id joins = rng_one_in(&g->rng, 2) ? OP_ADD : OP_MULTIPLY;
        assert_ok(ops_binary(&g->a[2], joins, g->a[0], g->a[1], nd_gpu));
        g->n_a = 3;
    }
    for (int i = 1 + rng_below(&g->rng, 9); i > 0 && g->n_a < MAX_NODES - 2; i--) {
        struct arr *out = NULL;
        if (random_op(g, &out) == ERR_OK)
            g->a[g->n_a++] = out;
    }
    struct arr *out = NULL;
    if (rng_below(&g->rng, 4))
        assert_ok(ops_astype(&out, g->a[g->n_a - 1], g->dtype, nd_gpu));
    if (out)
        g->a[g->n_a++] = out;
    for (int i = 0; i < g->n_a - 1; i++)
        if (rng_below(&g->rng, 20))
            arr_unref(&g->a[i]);
}

static void drop_graph(struct graph *g)
{
    drop_all(g->a, MAX_NODES);
    drop_all(g->side, SIDES);
    drop_all(g->numbers, 2);
    arr_unref(&g->x);
}

/* ---- comparing ---- */

static bool same_bits(enum dtype t, const char *x, const char *y)
{
    struct num a = num_load(t, x), b = num_load(t, y);

    return memcmp(x, y, dt_size(t)) == 0 || (dt_is_inexact(t) && a.re != a.re && b.re != b.re);
}

static void compare(struct arr *one, struct arr *other, const struct graph *g, uint64_t seed)
{
    enum dtype t = (enum dtype)one->dtype;
    const void *x, *y;

    assert_int_equal(one->size, other->size);
    assert_ok(arr_host(&x, one));
    assert_ok(arr_host(&y, other));
    for (size_t i = 0; i < one->size; i++) {
        const char *p = (const char *)x + i * dt_size(t), *q = (const char *)y + i * dt_size(t);
        if (!same_bits(t, p, q))
            fail_msg("seed %llu: product %d of %s, %d x %d x %d x %d: element %zu is %.9g as one "
                     "step, %.9g apart",
                     (unsigned long long)seed, (int)g->kind, dt_name(g->dtype), g->batch, g->m,
                     g->n, g->k, i, num_load(t, p).re, num_load(t, q).re);
    }
}

static const enum gate gates[] = {
#define REWRITE(id, ...) GATE_PLAN_##id,
#include "plan/rewrite.def"
#undef REWRITE
};

static void set_gates(uint32_t mask)
{
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        gate_set_int(gates[i], mask >> i & 1);
}

static void check_graph(uint64_t seed)
{
    static struct graph apart, together;
    struct rng rng = { seed };

    make_graph(&apart, seed);
    set_gates(0);
    assert_ok(eval_arrays(&apart.a[apart.n_a - 1], 1, false));
    make_graph(&together, seed);
    set_gates(rng_one_in(&rng, 4) ? (uint32_t)rng_next(&rng) : UINT32_MAX);
    assert_ok(eval_arrays(&together.a[together.n_a - 1], 1, false));
    set_gates(UINT32_MAX);
    compare(together.a[together.n_a - 1], apart.a[apart.n_a - 1], &apart, seed);
    drop_graph(&apart);
    drop_graph(&together);
}

static void test_random_graphs(void **state)
{
    (void)state;
    /* The order of a packed product's sum depends on the design, and that on how many rows there
     * are for each compute unit. */
    gate_set_text(GATE_VK_QMV_DESIGN, "32,8,2,2,16");
    rewrite_reset();
    for (int i = 0; i < n_graphs; i++)
        check_graph(first_seed + (uint64_t)i);
    gate_set_text(GATE_VK_QMV_DESIGN, NULL);
    uint64_t taken = rewrite_hits(REWRITE_EPILOGUE) + rewrite_hits(REWRITE_PAIR_EPILOGUE);
    print_message("%llu of one product, %llu of two\n",
                  (unsigned long long)rewrite_hits(REWRITE_EPILOGUE),
                  (unsigned long long)rewrite_hits(REWRITE_PAIR_EPILOGUE));
    assert_true(taken * 4 >= (uint64_t)n_graphs);
    assert_true(rewrite_hits(REWRITE_PAIR_EPILOGUE) * 20 >= (uint64_t)n_graphs);
}

/* ---- what is one dispatch ---- */

static struct arr *step(struct arr *a, struct arr *out)
{
    arr_unref(&a);
    return out;
}

static struct arr *unary(enum op_id op, struct arr *a)
{
    struct arr *out = NULL;

    assert_ok(ops_unary(&out, op, a, nd_gpu));
    return step(a, out);
}

/* a is taken over, b borrowed. */
static struct arr *binary(enum op_id op, struct arr *a, struct arr *b)
{
    struct arr *out = NULL;

    assert_ok(ops_binary(&out, op, a, b, nd_gpu));
    return step(a, out);
}

static struct arr *silu(struct arr *a)
{
    struct arr *s = NULL, *out;

    assert_ok(ops_unary(&s, OP_SIGMOID, a, nd_gpu));
    out = binary(OP_MULTIPLY, a, s);
    arr_unref(&s);
    return out;
}

/* x / 2 * (1 + erf(x / sqrt 2)), with the constants that the side inputs are. */
static struct arr *gelu(struct arr *x, struct arr *const *constant)
{
    struct arr *y = NULL, *out;

    assert_ok(ops_binary(&y, OP_MULTIPLY, x, constant[0], nd_gpu));
    y = binary(OP_ADD, unary(OP_ERF, y), constant[1]);
    out = binary(OP_MULTIPLY, binary(OP_MULTIPLY, x, constant[2]), y);
    arr_unref(&y);
    return out;
}

static void begin(struct graph *g, enum kind kind, int32_t m)
{
    bool is_gather = kind == GATHER_MM || kind == GATHER_QMM;
    int32_t pairs = is_gather ? 5 : 0;

    *g = (struct graph){ .rng = { 17 }, .dtype = DT_BFLOAT16, .kind = kind };
    g->batch = is_gather ? 2 : 0;
    g->m = m;
    g->n = 64;
    g->k = 128;
    struct shp x = { 2 + is_gather, { m, g->k } };
    g->out = (struct shp){ 2 + is_gather, { m, g->n } };
    if (is_gather) {
        x = (struct shp){ 3, { g->batch, m, g->k } };
        g->out = (struct shp){ 3, { pairs, m, g->n } };
        g->numbers[0] = random_numbers(g, pairs, 2);
        g->numbers[1] = random_numbers(g, pairs, 2);
    }
    g->x = random_array(g, &x, g->dtype, 1);
    for (int i = 0; i < 3; i++)
        g->side[i] = random_array(g, &(struct shp){ .ndim = 0 }, g->dtype, 1);
    g->side[3] = random_array(g, &(struct shp){ 1, { g->n } }, g->dtype, 1);
    g->side[4] = random_array(g, &g->out, g->dtype, 1);
    assert_ok(eval_arrays(g->side, SIDES, false));
    assert_ok(eval_arrays(&g->x, 1, false));
}

static uint64_t dispatches_of(struct arr *a)
{
    uint64_t before = stat_get(STAT_DISPATCHES);

    assert_ok(eval_arrays(&a, 1, false));
    return stat_get(STAT_DISPATCHES) - before;
}

/* From so many rows on, what has as many is read by a step of its own. */
#define MANY_ROWS 17

/* Bias and activation cost nothing, whatever the product is, and a residual of few rows neither. */
static void check_one_product(enum kind kind, int32_t m)
{
    struct graph g;

    begin(&g, kind, m);
    g.a[0] = product(&g);
    uint64_t alone = dispatches_of(g.a[0]);
    arr_unref(&g.a[0]);
    g.a[0] = binary(OP_ADD, product(&g), g.side[3]);
    g.a[0] = binary(OP_ADD, gelu(g.a[0], g.side), g.side[4]);
    if (dispatches_of(g.a[0]) != alone + (m >= MANY_ROWS))
        fail_msg("product %d of %d rows takes its program in a step of its own", (int)kind, m);
    drop_graph(&g);
}

/* Two products and what joins them: one dispatch of packed matrices and few rows, else two. */
static void check_pair(enum kind kind, int32_t m, uint64_t most)
{
    struct graph g;

    begin(&g, kind, m);
    g.a[0] = silu(product(&g));
    g.a[1] = product(&g);
    g.a[0] = binary(OP_MULTIPLY, g.a[0], g.a[1]);
    arr_unref(&g.a[1]);
    if (dispatches_of(g.a[0]) > most)
        fail_msg("a pair of products %d of %d rows is more than %d dispatches", (int)kind, m,
                 (int)most);
    drop_graph(&g);
}

/* Two products of a row that is normed first: one dispatch where the kernel holds all of it. */
static void check_normed(bool is_centred, int32_t m, int32_t k, uint64_t most)
{
    struct graph g;
    struct arr *weight, *normed = NULL, *out[2];

    begin(&g, QMM, m);
    arr_unref(&g.x);
    g.k = k;
    g.x = random_array(&g, &(struct shp){ 2, { m, k } }, g.dtype, 1);
    weight = random_array(&g, &(struct shp){ 1, { k } }, g.dtype, 1);
    if (is_centred)
        assert_ok(ops_layer_norm(
            &normed, g.x,
            &(struct ops_layer_norm){ .weight = weight, .bias = weight, .eps = 1e-5f }, nd_gpu));
    else
        assert_ok(ops_rms_norm(&normed, g.x, weight, 1e-5f, nd_gpu));
    assert_ok(eval_arrays(&g.x, 1, false));
    arr_unref(&g.x);
    g.x = normed;
    out[0] = product(&g);
    out[1] = product(&g);
    arr_unref(&g.x);
    uint64_t before = stat_get(STAT_DISPATCHES);
    assert_ok(eval_arrays(out, 2, false));
    if (stat_get(STAT_DISPATCHES) - before > most)
        fail_msg("two products of %d normed rows of %d are more than %d dispatches", m, k,
                 (int)most);
    arr_unref(&weight);
    drop_all(out, 2);
    drop_graph(&g);
}

static void test_dispatches(void **state)
{
    static const int32_t rows[] = { 1, 5, 40 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        for (int kind = 0; kind < KINDS; kind++)
            check_one_product((enum kind)kind, rows[i]);
    check_pair(QMM, 1, 1);
    check_pair(QMM, 6, 1);
    check_pair(GATHER_QMM, 1, 1);
    check_pair(GATHER_QMM, 3, 1);
    check_pair(MATMUL, 1, 2);
    check_pair(MATMUL, 40, 3);
    check_pair(GATHER_MM, 1, 2);
    for (int is_centred = 0; is_centred < 2; is_centred++) {
        check_normed(is_centred, 1, 256, 1);
        check_normed(is_centred, 7, 256, 1);
        check_normed(is_centred, 16, 2048, 2);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatches),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        n_graphs = atoi(argv[2]);
    return cmocka_run_group_tests(tests, nd_open_for_counts, NULL);
}
