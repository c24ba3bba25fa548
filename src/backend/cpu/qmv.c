#include "backend/cpu/qmv.h"

#include <math.h>
#include <string.h>

const struct cpu_qmv_kernels *cpu_qmv_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &cpu_qmv_avx2;
#endif
    return &cpu_qmv_base;
}

int64_t cpu_qmv_length(int64_t k, int bits)
{
    int64_t block = CPU_QMV_BLOCK * 8 / bits;

    return (k + block - 1) / block * block;
}

/* Where number i goes: a block is read as units of `width` bits, and code c of all its units comes
 * before code c + 1. */
static int64_t place_of(int64_t i, int bits, int width)
{
    int64_t per_unit = width / bits, units = CPU_QMV_BLOCK * 8 / width, block = units * per_unit;
    int64_t in_block = i % block;

    return i - in_block + in_block % per_unit * units + in_block / per_unit;
}

/* Codes come as they lie in a word of 32 bits, that is times a power of two, except the last one.
 */
void cpu_qmv_arrange(float *dst, const float *x, int64_t k, int bits)
{
    int64_t per_word = 32 / bits;

    memset(dst, 0, (size_t)cpu_qmv_length(k, bits) * sizeof *dst);
    for (int64_t i = 0; i < k; i++) {
        int64_t code = i % per_word;
        float scale = code == per_word - 1 ? 1.0f : 1.0f / (float)(1u << (code * bits));
        dst[place_of(i, bits, 32)] = x[i] * scale;
    }
}

/* The power of two by which the largest of n numbers has 14 bits before the point. */
static int exponent_of(const float *x, int64_t n)
{
    float most = 0.0f;
    int e = 0;

    for (int64_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(x[i]));
    if (!(most > 0.0f) || isinf(most))
        return 0;
    (void)frexpf(most, &e);
    return e > -100 ? 14 - e : 114;
}

/* Units are 16 bits of four codes, or with 8 bits the bytes as they are. */
void cpu_qmv_arrange_int(int16_t *dst, float *units, const float *x, const struct cpu_qmv *v)
{
    int width = v->bits == 4 ? 16 : 8;

    memset(dst, 0, (size_t)cpu_qmv_length(v->k, v->bits) * sizeof *dst);
    for (int64_t g = 0; g < v->k / v->group_size; g++) {
        const float *from = x + g * v->group_size;
        int e = exponent_of(from, v->group_size);
        float scale = ldexpf(1.0f, e);
        units[g] = ldexpf(1.0f, -e);
        for (int64_t i = 0; i < v->group_size; i++) {
            float n = rintf(from[i] * scale);
            dst[place_of(g * v->group_size + i, v->bits, width)] =
                (int16_t)(fabsf(n) <= 16384.0f ? n : 0.0f);
        }
    }
}
