#include "backend/cpu/qmv.h"

#include <math.h>
#include <string.h>

const struct cpu_qmv_kernels *cpu_qmv_set(int i)
{
    const struct cpu_qmv_kernels *sets[4] = { NULL };
    int n = 0;

#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni"))
        sets[n++] = &cpu_qmv_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        sets[n++] = &cpu_qmv_avx2;
#elif defined(__aarch64__)
    sets[n++] = &cpu_qmv_neon;
#endif
    sets[n++] = &cpu_qmv_base;
    return i < n ? sets[i] : NULL;
}

int64_t cpu_qmv_length(int64_t k, int bits)
{
    int64_t block = CPU_QMV_BLOCK_MAX * 8 / bits;

    return (k + block - 1) / block * block;
}

/* Where number i goes: a block is read as words, and code c of all its words comes before code c
 * + 1.
 */
static int64_t place_of(int64_t i, int bits)
{
    int64_t per_unit = 32 / bits, units = CPU_QMV_BLOCK / 4, block = units * per_unit;
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
        dst[place_of(i, bits)] = x[i] * scale;
    }
}

/* The power of two by which the largest of n numbers has 14 bits before the point. */
static int exponent_of(const float *x, int64_t n)
{
    float most = 0.0f;
    int e = 0;

    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (!(most > 0.0f) || isinf(most))
        return 0;
    (void)frexpf(most, &e);
    return e > -100 ? 14 - e : 114;
}

static int16_t to_int(float x)
{
    float n = rintf(x);

    return (int16_t)(fabsf(n) <= 16384.0f ? n : 0.0f);
}

/* Numbers that share group, block and a row of units. */
#define CHUNK 32

/* Puts a chunk where its codes show up: code c of all units of a block comes before code c + 1. */
static void place_chunk(int16_t *dst, const float *x, int64_t units, int64_t per_unit, float scale)
{
    for (int64_t c = 0; c < per_unit; c++)
        for (int64_t u = 0; u < CHUNK / per_unit; u++)
            dst[c * units + u] = to_int(x[u * per_unit + c] * scale);
}

/* Units are 16 bits; for rows_int and 8 bits the bytes as they are. */
void cpu_qmv_arrange_int(int16_t *dst, float *units, const float *x, const struct cpu_qmv *v,
                         const struct cpu_qmv_kernels *set)
{
    bool is_half = set->rows_half;
    int64_t bytes = is_half ? CPU_QMV_BLOCK_MAX : CPU_QMV_BLOCK;
    int64_t width = v->bits == 4 || is_half ? 16 : 8;
    int64_t block = bytes * 8 / v->bits, per_unit = width / v->bits, n_units = bytes * 8 / width;

    memset(dst, 0, (size_t)cpu_qmv_length(v->k, v->bits) * sizeof *dst);
    for (int64_t g = 0; g < v->k / v->group_size; g++) {
        int64_t first = g * v->group_size;
        int e = exponent_of(x + first, v->group_size);
        float scale = ldexpf(1.0f, e);
        units[g] = ldexpf(1.0f, -e);
        for (int64_t i = first; i < first + v->group_size; i += CHUNK)
            place_chunk(dst + i / block * block + i % block / per_unit, x + i, n_units, per_unit,
                        scale);
    }
}
