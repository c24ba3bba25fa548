/* Gradients and batches of views, slices and splits, and of what hands its input on. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64
#define N DT_INT32

#define VIEW(name_, id, dims, params, ...)                                                         \
    {                                                                                              \
        .name = name_, .op = OP_##id, .make = rules_node, .shape = { { dims } }, .dtype = { F },   \
        .n_in = 1, .grads = 1, .is_smooth = true, .with = params, __VA_ARGS__                      \
    }

static const struct rule_subject subjects[] = {
    NODE("as_strided", AS_STRIDED, F, DIMS(1, 12),
         PARAMS(as_strided, { 1, 2, { { 4, 2 }, { 3, 1 } } }), .grads = 1, .no_vmap = true),
    NODE("as_strided backwards", AS_STRIDED, F, DIMS(1, 6),
         PARAMS(as_strided, { 5, 2, { { 3, -2 }, { 2, 0 } } }), .grads = 1, .no_vmap = true),
    NODE("as_strided of nothing", AS_STRIDED, F, DIMS(1, 6),
         PARAMS(as_strided, { 0, 1, { { 0, 1 } } }), .grads = 1, .no_vmap = true),
    VIEW("broadcast", BROADCAST, DIMS(2, 2, 1), PARAMS(shape, { 3, { 4, 2, 3 } })),
    VIEW("broadcast of a scalar", BROADCAST, DIMS(0, 0), PARAMS(shape, { 2, { 2, 3 } })),
    VIEW("broadcast to one more", BROADCAST, DIMS(1, 3), PARAMS(shape, { 2, { 1, 3 } })),
    VIEW("broadcast to nothing", BROADCAST, DIMS(2, 1, 3), PARAMS(shape, { 2, { 0, 3 } })),
    { "broadcast to what others have",
      OP_BROADCAST_AXES,
      rules_node,
      { { 2, { 2, 1 } }, { 3, { 4, 1, 3 } } },
      { F, F },
      2,
      .grads = 1,
      .is_smooth = true,
      .with = PARAMS(axes, { 0 }) },
    { "broadcast to what others have but for two axes",
      OP_BROADCAST_AXES,
      rules_node,
      { { 3, { 1, 2, 3 } }, { 4, { 4, 2, 3, 2 } } },
      { F, F },
      2,
      .grads = 1,
      .is_smooth = true,
      .with = PARAMS(axes, { 2, { -2, -1 } }) },
    VIEW("expand_dims", EXPAND_DIMS, DIMS(2, 2, 3), PARAMS(axes, { 3, { 0, 2, 4 } })),
    VIEW("expand_dims of a scalar", EXPAND_DIMS, DIMS(0, 0), PARAMS(axes, { 1, { 0 } })),
    VIEW("reshape", RESHAPE, DIMS(2, 4, 3), PARAMS(shape, { 3, { 2, 3, 2 } })),
    VIEW("reshape to a scalar", RESHAPE, DIMS(2, 1, 1), PARAMS(shape, { 0, { 0 } })),
    VIEW("flatten", FLATTEN, DIMS(4, 2, 3, 2, 2), PARAMS(flatten, { 1, 2 })),
    VIEW("unflatten", UNFLATTEN, DIMS(3, 2, 6, 2), PARAMS(unflatten, { 1, 3, { 3, 1, 2 } })),
    VIEW("slice", SLICE, DIMS(2, 5, 4), PARAMS(slice, { 2, { { 1, 4, 2 }, { 3, 0, -1 } } })),
    VIEW("slice of nothing", SLICE, DIMS(2, 5, 4),
         PARAMS(slice, { 2, { { 1, 1, 1 }, { 0, 4, 1 } } })),
    VIEW("split", SPLIT, DIMS(2, 2, 6), PARAMS(split, { 1, 2, { 1, 4 } }), .n_out = 3),
    VIEW("split of rows", SPLIT, DIMS(2, 4, 2), PARAMS(split, { 0, 1, { 3 } }), .n_out = 2),
    VIEW("squeeze", SQUEEZE, DIMS(4, 1, 2, 1, 3), PARAMS(axes, { 2, { 0, 2 } })),
    VIEW("transpose", TRANSPOSE, DIMS(3, 2, 3, 4), PARAMS(axes, { 3, { 2, 0, 1 } })),

    VIEW("contiguous", CONTIGUOUS, DIMS(2, 2, 3), PARAMS(contiguous, { false })),
    VIEW("copy", COPY, DIMS(2, 2, 3), NULL),
    VIEW("full", FULL, DIMS(2, 2, 3), NULL),
    { "depends",
      OP_DEPENDS,
      rules_node,
      { { 2, { 2, 3 } }, { 1, { 3 } } },
      { F, F },
      2,
      .grads = 3,
      .no_jvp = true,
      .no_vmap = true,
      .with = PARAMS(alias, { 0, 1 }) },
    NODE("complex transpose", TRANSPOSE, C, DIMS(2, 2, 3), PARAMS(axes, { 2, { 1, 0 } }),
         .grads = 1),
    NODE("complex broadcast", BROADCAST, C, DIMS(1, 3), PARAMS(shape, { 2, { 2, 3 } }), .grads = 1),
    { "number of elements",
      OP_NUMBER_OF_ELEMENTS,
      rules_node,
      { { 0, { 0 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .whole = 1,
      .is_flat = true,
      .is_single = true,
      .with = PARAMS(elements, { true, F, 2, { 0, 1 } }) },
    NODE("stop_gradient", STOP_GRADIENT, F, DIMS(2, 2, 3), NULL, .is_flat = true),

    NODE("view", VIEW, N, DIMS(2, 2, 3), PARAMS(dtype, { DT_UINT32 }), .n_out = 1),
    NODE("view as smaller", VIEW, N, DIMS(2, 2, 3), PARAMS(dtype, { DT_UINT8 }), .n_out = 1),
    NODE("view as larger", VIEW, N, DIMS(2, 3, 2), PARAMS(dtype, { DT_INT64 }), .n_out = 1),
};

TEST_RULES(subjects)

/* A new view is not forgotten. The nodes of one bring their own rules. */
static void test_all_are_tested(void **state)
{
    (void)state;
    for (int op = 1; op < OP_COUNT; op++) {
        bool is_tested = op_table[op].family != OP_FAMILY_VIEW || op == OP_CUSTOM_TRANSFORMS;
        for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
            is_tested |= subjects[i].op == (enum op_id)op;
        if (!is_tested)
            fail_msg("%s has no subject", op_name((enum op_id)op));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
        cmocka_unit_test(test_all_are_tested),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
