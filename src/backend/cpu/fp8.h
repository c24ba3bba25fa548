/* 8-bit floats: 4 bits of exponent, 3 of mantissa, no infinities; the largest code is NaN. */
#pragma once

#include <stdint.h>
#include <string.h>

/* The bits become those of a float that is 2^120 times too small, subnormal ones included. */
static inline float fp8_decode(uint8_t v)
{
    uint32_t magnitude = (uint32_t)(v & 0x7f) << 20, sign = (uint32_t)(v & 0x80) << 24, bits;
    float x;

    memcpy(&x, &magnitude, sizeof x);
    x *= 0x1p120f;
    memcpy(&bits, &x, sizeof bits);
    bits = (magnitude == 0x7f << 20 ? 0x7fc00000 : bits) | sign;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Nearest even; what lies beyond the largest number, and NaN, become the largest. Without branches,
 * so that loops vectorise. */
static inline uint8_t fp8_encode(float v)
{
    uint32_t bits, sign, small, code;
    float aligned;

    memcpy(&bits, &v, sizeof bits);
    sign = bits >> 24 & 0x80;
    bits &= 0x7fffffff;
    memcpy(&aligned, &bits, sizeof aligned);
    aligned += 16384.0f; /* rounds the mantissa of what is below 2^-6 */
    memcpy(&small, &aligned, sizeof small);
    code = (bits + 0x7ffff + (bits >> 20 & 1) - (120u << 23)) >> 20;
    code = bits < 0x3c800000 ? small - 0x46800000 : code;
    code = bits >= 0x43e00000 ? 0x7e : code; /* 448 */
    return (uint8_t)(sign | code);
}

/* The float that rounds as v does: towards zero, and odd where something was cut off. */
static inline uint8_t fp8_encode_f64(double v)
{
    float x = (float)v;
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if ((double)x != v && v == v && bits << 1 != 0) {
        bits -= (x > 0 ? (double)x > v : (double)x < v) ? 1 : 0;
        bits |= 1;
        memcpy(&x, &bits, sizeof x);
    }
    return fp8_encode(x);
}
