/* Kernels with a program in them: spirv-val accepts every kernel that has places for one, with
 * programs and side inputs of all kinds, and nothing of the kernel itself has changed. No device is
 * needed. */
#include "support/testing.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend/vulkan/jit/epilogue.h"
#include "backend/vulkan/ops/kern.h"
#include "base/mem.h"

static char module_path[] = "/tmp/spirv-linked-XXXXXX"; /* for mkstemp */

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

static bool is_valid(const uint32_t *words, size_t n, bool is_quiet)
{
    const char *env = words[1] >= 0x00010600 ? "vulkan1.3" : "vulkan1.2";
    char command[160];
    FILE *f = fopen(module_path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(words, sizeof *words, n, f), n);
    assert_int_equal(fclose(f), 0);
    snprintf(command, sizeof command, "spirv-val --target-env %s --scalar-block-layout %s%s", env,
             module_path, is_quiet ? " >/dev/null 2>&1" : "");
    return system(command) == 0;
}

/* ---- modules ---- */

static size_t count_ops(const uint32_t *words, size_t n, SpvOp op)
{
    size_t found = 0;

    for (size_t at = 5; at < n; at += words[at] >> SpvWordCountShift)
        found += (words[at] & SpvOpCodeMask) == (uint32_t)op;
    return found;
}

static size_t count_marks(const uint32_t *words, size_t n)
{
    size_t found = 0;

    for (size_t at = 5; at < n; at += words[at] >> SpvWordCountShift)
        found += (words[at] & SpvOpCodeMask) == SpvOpExtInst &&
                 (words[at + 4] == GLSLstd450FaceForward || words[at + 4] == GLSLstd450Reflect ||
                  words[at + 4] == GLSLstd450Refract);
    return found;
}

static enum err link_program(uint32_t **words, size_t *n, const struct kern_blob *b,
                             const struct elem_program *f, const struct epilogue_class *c)
{
    return epilogue_link(words, n, &(struct spv_module){ b->words, b->n_words }, f, c);
}

/* ---- programs over one product, or two, and sides of many dtypes ---- */

static void add(struct elem_program *f, enum op_id op, enum dtype t, const uint8_t *args, int n)
{
    struct elem_program_ins *ins = &f->ins[f->n_ins++];

    *ins =
        (struct elem_program_ins){ .op = (uint16_t)op, .dtype = (uint8_t)t, .n_args = (uint8_t)n };
    for (int i = 0; i < n; i++)
        ins->arg[i] = args[i];
    f->out[0] = (uint8_t)(f->n_in + f->n_ins - 1);
}

static struct elem_program random_program(struct rng *r, enum dtype t, int n_products)
{
    static const enum op_id unary[] = { OP_ERF, OP_TANH, OP_SIGMOID, OP_LOG, OP_SIN, OP_ABS };
    static const enum dtype types[] = { DT_FLOAT32, DT_BFLOAT16, DT_FLOAT16,
                                        DT_BOOL,    DT_INT8,     DT_UINT32 };
    struct elem_program f = { .n_in = (uint8_t)(n_products + rng_below(r, EPILOGUE_SIDES + 1)),
                              .n_out = 1 };

    for (int i = 0; i < f.n_in; i++)
        f.in_dtype[i] = (uint8_t)(i < n_products ? t : types[rng_below(r, 6)]);
    add(&f, OP_MULTIPLY, t, (uint8_t[]){ 0, (uint8_t)(n_products - 1) }, 2);
    for (int i = n_products; i < f.n_in; i++) {
        uint8_t sum = f.out[0], cast;
        add(&f, OP_ASTYPE, t, (uint8_t[]){ (uint8_t)i }, 1);
        cast = f.out[0];
        add(&f, i % 2 ? OP_ADD : OP_MAXIMUM, t, (uint8_t[]){ sum, cast }, 2);
    }
    add(&f, unary[rng_below(r, ARRAY_LEN(unary))], t, (uint8_t[]){ f.out[0] }, 1);
    return f;
}

static struct epilogue_class random_class(struct rng *r, const struct elem_program *f,
                                          int n_products)
{
    struct epilogue_class c = { .n_products = (uint8_t)n_products,
                                .float_modes = (uint8_t)rng_below(r, 2) };

    for (int i = 0; i < f->n_in - n_products; i++)
        c.side[i] = (uint8_t)rng_below(r, 3);
    c.is_direct = f->n_in == n_products + 1 && c.side[0] != EPILOGUE_STRIDED;
    return c;
}

static void check_linked(const struct kern_blob *b, struct rng *r)
{
    int n_products = 1 + rng_below(r, 2);
    struct elem_program f = random_program(r, (enum dtype)b->dtype, n_products);
    struct epilogue_class c = random_class(r, &f, n_products);
    uint32_t *words = NULL;
    size_t n = 0;

    assert_ok(epilogue_check(&f, n_products));
    assert_ok(link_program(&words, &n, b, &f, &c));
    if (!is_valid(words, n, false))
        fail_msg("spirv-val refuses kernel %d of %s with %d inputs", (int)b->id,
                 dt_name((enum dtype)b->dtype), f.n_in);
    assert_int_equal(count_marks(words, n), 0);
    /* Every loop, load and barrier is still there, and the types are no second ones. */
    static const SpvOp kept[] = { SpvOpLoopMerge, SpvOpControlBarrier, SpvOpSpecConstant,
                                  SpvOpTypeBool, SpvOpTypeFunction };
    for (size_t i = 0; i < ARRAY_LEN(kept); i++)
        assert_true(count_ops(words, n, kept[i]) >= count_ops(b->words, b->n_words, kept[i]));
    assert_int_equal(count_ops(words, n, SpvOpTypeVoid), 1);
    mem_free(words);
}

static void test_every_kernel_with_programs(void **state)
{
    struct rng rng = { 3 };
    int linked = 0, unknown = 0;

    (void)state;
    for (size_t i = 0; i < kern_blob_count; i++) {
        const struct kern_blob *b = &kern_blobs[i];
        if (!count_marks(b->words, b->n_words))
            continue;
        if (!is_valid(b->words, b->n_words, true)) { /* an older one than the kernels need */
            unknown++;
            continue;
        }
        for (int k = 0; k < 6; k++)
            check_linked(b, &rng);
        linked++;
    }
    print_message("%d kernels, %d not known to this spirv-val\n", linked, unknown);
    assert_true(linked >= 12);
}

/* ---- what is no program for a kernel ---- */

static void test_limits(void **state)
{
    struct elem_program f = { .n_in = 2, .n_out = 1, .in_dtype = { DT_FLOAT32, DT_INT64 } };

    (void)state;
    add(&f, OP_ABS, DT_FLOAT32, (uint8_t[]){ 0 }, 1);
    assert_fails(ERR_UNSUPPORTED, epilogue_check(&f, 1)); /* a side input of eight bytes */
    f.in_dtype[1] = DT_INT32;
    assert_ok(epilogue_check(&f, 1));
    f.n_in = 2 + EPILOGUE_SIDES;
    assert_fails(ERR_UNSUPPORTED, epilogue_check(&f, 1));
    assert_ok(epilogue_check(&f, 2));
}

static const struct kern_blob *kernel_of(enum kern_id id, int dtype)
{
    for (size_t i = 0; i < kern_blob_count; i++)
        if (kern_blobs[i].id == id && kern_blobs[i].dtype == dtype)
            return &kern_blobs[i];
    return NULL;
}

static void test_kernel_without_places(void **state)
{
    const struct kern_blob *b = kernel_of(KERN_NORM, DT_FLOAT32);
    struct elem_program f = { .n_in = 1, .n_out = 1, .in_dtype = { DT_FLOAT32 } };
    struct epilogue_class c = { .n_products = 1 };
    uint32_t *words = NULL;
    size_t n = 0;

    (void)state;
    add(&f, OP_ABS, DT_FLOAT32, (uint8_t[]){ 0 }, 1);
    assert_fails(ERR_RUNTIME, link_program(&words, &n, b, &f, &c));
    assert_null(words);
}

static void test_out_of_memory(void **state)
{
    const struct kern_blob *b = kernel_of(KERN_SPLITK_REDUCE, DT_FLOAT16);
    struct rng rng = { 7 };
    struct elem_program f = random_program(&rng, DT_FLOAT16, 1);
    struct epilogue_class c = random_class(&rng, &f, 1);
    uint32_t *words = NULL;
    size_t n = 0;
    enum err err = ERR_NO_MEMORY;

    (void)state;
    for (size_t k = 1; err != ERR_OK; k++) {
        assert_true(k < 1000);
        mem_fail_after(k);
        err = link_program(&words, &n, b, &f, &c);
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

/* As emission (spirv.c): far less than what the pipeline costs. */
static void test_linking_is_quick(void **state)
{
    const struct kern_blob *b = kernel_of(KERN_QMV_PAIR, DT_BFLOAT16);
    struct rng rng = { 9 };
    struct elem_program f = random_program(&rng, DT_BFLOAT16, 2);
    struct epilogue_class c = random_class(&rng, &f, 2);
    double best = 1;

    (void)state;
    for (int i = 0; i < 100; i++) {
        uint32_t *words = NULL;
        size_t n = 0;
        double start = seconds();
        assert_ok(link_program(&words, &n, b, &f, &c));
        best = MIN(best, seconds() - start);
        mem_free(words);
    }
    print_message("linking: %.0f us\n", best * 1e6);
    assert_true(best < 4e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kernel_with_programs), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_kernel_without_places),      cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_linking_is_quick),
    };

    return cmocka_run_group_tests_name("spirv_link", tests, make_file, remove_file);
}
