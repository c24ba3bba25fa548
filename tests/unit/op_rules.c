/* Rules of one op of each family for transforms. */
#include "support/arrays.h"
#include "support/rules.h"

static enum err make_add(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                         struct strm *s)
{
    (void)f;
    return ops_binary(out, OP_ADD, in[0], in[1], s);
}

static enum err make_sum(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                         struct strm *s)
{
    (void)f;
    return ops_reduce(out, REDUCE_SUM, in[0],
                      &(struct ops_axes){ { (int32_t[]){ 0, -1 }, 2 }, true }, s);
}

static enum err make_matmul(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                            struct strm *s)
{
    (void)f;
    return ops_matmul(out, in[0], in[1], s);
}

static enum err make_take(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                          struct strm *s)
{
    (void)f;
    return ops_take(out, in[0], in[1], 1, s);
}

static enum err make_update(struct arr **out, struct arr *const *in, enum update_kind kind,
                            struct strm *s)
{
    struct ops_slice region = { { (int32_t[]){ 1, 3 }, 2 },
                                { (int32_t[]){ 4, 0 }, 2 },
                                { (int32_t[]){ 2, -1 }, 2 } };

    return ops_slice_update(
        out, in[0], &(struct ops_slice_update){ .update = in[1], .region = region, .kind = kind },
        s);
}

static enum err make_replace(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                             struct strm *s)
{
    (void)f;
    return make_update(out, in, UPDATE_NONE, s);
}

static enum err make_increase(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                              struct strm *s)
{
    (void)f;
    return make_update(out, in, UPDATE_SUM, s);
}

static enum err make_softmax(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                             struct strm *s)
{
    (void)f;
    return ops_softmax(out, in[0], (struct ints){ (int32_t[]){ -1 }, 1 }, true, s);
}

static enum err make_qmm(struct arr **out, struct arr *const *in, bool transpose, struct strm *s)
{
    struct ops_packed w = { in[1], in[2], in[3], { &(int32_t){ 32 }, &(int32_t){ 4 }, "affine" } };

    return ops_quantized_matmul(out, in[0], &w, transpose, s);
}

static enum err make_qmm_transposed(struct arr **out, const struct rule_subject *f,
                                    struct arr *const *in, struct strm *s)
{
    (void)f;
    return make_qmm(out, in, true, s);
}

static enum err make_qmm_plain(struct arr **out, const struct rule_subject *f,
                               struct arr *const *in, struct strm *s)
{
    (void)f;
    return make_qmm(out, in, false, s);
}

static enum err make_bits(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                          struct strm *s)
{
    (void)f;
    return ops_random_bits(out, (struct ints){ (int32_t[]){ 3, 2 }, 2 }, 4, in[0], s);
}

#define F DT_FLOAT32
#define N DT_INT32
#define U DT_UINT32
static const struct rule_subject subjects[] = {
    { "add", OP_ADD, make_add, { { 2, { 2, 3 } }, { 2, { 2, 3 } } }, { F, F }, 2, .grads = 3 },
    { "add of scalars", OP_ADD, make_add, { { 0 }, { 0 } }, { F, F }, 2, .grads = 3 },
    { "sum", OP_REDUCE, make_sum, { { 3, { 3, 2, 4 } } }, { F }, 1, .grads = 1 },
    { "sum of a matrix", OP_REDUCE, make_sum, { { 2, { 5, 3 } } }, { F }, 1, .grads = 1 },
    { "matmul",
      OP_MATMUL,
      make_matmul,
      { { 2, { 4, 3 } }, { 2, { 3, 5 } } },
      { F, F },
      2,
      .grads = 3 },
    { "matmul of batches",
      OP_MATMUL,
      make_matmul,
      { { 3, { 2, 2, 3 } }, { 3, { 2, 3, 2 } } },
      { F, F },
      2,
      .grads = 3 },
    { "gather",
      OP_GATHER,
      make_take,
      { { 3, { 2, 4, 3 } }, { 1, { 3 } } },
      { F, N },
      2,
      .grads = 1 },
    { "gather by a matrix",
      OP_GATHER,
      make_take,
      { { 2, { 3, 4 } }, { 2, { 2, 2 } } },
      { F, N },
      2,
      .grads = 1 },
    { "slice_update",
      OP_SLICE_UPDATE,
      make_replace,
      { { 2, { 5, 4 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .grads = 3 },
    { "slice_update_add",
      OP_SLICE_UPDATE,
      make_increase,
      { { 2, { 5, 4 } }, { 2, { 2, 3 } } },
      { F, F },
      2,
      .grads = 3 },
    { "softmax",
      OP_SOFTMAX,
      make_softmax,
      { { 2, { 3, 5 } } },
      { F },
      1,
      .grads = 1,
      .is_curved = true },
    { "softmax of a vector",
      OP_SOFTMAX,
      make_softmax,
      { { 1, { 4 } } },
      { F },
      1,
      .grads = 1,
      .is_curved = true },
    { "quantized_matmul",
      OP_QUANTIZED_MATMUL,
      make_qmm_transposed,
      { { 2, { 3, 64 } }, { 2, { 5, 8 } }, { 2, { 5, 2 } }, { 2, { 5, 2 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "quantized_matmul of a vector",
      OP_QUANTIZED_MATMUL,
      make_qmm_transposed,
      { { 1, { 32 } }, { 2, { 6, 4 } }, { 2, { 6, 1 } }, { 2, { 6, 1 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "quantized_matmul of batches",
      OP_QUANTIZED_MATMUL,
      make_qmm_plain,
      { { 3, { 2, 3, 4 } }, { 3, { 2, 4, 4 } }, { 3, { 2, 4, 1 } }, { 3, { 2, 4, 1 } } },
      { F, U, F, F },
      4,
      .grads = 13,
      .is_single = true },
    { "random bits", OP_RANDOM_BITS, make_bits, { { 1, { 2 } } }, { U }, 1 },
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

/* A mixture of words and scales has no tangent: an error, not a wrong gradient. */
static void test_no_rule(void **state)
{
    struct arr *in[4] = { NULL }, *out = NULL, *tan[4] = { NULL }, *result = NULL;
    const struct rule_subject f = { .name = "quantized_matmul" };
    struct strm *s = test_stream();

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_ok(ops_fill(&in[i],
                           (struct ints){ (int32_t[]){ 4, i == 1 ? 4
                                                          : i    ? 1
                                                                 : 32 },
                                          2 },
                           1, i == 1 ? U : F, s));
    assert_ok(make_qmm_transposed(&out, &f, in, s));
    struct op_apply apply = {
        .op = OP_QUANTIZED_MATMUL, .params = out->node->params, .in = in, .n_in = 4, .strm = s
    };
    tan[1] = in[1];
    struct jvp_call j = { apply, &out, tan, &result };
    assert_fails(ERR_RUNTIME, op_table[OP_QUANTIZED_MATMUL].jvp(&j));
    assert_null(result);
    assert_null(op_table[OP_RANDOM_BITS].vjp);
    arr_unref(&out);
    arr_unref_all(in, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_on_the_gpu),
        cmocka_unit_test(test_without_memory),
        cmocka_unit_test(test_no_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
