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

/* ---- integers ---- */

/* With 4 bits, 16-bit lanes hold four codes: the first three are left where they lie, so that their
 * products are 1, 16 and 256 times as large. */
struct products {
    __m256i by_1, by_16, by_256;
};

struct totals {
    floats of;
};

INLINE __m256i load_block(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE void add_block4(struct products *p, const unsigned char *at, const int16_t *x)
{
    __m256i w = load_block(at);
    __m256i first = _mm256_and_si256(w, _mm256_set1_epi16(0x000f));
    __m256i second = _mm256_and_si256(w, _mm256_set1_epi16(0x00f0));
    __m256i third = _mm256_and_si256(w, _mm256_set1_epi16(0x0f00));
    __m256i fourth = _mm256_srli_epi16(w, 12);

    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(first, load_block(x)));
    p->by_16 = _mm256_add_epi32(p->by_16, _mm256_madd_epi16(second, load_block(x + 16)));
    p->by_256 = _mm256_add_epi32(p->by_256, _mm256_madd_epi16(third, load_block(x + 32)));
    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(fourth, load_block(x + 48)));
}

INLINE void add_block8(struct products *p, const unsigned char *w, const int16_t *x)
{
    __m256i low = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)w));
    __m256i high = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(w + 16)));

    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(low, load_block(x)));
    p->by_1 = _mm256_add_epi32(p->by_1, _mm256_madd_epi16(high, load_block(x + 16)));
}

INLINE void add_scaled(struct totals *t, const struct products *p, int bits, const float s[2])
{
    floats scale = { s[0], s[0], s[0], s[0], s[1], s[1], s[1], s[1] };
    __m256i sum = p->by_1;

    if (bits == 4)
        sum = _mm256_add_epi32(
            sum, _mm256_add_epi32(_mm256_srai_epi32(p->by_16, 4), _mm256_srai_epi32(p->by_256, 8)));
    t->of += (floats)_mm256_cvtepi32_ps(sum) * scale;
}

INLINE float total_of(const struct totals *t)
{
    return sum_of(t->of);
}

#include "backend/cpu/qmv_int.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else
typedef int qmv_avx2_is_for_x86_64; /* a translation unit must not be empty */
#endif
