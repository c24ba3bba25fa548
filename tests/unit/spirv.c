/* The SPIR-V emitter: every op, dtype and way of walking gives a module that spirv-val accepts. No
 * device is needed. */
#include "support/testing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend/vulkan/jit/elementwise_emit.h"
#include "backend/vulkan/jit/elementwise_fn.h"
#include "base/mem.h"

static char module_path[] = "/tmp/spirv-module-XXXXXX"; /* for mkstemp */

static int make_file(void **state)
{
    int fd = mkstemp(module_path);

    (void)state;
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return remove(module_path);
}

static const struct elem_class plain = { .lanes = 1, .unroll = 1, .align = 16, .threads = 64 };

static void validate(const uint32_t *words, size_t n, const char *what)
{
    char command[128];
    FILE *f = fopen(module_path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(words, sizeof *words, n, f), n);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command, "spirv-val --target-env vulkan1.2 %s", module_path);
    if (system(command) != 0)
        fail_msg("spirv-val refuses the module of %s", what);
}

static void emit_and_validate(const struct elem_program *f, const struct elem_class *c,
                              const char *what)
{
    uint32_t *words = NULL;
    size_t n = 0;

    assert_ok(elem_emit(&words, &n, f, c));
    validate(words, n, what);
    mem_free(words);
}

/* ---- every op and dtype ---- */

static int arity(enum op_id op)
{
    switch (op_table[op].family) {
    case OP_FAMILY_UNARY:
        return 1;
    case OP_FAMILY_BINARY:
        return 2;
    case OP_FAMILY_TERNARY:
        return 3;
    case OP_FAMILY_ARANGE:
        return 0;
    default:
        return -1;
    }
}

static enum dtype result_dtype(enum op_id op, enum dtype t)
{
    if (op == OP_REAL || op == OP_IMAG)
        return DT_FLOAT32;
    if (op == OP_TO_FP8)
        return DT_UINT8;
    if (op == OP_LOGICAL_NOT) /* whose operand is bool, too, but the kernels do not ask for that */
        return DT_BOOL;
    return op_table[op].flags & OPF_BOOL_OUT ? DT_BOOL : t;
}

static enum dtype operand_dtype(enum op_id op, int i, enum dtype t)
{
    if (op == OP_SELECT && i == 0)
        return DT_BOOL;
    return op == OP_FROM_FP8 ? DT_UINT8 : t;
}

static struct elem_program program_of_one(enum op_id op, enum dtype t)
{
    int n = arity(op);
    struct elem_program f = { .n_in = (uint8_t)n, .n_ins = 1, .n_out = 1, .out = { (uint8_t)n } };

    for (int i = 0; i < n; i++) {
        f.in_dtype[i] = (uint8_t)operand_dtype(op, i, t);
        f.ins[0].arg[i] = (uint8_t)i;
    }
    f.ins[0].op = (uint16_t)op;
    f.ins[0].dtype = (uint8_t)result_dtype(op, t);
    f.ins[0].n_args = (uint8_t)n;
    return f;
}

/* Which dtypes MLX lets reach an op on the GPU, as the kinds of dt_kind. */
#define B 1u
#define U 2u
#define I 4u
#define F 8u
#define C 16u

static unsigned expected_kinds(enum op_id op)
{
    switch (op) {
    case OP_ERF:
    case OP_ERFINV:
    case OP_EXPM1:
    case OP_SIGMOID:
    case OP_TO_FP8:
    case OP_FROM_FP8:
    case OP_ARCTAN2:
        return F;
    case OP_CONJUGATE:
    case OP_REAL:
    case OP_IMAG:
        return C;
    case OP_BITWISE_INVERT:
    case OP_LEFT_SHIFT:
    case OP_RIGHT_SHIFT:
        return U | I;
    case OP_BITWISE_AND:
    case OP_BITWISE_OR:
    case OP_BITWISE_XOR:
        return B | U | I;
    case OP_CEIL:
    case OP_FLOOR:
    case OP_REMAINDER:
        return B | U | I | F;
    case OP_NEGATIVE:
    case OP_ARANGE:
        return U | I | F | C;
    case OP_ABS:
    case OP_ROUND:
    case OP_SIGN:
    case OP_SQUARE:
    case OP_LOGICAL_NOT:
    case OP_SELECT:
    case OP_POWER:
        return B | U | I | F | C;
    case OP_LOG_ADD_EXP:
        return F | C;
    default:
        return op_table[op].family == OP_FAMILY_UNARY ? F | C : B | U | I | F | C;
    }
}

static void test_every_op_and_dtype(void **state)
{
    int modules = 0;

    (void)state;
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        if (arity((enum op_id)op) < 0 || op == OP_ASTYPE)
            continue;
        for (int t = 0; t < DT_COUNT; t++) {
            struct elem_program f = program_of_one((enum op_id)op, (enum dtype)t);
            bool is_expected = expected_kinds((enum op_id)op) >> dt_table[t].kind & 1;
            char what[64];

            snprintf(what, sizeof what, "%s %s", op_name((enum op_id)op), dt_name((enum dtype)t));
            if (is_expected && t != DT_FLOAT64) {
                emit_and_validate(&f, &plain, what);
                modules++;
            } else if (op != OP_FROM_FP8) { /* found by its operand; its rule says what it gives */
                struct elem_call call;
                assert_fails(ERR_UNSUPPORTED, elem_resolve(&call, &f));
            }
        }
    }
    assert_true(modules > 450);
}

/* All casts between two dtypes in one program each way would hide nothing, but one module per
 * source dtype is enough: up to 32 instructions, all of them outputs of others. */
static void test_every_cast(void **state)
{
    (void)state;
    for (int from = 0; from < DT_COUNT; from++) {
        for (int to = 0; to < DT_COUNT; to++) {
            struct elem_program f = { .n_in = 1, .n_ins = 2, .n_out = 2, .out = { 1, 2 } };

            f.in_dtype[0] = (uint8_t)from;
            f.ins[0] =
                (struct elem_program_ins){ .op = OP_ASTYPE, .dtype = (uint8_t)to, .n_args = 1 };
            f.ins[1] = (struct elem_program_ins){
                .op = OP_ASTYPE, .dtype = (uint8_t)from, .n_args = 1, .arg = { 1 }
            };
            if (from == DT_FLOAT64 || to == DT_FLOAT64) {
                struct elem_call calls[2];
                assert_fails(ERR_UNSUPPORTED, elem_resolve(calls, &f));
            } else if (to >= from) {
                emit_and_validate(&f, &plain, "AsType");
            }
        }
    }
}

/* ---- every way of walking ---- */

/* (a + float16(b)) -> float16, a > b -> bool: three sizes of elements, two outputs. */
static const struct elem_program mixed = {
    .n_in = 3,
    .n_ins = 4,
    .n_out = 2,
    .in_dtype = { DT_FLOAT16, DT_FLOAT32, DT_UINT8 },
    .out = { 5, 6 },
    .ins = {
        { .op = OP_ASTYPE, .dtype = DT_FLOAT16, .n_args = 1, .arg = { 1 } },
        { .op = OP_ASTYPE, .dtype = DT_FLOAT16, .n_args = 1, .arg = { 2 } },
        { .op = OP_ADD, .dtype = DT_FLOAT16, .n_args = 2, .arg = { 0, 3 } },
        { .op = OP_GREATER, .dtype = DT_BOOL, .n_args = 2, .arg = { 5, 4 } },
    },
};

static void test_every_walk(void **state)
{
    static const uint8_t dims[] = { 0, 1, 2, 4, 8 };
    int modules = 0;

    (void)state;
    for (unsigned k = 0; k < 5u * 64u; k++) {
        struct elem_class c = { .dims = dims[k % 5], .align = (uint8_t)(1u << k / 5 % 5) };

        c.threads = 64;
        c.flags = (uint16_t)(k / 5);
        if (!c.dims)
            c.flags &= (uint16_t)~ELEM_OUT_STRIDED;
        c.lanes = c.align == 16 ? 4 : c.align == 8 ? 2 : 1;
        c.unroll = (uint8_t)(1u << k % 3);
        c.once_in = k & 1 ? 1u << 2 : 0;
        c.splat_in = c.lanes > 1 ? 1u << 1 : 0;
        emit_and_validate(&mixed, &c, "a mixed program");
        modules++;
    }
    assert_int_equal(modules, 320);
}

static void test_copy_and_largest_program(void **state)
{
    struct elem_program copy = { .n_in = 1, .n_out = 1, .in_dtype = { DT_COMPLEX64 } };
    struct elem_program big = { .n_in = ELEM_PROGRAM_MAX_IN,
                                .n_ins = ELEM_PROGRAM_MAX_INS,
                                .n_out = ELEM_PROGRAM_MAX_OUT };
    struct elem_class c = { .dims = 32, .lanes = 1, .unroll = 4, .align = 4, .threads = 64 };

    (void)state;
    emit_and_validate(&copy, &plain, "a copy");
    for (int i = 0; i < ELEM_PROGRAM_MAX_IN; i++)
        big.in_dtype[i] = DT_FLOAT32;
    for (int i = 0; i < ELEM_PROGRAM_MAX_INS; i++)
        big.ins[i] = (struct elem_program_ins){ .op = OP_LOG_ADD_EXP,
                                                .dtype = DT_FLOAT32,
                                                .n_args = 2,
                                                .arg = { (uint8_t)i,
                                                         (uint8_t)(ELEM_PROGRAM_MAX_IN + i - 1) } };
    for (int o = 0; o < ELEM_PROGRAM_MAX_OUT; o++)
        big.out[o] = (uint8_t)(ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_INS - 1 - o);
    c.flags = ELEM_ARGS_IN_MEMORY | ELEM_OUT_STRIDED;
    emit_and_validate(&big, &c, "the largest program");
}

/* ---- linking ---- */

static size_t count_ops(const uint32_t *words, size_t n, SpvOp op)
{
    size_t found = 0;

    for (size_t at = 5; at < n; at += words[at] >> SpvWordCountShift)
        found += (words[at] & SpvOpCodeMask) == (uint32_t)op;
    return found;
}

static size_t count_in_program(int n_ins, enum op_id op, SpvOp what)
{
    struct elem_program f = {
        .n_in = 1, .n_ins = (uint8_t)n_ins, .n_out = 1, .in_dtype = { DT_FLOAT32 }
    };
    uint32_t *words = NULL;
    size_t n = 0;

    for (int i = 0; i < n_ins; i++)
        f.ins[i] = (struct elem_program_ins){
            .op = (uint16_t)op, .dtype = DT_FLOAT32, .n_args = 1, .arg = { (uint8_t)i }
        };
    f.out[0] = (uint8_t)n_ins;
    assert_ok(elem_emit(&words, &n, &f, &plain));
    size_t found = count_ops(words, n, what);
    mem_free(words);
    return found;
}

static void test_functions_are_linked_once(void **state)
{
    (void)state;
    assert_int_equal(count_in_program(0, OP_EXP, SpvOpFunction), 1);
    assert_true(count_in_program(1, OP_EXP, SpvOpFunction) > 2);
    assert_int_equal(count_in_program(8, OP_EXP, SpvOpFunction),
                     count_in_program(1, OP_EXP, SpvOpFunction));
    assert_int_equal(count_in_program(8, OP_EXP, SpvOpTypeFloat), 1);
}

static void test_arithmetic_is_not_contracted(void **state)
{
    (void)state;
    assert_int_equal(count_in_program(1, OP_ABS, SpvOpDecorate),
                     count_in_program(0, OP_ABS, SpvOpDecorate));
    assert_int_equal(count_in_program(1, OP_SQUARE, SpvOpDecorate),
                     count_in_program(0, OP_ABS, SpvOpDecorate) + 1);
}

static void test_out_of_memory(void **state)
{
    struct elem_program f = program_of_one(OP_SIN, DT_FLOAT32);
    uint32_t *words = NULL;
    size_t n = 0;
    enum err err = ERR_NO_MEMORY;

    (void)state;
    for (size_t k = 1; err != ERR_OK; k++) {
        assert_true(k < 1000);
        mem_fail_after(k);
        err = elem_emit(&words, &n, &f, &plain);
        mem_fail_after(0);
        assert_true(err == ERR_OK || err == ERR_NO_MEMORY);
    }
    mem_free(words);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A module is written while the user waits: it must cost far less than its pipeline (8 ms). The
 * best of many runs, because other processes share the machine. */
static void test_emission_is_quick(void **state)
{
    struct elem_class c = { .lanes = 1, .unroll = 4, .align = 16, .threads = 256 };
    struct elem_program f = program_of_one(OP_TAN, DT_FLOAT32);
    double best = 1;

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint32_t *words = NULL;
        size_t n = 0;
        double start = seconds();

        assert_ok(elem_emit(&words, &n, &f, &c));
        best = MIN(best, seconds() - start);
        mem_free(words);
    }
    print_message("emission: %.1f us\n", best * 1e6);
    assert_true(best < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_op_and_dtype),
        cmocka_unit_test(test_every_cast),
        cmocka_unit_test(test_every_walk),
        cmocka_unit_test(test_copy_and_largest_program),
        cmocka_unit_test(test_functions_are_linked_once),
        cmocka_unit_test(test_arithmetic_is_not_contracted),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_emission_is_quick),
    };

    return cmocka_run_group_tests_name("spirv", tests, make_file, remove_file);
}
