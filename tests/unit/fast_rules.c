/* Gradients and batches of norms, rotary positions and attention. */
#include "support/arrays.h"
#include "support/rules.h"
#include "transforms/parts.h"

#define F DT_FLOAT32
#define N DT_INT32
#define B DT_BOOL

#define FAST(name_, id, params, n, ...)                                                            \
    {                                                                                              \
        .name = name_, .op = OP_##id, .make = rules_node, .with = params, .n_in = n,               \
        .is_curved = true, .is_single = true, __VA_ARGS__                                          \
    }
#define SHAPES(...) .shape = { __VA_ARGS__ }
#define TYPES(...) .dtype = { __VA_ARGS__ }

static const struct rule_subject subjects[] = {
    FAST("rms_norm", RMS_NORM, PARAMS(norm, { 0.2f, true, false }), 2,
         SHAPES({ 2, { 3, 5 } }, { 1, { 5 } }), TYPES(F, F), .grads = 3, .is_smooth = true),
    FAST("rms_norm without weight", RMS_NORM, PARAMS(norm, { 0.2f, false, false }), 1,
         SHAPES({ 3, { 2, 2, 4 } }), TYPES(F), .grads = 1, .is_smooth = true),
    FAST("rms_norm of a vector", RMS_NORM, PARAMS(norm, { 0.2f, true, false }), 2,
         SHAPES({ 1, { 6 } }, { 1, { 6 } }), TYPES(F, F), .grads = 3, .is_smooth = true),
    FAST("layer_norm", LAYER_NORM, PARAMS(norm, { 0.2f, true, true }), 3,
         SHAPES({ 2, { 3, 5 } }, { 1, { 5 } }, { 1, { 5 } }), TYPES(F, F, F), .grads = 7,
         .is_smooth = true),
    FAST("layer_norm with a bias", LAYER_NORM, PARAMS(norm, { 0.2f, false, true }), 2,
         SHAPES({ 2, { 3, 4 } }, { 1, { 4 } }), TYPES(F, F), .grads = 3, .is_smooth = true),
    FAST("layer_norm alone", LAYER_NORM, PARAMS(norm, { 0.2f, false, false }), 1,
         SHAPES({ 2, { 3, 4 } }), TYPES(F), .grads = 1, .is_smooth = true),

    FAST("rms_norm's gradient", RMS_NORM_VJP, PARAMS(norm_vjp, { { 0.2f, true, false }, true }), 3,
         SHAPES({ 2, { 3, 5 } }, { 1, { 5 } }, { 2, { 3, 5 } }), TYPES(F, F, F), .grads = 7,
         .n_out = 2),
    FAST("rms_norm's gradient of x", RMS_NORM_VJP,
         PARAMS(norm_vjp, { { 0.2f, false, false }, false }), 2,
         SHAPES({ 2, { 3, 4 } }, { 2, { 3, 4 } }), TYPES(F, F), .grads = 3),
    FAST("layer_norm's gradient", LAYER_NORM_VJP, PARAMS(norm_vjp, { { 0.2f, true, true }, true }),
         4, SHAPES({ 2, { 3, 5 } }, { 1, { 5 } }, { 1, { 5 } }, { 2, { 3, 5 } }), TYPES(F, F, F, F),
         .grads = 15, .n_out = 3),

    FAST("rope", ROPE, PARAMS(rope, { 4, false, true, 100, 0.5f, 2, false, false }), 1,
         SHAPES({ 3, { 2, 3, 6 } }), TYPES(F), .grads = 1, .is_smooth = true),
    FAST("rope of neighbours, back", ROPE,
         PARAMS(rope, { 4, true, false, 100, 1, 0, false, false }), 1,
         SHAPES({ 4, { 2, 2, 3, 4 } }), TYPES(F), .grads = 1, .is_smooth = true),
    FAST("rope by offsets", ROPE, PARAMS(rope, { 4, true, true, 100, 1, 0, true, false }), 2,
         SHAPES({ 3, { 2, 3, 5 } }, { 1, { 2 } }), TYPES(F, N), .grads = 1, .is_smooth = true),
    FAST("rope by frequencies", ROPE, PARAMS(rope, { 4, false, true, 0, 0.5f, 1, false, true }), 2,
         SHAPES({ 3, { 2, 2, 4 } }, { 1, { 2 } }), TYPES(F, F), .grads = 3, .is_smooth = true,
         .low = 1, .high = 3),
    FAST("rope by both", ROPE, PARAMS(rope, { 4, true, true, 0, 1, 0, true, true }), 3,
         SHAPES({ 3, { 2, 2, 4 } }, { 0 }, { 1, { 2 } }), TYPES(F, N, F), .grads = 5, .low = 1,
         .high = 3),

    FAST("attention", SDPA, PARAMS(sdpa, { 0.7f, false, false, false }), 3,
         SHAPES({ 4, { 2, 2, 3, 4 } }, { 4, { 2, 2, 5, 4 } }, { 4, { 2, 2, 5, 3 } }),
         TYPES(F, F, F), .grads = 7, .is_smooth = true),
    FAST("causal attention of shared heads", SDPA, PARAMS(sdpa, { 0.7f, true, false, false }), 3,
         SHAPES({ 4, { 1, 4, 3, 4 } }, { 4, { 1, 2, 4, 4 } }, { 4, { 1, 2, 4, 4 } }),
         TYPES(F, F, F), .grads = 7),
    FAST("attention with an added mask", SDPA, PARAMS(sdpa, { 0.7f, false, true, false }), 4,
         SHAPES({ 4, { 1, 2, 2, 4 } }, { 4, { 1, 1, 3, 4 } }, { 4, { 1, 1, 3, 4 } },
                { 4, { 1, 2, 2, 3 } }),
         TYPES(F, F, F, F), .grads = 15),
    FAST("attention with a mask", SDPA, PARAMS(sdpa, { 0.7f, false, true, false }), 4,
         SHAPES({ 4, { 1, 2, 2, 4 } }, { 4, { 1, 2, 3, 4 } }, { 4, { 1, 2, 3, 4 } },
                { 4, { 1, 2, 2, 3 } }),
         TYPES(F, F, F, B), .grads = 7),
    FAST("attention with sinks", SDPA, PARAMS(sdpa, { 0.7f, false, false, true }), 4,
         SHAPES({ 4, { 1, 2, 2, 4 } }, { 4, { 1, 1, 3, 4 } }, { 4, { 1, 1, 3, 4 } }, { 1, { 2 } }),
         TYPES(F, F, F, F), .grads = 15),
    FAST("attention with mask and sinks", SDPA, PARAMS(sdpa, { 0.7f, false, true, true }), 5,
         SHAPES({ 4, { 1, 2, 2, 2 } }, { 4, { 1, 1, 2, 2 } }, { 4, { 1, 1, 2, 2 } },
                { 4, { 1, 2, 2, 2 } }, { 1, { 2 } }),
         TYPES(F, F, F, F, F), .grads = 31),
};

TEST_RULES(subjects)

/* ---- batches of attention's gradient, whose inputs include what attention gave ---- */

#define BATCH 3
#define N_IN 5
static const struct sdpa_params causal = { 0.7f, true, false, false };

/* q, k, v, result and cotangent of so many batches. */
static void gradient_inputs(struct arr **in, struct strm *s)
{
    static const int32_t heads[] = { 2, 1, 1, 2, 2 }, lengths[] = { 3, 4, 4, 3, 3 };
    struct arr *key = NULL;

    for (int i = 0; i < N_IN; i++) {
        struct shp shape = { 4, { BATCH, heads[i], lengths[i], 2 } };
        assert_ok(ops_random_key(&key, (uint64_t)i));
        assert_ok(i == 3
                      ? ops_make(&in[3], OP_SDPA, &causal, (struct arrs){ in, 3 }, s)
                      : ops_random_normal(&in[i],
                                          &(struct ops_random){
                                              .shape = shp_ints(&shape), .dtype = F, .key = key },
                                          s));
        arr_unref(&key);
    }
}

static void check_same(struct arr *got, struct arr *want)
{
    double complex *x = arr_values(got), *y = arr_values(want);

    assert_int_equal(got->size, want->size);
    for (size_t i = 0; i < got->size; i++)
        assert_true(cabs(x[i] - y[i]) <= 1e-5 * (1 + cabs(y[i])));
    mem_free(x);
    mem_free(y);
}

/* Batches of attention are as many calls of it, each with a batch of one. */
static void test_batches_of_gradients(void **state)
{
    static const int32_t second = 1;
    struct strm *s = test_stream();
    struct arr *in[N_IN] = { NULL }, *one[N_IN] = { NULL }, *want[3] = { NULL }, *got[3] = { NULL };
    int axis[N_IN] = { 0 }, out_axis[3];

    (void)state;
    gradient_inputs(in, s);
    for (int i = 0; i < N_IN; i++)
        assert_ok(ops_expand_dims(&one[i], in[i], (struct ints){ &second, 1 }, s));
    assert_ok(ops_make(want, OP_SDPA_VJP, &causal, (struct arrs){ in, N_IN }, s));
    struct vmap_call c = { { .op = OP_SDPA_VJP,
                             .params = &causal,
                             .in = one,
                             .n_in = N_IN,
                             .n_out = 3,
                             .strm = s,
                             .by_parts = &transform_by_parts },
                           axis,
                           got,
                           out_axis };
    assert_ok(op_table[OP_SDPA_VJP].vmap(&c));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(out_axis[i], 0);
        check_same(got[i], want[i]);
    }
    arr_unref_all(in, N_IN);
    arr_unref_all(one, N_IN);
    arr_unref_all(want, 3);
    arr_unref_all(got, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_batches_of_gradients),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
