/* Functions of single elements that the rows of elementwise_ops.def need besides math_f32.h.
 * Included by kernels_body.h once per instruction set. */
#pragma once

#include <complex.h>

#include "backend/cpu/fp8.h"
#include "backend/cpu/math_f32.h"

#ifndef CMPLXF
#define CMPLXF(re, im) __builtin_complex((float)(re), (float)(im))
#endif

/* ---- complex numbers, integers, float64 ---- */

/* Plain products, as NumPy has them: no recovery of infinities from NaN. */
static inline float _Complex c_mul(float _Complex x, float _Complex y)
{
    float a = crealf(x), b = cimagf(x), c = crealf(y), d = cimagf(y);

    return CMPLXF(a * c - b * d, a * d + b * c);
}

/* Complex numbers are ordered by real part, then by imaginary part. */
static inline bool c_greater(float _Complex x, float _Complex y)
{
    return crealf(x) > crealf(y) || (crealf(x) == crealf(y) && cimagf(x) > cimagf(y));
}

static inline bool c_greater_equal(float _Complex x, float _Complex y)
{
    return crealf(x) > crealf(y) || (crealf(x) == crealf(y) && cimagf(x) >= cimagf(y));
}

static inline bool c_isnan(float _Complex x)
{
    return isnan(crealf(x)) || isnan(cimagf(x));
}

static inline float _Complex c_log1p(float _Complex z)
{
    double x = (double)crealf(z), y = (double)cimagf(z);

    return CMPLXF(0.5 * log1p(x * (2.0 + x) + y * y), atan2(y, x + 1.0));
}

static inline float _Complex c_pow(float _Complex x, float _Complex y)
{
    if (x == 0.0f && !c_isnan(y))
        return y == 0.0f ? 1.0f : 0.0f;
    return cpowf(x, y);
}

static inline float _Complex c_logaddexp(float _Complex x, float _Complex y)
{
    bool first = c_greater(x, y) || c_isnan(x);
    float _Complex high = first ? x : y, low = first ? y : x;

    if (crealf(low) == -INFINITY || crealf(high) == INFINITY)
        return high;
    return high + c_log1p(cexpf(low - high));
}

static inline int64_t mod_i64(int64_t x, int64_t y)
{
    int64_t r = x % y;

    return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}

static inline double mod_f64(double x, double y)
{
    double r = fmod(x, y);

    return r != 0.0 && (r < 0.0) != (y < 0.0) ? r + y : r;
}

static inline uint64_t pow_u64(uint64_t base, uint64_t exponent)
{
    uint64_t result = 1;

    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1)
            result *= base;
    return result;
}

static inline double logaddexp_f64(double x, double y)
{
    double high = x > y || x != x ? x : y, low = x < y || x != x ? x : y;

    if (low == (double)-INFINITY || high == (double)INFINITY)
        return high;
    return high + log1p(exp(low - high));
}

/* Two Newton steps on the float32 fit. */
static inline double erfinv_f64(double a)
{
    double r = d_erfinv(a);

    if (!(fabs(a) < 1.0))
        return fabs(a) == 1.0 ? copysign((double)INFINITY, a) : (double)NAN;
    for (int i = 0; i < 2; i++)
        r -= (erf(r) - a) / (0x1.20dd750429b6dp+0 * exp(-r * r));
    return r;
}

/* ---- half precision ---- */

/* The exponent is rebased by a multiplication, which also normalises subnormals. */
static inline float widen_f16(uint16_t h)
{
    float magnitude = f32_from((uint32_t)(h & 0x7fff) << 13) * 0x1p112f;
    uint32_t bits = f32_bits(magnitude);

    bits = magnitude >= 0x1p16f ? bits | 0x7f800000u : bits; /* infinity and NaN, */
    bits = magnitude > 0x1p16f ? bits | 0x00400000u : bits;  /* which becomes quiet */
    return f32_from(bits | (uint32_t)(h & 0x8000) << 16);
}

/* Round to nearest even. Normal results by integer rounding of the mantissa, subnormal ones by
 * adding a number whose last bit is the last bit of the result. */
static inline uint16_t narrow_f16(float x)
{
    uint32_t bits = f32_bits(x), sign = bits & 0x80000000u;
    uint32_t mag = bits ^ sign;
    uint32_t normal = (mag + 0xc8000fffu + ((mag >> 13) & 1)) >> 13;
    uint32_t subnormal = f32_bits(f32_from(mag) + 0.5f) - 0x3f000000u;
    uint32_t h = mag < 0x38800000u ? subnormal : normal;

    h = mag >= 0x47800000u ? 0x7c00u : h;
    h = mag > 0x7f800000u ? 0x7e00u | (mag >> 13 & 0x3ffu) : h;
    return (uint16_t)(h | sign >> 16);
}

static inline float widen_bf16(uint16_t h)
{
    return f32_from((uint32_t)h << 16);
}

static inline uint16_t narrow_bf16(float x)
{
    uint32_t bits = f32_bits(x);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;

    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? bits >> 16 | 0x40u : rounded);
}
