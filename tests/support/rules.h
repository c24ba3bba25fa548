/* Rules of ops for transforms, called as transforms call them: vjp and jvp against finite
 * differences and against each other, vmap against a loop over the batch. */
#pragma once

#include "graph/op_call.h"
#include "ops/build.h"

#define RULE_IN 6
#define RULE_OUT 4

/* One application of an op, made by its constructor. */
struct rule_subject {
    const char *name;
    enum op_id op;
    /* Nodes of the op are what it makes, or the first inputs of that; of several outputs it makes
     * all, without anything behind them. */
    enum err (*make)(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                     struct strm *s);
    struct shp shape[RULE_IN];
    /* float32 also stands for float64, unless there is complex64; int32 are indices below 3, uint8
     * scales */
    enum dtype dtype[RULE_IN];
    int n_in;
    int n_out;      /* 0: one */
    unsigned grads; /* inputs that have gradients, as bits */
    unsigned whole; /* inputs that have no batch, likewise */
    bool is_curved; /* not linear in each input: differences take small steps */
    bool is_flat;   /* no output depends on anything: rules give zeros */
    bool is_smooth; /* the gradients have gradients, by jvp */
    bool is_single; /* float32 only */
    bool no_vjp, no_jvp, no_vmap;
    double low, high; /* of float inputs and of parts of complex ones; both 0: -1 to 1 */
    const void *with; /* what make wants to know besides */
};

/* A make: one node with the parameters that `with` points to. */
MUST_CHECK enum err rules_node(struct arr **out, const struct rule_subject *f,
                               struct arr *const *in, struct strm *s);

/* In float64 and float32. */
void rules_check_cpu(const struct rule_subject *subjects, size_t n);
/* In float32, where a GPU is tested. */
void rules_check_gpu(const struct rule_subject *subjects, size_t n);
/* Whether every allocation of a rule may fail: no results then, and nothing that a leak checker
 * sees. */
void rules_check_memory(const struct rule_subject *subjects, size_t n);

/* ---- how a file of subjects is written ---- */

#define DIMS(n, ...)                                                                               \
    n,                                                                                             \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define PARAMS(kind, ...) &(const struct kind##_params)__VA_ARGS__
/* A node of one input: its dimensions, its parameters, and fields that few have. */
#define NODE(name_, id, type, dims, params, ...)                                                   \
    {                                                                                              \
        .name = name_, .op = OP_##id, .make = rules_node, .shape = { { dims } },                   \
        .dtype = { type }, .n_in = 1, .with = params, __VA_ARGS__                                  \
    }

/* The tests of all subjects, and their rows in the list of tests. */
#define TEST_RULES(subjects)                                                                       \
    static void test_on_the_cpu(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        rules_check_cpu(subjects, ARRAY_LEN(subjects));                                            \
    }                                                                                              \
                                                                                                   \
    static void test_on_the_gpu(void **state)                                                      \
    {                                                                                              \
        (void)state;                                                                               \
        rules_check_gpu(subjects, ARRAY_LEN(subjects));                                            \
    }                                                                                              \
                                                                                                   \
    static void test_without_memory(void **state)                                                  \
    {                                                                                              \
        (void)state;                                                                               \
        rules_check_memory(subjects, ARRAY_LEN(subjects));                                         \
    }
#define RULE_TESTS                                                                                 \
    cmocka_unit_test(test_on_the_cpu), cmocka_unit_test(test_on_the_gpu),                          \
        cmocka_unit_test(test_without_memory)
