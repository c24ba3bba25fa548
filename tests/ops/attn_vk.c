/* Attention on the GPU, by each of its kernels, against double precision on the host. */
#include <math.h>

#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/encoder.h"
#include "base/gate.h"
#include "base/mem.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "ops/ops.h"
#include "support/nd.h"

enum mask_kind { NO_MASK, BOOL_MASK, ADDED_MASK };

struct problem {
    enum dtype dtype;
    int32_t batch, heads, n_kv, n_q, n_k, dim, v_dim;
    bool causal, sinks;
    enum mask_kind mask;
    bool shifted; /* operands that are not aligned */
};

enum { Q, K, V, MASK, SINKS, OPERANDS };

struct setup {
    const struct problem *p;
    struct nd nd[OPERANDS];
    struct arr *in[OPERANDS];
    double *score;
};

/* ---- operands ---- */

/* q lies in memory as [batch, n_q, heads, dim]. */
static void make_queries(struct setup *s, struct rng *r)
{
    static const int32_t swap[] = { 0, 2, 1, 3 };
    const struct problem *p = s->p;
    struct shp shape = { 4, { p->batch, p->n_q, p->heads, p->dim } };

    nd_make(&s->nd[Q], r, p->dtype, &shape, p->shifted ? ND_SHIFTED : ND_ROW);
    assert_ok(ops_transpose(&s->in[Q], s->nd[Q].arr, (struct ints){ swap, 4 }, nd_gpu));
}

/* k and v are the first part of a longer cache. */
static void make_cache(struct setup *s, struct rng *r, int k, int32_t size)
{
    static const int32_t start[4] = { 0 }, step[4] = { 1, 1, 1, 1 };
    const struct problem *p = s->p;
    struct shp shape = { 4, { p->batch, p->n_kv, p->n_k + 7, size } };
    int32_t stop[] = { p->batch, p->n_kv, p->n_k, size };

    nd_make(&s->nd[k], r, p->dtype, &shape, p->shifted ? ND_SHIFTED : ND_ROW);
    assert_ok(ops_slice(&s->in[k], s->nd[k].arr,
                        &(struct ops_slice){ { start, 4 }, { stop, 4 }, { step, 4 } }, nd_gpu));
}

/* One mask for all heads; about a third of it is hidden. */
static void make_mask(struct setup *s, struct rng *r)
{
    const struct problem *p = s->p;
    bool is_bool = p->mask == BOOL_MASK;
    struct shp shape = { 4, { p->batch, 1, p->n_q, p->n_k } };
    struct nd *m = &s->nd[MASK];

    nd_make(m, r, is_bool ? DT_BOOL : p->dtype, &shape, ND_ROW);
    for (size_t i = 0; i < m->n; i++) {
        uint64_t v = rng_next(r);
        if (is_bool)
            num_store(DT_BOOL, nd_at(m, i), (struct num){ .i = v % 3 != 0, .re = v % 3 != 0 });
        else if (v % 3 == 0)
            num_store(p->dtype, nd_at(m, i), (struct num){ .re = -(double)INFINITY });
    }
    nd_view(m);
    s->in[MASK] = arr_ref(m->arr);
}

static void setup_make(struct setup *s, const struct problem *p, struct rng *r)
{
    *s = (struct setup){ .p = p, .score = mem_alloc((size_t)(p->n_k + 1) * sizeof(double)) };
    make_queries(s, r);
    make_cache(s, r, K, p->dim);
    make_cache(s, r, V, p->v_dim);
    if (p->mask != NO_MASK)
        make_mask(s, r);
    if (p->sinks) {
        nd_make(&s->nd[SINKS], r, p->dtype, &(struct shp){ 1, { p->heads } }, ND_ROW);
        s->in[SINKS] = arr_ref(s->nd[SINKS].arr);
    }
}

static void setup_free(struct setup *s)
{
    for (int i = 0; i < OPERANDS; i++) {
        arr_unref(&s->in[i]);
        if (s->nd[i].arr)
            nd_free(&s->nd[i]);
    }
    mem_free(s->score);
}

/* ---- the reference ---- */

static double element(const struct setup *s, int k, const int32_t at[4])
{
    const struct shp *shape = &s->nd[k].shape;
    size_t n = 0;

    for (int i = 0; i < shape->ndim; i++)
        n = n * (size_t)shape->d[i] + (size_t)at[i];
    return nd_get(&s->nd[k], n).re;
}

static double masked(const struct setup *s, double score, const int32_t at[4])
{
    const struct problem *p = s->p;
    int32_t limit = at[2] + p->n_k - p->n_q;

    if (p->causal && at[3] > limit)
        return -(double)INFINITY;
    if (p->mask == NO_MASK)
        return score;
    double m = element(s, MASK, (const int32_t[]){ at[0], 0, at[2], at[3] });
    if (p->mask == BOOL_MASK)
        return m != 0 ? score : -1e300;
    return score + m;
}

/* Weights of the keys for row (batch, head, position) in s->score. */
static void weigh(struct setup *s, int32_t b, int32_t h, int32_t t)
{
    const struct problem *p = s->p;
    int32_t kv = h / (p->heads / p->n_kv);
    double scale = 1 / sqrt(p->dim), top = -(double)INFINITY, total = 0;

    for (int32_t j = 0; j < p->n_k; j++) {
        double sum = 0;
        for (int32_t d = 0; d < p->dim; d++)
            sum += element(s, Q, (const int32_t[]){ b, t, h, d }) *
                   element(s, K, (const int32_t[]){ b, kv, j, d });
        s->score[j] = masked(s, sum * scale, (const int32_t[]){ b, h, t, j });
        top = fmax(top, s->score[j]);
    }
    double sink = p->sinks ? nd_get(&s->nd[SINKS], (size_t)h).re : -(double)INFINITY;
    top = fmax(top, sink);
    if (isinf(top)) { /* the mask leaves nothing: no weight at all */
        memset(s->score, 0, (size_t)p->n_k * sizeof(double));
        return;
    }
    for (int32_t j = 0; j < p->n_k; j++)
        total += s->score[j] = exp(s->score[j] - top);
    total += exp(sink - top);
    for (int32_t j = 0; j < p->n_k; j++)
        s->score[j] /= total;
}

static void check_row(struct setup *s, const char *got, const int32_t at[3])
{
    const struct problem *p = s->p;
    int32_t b = at[0], t = at[1], h = at[2], kv = h / (p->heads / p->n_kv);

    weigh(s, b, h, t);
    for (int32_t d = 0; d < p->v_dim; d++) {
        double sum = 0;
        for (int32_t j = 0; j < p->n_k; j++)
            sum += s->score[j] * element(s, V, (const int32_t[]){ b, kv, j, d });
        nd_check(p->dtype, num_load(p->dtype, got + (size_t)d * dt_size(p->dtype)),
                 (struct num){ .re = sum }, 2, dt_name(p->dtype));
    }
}

/* Evaluates the result as [batch, n_q, heads, dim], which is how it lies in memory: one dispatch.
 */
static const char *attend(struct setup *s, struct arr **out)
{
    static const int32_t swap[] = { 0, 2, 1, 3 };
    const struct problem *p = s->p;
    struct arr *r = NULL;

    for (int i = 0; i < OPERANDS; i++) /* uploads and views are not counted */
        if (s->in[i])
            assert_ok(eval_arrays(&s->in[i], 1, false));
    assert_ok(ops_sdpa(&r,
                       &(struct ops_sdpa){ .q = s->in[Q],
                                           .k = s->in[K],
                                           .v = s->in[V],
                                           .scale = 1 / sqrtf((float)p->dim),
                                           .mask_mode = p->causal ? "causal" : "",
                                           .mask = s->in[MASK],
                                           .sinks = s->in[SINKS] },
                       nd_gpu));
    assert_ok(ops_transpose(out, r, (struct ints){ swap, 4 }, nd_gpu));
    arr_unref(&r);
    uint64_t before = stat_get(STAT_DISPATCHES);
    const char *got = nd_run(*out);
    assert_int_equal(stat_get(STAT_DISPATCHES) - before, 1);
    return got;
}

/* All rows, or with a stride some of them. */
static void check(const struct problem *p, int32_t stride)
{
    static struct rng r = { 11 };
    struct setup s;
    struct arr *out = NULL;

    setup_make(&s, p, &r);
    const char *got = attend(&s, &out);
    size_t row = (size_t)p->v_dim * dt_size(p->dtype), n = 0;
    for (int32_t b = 0; b < p->batch; b++)
        for (int32_t t = 0; t < p->n_q; t++)
            for (int32_t h = 0; h < p->heads; h++, n++)
                if (n % (size_t)stride == 0)
                    check_row(&s, got + n * row, (const int32_t[]){ b, t, h });
    arr_unref(&out);
    setup_free(&s);
}

/* ---- problems for every kernel ---- */

static const enum dtype halves[] = { DT_FLOAT16, DT_BFLOAT16 };

/* Batch, heads, kv heads, queries, keys, sizes. */
static const struct problem few_rows[] = {
    { DT_COUNT, 1, 2, 1, 1, 3, 64, 64 },
    { DT_COUNT, 1, 2, 1, 1, 700, 128, 128 },
    { DT_COUNT, 2, 4, 2, 1, 33, 96, 96, .sinks = true },
    { DT_COUNT, 1, 8, 1, 1, 130, 80, 80 },
    { DT_COUNT, 1, 7, 1, 1, 90, 64, 64 },
    { DT_COUNT, 1, 4, 1, 3, 77, 64, 64, .causal = true },
    { DT_COUNT, 1, 3, 3, 8, 40, 72, 72, .causal = true, .sinks = true },
    { DT_COUNT, 2, 2, 1, 4, 50, 64, 64, .mask = BOOL_MASK },
    { DT_COUNT, 1, 2, 2, 5, 60, 112, 112, .mask = ADDED_MASK },
    { DT_COUNT, 1, 2, 1, 2, 30, 192, 128 },
    { DT_COUNT, 1, 1, 1, 2, 30, 256, 256 },
};

static const struct problem many_rows[] = {
    { DT_COUNT, 1, 1, 1, 16, 16, 64, 64 },
    { DT_COUNT, 1, 2, 1, 37, 37, 64, 64, .causal = true },
    { DT_COUNT, 2, 2, 2, 20, 51, 128, 128, .causal = true },
    { DT_COUNT, 1, 3, 1, 21, 100, 72, 72, .causal = true, .sinks = true },
    { DT_COUNT, 1, 4, 2, 9, 70, 80, 80, .mask = BOOL_MASK },
    { DT_COUNT, 2, 2, 1, 33, 45, 96, 96, .mask = ADDED_MASK },
    { DT_COUNT, 1, 2, 1, 18, 64, 112, 112, .mask = BOOL_MASK, .sinks = true },
    { DT_COUNT, 1, 1, 1, 17, 40, 128, 64, .causal = true },
};

/* The first n of the problems; each is a kernel to build, so not every dtype takes all. */
static void check_all(const struct problem *rows, size_t n, enum dtype t)
{
    for (size_t i = 0; i < n; i++) {
        struct problem p = rows[i];
        p.dtype = t;
        check(&p, 1);
    }
}

/* The variants are switched off from the first up to the wanted one, whose hits are counted. */
static const enum gate gates[] = { GATE_VK_SDPA_DECODE, GATE_VK_SDPA_PREFILL_COOP,
                                   GATE_VK_SDPA_PREFILL_TILED };
static const enum variant_id ids[] = { VARIANT_SDPA_DECODE, VARIANT_SDPA_PREFILL_COOP,
                                       VARIANT_SDPA_PREFILL_TILED, VARIANT_SDPA_ROWS };

static void switch_to(size_t wanted)
{
    variant_reset();
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        gate_set_int(gates[i], i == wanted);
}

static void switch_back(void)
{
    for (size_t i = 0; i < ARRAY_LEN(gates); i++)
        gate_set_int(gates[i], 1);
}

static void test_decode(void **state)
{
    (void)state;
    switch_to(0);
    check_all(few_rows, ARRAY_LEN(few_rows), DT_FLOAT32);
    check_all(few_rows, 6, DT_BFLOAT16);
    check_all(few_rows, 3, DT_FLOAT16);
    assert_int_equal(variant_hits(ids[0]), ARRAY_LEN(few_rows) + 9);
    switch_back();
}

/* Rows, unrolling and workgroups as hardware has them, and several workgroups for the keys. */
static void test_decode_wide(void **state)
{
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 64);

    (void)state;
    switch_to(0);
    check_all(few_rows, ARRAY_LEN(few_rows), DT_BFLOAT16);
    check_all(few_rows + 1, 3, DT_FLOAT32);
    assert_int_equal(variant_hits(ids[0]), ARRAY_LEN(few_rows) + 3);
    switch_back();
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static void test_tiled(void **state)
{
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 64);

    (void)state;
    switch_to(2);
    check_all(many_rows, ARRAY_LEN(many_rows), DT_FLOAT32);
    check_all(many_rows, 3, DT_BFLOAT16);
    check_all(many_rows, 2, DT_FLOAT16);
    check(&(struct problem){ DT_FLOAT32, 1, 1, 1, 20, 40, 256, 256, .causal = true }, 1);
    check(&(struct problem){ DT_FLOAT32, 1, 2, 1, 20, 40, 48, 36, .shifted = true }, 1);
    assert_int_equal(variant_hits(ids[2]), ARRAY_LEN(many_rows) + 7);
    switch_back();
    gate_set_int(GATE_VK_WORKGROUP, old);
}

static bool has_coop(enum dtype t)
{
    unsigned needs = VK_CAP_COOPMAT | (t == DT_BFLOAT16 ? VK_CAP_BFLOAT16 : 0);

    return (vk_limits_get()->caps & needs) == needs;
}

/* Fragments of 8 do not reach beyond heads of 128. */
static void test_coop(void **state)
{
    uint64_t expected = 0;

    (void)state;
    switch_to(1);
    for (size_t k = 0; k < ARRAY_LEN(halves); k++)
        if (has_coop(halves[k])) {
            check_all(many_rows, ARRAY_LEN(many_rows), halves[k]);
            expected += ARRAY_LEN(many_rows);
        }
    assert_int_equal(variant_hits(ids[1]), expected);
    if (has_coop(DT_FLOAT16))
        check(&(struct problem){ DT_FLOAT16, 1, 1, 1, 70, 90, 192, 192, .causal = true }, 1);
    if (has_coop(DT_FLOAT16))
        check(&(struct problem){ DT_FLOAT16, 1, 1, 1, 20, 30, 256, 256 }, 1);
    switch_back();
}

static void test_rows(void **state)
{
    (void)state;
    switch_to(ARRAY_LEN(gates));
    check_all(many_rows, 5, DT_FLOAT32);
    check_all(many_rows, 2, DT_BFLOAT16);
    check(&(struct problem){ DT_BFLOAT16, 1, 2, 1, 3, 20, 20, 36, .shifted = true }, 1);
    check(&(struct problem){ DT_FLOAT16, 1, 2, 1, 3, 20, 33, 5, .sinks = true, .shifted = true },
          1);
    assert_int_equal(variant_hits(ids[3]), 9);
    switch_back();
}

/* What the table chooses, for long keys and many queries. */
static void test_long(void **state)
{
    (void)state;
    check(&(struct problem){ DT_BFLOAT16, 1, 4, 2, 1, 5000, 64, 64 }, 1);
    check(&(struct problem){ DT_FLOAT32, 1, 2, 1, 20, 3000, 64, 64, .causal = true }, 7);
    check(&(struct problem){ DT_FLOAT16, 1, 2, 1, 300, 420, 64, 64, .causal = true }, 41);
    check(&(struct problem){ DT_BFLOAT16, 1, 2, 1, 300, 420, 64, 64, .causal = true }, 41);
    check(&(struct problem){ DT_FLOAT32, 1, 2, 1, 150, 420, 64, 64, .causal = true }, 41);
}

static void test_without_kernels(void **state)
{
    struct problem p = { DT_FLOAT32, 1, 4, 2, 3, 9, 16, 16, .causal = true };
    struct rng r = { 5 };
    struct setup s;
    struct arr *out = NULL;

    (void)state;
    gate_set_int(GATE_VK_SDPA_NATIVE, 0);
    setup_make(&s, &p, &r);
    assert_ok(ops_sdpa(
        &out, &(struct ops_sdpa){ s.in[Q], s.in[K], s.in[V], 0.25f, .mask_mode = "causal" },
        nd_gpu));
    gate_set_int(GATE_VK_SDPA_NATIVE, 1);
    assert_int_not_equal(out->node->op, OP_SDPA);
    const char *got = nd_run(out);
    for (int32_t h = 0; h < p.heads; h++)
        for (int32_t t = 0; t < p.n_q; t++)
            check_row(&s, got + (size_t)(h * p.n_q + t) * 16 * 4, (const int32_t[]){ 0, t, h });
    arr_unref(&out);
    setup_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_decode_wide),
        cmocka_unit_test(test_tiled),
        cmocka_unit_test(test_coop),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_without_kernels),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("attn_vk", tests, nd_open_for_counts, NULL);
}
