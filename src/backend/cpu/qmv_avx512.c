/* The integer products for x86-64 processors with AVX-512 and its vector neural network
 * instructions, on scales and biases as they are stored. Everything else is as with AVX2. */
#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "backend/cpu/qmv.h"

#if defined(__clang__)
#pragma clang attribute push(                                                                      \
    __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni"))),             \
    apply_to = function)
#pragma clang fp contract(fast)
#else
#pragma GCC target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")
#pragma GCC optimize("fp-contract=fast")
#endif

static void rows_half(float *out, const struct cpu_qmv *v, int64_t rows);

#define KERNELS cpu_qmv_avx512
#define ROWS_HALF rows_half
#include "backend/cpu/qmv_body.h"

/* Bytes of a row that are read at a time, and groups whose scales are. */
#define BLOCK 64
#define GROUPS 16
/* Weights are read so far ahead. */
#define FAR_AHEAD 6144

/* n <= GROUPS numbers of 16 bits as float32, zeros after them. */
INLINE __m512 load_half(const uint16_t *p, int64_t n, bool is_bf16)
{
    __mmask16 mask = (__mmask16)((1u << n) - 1);
    __m256i raw = _mm256_maskz_loadu_epi16(mask, p);

    if (is_bf16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(raw), 16));
    return _mm512_cvtph_ps(raw);
}

INLINE __m512 load_floats_of(const float *p, int64_t n)
{
    return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

/* A block of bytes, or n of one and zeros. */
INLINE __m512i load_bytes(const unsigned char *p, int64_t n)
{
    if (n >= BLOCK)
        return _mm512_loadu_si512(p);
    return _mm512_maskz_loadu_epi8(((__mmask64)1 << n) - 1, p);
}

/* The numbers of x that meet a block, in the order of its codes. */
struct arranged {
    __m512i of[4];
};

INLINE struct arranged load_x(const int16_t *x, int bits)
{
    struct arranged a;

#pragma GCC unroll 4
    for (int i = 0; i < 16 / bits; i++)
        a.of[i] = _mm512_loadu_si512(x + 32 * i);
    return a;
}

/* 128 codes of 4 bits times x. The first three of four codes are left where they lie in 16 bits, so
 * that their products are 1, 16 and 256 times as large. */
INLINE __m512i dot4(__m512i w, const struct arranged *x)
{
    __m512i zero = _mm512_setzero_si512();
    __m512i first = _mm512_and_si512(w, _mm512_set1_epi16(0x000f));
    __m512i second = _mm512_and_si512(w, _mm512_set1_epi16(0x00f0));
    __m512i third = _mm512_and_si512(w, _mm512_set1_epi16(0x0f00));
    __m512i fourth = _mm512_srli_epi16(w, 12);

    __m512i by_1 = _mm512_dpwssd_epi32(zero, first, x->of[0]);
    __m512i by_16 = _mm512_dpwssd_epi32(zero, second, x->of[1]);
    __m512i by_256 = _mm512_dpwssd_epi32(zero, third, x->of[2]);
    by_1 = _mm512_dpwssd_epi32(by_1, fourth, x->of[3]);
    return _mm512_add_epi32(
        by_1, _mm512_add_epi32(_mm512_srai_epi32(by_16, 4), _mm512_srai_epi32(by_256, 8)));
}

/* 64 codes of 8 bits times x. */
INLINE __m512i dot8(__m512i w, const struct arranged *x)
{
    __m512i even = _mm512_and_si512(w, _mm512_set1_epi16(0x00ff)), odd = _mm512_srli_epi16(w, 8);
    __m512i sum = _mm512_dpwssd_epi32(_mm512_setzero_si512(), even, x->of[0]);

    return _mm512_dpwssd_epi32(sum, odd, x->of[1]);
}

/* The scale of each of a block's lanes, which are `lanes` to a group. */
INLINE __m512 scales_of(const float *s, int64_t lanes)
{
    if (lanes >= 16)
        return _mm512_set1_ps(s[0]);
    if (lanes == 8)
        return _mm512_insertf32x8(_mm512_set1_ps(s[0]), _mm256_set1_ps(s[1]), 1);
    return _mm512_permutexvar_ps(_mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
                                 _mm512_maskz_loadu_ps(0xf, s));
}

/* n <= GROUPS groups of neighbouring rows. */
struct groups {
    int64_t row, first, n;
};

/* Scales of the groups of row r times the units of x; biases times the sums of x are added. */
INLINE __m512 start_row(float *scales, __m512 sum, const struct cpu_qmv *v, struct groups g, int r)
{
    int64_t at = (g.row + r) * (v->k / v->group_size) + g.first;

    _mm512_storeu_ps(scales, _mm512_mul_ps(load_half(v->half_scales + at, g.n, v->is_bf16),
                                           load_floats_of(v->units + g.first, g.n)));
    return _mm512_fmadd_ps(load_half(v->half_biases + at, g.n, v->is_bf16),
                           load_floats_of(v->sums + g.first, g.n), sum);
}

/* Adds the products of the groups to the sums of n rows, which share the loads of x and do not wait
 * for each other. */
INLINE void dot_groups(__m512 sum[ROWS], const struct cpu_qmv *v, struct groups g, int n, int bits)
{
    int64_t row_bytes = v->k * bits / 8, group_bytes = v->group_size * bits / 8;
    int64_t first = g.first * group_bytes, bytes = g.n * group_bytes;
    int shift = __builtin_ctzll((unsigned long long)group_bytes); /* it is a power of two */
    const unsigned char *w = v->w + g.row * row_bytes + first;
    const int16_t *x = (const int16_t *)v->x + first * (8 / bits);
    const char *ahead = (const char *)v->w + g.row * row_bytes + n * first + FAR_AHEAD;
    float scales[ROWS][GROUPS];

#pragma GCC unroll 4
    for (int r = 0; r < n; r++)
        sum[r] = start_row(scales[r], sum[r], v, g, r);
    for (int64_t b = 0; b < bytes; b += BLOCK) {
        struct arranged part = load_x(x + b * (8 / bits), bits);
#pragma GCC unroll 4
        for (int r = 0; r < n; r++) {
            __m512i q = load_bytes(w + r * row_bytes + b, bytes - b);
            _mm_prefetch(ahead + n * b + r * BLOCK, _MM_HINT_T0);
            sum[r] =
                _mm512_fmadd_ps(_mm512_cvtepi32_ps(bits == 4 ? dot4(q, &part) : dot8(q, &part)),
                                scales_of(scales[r] + (b >> shift), group_bytes / 4), sum[r]);
        }
    }
}

/* n of ROWS rows. */
INLINE void some_rows(float *out, const struct cpu_qmv *v, int64_t row, int n, int bits)
{
    int64_t per_row = v->k / v->group_size;
    __m512 sum[ROWS];

    for (int r = 0; r < ROWS; r++)
        sum[r] = _mm512_setzero_ps();
    for (int64_t g = 0; g < per_row; g += GROUPS)
        dot_groups(sum, v, (struct groups){ row, g, MIN(GROUPS, per_row - g) }, n, bits);
    for (int r = 0; r < n; r++)
        out[row + r] = _mm512_reduce_add_ps(sum[r]);
}

INLINE void all_rows_half(float *out, const struct cpu_qmv *v, int64_t rows, int bits)
{
    int64_t i = 0;

    for (; i + ROWS <= rows; i += ROWS)
        some_rows(out, v, i, ROWS, bits);
    for (; i < rows; i++)
        some_rows(out, v, i, 1, bits);
}

static void rows_half(float *out, const struct cpu_qmv *v, int64_t rows)
{
    if (v->bits == 4)
        all_rows_half(out, v, rows, 4);
    else
        all_rows_half(out, v, rows, 8);
}

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else
typedef int qmv_avx512_is_for_x86_64; /* a translation unit must not be empty */
#endif
