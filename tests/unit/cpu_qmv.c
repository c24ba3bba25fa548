/* Rows of packed integers times a vector, with every instruction set that this processor has. */
#include "backend/cpu/qmv.h"

#include "support/testing.h"

#include <math.h>

#include "base/mem.h"
#include "graph/dtype.h"

#define ROWS 7
#define MOST_K 3104
#define MOST_GROUPS (MOST_K / 32)

static struct rng rng = { 5 };

/* A matrix in all its forms, and the products that are right. */
static struct {
    unsigned char w[ROWS * MOST_K + 64];
    uint16_t half_scales[ROWS * MOST_GROUPS], half_biases[ROWS * MOST_GROUPS];
    float scales[ROWS * MOST_GROUPS], biases[ROWS * MOST_GROUPS];
    float x[MOST_K], sums[MOST_GROUPS];
    double right[ROWS], size[ROWS];
} m;

static int code_at(int64_t row, int64_t i, const struct cpu_qmv *v)
{
    int64_t bit = (row * v->k + i) * v->bits;

    return m.w[bit / 8] >> bit % 8 & ((1 << v->bits) - 1);
}

static void fill_group(int64_t g, bool is_bf16)
{
    float scale = (float)(1 + rng_below(&rng, 100)) / 512, bias = (float)rng_below(&rng, 64) - 32;

    m.half_scales[g] = is_bf16 ? dt_f32_to_bf16(scale) : dt_f32_to_f16(scale);
    m.half_biases[g] = is_bf16 ? dt_f32_to_bf16(bias / 8) : dt_f32_to_f16(bias / 8);
    m.scales[g] = is_bf16 ? dt_bf16_to_f32(m.half_scales[g]) : dt_f16_to_f32(m.half_scales[g]);
    m.biases[g] = is_bf16 ? dt_bf16_to_f32(m.half_biases[g]) : dt_f16_to_f32(m.half_biases[g]);
}

static void fill(const struct cpu_qmv *v)
{
    int64_t per_row = v->k / v->group_size;

    for (int64_t i = 0; i < ROWS * v->k * v->bits / 8; i++)
        m.w[i] = (unsigned char)rng_below(&rng, 256);
    for (int64_t g = 0; g < ROWS * per_row; g++)
        fill_group(g, v->is_bf16);
    for (int64_t i = 0; i < v->k; i++)
        m.x[i] = dt_f16_to_f32(dt_f32_to_f16(((float)rng_below(&rng, 2001) - 1000) / 300));
    for (int64_t g = 0; g < per_row; g++) {
        m.sums[g] = 0;
        for (int64_t i = 0; i < v->group_size; i++)
            m.sums[g] += m.x[g * v->group_size + i];
    }
    for (int64_t row = 0; row < ROWS; row++) {
        m.right[row] = m.size[row] = 0;
        for (int64_t i = 0; i < v->k; i++) {
            int64_t g = row * per_row + i / v->group_size;
            double part =
                (code_at(row, i, v) * (double)m.scales[g] + (double)m.biases[g]) * (double)m.x[i];
            m.right[row] += part;
            m.size[row] += fabs(part);
        }
    }
}

static void check(const float *out, const struct cpu_qmv *v, int set, const char *which)
{
    for (int row = 0; row < ROWS; row++)
        if (!(fabs((double)out[row] - m.right[row]) <= 2e-5 * m.size[row] + 1e-5))
            fail_msg("set %d, %s, %d bits, groups of %d, k %d: row %d is %g, should be %g", set,
                     which, v->bits, (int)v->group_size, (int)v->k, row, (double)out[row],
                     m.right[row]);
}

/* The integer kernels multiply scales with units, the last one by itself. */
static void check_int(struct cpu_qmv v, int i, const struct cpu_qmv_kernels *set, void *memory)
{
    int64_t per_row = v.k / v.group_size;
    float out[ROWS], units[MOST_GROUPS], scaled[ROWS * MOST_GROUPS];

    cpu_qmv_arrange_int(memory, units, m.x, &v, set);
    v.units = units;
    if (set->rows_half) {
        set->rows_half(out, &v, ROWS);
        check(out, &v, i, "rows_half");
        return;
    }
    for (int64_t g = 0; g < ROWS * per_row; g++)
        scaled[g] = m.scales[g] * units[g % per_row];
    v.scales = scaled;
    set->rows_int(out, &v, ROWS);
    check(out, &v, i, "rows_int");
}

static void check_sets(struct cpu_qmv v)
{
    void *memory = mem_alloc_aligned((size_t)cpu_qmv_length(v.k, v.bits) * sizeof(float));
    const struct cpu_qmv_kernels *set;
    float out[ROWS];

    assert_non_null(memory);
    fill(&v);
    v.w = m.w;
    v.scales = m.scales;
    v.biases = m.biases;
    v.half_scales = m.half_scales;
    v.half_biases = m.half_biases;
    v.sums = m.sums;
    v.x = memory;
    for (int i = 0; (set = cpu_qmv_set(i)); i++) {
        cpu_qmv_arrange(memory, m.x, v.k, v.bits);
        set->rows(out, &v, ROWS);
        check(out, &v, i, "rows");
        if (v.bits != 2 && (set->rows_int || set->rows_half))
            check_int(v, i, set, memory);
    }
    mem_free(memory);
}

static void test_sets(void **state)
{
    static const int bits[] = { 2, 4, 8 }, groups[] = { 32, 64, 128 };

    (void)state;
    for (int b = 0; b < 3; b++)
        for (int g = 0; g < 3; g++)
            for (int64_t n = 1; n <= MOST_K / groups[g]; n += 1 + n / 3)
                check_sets((struct cpu_qmv){ .bits = bits[b],
                                             .group_size = groups[g],
                                             .k = n * groups[g],
                                             .is_bf16 = n % 2 });
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sets) };

    return cmocka_run_group_tests_name("cpu_qmv", tests, NULL, NULL);
}
