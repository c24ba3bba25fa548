/* The heads of one new position and its attention as one dispatch: the bits of separate ones. */
#include <math.h>

#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "plan/rewrite.h"
#include "support/nd.h"

#define EPS 1e-6f

struct problem {
    const char *name;
    enum dtype dtype;
    int32_t batch, heads, n_kv, size;
    int32_t n_k, room; /* keys with the new one, of so many in the caches */
    bool normed, bare; /* bare: norms without weights */
    bool causal, masked, sinks;
    int32_t positions; /* new ones; 0: one */
    bool traditional, freqs, offsets;
    int32_t dims;      /* that turn; 0: all */
    float stretch;     /* of positions; 0: none */
    int32_t skip;      /* the update begins so much before its place */
    bool other_eps;    /* the norms of queries and keys differ */
    bool shared_slice; /* somebody else reads the keys in use */
};

enum { Q, K, V, KINDS };

/* What outlives the runs of a problem. */
struct setup {
    const struct problem *p;
    struct nd row[KINDS], weight[2], cache[2], sinks, freqs, offsets, mask;
};

/* What a run leaves behind: results on the host. */
enum { OUT, KEYS, VALUES, USED, RESULTS };
struct result {
    struct arr *arr[RESULTS];
    uint64_t dispatches;
};

static int32_t positions_of(const struct problem *p)
{
    return p->positions ? p->positions : 1;
}

/* ---- operands ---- */

static void make_leaf(struct nd *a, struct rng *r, enum dtype t, const struct shp *shape)
{
    nd_make(a, r, t, shape, ND_ROW);
    assert_ok(eval_arrays(&a->arr, 1, false));
}

static void make_extras(struct setup *s, struct rng *r)
{
    const struct problem *p = s->p;
    int32_t dims = p->dims ? p->dims : p->size;

    if (p->sinks)
        make_leaf(&s->sinks, r, p->dtype, &(struct shp){ 1, { p->heads } });
    if (p->offsets)
        make_leaf(&s->offsets, r, DT_INT32, &(struct shp){ 1, { p->batch } });
    if (p->masked)
        make_leaf(&s->mask, r, p->dtype, &(struct shp){ 4, { p->batch, 1, 1, p->n_k } });
    if (p->freqs) {
        nd_make(&s->freqs, r, DT_FLOAT32, &(struct shp){ 1, { dims / 2 } }, ND_ROW);
        for (int32_t i = 0; i < dims / 2; i++)
            num_store(DT_FLOAT32, nd_at(&s->freqs, (size_t)i), (struct num){ .re = 1 + i * 1.5 });
        nd_view(&s->freqs);
        assert_ok(eval_arrays(&s->freqs.arr, 1, false));
    }
}

static void setup_make(struct setup *s, const struct problem *p)
{
    struct rng r = { 77 };
    int32_t t = positions_of(p);

    *s = (struct setup){ .p = p };
    for (int i = 0; i < KINDS; i++) {
        int32_t heads = i == Q ? p->heads : p->n_kv;
        make_leaf(&s->row[i], &r, p->dtype, &(struct shp){ 3, { p->batch, t, heads * p->size } });
    }
    for (int i = 0; i < 2; i++) {
        make_leaf(&s->weight[i], &r, p->dtype, &(struct shp){ 1, { p->size } });
        make_leaf(&s->cache[i], &r, p->dtype,
                  &(struct shp){ 4, { p->batch, p->n_kv, p->room, p->size } });
    }
    make_extras(s, &r);
}

static void setup_free(struct setup *s)
{
    struct nd *all[] = { &s->sinks, &s->freqs, &s->offsets, &s->mask };

    for (int i = 0; i < KINDS; i++)
        nd_free(&s->row[i]);
    for (int i = 0; i < 2; i++) {
        nd_free(&s->weight[i]);
        nd_free(&s->cache[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (all[i]->arr)
            nd_free(all[i]);
}

/* ---- the graph ---- */

static void become(struct arr **a, struct arr *next)
{
    arr_unref(a);
    *a = next;
}

static struct arr *heads_of(const struct setup *s, int kind)
{
    static const int32_t swap[] = { 0, 2, 1, 3 };
    const struct problem *p = s->p;
    int32_t shape[] = { p->batch, positions_of(p), kind == Q ? p->heads : p->n_kv, p->size };
    struct arr *a = NULL, *next = NULL;

    assert_ok(ops_reshape(&a, s->row[kind].arr, (struct ints){ shape, 4 }, nd_gpu));
    if (p->normed && kind != V) {
        float eps = kind == K && p->other_eps ? 0.5f : EPS;
        assert_ok(ops_rms_norm(&next, a, p->bare ? NULL : s->weight[kind].arr, eps, nd_gpu));
        become(&a, next);
    }
    assert_ok(ops_transpose(&next, a, (struct ints){ swap, 4 }, nd_gpu));
    become(&a, next);
    return a;
}

static struct arr *turned(const struct setup *s, int kind)
{
    const struct problem *p = s->p;
    float base = 10000;
    struct arr *a = heads_of(s, kind), *next = NULL;

    assert_ok(ops_rope(&next, a,
                       &(struct ops_rope){ .dims = p->dims ? p->dims : p->size,
                                           .traditional = p->traditional,
                                           .base = p->freqs ? NULL : &base,
                                           .freqs = s->freqs.arr,
                                           .scale = p->stretch > 0 ? p->stretch : 1,
                                           .offset = p->n_k - positions_of(p),
                                           .offset_array = s->offsets.arr },
                       nd_gpu));
    become(&a, next);
    return a;
}

/* A cache that nobody else holds, with the new rows in it. */
static struct arr *updated(const struct setup *s, int i, struct arr *rows)
{
    static const int32_t step[] = { 1, 1, 1, 1 };
    const struct problem *p = s->p;
    int32_t first = p->n_k - positions_of(p) - p->skip;
    int32_t start[] = { 0, 0, first, 0 };
    int32_t stop[] = { p->batch, p->n_kv, first + positions_of(p), p->size };
    struct arr *cache = NULL, *out = NULL;

    assert_ok(ops_binary(&cache, OP_ADD, s->cache[i].arr, s->cache[i].arr, nd_gpu));
    assert_ok(eval_arrays(&cache, 1, false));
    struct ops_slice_update u = { rows, { { start, 4 }, { stop, 4 }, { step, 4 } }, UPDATE_NONE };
    assert_ok(ops_slice_update(&out, cache, &u, nd_gpu));
    arr_unref(&cache);
    return out;
}

static struct arr *used(const struct problem *p, struct arr *cache)
{
    static const int32_t start[4] = { 0 }, step[] = { 1, 1, 1, 1 };
    int32_t stop[] = { p->batch, p->n_kv, p->n_k, p->size };
    struct arr *out = NULL;

    assert_ok(ops_slice(&out, cache, &(struct ops_slice){ { start, 4 }, { stop, 4 }, { step, 4 } },
                        nd_gpu));
    return out;
}

static void run(struct result *r, const struct setup *s)
{
    const struct problem *p = s->p;
    struct arr *q = turned(s, Q), *k = turned(s, K), *v = heads_of(s, V);

    *r = (struct result){ .arr = { NULL, updated(s, 0, k), updated(s, 1, v) } };
    struct arr *used_k = used(p, r->arr[KEYS]), *used_v = used(p, r->arr[VALUES]);
    assert_ok(ops_sdpa(&r->arr[OUT],
                       &(struct ops_sdpa){ q, used_k, used_v, .scale = 1 / sqrtf((float)p->size),
                                           .mask_mode = p->causal   ? "causal"
                                                        : p->masked ? "array"
                                                                    : "",
                                           .mask = s->mask.arr, .sinks = s->sinks.arr },
                       nd_gpu));
    if (p->shared_slice)
        r->arr[USED] = arr_ref(used_k);
    arr_unref(&q);
    arr_unref(&k);
    arr_unref(&v);
    arr_unref(&used_k);
    arr_unref(&used_v);
    uint64_t before = stat_get(STAT_DISPATCHES);
    assert_ok(eval_arrays(r->arr, p->shared_slice ? RESULTS : USED, false));
    r->dispatches = stat_get(STAT_DISPATCHES) - before;
}

static void result_free(struct result *r)
{
    for (int i = 0; i < RESULTS; i++)
        arr_unref(&r->arr[i]);
}

/* ---- bits ---- */

static void same_bits(const struct problem *p, struct arr *a, struct arr *b)
{
    struct arr *dense[2] = { NULL, NULL };
    const void *bytes[2];

    assert_ok(ops_contiguous(&dense[0], a, false, nd_gpu));
    assert_ok(ops_contiguous(&dense[1], b, false, nd_gpu));
    for (int i = 0; i < 2; i++)
        assert_ok(arr_host(&bytes[i], dense[i]));
    assert_int_equal(arr_nbytes(dense[0]), arr_nbytes(dense[1]));
    if (memcmp(bytes[0], bytes[1], arr_nbytes(dense[0])) != 0)
        fail_msg("%s: other bits than apart", p->name);
    arr_unref(&dense[0]);
    arr_unref(&dense[1]);
}

static void compare(const struct problem *p, struct result *a, struct result *b)
{
    for (int i = 0; i < RESULTS; i++)
        if (a->arr[i])
            same_bits(p, a->arr[i], b->arr[i]);
}

static void set_rewrites(bool on)
{
    gate_set_int(GATE_PLAN_NORM_ROPE, on);
    gate_set_int(GATE_PLAN_ROPE_CACHE, on);
    gate_set_int(GATE_PLAN_QKV_PLACEMENT, on);
    gate_set_int(GATE_PLAN_ATTN_HEADS, on);
}

/* Together, as heads and attention, and op by op. */
static void check_setup(const struct setup *s, enum group_reason want)
{
    const struct problem *p = s->p;
    struct result together, apart, single;
    uint64_t variant = variant_hits(VARIANT_SDPA_DECODE_HEADS);

    rewrite_reset();
    run(&together, s);
    if (rewrite_hits(REWRITE_ATTN_HEADS) != (want == GROUP_TAKEN) ||
        (want != GROUP_TAKEN && rewrite_rejects(REWRITE_ATTN_HEADS, want) != 1)) {
        rewrite_print(stderr);
        fail_msg("%s: not as expected", p->name);
    }
    assert_int_equal(variant_hits(VARIANT_SDPA_DECODE_HEADS) - variant, want == GROUP_TAKEN);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 1);
    gate_set_int(GATE_PLAN_ATTN_HEADS, 0);
    run(&apart, s);
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 2);
    set_rewrites(false);
    run(&single, s);
    set_rewrites(true);
    assert_int_equal(apart.dispatches, 2);
    assert_int_equal(together.dispatches, want == GROUP_TAKEN ? 1 : 2);
    compare(p, &together, &apart);
    compare(p, &together, &single);
    result_free(&together);
    result_free(&apart);
    result_free(&single);
}

static void check(const struct problem *p, enum group_reason want)
{
    struct setup s;

    setup_make(&s, p);
    check_setup(&s, want);
    setup_free(&s);
}

static void check_all(const struct problem *p, size_t n, enum group_reason want)
{
    for (size_t i = 0; i < n; i++)
        check(&p[i], want);
}

/* ---- tests ---- */

/* Sizes whose rows a team of one subgroup of eight holds, for software devices. */
static const struct problem models[] = {
    { "qwen3", DT_BFLOAT16, 1, 16, 8, 128, 21, 32, .normed = true },
    { "norms without weights", DT_FLOAT16, 1, 4, 2, 64, 9, 16, .normed = true, .bare = true },
    { "llama", DT_FLOAT16, 1, 8, 2, 64, 33, 40 },
    { "one group", DT_BFLOAT16, 1, 4, 4, 128, 17, 17 },
    { "groups of 3", DT_BFLOAT16, 1, 6, 2, 64, 40, 64 },
    { "groups of 7", DT_FLOAT16, 1, 14, 2, 64, 12, 16 },
    { "groups of 8", DT_FLOAT32, 1, 8, 1, 64, 50, 64, .normed = true },
    { "groups of 12", DT_BFLOAT16, 1, 12, 1, 64, 50, 64, .normed = true },
    { "float32", DT_FLOAT32, 1, 4, 2, 64, 19, 32, .normed = true },
    { "odd rows", DT_BFLOAT16, 1, 4, 2, 80, 19, 32, .normed = true },
    { "odd rows", DT_FLOAT32, 2, 4, 2, 24, 19, 32 },
    { "batches", DT_BFLOAT16, 3, 4, 2, 128, 23, 32, .normed = true },
    { "causal", DT_FLOAT16, 1, 4, 2, 64, 23, 32, .causal = true },
    { "sinks", DT_BFLOAT16, 2, 4, 2, 64, 23, 32, .sinks = true },
    { "frequencies", DT_BFLOAT16, 1, 4, 2, 64, 23, 32, .freqs = true },
    { "offsets", DT_BFLOAT16, 3, 4, 2, 64, 23, 32, .offsets = true },
    { "first key", DT_BFLOAT16, 2, 4, 2, 128, 1, 4, .normed = true },
    { "keys in use", DT_BFLOAT16, 1, 4, 2, 64, 5, 8, .shared_slice = true },
};

static void test_models(void **state)
{
    (void)state;
    check_all(models, ARRAY_LEN(models), GROUP_TAKEN);
}

/* Workgroups as hardware has them, also on a software device. */
static void test_hardware_workgroups(void **state)
{
    static const struct problem larger[] = {
        { "long rows", DT_FLOAT32, 1, 4, 2, 128, 19, 32, .normed = true },
        { "longer rows", DT_FLOAT32, 1, 2, 1, 256, 7, 8, .normed = true },
    };
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);

    (void)state;
    check_all(models, 4, GROUP_TAKEN);
    check_all(larger, ARRAY_LEN(larger), GROUP_TAKEN);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

/* Keys enough for several workgroups, the new one alone in its step, at the end of one, in the
 * middle. */
static void test_many_keys(void **state)
{
    static const int32_t keys[] = { 128, 129, 255, 1024, 2049, 2500 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        check(&(struct problem){ "many keys", DT_BFLOAT16, 1 + (int32_t)i % 2, 4, 2, 64, keys[i],
                                 keys[i] + (int32_t)i % 3, .normed = true },
              GROUP_TAKEN);
}

static void test_left(void **state)
{
    static const struct problem size[] = {
        { "two positions", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .positions = 2, .causal = true },
    };
    static const struct problem params[] = {
        { "mask", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .masked = true },
        { "keys behind the new one", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .skip = 3 },
        { "norms", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .normed = true, .other_eps = true },
    };
    static const struct problem layout[] = {
        { "neighbours", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .traditional = true },
        { "some turn", DT_BFLOAT16, 1, 4, 2, 64, 9, 16, .dims = 32 },
        { "rows not aligned", DT_BFLOAT16, 1, 4, 2, 12, 9, 16 },
    };

    (void)state;
    check_all(size, ARRAY_LEN(size), GROUP_SIZE);
    check_all(params, ARRAY_LEN(params), GROUP_PARAMS);
    check_all(layout, ARRAY_LEN(layout), GROUP_LAYOUT);
    gate_set_int(GATE_VK_SDPA_DECODE_HEADS, 0);
    check(&models[0], GROUP_OFF);
    gate_set_int(GATE_VK_SDPA_DECODE_HEADS, 1);
}

/* One plan serves runs with other places, scales of positions and masks of the same structure. */
static void test_params_change(void **state)
{
    struct problem p = models[0];
    struct setup s;

    (void)state;
    setup_make(&s, &p);
    uint64_t hits = stat_get(STAT_PLAN_HITS);
    for (int i = 0; i < 6; i++) {
        p.n_k = models[0].n_k + i;
        p.skip = i == 3 ? 2 : 0;
        p.causal = i == 4;
        check_setup(&s, i == 3 ? GROUP_PARAMS : GROUP_TAKEN);
    }
    assert_true(stat_get(STAT_PLAN_HITS) > hits);
    setup_free(&s);
}

/* ---- recorded steps that are moved ---- */

#define MOVES 6

/* Runs with so many keys in turn. One that nothing but positions tell from the one before is moved
 * at least so often; each has the bits of a run that is planned and recorded anew. */
static void check_moves(const struct problem *like, const int32_t *n_k, uint64_t at_least)
{
    struct problem p = *like;
    struct result moved[MOVES], anew;
    struct setup s;

    setup_make(&s, &p);
    uint64_t before = stat_get(STAT_RECORDED_MOVED);
    for (int i = 0; i < MOVES; i++) {
        p.n_k = n_k[i];
        run(&moved[i], &s);
    }
    uint64_t n_moved = stat_get(STAT_RECORDED_MOVED) - before;
    if (n_moved < at_least || (!at_least && n_moved))
        fail_msg("%s: moved %d times", p.name, (int)n_moved);
    gate_set_int(GATE_PLAN_CACHE, 0);
    for (int i = 0; i < MOVES; i++) {
        p.n_k = n_k[i];
        run(&anew, &s);
        compare(&p, &moved[i], &anew);
        result_free(&moved[i]);
        result_free(&anew);
    }
    gate_set_int(GATE_PLAN_CACHE, 1);
    setup_free(&s);
}

static void test_moves(void **state)
{
    static const int32_t up[] = { 2, 3, 4, 4, 5, 8 }, down[] = { 8, 7, 6, 2, 3, 1 };
    static const int32_t many[] = { 2040, 2047, 2048, 2049, 2050, 90 };
    struct problem long_one = { "many keys", DT_BFLOAT16, 2, 4, 2, 64, 64, 2060, .normed = true };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        struct problem p = models[i];
        p.room = MAX(p.room, 8);
        check_moves(&p, up, p.shared_slice ? 0 : 3);
        check_moves(&p, down, p.shared_slice ? 0 : 3);
    }
    check_moves(&long_one, many, 1);
}

/* Together with the position something else changes, which the kernel is told elsewhere. */
static void test_more_than_moved(void **state)
{
    struct problem p = models[2];
    struct result other, anew;
    struct setup s;

    (void)state;
    setup_make(&s, &p);
    run(&anew, &s);
    result_free(&anew);
    uint64_t before = stat_get(STAT_RECORDED_MOVED), again = stat_get(STAT_RECORDED_AGAIN);
    p.n_k++;
    p.stretch = 0.5f;
    run(&other, &s);
    assert_int_equal(stat_get(STAT_RECORDED_MOVED), before);
    assert_int_equal(stat_get(STAT_RECORDED_AGAIN), again + 1);
    gate_set_int(GATE_PLAN_CACHE, 0);
    run(&anew, &s);
    gate_set_int(GATE_PLAN_CACHE, 1);
    compare(&p, &other, &anew);
    result_free(&other);
    result_free(&anew);
    setup_free(&s);
}

/* ---- generation: caches that grow in steps and are taken over from token to token ---- */

#define TOKENS 20
#define STEP 8

static struct arr *with_room(struct arr *old, const struct problem *p, int32_t n)
{
    int32_t shape[] = { p->batch, p->n_kv, STEP, p->size };
    struct arr *fresh = NULL, *out = NULL;

    if (old && n < old->shape[2])
        return arr_ref(old);
    assert_ok(ops_fill(&fresh, (struct ints){ shape, 4 }, 0, p->dtype, nd_gpu));
    if (!old)
        return fresh;
    struct arr *both[] = { old, fresh };
    assert_ok(ops_concatenate(&out, (struct arrs){ both, 2 }, 2, nd_gpu));
    arr_unref(&fresh);
    return out;
}

/* The cache with the rows of token n; the old one is let go. */
static void append(struct arr **cache, const struct problem *p, struct arr *rows, int32_t n)
{
    static const int32_t step[] = { 1, 1, 1, 1 };
    int32_t start[] = { 0, 0, n, 0 }, stop[] = { p->batch, p->n_kv, n + 1, p->size };
    struct ops_slice_update u = { rows, { { start, 4 }, { stop, 4 }, { step, 4 } }, UPDATE_NONE };
    struct arr *room = with_room(*cache, p, n), *out = NULL;

    assert_ok(ops_slice_update(&out, room, &u, nd_gpu));
    arr_unref(&room);
    become(cache, out);
}

/* Attention to all tokens so far, asynchronous but for the last. */
static void generate(struct arr **out, bool together)
{
    struct problem p = models[0];
    struct setup s;
    struct arr *cache[2] = { NULL, NULL };

    setup_make(&s, &p);
    gate_set_int(GATE_PLAN_ATTN_HEADS, together);
    for (int32_t n = 0; n < TOKENS; n++) {
        p.n_k = n + 1;
        struct arr *q = turned(&s, Q), *k = turned(&s, K), *v = heads_of(&s, V);
        append(&cache[0], &p, k, n);
        append(&cache[1], &p, v, n);
        struct arr *keys = used(&p, cache[0]), *values = used(&p, cache[1]);
        assert_ok(ops_sdpa(&out[n],
                           &(struct ops_sdpa){ q, keys, values, .scale = 0.1f, .mask_mode = "" },
                           nd_gpu));
        struct arr *all[] = { q, k, v, keys, values };
        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            arr_unref(&all[i]);
        struct arr *wanted[] = { out[n], cache[0], cache[1] };
        assert_ok(eval_arrays(wanted, 3, n + 1 < TOKENS));
    }
    gate_set_int(GATE_PLAN_ATTN_HEADS, 1);
    arr_unref(&cache[0]);
    arr_unref(&cache[1]);
    setup_free(&s);
}

static void test_growing_cache(void **state)
{
    struct arr *together[TOKENS] = { NULL }, *apart[TOKENS] = { NULL };

    (void)state;
    rewrite_reset();
    generate(together, true);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), TOKENS);
    generate(apart, false);
    assert_int_equal(rewrite_hits(REWRITE_ATTN_HEADS), TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        same_bits(&models[0], together[i], apart[i]);
        arr_unref(&together[i]);
        arr_unref(&apart[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_hardware_workgroups),
        cmocka_unit_test(test_many_keys),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_params_change),
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_more_than_moved),
        cmocka_unit_test(test_growing_cache),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("attn_heads_vk", tests, nd_open_for_counts, NULL);
}
