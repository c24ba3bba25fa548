/* Rotary positions on the GPU: large positions, large tensors, and merged with norms and copies. */
#include <math.h>

#include "backend/vulkan/ops/rope.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"
#include "base/stat.h"
#include "eval/eval.h"
#include "eval/wait.h"
#include "ops/ops.h"
#include "plan/rewrite.h"
#include "support/nd.h"

#define BASE 10000.0f

struct problem {
    enum dtype dtype;
    struct shp shape;
    enum nd_layout layout;
    int dims;
    bool traditional;
    int offset;
};

/* The pair that element d of a row belongs to: its number and its two elements. */
struct pair {
    int n, first, second;
};

static struct pair pair_of(const struct problem *p, int d)
{
    int half = p->dims / 2;

    if (p->traditional)
        return (struct pair){ d / 2, d / 2 * 2, d / 2 * 2 + 1 };
    return (struct pair){ d % half, d % half, d % half + half };
}

static double expected(const struct problem *p, const struct nd *x, size_t row, int d)
{
    size_t size = (size_t)p->shape.d[p->shape.ndim - 1];
    size_t t = row % (size_t)p->shape.d[p->shape.ndim - 2];

    if (d >= p->dims)
        return nd_get(x, row * size + (size_t)d).re;
    struct pair k = pair_of(p, d);
    float freq = (float)pow((double)BASE, -2.0 * k.n / p->dims);
    double angle = (double)((float)((double)t + p->offset) * freq);
    double a = nd_get(x, row * size + (size_t)k.first).re;
    double b = nd_get(x, row * size + (size_t)k.second).re;
    return d == k.first ? a * cos(angle) - b * sin(angle) : a * sin(angle) + b * cos(angle);
}

static struct arr *rope_of(const struct problem *p, struct arr *x)
{
    float base = BASE;
    struct arr *out = NULL;

    assert_ok(ops_rope(&out, x,
                       &(struct ops_rope){ .dims = p->dims,
                                           .traditional = p->traditional,
                                           .base = &base,
                                           .scale = 1,
                                           .offset = p->offset },
                       nd_gpu));
    return out;
}

static void check(const struct problem *p)
{
    static struct rng r = { 21 };
    int size = p->shape.d[p->shape.ndim - 1];
    struct nd x;

    nd_make(&x, &r, p->dtype, &p->shape, p->layout);
    assert_ok(eval_arrays(&x.arr, 1, false));
    struct arr *out = rope_of(p, x.arr);
    uint64_t before = stat_get(STAT_DISPATCHES);
    const char *got = nd_run(out);
    assert_int_equal(stat_get(STAT_DISPATCHES) - before, 1);
    for (size_t row = 0; row < out->size / (size_t)size; row++)
        for (int d = 0; d < size; d++)
            nd_check(p->dtype,
                     num_load(p->dtype, got + (row * (size_t)size + (size_t)d) * dt_size(p->dtype)),
                     (struct num){ .re = expected(p, &x, row, d) }, 4, shp_text(&p->shape));
    arr_unref(&out);
    nd_free(&x);
}

static void test_layouts(void **state)
{
    static const enum dtype types[] = { DT_FLOAT32, DT_FLOAT16, DT_BFLOAT16 };

    (void)state;
    for (int layout = 0; layout < ND_LAYOUTS; layout++)
        for (int traditional = 0; traditional < 2; traditional++)
            check(&(struct problem){ types[layout % 3],
                                     { 4, { 2, 3, 5, 64 } },
                                     (enum nd_layout)layout,
                                     layout % 2 ? 64 : 32,
                                     traditional,
                                     layout });
}

/* Positions as long contexts have them, computed here and on the GPU. */
static void test_positions(void **state)
{
    static const int offsets[] = { 1000, 8191, 8192, 40000, 131071, 1000000 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
        check(&(struct problem){ DT_FLOAT32, { 3, { 1, 4, 64 } }, ND_ROW, 64, false, offsets[i] });
        check(&(struct problem){ DT_FLOAT32, { 3, { 1, 40, 64 } }, ND_ROW, 64, true, offsets[i] });
    }
}

static void test_variants(void **state)
{
    struct problem p = { DT_BFLOAT16, { 4, { 1, 4, 6, 128 } }, ND_ROW, 128, false, 9 };
    uint64_t wide = variant_hits(VARIANT_ROPE_WIDE);

    (void)state;
    check(&p);
    assert_int_equal(variant_hits(VARIANT_ROPE_WIDE) - wide, 1);
    uint64_t narrow = variant_hits(VARIANT_ROPE_ELEMENT);
    gate_set_int(GATE_VK_ROPE_WIDE, 0);
    check(&p);
    gate_set_int(GATE_VK_ROPE_WIDE, 1);
    assert_int_equal(variant_hits(VARIANT_ROPE_ELEMENT) - narrow, 1);
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    check(&p);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

/* ---- merged: a token's heads, normed, turned and put into a cache ---- */

#define HEADS 4
#define KV_HEADS 2
#define CACHE 9
#define SLOT 5
#define EPS 1e-6f

struct token {
    enum dtype dtype;
    int32_t positions, size;
    struct problem rope;
    struct nd qkv; /* [positions, all heads, size] */
    struct nd weight;
    struct arr *q, *k, *v; /* views of it, as [1, heads, positions, size] */
};

static struct arr *heads_of(const struct token *t, int32_t first, int32_t n)
{
    static const int32_t swap[] = { 0, 2, 1, 3 }, step[] = { 1, 1, 1, 1 };
    int32_t start[] = { 0, 0, first, 0 }, stop[] = { 1, t->positions, first + n, t->size };
    struct arr *part = NULL, *out = NULL;

    assert_ok(ops_slice(&part, t->qkv.arr,
                        &(struct ops_slice){ { start, 4 }, { stop, 4 }, { step, 4 } }, nd_gpu));
    assert_ok(ops_transpose(&out, part, (struct ints){ swap, 4 }, nd_gpu));
    assert_ok(eval_arrays(&out, 1, false));
    arr_unref(&part);
    return out;
}

static void token_make(struct token *t, enum dtype type, int32_t positions, int32_t size)
{
    struct rng r = { 31 };

    *t = (struct token){ .dtype = type, .positions = positions, .size = size };
    t->rope = (struct problem){ .dims = size, .offset = SLOT };
    nd_make(&t->qkv, &r, type, &(struct shp){ 4, { 1, positions, HEADS + 2 * KV_HEADS, size } },
            ND_ROW);
    nd_make(&t->weight, &r, type, &(struct shp){ 1, { size } }, ND_ROW);
    assert_ok(eval_arrays(&t->weight.arr, 1, false));
    t->q = heads_of(t, 0, HEADS);
    t->k = heads_of(t, HEADS, KV_HEADS);
    t->v = heads_of(t, HEADS + KV_HEADS, KV_HEADS);
}

static void token_free(struct token *t)
{
    arr_unref(&t->q);
    arr_unref(&t->k);
    arr_unref(&t->v);
    nd_free(&t->qkv);
    nd_free(&t->weight);
}

static struct arr *filled(const struct token *t, int32_t heads, int32_t positions)
{
    struct shp shape = { 4, { 1, heads, positions, t->size } };
    struct arr *a = NULL;

    assert_ok(ops_fill(&a, (struct ints){ shape.d, 4 }, 0, t->dtype, nd_gpu));
    struct arr *dense = NULL;
    assert_ok(ops_contiguous(&dense, a, false, nd_gpu));
    assert_ok(eval_arrays(&dense, 1, false));
    arr_unref(&a);
    return dense;
}

static struct vk_rope_part part_of(const struct token *t, struct arr *src, struct arr *dst,
                                   int64_t slot)
{
    int64_t length = dst->shape[2], size = t->size;
    const int64_t *s = src->strides;

    return (struct vk_rope_part){ .src = src,
                                  .dst = dst,
                                  .from = { s[0], s[1], s[2], s[3] },
                                  .to = { dst->shape[1] * length * size, length * size, size, 1 },
                                  .dst_offset = slot * size,
                                  .heads = (uint32_t)src->shape[1],
                                  .eps = EPS };
}

/* Norm, rope and copy one by one. */
static struct arr *separate(const struct token *t, struct arr *x, bool normed, bool turned)
{
    struct arr *r = arr_ref(x), *next = NULL;

    if (normed) {
        assert_ok(ops_rms_norm(&next, r, t->weight.arr, EPS, nd_gpu));
        arr_unref(&r);
        r = next;
    }
    if (turned) {
        next = rope_of(&t->rope, r);
        arr_unref(&r);
        r = next;
    }
    assert_ok(ops_contiguous(&next, r, false, nd_gpu));
    arr_unref(&r);
    assert_ok(eval_arrays(&next, 1, false));
    return next;
}

/* The rows of `got` from the slot on have the bits of `want`, all others are zeros. */
static void compare(const struct token *t, struct arr *got, struct arr *want, int32_t slot)
{
    size_t row = (size_t)t->size * dt_size(t->dtype);
    const void *w, *g;

    assert_ok(arr_host(&w, want));
    assert_ok(buf_host(&g, got->buf));
    for (int32_t h = 0; h < got->shape[1]; h++)
        for (int32_t i = 0; i < got->shape[2]; i++) {
            const char *at = (const char *)g + (size_t)(h * got->shape[2] + i) * row;
            bool inside = i >= slot && i < slot + t->positions;
            size_t of = inside ? (size_t)(h * t->positions + i - slot) * row : 0;
            for (size_t k = 0; k < row; k++)
                assert_int_equal(at[k], inside ? ((const char *)w)[of + k] : 0);
        }
}

static void check_merged(enum dtype type, int32_t positions, int32_t size)
{
    struct token t;
    struct vk_enc *e;

    token_make(&t, type, positions, size);
    struct arr *q = filled(&t, HEADS, positions), *k = filled(&t, KV_HEADS, CACHE);
    struct arr *v = filled(&t, KV_HEADS, CACHE);
    struct rope_params p = {
        .dims = size, .forward = true, .base = BASE, .scale = 1, .offset = SLOT
    };
    struct vk_rope r = {
        .p = &p, .batch = 1, .positions = (uint32_t)positions, .size = (uint32_t)size, .n_parts = 3
    };
    r.part[0] = part_of(&t, t.q, q, 0);
    r.part[1] = part_of(&t, t.k, k, SLOT);
    r.part[2] = part_of(&t, t.v, v, SLOT);
    for (int i = 0; i < 2; i++) {
        r.part[i].is_normed = r.part[i].is_rotated = true;
        r.part[i].weight = t.weight.arr;
    }
    assert_ok(vk_enc_get(&e, nd_gpu));
    uint64_t before = stat_get(STAT_DISPATCHES);
    assert_ok(vk_rope_encode(e, &r));
    assert_int_equal(stat_get(STAT_DISPATCHES) - before, 1);
    assert_ok(nd_gpu->be->sync(nd_gpu));

    struct arr *want[] = { separate(&t, t.q, true, true), separate(&t, t.k, true, true),
                           separate(&t, t.v, false, false) };
    compare(&t, q, want[0], 0);
    compare(&t, k, want[1], SLOT);
    compare(&t, v, want[2], SLOT);
    for (int i = 0; i < 3; i++)
        arr_unref(&want[i]);
    arr_unref(&q);
    arr_unref(&k);
    arr_unref(&v);
    token_free(&t);
}

static void test_merged(void **state)
{
    (void)state;
    check_merged(DT_BFLOAT16, 1, 128);
    check_merged(DT_FLOAT32, 1, 128);
    check_merged(DT_FLOAT16, 3, 64);
    check_merged(DT_BFLOAT16, 2, 80);
    check_merged(DT_FLOAT32, 2, 24);
    int64_t old = gate_set_int(GATE_VK_WORKGROUP, 256);
    check_merged(DT_BFLOAT16, 1, 128);
    check_merged(DT_FLOAT16, 4, 96);
    gate_set_int(GATE_VK_WORKGROUP, old);
}

/* ---- plans: queries and keys may be turned differently the next time ---- */

static struct arr *updated(const struct token *t, struct arr *x)
{
    static const int32_t start[] = { 0, 0, SLOT, 0 }, step[] = { 1, 1, 1, 1 };
    int32_t stop[] = { 1, KV_HEADS, SLOT + t->positions, t->size };
    struct arr *cache = filled(t, KV_HEADS, CACHE), *out = NULL;

    struct ops_slice_update u = { x, { { start, 4 }, { stop, 4 }, { step, 4 } }, UPDATE_NONE };
    assert_ok(ops_slice_update(&out, cache, &u, nd_gpu));
    arr_unref(&cache);
    return out;
}

static struct arr *used(const struct token *t, struct arr *cache)
{
    static const int32_t start[] = { 0, 0, 0, 0 }, step[] = { 1, 1, 1, 1 };
    int32_t stop[] = { 1, KV_HEADS, SLOT + t->positions, t->size };
    struct arr *out = NULL;

    assert_ok(ops_slice(&out, cache, &(struct ops_slice){ { start, 4 }, { stop, 4 }, { step, 4 } },
                        nd_gpu));
    return out;
}

/* The cache of keys after an attention whose keys are turned from this position on. */
static struct arr *keys_after(const struct token *t, int key_offset)
{
    struct problem key_rope = t->rope;
    struct arr *out[2] = { NULL, NULL };

    key_rope.offset = key_offset;
    struct arr *q = rope_of(&t->rope, t->q), *k = rope_of(&key_rope, t->k);
    struct arr *keys = updated(t, k), *values = updated(t, t->v);
    struct arr *used_k = used(t, keys), *used_v = used(t, values);
    assert_ok(ops_sdpa(
        &out[0], &(struct ops_sdpa){ q, used_k, used_v, .scale = 1, .mask_mode = "" }, nd_gpu));
    out[1] = keys;
    arr_unref(&q);
    arr_unref(&k);
    arr_unref(&values);
    arr_unref(&used_k);
    arr_unref(&used_v);
    assert_ok(eval_arrays(out, 2, false));
    arr_unref(&out[0]);
    return out[1];
}

static void test_plan_with_other_params(void **state)
{
    static const int offsets[] = { SLOT, SLOT + 2, SLOT };
    struct token t;

    (void)state;
    token_make(&t, DT_FLOAT32, 1, 64);
    rewrite_reset();
    for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
        struct problem rope = t.rope;
        rope.offset = offsets[i];
        struct arr *keys = keys_after(&t, offsets[i]), *want = rope_of(&rope, t.k);
        assert_ok(eval_arrays(&want, 1, false));
        compare(&t, keys, want, SLOT);
        arr_unref(&want);
        arr_unref(&keys);
    }
    assert_int_equal(rewrite_hits(REWRITE_QKV_PLACEMENT), 2);
    assert_int_equal(rewrite_rejects(REWRITE_QKV_PLACEMENT, GROUP_PARAMS), 1);
    token_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_variants),
        cmocka_unit_test(test_merged),
        cmocka_unit_test(test_plan_with_other_params),
        cmocka_unit_test(nd_test_no_validation_messages),
    };

    return cmocka_run_group_tests_name("rope_vk", tests, nd_open_for_counts, NULL);
}
