/* Batches of factorizations, which have no gradients, as in MLX. */
#include "support/rules.h"
#include "support/testing.h"

#define F DT_FLOAT32
#define C DT_COMPLEX64

#define SUBJECT(name_, op_, type, ...)                                                             \
    {                                                                                              \
        .name = name_, .op = op_, .make = rules_node, .shape = { { 3, { 2, 3, 3 } } },             \
        .dtype = { type }, .n_in = 1, .no_vjp = true, .no_jvp = true, __VA_ARGS__                  \
    }

static const struct vectors_params values = { false }, vectors = { true };

static const struct rule_subject subjects[] = {
    SUBJECT("cholesky", OP_CHOLESKY, F, .is_single = true,
            .with = &(const struct cholesky_params){ true }),
    SUBJECT("inv", OP_INVERSE, F, .with = &(const struct inverse_params){ false, false }),
    SUBJECT("tri_inv", OP_INVERSE, F, .with = &(const struct inverse_params){ true, true }),
    SUBJECT("eigvalsh", OP_EIGH, F, .with = &(const struct eigh_params){ true, false }),
    SUBJECT("eigh", OP_EIGH, F, .n_out = 2, .with = &(const struct eigh_params){ false, true }),
    SUBJECT("eigh of complex", OP_EIGH, C, .n_out = 2,
            .with = &(const struct eigh_params){ false, true }),
    SUBJECT("eigvals", OP_EIG, F, .with = &values),
    SUBJECT("eig", OP_EIG, C, .n_out = 2, .with = &vectors),
    SUBJECT("singular values", OP_SVD, F, .with = &values),
    SUBJECT("svd", OP_SVD, C, .n_out = 3, .with = &vectors),
    SUBJECT("lu", OP_LUF, F, .n_out = 3, .no_vmap = true),
    SUBJECT("qr", OP_QRF, F, .n_out = 2, .no_vmap = true),
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_on_the_cpu),
        cmocka_unit_test(test_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
