/* Parameters of ops as their field lists tell them. */
#include "support/testing.h"

#include "graph/dtype.h"
#include "graph/op.h"

static const char *text_of(enum op_params_id id, const void *params)
{
    static char buf[256];

    return op_params_print(id, params, buf, sizeof buf);
}

static void test_size_counts_what_the_list_uses(void **state)
{
    struct slice_update_params u = { .kind = UPDATE_SUM, .region = { .n = 2 } };
    struct as_strided_params a = { .n = 3 };

    (void)state;
    assert_int_equal(op_params_size(PARAMS_none, NULL), 0);
    assert_int_equal(op_params_size(PARAMS_axis, &(struct axis_params){ 1 }), 4);
    assert_int_equal(op_params_size(PARAMS_slice_update, &u), 8 + 2 * 12);
    assert_int_equal(op_params_size(PARAMS_as_strided, &a), 12 + 3 * 12);
}

static void test_print(void **state)
{
    struct slice_update_params u = { .kind = UPDATE_SUM,
                                     .region = { .n = 2, .d = { { 0, 4, 1 }, { 3, -1, -2 } } } };
    struct quantized_matmul_params q = { .q = { 64, 4, QUANT_MXFP4 }, .transpose = 1 };

    (void)state;
    assert_string_equal(text_of(PARAMS_none, NULL), "");
    assert_string_equal(text_of(PARAMS_slice_update, &u),
                        "kind=sum, start=0, stop=4, step=1, start=3, stop=-1, step=-2");
    assert_string_equal(text_of(PARAMS_quantized_matmul, &q),
                        "group_size=64, bits=4, mode=mxfp4, transpose=true, left_sorted=false, "
                        "right_sorted=false");
    assert_string_equal(text_of(PARAMS_addmm, &(struct addmm_params){ 0.5f, -2 }),
                        "alpha=0.5, beta=-2");
}

/* A buffer that is too short holds the beginning. */
static void test_print_in_little_room(void **state)
{
    char buf[8];

    (void)state;
    assert_string_equal(
        op_params_print(PARAMS_flatten, &(struct flatten_params){ 1, 2 }, buf, sizeof buf),
        "start=1");
}

static void test_check(void **state)
{
    struct reduce_params r = { .kind = REDUCE_MAX, .n = 1, .axis = { 7 } };
    struct slice_params s = { .n = SHP_MAX };

    (void)state;
    assert_ok(op_params_check(PARAMS_none, NULL));
    assert_ok(op_params_check(PARAMS_reduce, &r));
    assert_ok(op_params_check(PARAMS_slice, &s));
    r.kind = REDUCE_MAX + 1;
    assert_fails(ERR_ARG, op_params_check(PARAMS_reduce, &r));
    r.kind = -1;
    assert_fails(ERR_ARG, op_params_check(PARAMS_reduce, &r));
    s.n = SHP_MAX + 1;
    assert_fails(ERR_ARG, op_params_check(PARAMS_slice, &s));
    s.n = -1;
    assert_fails(ERR_ARG, op_params_check(PARAMS_slice, &s));
    assert_fails(ERR_ARG, op_params_check(PARAMS_softmax, &(struct softmax_params){ 2 }));
}

static void test_positions(void **state)
{
    struct rope_params r = { .dims = 8, .base = 1, .offset = 3 }, moved = r, other = r;
    struct slice_update_params u = { .region = { 2, { { 0, 4, 1 }, { 3, 4, 1 } } } }, v = u;
    struct as_strided_params a = { .offset = 1, .n = 1, .d = { { 2, 3 } } }, b = a;

    (void)state;
    moved.offset = 4;
    other.scale = 2;
    assert_true(op_params_differ_in_positions(PARAMS_rope, &r, &r));
    assert_true(op_params_differ_in_positions(PARAMS_rope, &r, &moved));
    assert_false(op_params_differ_in_positions(PARAMS_rope, &moved, &other));
    v.region.d[1].start = 4;
    v.region.d[1].stop = 5;
    assert_true(op_params_differ_in_positions(PARAMS_slice_update, &u, &v));
    v.region.d[1].step = 2;
    assert_false(op_params_differ_in_positions(PARAMS_slice_update, &u, &v));
    v = u;
    v.kind = UPDATE_NONE;
    assert_false(op_params_differ_in_positions(PARAMS_slice_update, &u, &v));
    b.offset = (int64_t)1 << 32 | 1; /* the second half of eight bytes */
    assert_false(op_params_differ_in_positions(PARAMS_as_strided, &a, &b));
    b = a;
    b.d[0].stride = 4;
    assert_false(op_params_differ_in_positions(PARAMS_as_strided, &a, &b));
    assert_true(op_params_differ_in_positions(PARAMS_none, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_positions), cmocka_unit_test(test_size_counts_what_the_list_uses),
        cmocka_unit_test(test_print),     cmocka_unit_test(test_print_in_little_room),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
