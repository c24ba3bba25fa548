/* The loops of the CPU backend: the set chosen for this processor gives the bits of the base set,
 * and numbers that an integer type does not have become what MLX makes of them, on every processor.
 */
#include "backend/cpu/kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/wait.h"
#include "graph/array.h"
#include "support/testing.h"

/* Elements of a run: several vectors of any set, and some more. */
#define N 77
#define WIDEST 8 /* bytes of an element */

static struct rng rng = { 11 };

/* Random bits are mostly huge and tiny numbers, so every second element is an ordinary one. */
static uint64_t random_bits(enum cpu_class class, bool is_ordinary)
{
    uint64_t bits = rng_next(&rng);
    double d = (double)rng_below(&rng, 20001) / 1000 - 10;

    if (class == CPU_B)
        return bits & 1;
    if (!is_ordinary)
        return bits;
    if (class == CPU_F32 || class == CPU_C64)
        memcpy(&bits, (float[2]){ (float)d, (float)-d }, sizeof bits);
    else if (class == CPU_F64)
        memcpy(&bits, &d, sizeof bits);
    else
        bits %= 70;
    return bits;
}

static void fill(void *dst, enum cpu_class class)
{
    for (size_t i = 0; i < N; i++) {
        uint64_t bits = random_bits(class, i % 2);
        memcpy((char *)dst + i * cpu_class_size[class], &bits, cpu_class_size[class]);
    }
}

/* Which NaN an operation makes of two is open. */
static bool is_same(const void *a, const void *b, enum cpu_class class)
{
    float f[2][2];
    double d[2];

    if (memcmp(a, b, cpu_class_size[class]) == 0)
        return true;
    memcpy(f[0], a, MIN(cpu_class_size[class], sizeof f[0]));
    memcpy(f[1], b, MIN(cpu_class_size[class], sizeof f[1]));
    memcpy(&d[0], f[0], sizeof d[0]);
    memcpy(&d[1], f[1], sizeof d[1]);
    if (class == CPU_F64)
        return isnan(d[0]) && isnan(d[1]);
    if (class == CPU_F32)
        return isnan(f[0][0]) && isnan(f[1][0]);
    return class == CPU_C64 && (f[0][0] == f[1][0] || (isnan(f[0][0]) && isnan(f[1][0]))) &&
           (f[0][1] == f[1][1] || (isnan(f[0][1]) && isnan(f[1][1])));
}

static void check_run(const void *got, const void *want, enum cpu_class class, const char *what)
{
    size_t size = cpu_class_size[class];

    for (size_t i = 0; i < N; i++)
        if (!is_same((const char *)got + i * size, (const char *)want + i * size, class))
            fail_msg("%s, element %d differs from the base set", what, (int)i);
}

static void test_ops(void **state)
{
    char x[N * WIDEST], y[N * WIDEST], z[N * WIDEST], got[N * WIDEST], want[N * WIDEST], what[64];

    (void)state;
    for (int op = 0; op < OP_COUNT; op++)
        for (int class = 0; class < CPU_CLASS_COUNT; class ++) {
            const struct cpu_kernel_row *row = &cpu_kernels()->op[op][class];
            if (!row->fn)
                continue;
            fill(x, op == OP_SELECT ? CPU_B : (enum cpu_class) class);
            fill(y, (enum cpu_class) class);
            fill(z, (enum cpu_class) class);
            row->fn(got, x, y, z, N);
            cpu_kernels_base.op[op][class].fn(want, x, y, z, N);
            snprintf(what, sizeof what, "%s of class %d", op_name((enum op_id)op), class);
            check_run(got, want, (enum cpu_class)row->result, what);
        }
}

static void test_folds(void **state)
{
    char x[N * WIDEST], got[WIDEST], want[WIDEST];

    (void)state;
    for (int op = 0; op < OP_COUNT; op++)
        for (int class = 0; class < CPU_CLASS_COUNT; class ++) {
            if (!cpu_kernels()->fold[op][class])
                continue;
            for (size_t n = 1; n <= N; n++) {
                fill(x, (enum cpu_class) class);
                cpu_kernels()->fold[op][class](got, x, n);
                cpu_kernels_base.fold[op][class](want, x, n);
                assert_true(is_same(got, want, (enum cpu_class) class));
            }
        }
}

static void test_conversions(void **state)
{
    char x[N * WIDEST], got[N * WIDEST], want[N * WIDEST], what[64];

    (void)state;
    for (int from = 0; from < CPU_CLASS_COUNT; from++)
        for (int to = 0; to < CPU_CLASS_COUNT; to++) {
            fill(x, (enum cpu_class)from);
            cpu_kernels()->convert[from][to](got, x, NULL, NULL, N);
            cpu_kernels_base.convert[from][to](want, x, NULL, NULL, N);
            snprintf(what, sizeof what, "class %d to %d", from, to);
            check_run(got, want, (enum cpu_class)to, what);
        }
}

/* In runs of every length, so that vectors and what is left after them meet every number. */
static void test_halves(void **state)
{
    const struct cpu_kernels *k = cpu_kernels(), *base = &cpu_kernels_base;
    uint16_t h[N], narrow[2][N];
    float f[N], wide[2][N];

    (void)state;
    for (uint32_t first = 0; first < 65536; first += 7) {
        size_t n = 1 + first % N;
        for (size_t i = 0; i < n; i++)
            h[i] = (uint16_t)(first + i);
        k->load_f16(wide[0], h, n);
        base->load_f16(wide[1], h, n);
        assert_memory_equal(wide[0], wide[1], n * sizeof *f);
        k->load_bf16(wide[0], h, n);
        base->load_bf16(wide[1], h, n);
        assert_memory_equal(wide[0], wide[1], n * sizeof *f);
    }
    for (uint64_t first = 0; first < 1ull << 32; first += 524287) {
        size_t n = 1 + first % N;
        for (size_t i = 0; i < n; i++)
            memcpy(&f[i], &(uint32_t){ (uint32_t)(first + i * 12289) }, sizeof *f);
        k->store_f16(narrow[0], f, n);
        base->store_f16(narrow[1], f, n);
        assert_memory_equal(narrow[0], narrow[1], n * sizeof *h);
        k->store_bf16(narrow[0], f, n);
        base->store_bf16(narrow[1], f, n);
        assert_memory_equal(narrow[0], narrow[1], n * sizeof *h);
        memcpy(wide[0], f, sizeof f);
        memcpy(wide[1], f, sizeof f);
        k->round_f16(wide[0], n);
        base->round_f16(wide[1], n);
        assert_memory_equal(wide[0], wide[1], n * sizeof *f);
    }
}

static void test_rows(void **state)
{
    const struct cpu_kernels *k = cpu_kernels(), *base = &cpu_kernels_base;
    float x[N], rows[5 * N], got[N], want[N];

    (void)state;
    for (size_t i = 0; i < 5 * N; i++)
        rows[i] = (float)rng_below(&rng, 2001) / 1000 - 1;
    for (size_t i = 0; i < N; i++)
        x[i] = (float)rng_below(&rng, 2001) / 1000 - 1;
    for (size_t width = 1; width <= N; width++) {
        struct cpu_rows r = { rows, 5, width, N };
        k->dot_rows(got, x, &r);
        base->dot_rows(want, x, &r);
        assert_memory_equal(got, want, 5 * sizeof *got);
        memcpy(got, x, sizeof got);
        memcpy(want, x, sizeof want);
        k->add_rows(got, rows, &r);
        base->add_rows(want, rows, &r);
        assert_memory_equal(got, want, width * sizeof *got);
    }
}

/* ---- numbers out of range ---- */

#define LOW32 0x80000000u
#define LOW64 0x8000000000000000u
/* As MLX 0.32.4 has them on x86. uint32 is that of single elements: MLX's vectors of them differ.
 */
static const struct {
    double v;
    uint64_t u8, u16, u32, u64;
} out_of_range[] = {
    { -1, 0xff, 0xffff, 0xffffffffu, UINT64_MAX },
    { -2.5, 0xfe, 0xfffe, 0xfffffffeu, UINT64_MAX - 1 },
    { 300.5, 44, 300, 300, 300 },
    { -300.5, 212, 65236, 4294966996u, 18446744073709551316u },
    { 70000, 112, 4464, 70000, 70000 },
    { 3e9, 0, 0, 3000000000u, 3000000000u },
    { -3e9, 0, 0, 1294967296, 18446744070709551616u },
    { 5e9, 0, 0, 705032704, 5000000000u },
    { 0x1p63, 0, 0, 0, LOW64 },
    { 0x1p63 + 0x1p62, 0, 0, 0, LOW64 + (LOW64 >> 1) },
    { 0x1p64, 0, 0, 0, 0 },
    { -0x1p64, 0, 0, 0, LOW64 },
    { (double)INFINITY, 0, 0, 0, 0 },
    { (double)-INFINITY, 0, 0, 0, LOW64 },
    { (double)NAN, 0, 0, 0, LOW64 },
};

static uint64_t wanted(size_t i, enum dtype to)
{
    double v = out_of_range[i].v;

    switch (to) {
    case DT_UINT8:
    case DT_INT8:
        return out_of_range[i].u8;
    case DT_UINT16:
    case DT_INT16:
        return out_of_range[i].u16;
    case DT_UINT32:
        return out_of_range[i].u32;
    case DT_INT32:
        return fabs(v) < 0x1p31 ? out_of_range[i].u32 : LOW32;
    case DT_UINT64:
        return out_of_range[i].u64;
    default:
        return fabs(v) < 0x1p63 ? out_of_range[i].u64 : LOW64;
    }
}

static void check_number(size_t i, enum dtype from, enum dtype to)
{
    double v = out_of_range[i].v;
    float in[2] = { (float)v, 0 };
    char x[N * WIDEST], got[N * WIDEST];
    uint64_t bits = 0;

    for (size_t e = 0; e < N; e++)
        memcpy(x + e * dt_size(from), from == DT_FLOAT64 ? (void *)&v : (void *)in, dt_size(from));
    cpu_convert((struct cpu_vec){ got, to }, (struct cpu_vec){ x, from }, N);
    for (size_t e = 0; e < N; e++) {
        memcpy(&bits, got + e * dt_size(to), dt_size(to));
        if (bits != wanted(i, to))
            fail_msg("%s %g as %s, element %d: %llu, should be %llu", dt_name(from), v, dt_name(to),
                     (int)e, (unsigned long long)bits, (unsigned long long)wanted(i, to));
    }
}

static void check_scalar(size_t i, enum dtype to)
{
    struct arr *a = NULL;
    const void *host = NULL;
    uint64_t bits = 0;

    assert_ok(arr_new_number(&a, out_of_range[i].v, to));
    assert_ok(arr_host(&host, a));
    memcpy(&bits, host, dt_size(to));
    assert_int_equal(bits, wanted(i, to));
    arr_unref(&a);
}

static void test_out_of_range(void **state)
{
    static const enum dtype from[] = { DT_FLOAT32, DT_FLOAT64, DT_COMPLEX64 };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(out_of_range); i++)
        for (int to = DT_UINT8; to <= DT_INT64; to++) {
            for (size_t f = 0; f < ARRAY_LEN(from); f++)
                check_number(i, from[f], (enum dtype)to);
            check_scalar(i, (enum dtype)to);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),         cmocka_unit_test(test_folds),
        cmocka_unit_test(test_conversions), cmocka_unit_test(test_halves),
        cmocka_unit_test(test_rows),        cmocka_unit_test(test_out_of_range),
    };

    return cmocka_run_group_tests_name("cpu_kernels", tests, NULL, NULL);
}
