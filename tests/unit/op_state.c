/* States that nodes own: when they go, and what makes them alike. */
#include <stdio.h>

#include "support/testing.h"

#include "graph/array.h"
#include "graph/op.h"

struct number {
    struct op_state base;
    int value;
    int *destroyed;
};

static void number_destroy(struct op_state *s)
{
    struct number *n = (struct number *)s;

    ++*n->destroyed;
    mem_free(n);
}

static uint64_t number_hash(const struct op_state *s)
{
    return (uint64_t)((const struct number *)s)->value;
}

static bool number_equal(const struct op_state *a, const struct op_state *b)
{
    return ((const struct number *)a)->value == ((const struct number *)b)->value;
}

static void number_print(const struct op_state *s, char *buf, size_t n)
{
    snprintf(buf, n, "number %d", ((const struct number *)s)->value);
}

static const struct op_state_class number_class = {
    .destroy = number_destroy, .hash = number_hash, .equal = number_equal, .print = number_print
};

static const struct shp vector = { 1, { 4 } };
static struct arr *in;
static int destroyed;

/* A node with a state that nobody else has. */
static struct arr *node_of_number(int value)
{
    struct number *n = mem_alloc(sizeof *n);
    struct arr *out = NULL;

    assert_non_null(n);
    *n = (struct number){ .base.class = &number_class, .value = value, .destroyed = &destroyed };
    atomic_init(&n->base.rc, 1);
    struct op_state *state = &n->base;
    assert_ok(arr_new_op(&out, .op = OP_COPY, .in = &in, .n_in = 1, .state = state,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    op_state_unref(&state);
    return out;
}

static int set_up(void **state)
{
    (void)state;
    destroyed = 0;
    return arr_new_empty(&in, &vector, DT_FLOAT32) != ERR_OK;
}

static int tear_down(void **state)
{
    (void)state;
    arr_unref(&in);
    return 0;
}

static void test_state_goes_with_its_node(void **state)
{
    struct arr *a = node_of_number(1), *b = node_of_number(1);

    (void)state;
    assert_int_equal(destroyed, 0);
    arr_unref(&a);
    assert_int_equal(destroyed, 1);
    node_detach(b->node);
    assert_int_equal(destroyed, 2);
    assert_null(b->node->state);
    arr_unref(&b);
    assert_int_equal(destroyed, 2);
}

static void test_nodes_share_a_state(void **state)
{
    struct arr *a = node_of_number(1), *b = NULL;

    (void)state;
    assert_ok(arr_new_op(&b, .op = OP_COPY, .in = &in, .n_in = 1, .state = a->node->state,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    arr_unref(&a);
    assert_int_equal(destroyed, 0);
    arr_unref(&b);
    assert_int_equal(destroyed, 1);
}

/* A node that cannot be made leaves the state alone. */
static void test_failure_takes_no_reference(void **state)
{
    struct shp huge = { 3, { INT32_MAX, INT32_MAX, INT32_MAX } };
    struct arr *a = node_of_number(1), *b = NULL;

    (void)state;
    assert_fails(ERR_OVERFLOW,
                 arr_new_op(&b, .op = OP_COPY, .in = &in, .n_in = 1, .state = a->node->state,
                            .out = &(struct out_desc){ huge, DT_FLOAT32 }));
    arr_unref(&a);
    assert_int_equal(destroyed, 1);
}

/* States are what their class says, wherever they are. */
static void test_equal_states_are_equal_params(void **state)
{
    struct arr *a = node_of_number(1), *b = node_of_number(1), *c = node_of_number(2), *none = NULL;
    char text[32];

    (void)state;
    assert_ok(arr_new_op(&none, .op = OP_COPY, .in = &in, .n_in = 1,
                         .out = &(struct out_desc){ vector, DT_FLOAT32 }));
    assert_true(node_same_params(a->node, b->node));
    assert_int_equal(node_params_hash(a->node), node_params_hash(b->node));
    assert_false(node_same_params(a->node, c->node));
    assert_int_not_equal(node_params_hash(a->node), node_params_hash(c->node));
    assert_false(node_same_params(a->node, none->node));
    assert_string_equal(node_params_print(c->node, text, sizeof text), "number 2");
    arr_unref(&a);
    arr_unref(&b);
    arr_unref(&c);
    arr_unref(&none);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_state_goes_with_its_node),
        TEST(test_nodes_share_a_state),
        TEST(test_failure_takes_no_reference),
        TEST(test_equal_states_are_equal_params),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
