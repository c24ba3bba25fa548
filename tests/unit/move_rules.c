/* Gradients and batches of concatenations, padding and updates of slices. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64
#define N DT_INT32

static const struct axis_params second = { 1 };
static const struct pad_params border = { 2, { { 1, 2, 1 }, { 0, 0, 3 } } };
static const struct dynamic_slice_params window = { 2, 2, { { 0, 2 }, { 1, 3 } } },
                                         columns = { 1, 2, { { 1, 4 }, { 0, 1 } } };

#define REGION                                                                                     \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            { 1, 4, 2 },                                                                           \
            {                                                                                      \
                3, 0, -1                                                                           \
            }                                                                                      \
        }                                                                                          \
    }
#define UPDATE(name_, kind_, type, ...)                                                            \
    {                                                                                              \
        .name = name_, .op = OP_SLICE_UPDATE, .make = rules_node,                                  \
        .shape = { { 2, { 5, 4 } }, { 2, { 2, 3 } } }, .dtype = { type, type }, .n_in = 2,         \
        .grads = 3, .with = &(const struct slice_update_params){ UPDATE_##kind_, REGION },         \
        __VA_ARGS__                                                                                \
    }

static const struct rule_subject subjects[] = {
    { "concatenate",
      OP_CONCATENATE,
      rules_node,
      { { 2, { 2, 3 } }, { 2, { 2, 1 } }, { 2, { 2, 2 } } },
      { F, F, F },
      3,
      .grads = 7,
      .is_smooth = true,
      .with = &second },
    { "concatenate complex",
      OP_CONCATENATE,
      rules_node,
      { { 2, { 2, 3 } }, { 2, { 2, 1 } } },
      { C, C },
      2,
      .grads = 3,
      .with = &second },
    { "pad",
      OP_PAD,
      rules_node,
      { { 2, { 3, 2 } }, { 0 } },
      { F, F },
      2,
      .grads = 3,
      .is_smooth = true,
      .with = &border },
    { "pad complex",
      OP_PAD,
      rules_node,
      { { 2, { 3, 2 } }, { 0 } },
      { C, C },
      2,
      .grads = 3,
      .with = &border },

    UPDATE("slice_update", NONE, F, .is_smooth = true),
    UPDATE("slice_update_add", SUM, F, .is_smooth = true),
    UPDATE("slice_update_prod", PROD, F, .is_smooth = true, .is_curved = true),
    UPDATE("slice_update_prod of complex", PROD, C, .is_smooth = true, .is_curved = true),
    /* Hardly ever near each other. */
    UPDATE("slice_update_max", MAX, F, .is_smooth = true, .is_curved = true, .low = -100,
           .high = 100),
    UPDATE("slice_update_min", MIN, F, .is_smooth = true, .is_curved = true, .low = -100,
           .high = 100),

    { "dynamic slice",
      OP_DYNAMIC_SLICE,
      rules_node,
      { { 2, { 5, 5 } }, { 1, { 2 } } },
      { F, N },
      2,
      .grads = 1,
      .whole = 2,
      .is_smooth = true,
      .with = &window },
    { "dynamic slice of columns",
      OP_DYNAMIC_SLICE,
      rules_node,
      { { 2, { 4, 3 } }, { 0 } },
      { F, N },
      2,
      .grads = 1,
      .whole = 2,
      .with = &columns },
    { "dynamic update",
      OP_DYNAMIC_SLICE_UPDATE,
      rules_node,
      { { 2, { 5, 5 } }, { 2, { 2, 3 } }, { 1, { 2 } } },
      { F, F, N },
      3,
      .grads = 3,
      .whole = 4,
      .is_smooth = true,
      .with = &window },
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

static const struct rule_subject *find_subject(enum op_id op)
{
    for (size_t i = 0; i < ARRAY_LEN(subjects); i++)
        if (subjects[i].op == op)
            return &subjects[i];
    fail_msg("%s has no subject", op_name(op));
    return NULL;
}

/* Where a slice starts has no gradient and no batch: an error, not a wrong result. */
static void test_starts(void **state)
{
    static const enum op_id ops[] = { OP_DYNAMIC_SLICE, OP_DYNAMIC_SLICE_UPDATE };
    struct strm *s = test_stream();

    (void)state;
    for (size_t k = 0; k < ARRAY_LEN(ops); k++) {
        const struct rule_subject *f = find_subject(ops[k]);
        struct arr *in[3] = { NULL }, *tan[3] = { NULL }, *y = NULL, *result = NULL;
        int last = f->n_in - 1, axis[3] = { VMAP_NONE, VMAP_NONE, VMAP_NONE }, out_axis;
        for (int i = 0; i < f->n_in; i++)
            assert_ok(ops_fill(&in[i], (struct ints){ f->shape[i].d, (size_t)f->shape[i].ndim }, 1,
                               f->dtype[i], s));
        assert_ok(rules_node(&y, f, in, s));
        struct op_apply apply = {
            .op = f->op, .params = f->with, .in = in, .n_in = (size_t)f->n_in, .n_out = 1, .strm = s
        };
        tan[last] = in[last];
        axis[last] = 0;
        struct vjp_call v = { apply, &y, &y, &last, 1, &result };
        struct jvp_call j = { apply, &y, tan, &result };
        struct vmap_call m = { apply, axis, &result, &out_axis };
        assert_fails(ERR_ARG, op_table[f->op].vjp(&v));
        assert_fails(ERR_ARG, op_table[f->op].jvp(&j));
        assert_fails(k ? ERR_RUNTIME : ERR_ARG, op_table[f->op].vmap(&m));
        assert_null(result);
        arr_unref_all(in, 3);
        arr_unref(&y);
    }
}

/* What is equal to the largest has made it, on both sides, as in MLX. */
static void test_ties(void **state)
{
    static const struct slice_update_params p = { UPDATE_MAX, { 1, { { 1, 3, 1 } } } };
    static const double complex src[] = { 5, 2, 7 }, update[] = { 2, 1 };
    static const double want[2][3] = { { 1, 1, 1 }, { 1, 0 } };
    const struct rule_subject f = { .op = OP_SLICE_UPDATE, .with = &p, .n_in = 2 };
    struct strm *s = test_stream();
    struct arr *in[2] = { arr_of(src, SHAPE(3), F), arr_of(update, SHAPE(2), F) }, *y = NULL,
               *ones = NULL, *g[2] = { NULL };

    (void)state;
    assert_ok(rules_node(&y, &f, in, s));
    assert_ok(ops_fill_like(&ones, y, 1, F, s));
    struct vjp_call c = { { .op = f.op, .params = &p, .in = in, .n_in = 2, .n_out = 1, .strm = s },
                          &y,
                          &ones,
                          (int[]){ 0, 1 },
                          2,
                          g };
    assert_ok(op_table[f.op].vjp(&c));
    for (int i = 0; i < 2; i++) {
        double complex *v = arr_values(g[i]);
        for (size_t k = 0; k < g[i]->size; k++)
            assert_true(creal(v[k]) == want[i][k]);
        mem_free(v);
    }
    arr_unref_all(in, 2);
    arr_unref_all(g, 2);
    arr_unref(&y);
    arr_unref(&ones);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),     cmocka_unit_test(test_on_the_gpu),
        cmocka_unit_test(test_without_memory), cmocka_unit_test(test_starts),
        cmocka_unit_test(test_ties),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
