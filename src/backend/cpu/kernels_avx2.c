/* The same loops for x86-64 processors with AVX2 and F16C. */
#if defined(__x86_64__)

#include <complex.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif

#define F16_STEP 8

static inline void f16_load(float *dst, const uint16_t *src)
{
    _mm256_storeu_ps(dst, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)src)));
}

static inline void f16_store(uint16_t *dst, const float *src)
{
    _mm_storeu_si128((__m128i *)dst,
                     _mm256_cvtps_ph(_mm256_loadu_ps(src), _MM_FROUND_TO_NEAREST_INT));
}

#define KERNELS cpu_kernels_avx2
#include "backend/cpu/kernels_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else
typedef int kernels_avx2_is_for_x86_64; /* a translation unit must not be empty */
#endif
