/* Gradients and batches of gathers and scatters. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64
#define N DT_INT32
#define B DT_BOOL

static const struct gather_params rows = { 1, 2, { { 0, 1 }, { 0, 3 } } },
                                  windows = { 2, 3, { { 2, 2 }, { 0, 2 }, { 0, 1 } } };
static const struct axis_params second = { 1 };

#define SCATTER(name_, kind_, type, ...)                                                           \
    {                                                                                              \
        .name = name_, .op = OP_SCATTER, .make = rules_node,                                       \
        .shape = { { 2, { 4, 3 } }, { 1, { 5 } }, { 3, { 5, 1, 3 } } },                            \
        .dtype = { type, N, type }, .n_in = 3, .grads = 5,                                         \
        .with = &(const struct scatter_params){ UPDATE_##kind_, 1, { 0 } }, __VA_ARGS__            \
    }
/* One place only: who replaces what is replaced later gets a cotangent, too, as in MLX. */
#define REPLACE(name_, type, ...)                                                                  \
    {                                                                                              \
        .name = name_, .op = OP_SCATTER, .make = rules_node,                                       \
        .shape = { { 3, { 4, 2, 3 } }, { 1, { 1 } }, { 1, { 1 } }, { 4, { 1, 2, 2, 1 } } },        \
        .dtype = { type, N, N, type }, .n_in = 4, .grads = 9, .is_smooth = true,                   \
        .with = &(const struct scatter_params){ UPDATE_NONE, 2, { 2, 0 } }, __VA_ARGS__            \
    }
#define SCATTER_AXIS(name_, kind_, n, ...)                                                         \
    {                                                                                              \
        .name = name_, .op = OP_SCATTER_AXIS, .make = rules_node,                                  \
        .shape = { { 2, { 3, 4 } }, { 2, { 3, n } }, { 2, { 3, n } } }, .dtype = { F, N, F },      \
        .n_in = 3, .grads = 5, .is_smooth = true,                                                  \
        .with = &(const struct scatter_axis_params){ UPDATE_##kind_, 1 }, __VA_ARGS__              \
    }

static const struct rule_subject subjects[] = {
    { "gather rows",
      OP_GATHER,
      rules_node,
      { { 2, { 4, 3 } }, { 2, { 2, 3 } } },
      { F, N },
      2,
      .grads = 1,
      .is_smooth = true,
      .with = &rows },
    { "gather windows",
      OP_GATHER,
      rules_node,
      { { 3, { 4, 2, 3 } }, { 1, { 2 } }, { 1, { 2 } } },
      { C, N, N },
      3,
      .grads = 1,
      .with = &windows },
    { "gather by nothing",
      OP_GATHER,
      rules_node,
      { { 2, { 4, 3 } } },
      { F },
      1,
      .grads = 1,
      .with = &(const struct gather_params){ 0, 2, { { 0, 2 }, { 0, 3 } } } },
    { "gather along an axis",
      OP_GATHER_AXIS,
      rules_node,
      { { 2, { 3, 4 } }, { 2, { 3, 5 } } },
      { F, N },
      2,
      .grads = 1,
      .is_smooth = true,
      .with = &second },

    SCATTER("scatter_add", SUM, F, .is_smooth = true),
    SCATTER("scatter_add of complex numbers", SUM, C),
    /* Hardly ever near each other. */
    SCATTER("scatter_max", MAX, F, .is_curved = true, .no_jvp = true, .low = -100, .high = 100),
    SCATTER("scatter_min", MIN, F, .is_curved = true, .no_jvp = true, .low = -100, .high = 100),
    SCATTER("scatter_prod", PROD, F, .no_vjp = true, .no_jvp = true),
    REPLACE("scatter", F),
    REPLACE("scatter complex numbers", C),
    { "scatter by nothing",
      OP_SCATTER,
      rules_node,
      { { 2, { 4, 3 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .grads = 3,
      .with = &(const struct scatter_params){ .kind = UPDATE_SUM } },
    SCATTER_AXIS("put_along_axis", NONE, 1),
    SCATTER_AXIS("scatter_add_axis", SUM, 5),

    { "masked_scatter",
      OP_MASKED_SCATTER,
      rules_node,
      { { 3, { 2, 3, 4 } }, { 3, { 2, 3, 4 } }, { 2, { 2, 12 } } },
      { F, B, F },
      3,
      .grads = 5,
      .is_smooth = true },
    { "masked_scatter of rows",
      OP_MASKED_SCATTER,
      rules_node,
      { { 2, { 1, 6 } }, { 2, { 1, 6 } }, { 3, { 1, 4, 2 } } },
      { C, B, C },
      3,
      .grads = 5 },
};

static void test_on_the_cpu(void **state)
{
    (void)state;
    rules_check_cpu(subjects, ARRAY_LEN(subjects));
}

static void test_without_memory(void **state)
{
    (void)state;
    rules_check_memory(subjects, ARRAY_LEN(subjects));
}

static void test_on_the_gpu(void **state)
{
    (void)state;
    rules_check_gpu(subjects, ARRAY_LEN(subjects));
}

/* ---- what has no gradient ---- */

/* All of an application whose arrays are filled with ones. */
struct ones {
    struct arr *in[RULE_IN], *y;
    struct op_apply f;
};

static void ones_init(struct ones *o, const struct rule_subject *f)
{
    struct strm *s = test_stream();

    *o = (struct ones){ 0 };
    for (int i = 0; i < f->n_in; i++)
        assert_ok(ops_fill(&o->in[i], shp_ints(&f->shape[i]), 1, f->dtype[i], s));
    assert_ok(rules_node(&o->y, f, o->in, s));
    o->f = (struct op_apply){
        .op = f->op, .params = f->with, .in = o->in, .n_in = (size_t)f->n_in, .n_out = 1, .strm = s
    };
}

static void ones_fini(struct ones *o)
{
    arr_unref_all(o->in, RULE_IN);
    arr_unref(&o->y);
}

/* What says where has none: an error, not a wrong result. */
static void test_indices(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(subjects); k++) {
        const struct rule_subject *f = &subjects[k];
        struct arr *tan[RULE_IN] = { NULL }, *result = NULL;
        int where = 1;
        struct ones o;
        if (f->n_in < 2 || (f->dtype[1] != N && f->dtype[1] != B) || f->no_vjp)
            continue;
        ones_init(&o, f);
        tan[1] = o.in[1];
        struct vjp_call v = { o.f, &o.y, &o.y, &where, 1, &result };
        struct jvp_call j = { o.f, &o.y, tan, &result };
        assert_fails(ERR_ARG, op_table[f->op].vjp(&v));
        assert_fails(f->no_jvp ? ERR_RUNTIME : ERR_ARG, op_table[f->op].jvp(&j));
        assert_null(result);
        ones_fini(&o);
    }
}

/* MLX has no derivative of products, nor tangents of extremes. */
static void test_missing_rules(void **state)
{
    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(subjects); k++) {
        const struct rule_subject *f = &subjects[k];
        struct arr *result = NULL;
        struct ones o;
        if (!f->no_jvp)
            continue;
        ones_init(&o, f);
        struct arr *tan[RULE_IN] = { o.in[0] };
        struct vjp_call v = { o.f, &o.y, &o.y, (int[]){ 0 }, 1, &result };
        struct jvp_call j = { o.f, &o.y, tan, &result };
        assert_fails(ERR_RUNTIME, op_table[f->op].jvp(&j));
        if (f->no_vjp)
            assert_fails(ERR_RUNTIME, op_table[f->op].vjp(&v));
        assert_null(result);
        ones_fini(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),     cmocka_unit_test(test_on_the_gpu),
        cmocka_unit_test(test_without_memory), cmocka_unit_test(test_indices),
        cmocka_unit_test(test_missing_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
