/* Gradients and batches of matrix products and of products with matrices that nobody gives. */
#include "support/arrays.h"
#include "support/rules.h"

#define C DT_COMPLEX64
#define F DT_FLOAT32
#define N DT_INT32
#define U DT_UINT32

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

/* Inputs from the `from`th on are numbers of matrices. */
static enum err numbered(struct arr **out, const struct rule_subject *f, struct arr *const *in,
                         int from, struct strm *s)
{
    struct arr *all[RULE_IN] = { NULL };
    enum err err = ERR_OK;

    for (int i = 0; i < f->n_in && !err; i++)
        err = ops_astype(&all[i], in[i], i < from ? (enum dtype)in[i]->dtype : DT_UINT32, s);
    if (!err)
        err = ops_make(out, f->op, f->with, (struct arrs){ all, (size_t)f->n_in }, s);
    arr_unref_all(all, RULE_IN);
    return err;
}

static enum err make_gather_mm(struct arr **out, const struct rule_subject *f,
                               struct arr *const *in, struct strm *s)
{
    return numbered(out, f, in, 2, s);
}

static enum err make_gather_qmm(struct arr **out, const struct rule_subject *f,
                                struct arr *const *in, struct strm *s)
{
    return numbered(out, f, in, 4, s);
}

#define GATHER_MM(name_, ...)                                                                      \
    {                                                                                              \
        .name = name_, .op = OP_GATHER_MM, .make = make_gather_mm, .dtype = { F, F, N, N },        \
        .n_in = 4, .grads = 3, .is_curved = true, .no_vmap = true,                                 \
        .with = &(const struct gather_mm_params){ 0 }, .shape = {                                  \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define GATHER_QMM(name_, transpose, ...)                                                          \
    {                                                                                              \
        .name = name_, .op = OP_GATHER_QMM, .make = make_gather_qmm,                               \
        .dtype = { F, U, F, F, N, N }, .n_in = 6, .grads = 13, .is_single = true, .no_vmap = true, \
        .with = &(const struct quantized_matmul_params){ { 32, 4, QUANT_AFFINE },                  \
                                                         transpose,                                \
                                                         false,                                    \
                                                         false },                                  \
        .shape = {                                                                                 \
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
    { "matmul of complex numbers",
      OP_MATMUL,
      rules_node,
      { { 2, { 2, 3 } }, { 2, { 3, 2 } } },
      { C, C },
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

    GATHER_MM("gather_mm", { 3, { 3, 2, 3 } }, { 3, { 3, 3, 2 } }, { 1, { 4 } }, { 1, { 4 } }),
    GATHER_MM("gather_mm of rows", { 4, { 2, 2, 1, 4 } }, { 3, { 3, 4, 2 } }, { 2, { 2, 3 } },
              { 2, { 2, 3 } }),
    GATHER_MM("gather_mm of one", { 3, { 3, 1, 4 } }, { 4, { 1, 3, 4, 2 } }, { 0 }, { 0 }),
    GATHER_QMM("gather_qmm", true, { 3, { 3, 2, 32 } }, { 3, { 3, 4, 4 } }, { 3, { 3, 4, 1 } },
               { 3, { 3, 4, 1 } }, { 1, { 4 } }, { 1, { 4 } }),
    GATHER_QMM("gather_qmm of many rows", true, { 3, { 3, 12, 32 } }, { 3, { 3, 4, 4 } },
               { 3, { 3, 4, 1 } }, { 3, { 3, 4, 1 } }, { 2, { 2, 2 } }, { 2, { 2, 2 } }),
    GATHER_QMM("gather_qmm of columns", false, { 3, { 3, 1, 4 } }, { 3, { 3, 4, 8 } },
               { 3, { 3, 4, 2 } }, { 3, { 3, 4, 2 } }, { 1, { 4 } }, { 1, { 4 } }),
};

TEST_RULES(subjects)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RULE_TESTS,
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
