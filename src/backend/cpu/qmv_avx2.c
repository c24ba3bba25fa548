/* The same loops for x86-64 processors with AVX2 and FMA, and with integer products. Products may
 * be fused with their sums: no other result has to have the same bits. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "backend/cpu/qmv.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#pragma clang fp contract(fast)
#else
#pragma GCC target("avx2,fma")
#pragma GCC optimize("fp-contract=fast")
#endif

static void rows_int(float *out, const struct cpu_qmv *v, int64_t rows);

#define KERNELS cpu_qmv_avx2
#define ROWS_INT rows_int
#include "backend/cpu/qmv_body.h"

/* ---- integers: a block is 64 codes of 4 bits, or 32 of 8 ---- */

INLINE __m256i load_block(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

/* 16-bit lanes hold four codes: the first three are left where they lie, so that their products are
 * 1, 16 and 256 times as large. */
struct products4 {
    __m256i by_1, by_16, by_256;
};

INLINE void add_block4(struct products4 *p, __m256i w, const int16_t *x)
{
    __m256i first = _mm256_and_si256(w, _mm256_set1_epi16(0x000f));
    __m256i second = _mm256_and_si256(w, _mm256_set1_epi16(0x00f0));
    __m256i third = _mm256_and_si256(w, _mm256_set1_epi16(0x0f00));
    __m256i fourth = _mm256_srli_epi16(w, 12);

    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(first, load_block(x)));
    p->by_16 = _mm256_add_epi32(p->by_16, _mm256_madd_epi16(second, load_block(x + 16)));
    p->by_256 = _mm256_add_epi32(p->by_256, _mm256_madd_epi16(third, load_block(x + 32)));
    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(fourth, load_block(x + 48)));
}

INLINE __m256i sum4(const struct products4 *p)
{
    return _mm256_add_epi32(
        p->by_1, _mm256_add_epi32(_mm256_srai_epi32(p->by_16, 4), _mm256_srai_epi32(p->by_256, 8)));
}

INLINE __m256i block8(__m256i sum, const unsigned char *w, const int16_t *x)
{
    __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)w));
    __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(w + 16)));

    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(low, load_block(x)));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(high, load_block(x + 16)));
}

INLINE floats scaled(floats sum, __m256i integers, floats scale)
{
    return sum + (floats)_mm256_cvtepi32_ps(integers) * scale;
}

/* One row, so that memory is read front to back. A group is a block, or several of them, or with 4
 * bits half of one. */
INLINE float int_row(const struct cpu_qmv *v, int64_t row, int bits)
{
    int64_t row_bytes = v->k * bits / 8, per_row = v->k / v->group_size;
    int64_t group_bytes = v->group_size * bits / 8, step = MAX(group_bytes, CPU_QMV_BLOCK);
    bool is_pair = group_bytes < CPU_QMV_BLOCK;
    const unsigned char *w = v->w + row * row_bytes;
    const float *s = v->scales + row * per_row;
    const int16_t *x = v->x;
    floats sum = { 0 };

    for (int64_t at = 0; at + step <= row_bytes; at += step, s += 1 + is_pair) {
        floats scale =
            is_pair ? (floats){ s[0], s[0], s[0], s[0], s[1], s[1], s[1], s[1] } : splat(s[0]);
        __builtin_prefetch(w + at + AHEAD);
        if (bits == 4) {
            struct products4 p = { { 0 }, { 0 }, { 0 } };
            for (int64_t b = at; b < at + step; b += CPU_QMV_BLOCK)
                add_block4(&p, load_block(w + b), x + b * 2);
            sum = scaled(sum, sum4(&p), scale);
        } else {
            __m256i p = { 0 };
            for (int64_t b = at; b < at + step; b += CPU_QMV_BLOCK)
                p = block8(p, w + b, x + b);
            sum = scaled(sum, p, scale);
        }
    }
    return sum_of(sum) + bias_part(v, row);
}

/* Half a block is left where k is an odd number of groups of 32. */
INLINE float int_rest(const struct cpu_qmv *v, int64_t row)
{
    int64_t row_bytes = v->k / 2, at = row_bytes / CPU_QMV_BLOCK * CPU_QMV_BLOCK;
    struct products4 p = { { 0 }, { 0 }, { 0 } };
    words w;

    if (at == row_bytes)
        return 0.0f;
    w = load_words(v->w + row * row_bytes + at, (size_t)(row_bytes - at));
    add_block4(&p, (__m256i)w, (const int16_t *)v->x + at * 2);
    return sum_of((floats)_mm256_cvtepi32_ps(sum4(&p))) * v->scales[(row + 1) * v->k / 32 - 1];
}

static void rows_int(float *out, const struct cpu_qmv *v, int64_t rows)
{
    if (v->bits == 4)
        for (int64_t i = 0; i < rows; i++)
            out[i] = int_row(v, i, 4) + int_rest(v, i);
    else
        for (int64_t i = 0; i < rows; i++)
            out[i] = int_row(v, i, 8);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else
typedef int qmv_avx2_is_for_x86_64; /* a translation unit must not be empty */
#endif
