/* Gradients and batches of matrix products and of products with matrices that nobody gives. */
#include "support/arrays.h"
#include "support/rules.h"

#define F DT_FLOAT32

#define ADDMM(name_, alpha, beta, ...)                                                             \
    {                                                                                              \
        .name = name_, .op = OP_ADDMM, .make = rules_node,                                         \
        .with = &(const struct addmm_params){ alpha, beta }, .dtype = { F, F, F }, .n_in = 3,      \
        .grads = 7, .is_smooth = true, .is_curved = true, __VA_ARGS__                              \
    }

#define HADAMARD(name_, rows, n)                                                                   \
    {                                                                                              \
        .name = name_, .op = OP_HADAMARD, .make = rules_node,                                      \
        .with = &(const struct hadamard_params){ 0.25f }, .shape = { { 2, { rows, n } } },         \
        .dtype = { F }, .n_in = 1, .grads = 1, .is_smooth = true                                   \
    }

#define MASKED(name_, n, all, ...)                                                                 \
    {                                                                                              \
        .name = name_, .op = OP_BLOCK_MASKED_MM, .make = rules_node,                               \
        .with = &(const struct block_masked_mm_params){ 32 }, .dtype = { F, F, F, F, F },          \
        .n_in = n, .grads = all, .is_curved = true, .no_jvp = true, .shape = {                     \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }

static const struct rule_subject subjects[] = {
    { "matmul",
      OP_MATMUL,
      rules_node,
      { { 2, { 2, 3 } }, { 2, { 3, 2 } } },
      { F, F },
      2,
      .grads = 3,
      .is_smooth = true,
      .is_curved = true },
    ADDMM("addmm", 1, 1, .shape = { { 2, { 2, 3 } }, { 2, { 3, 4 } }, { 2, { 2, 4 } } }),
    ADDMM("addmm with factors", 0.5, 3,
          .shape = { { 2, { 3, 2 } }, { 2, { 2, 2 } }, { 2, { 3, 2 } } }),
    ADDMM("addmm of batches", 2, -1,
          .shape = { { 3, { 2, 1, 2 } }, { 3, { 2, 2, 2 } }, { 3, { 2, 1, 2 } } }),
    MASKED("masked", 5, 31, { 2, { 2, 34 } }, { 2, { 34, 3 } }, { 2, { 1, 1 } }, { 2, { 1, 2 } },
           { 2, { 2, 1 } }),
    MASKED("masked result", 3, 7, { 2, { 34, 2 } }, { 2, { 2, 2 } }, { 2, { 2, 1 } }),
    MASKED("masked operands", 4, 15, { 3, { 2, 2, 3 } }, { 3, { 2, 3, 2 } }, { 3, { 2, 1, 1 } },
           { 3, { 2, 1, 1 } }),
    HADAMARD("hadamard", 2, 8),
    HADAMARD("hadamard of 12", 1, 12),
    HADAMARD("hadamard of 20", 2, 20),
    HADAMARD("hadamard of 56", 1, 56),
};

TEST_RULES(subjects)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
