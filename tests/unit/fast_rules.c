/* Gradients and batches of norms, rotary positions and attention. */
#include "support/arrays.h"
#include "support/rules.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
