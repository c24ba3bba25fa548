#version 450
// Packs numbers: one invocation packs a group. Every step rounds to the dtype that MLX computes it
// in, and divisions are correctly rounded, so that words and scales are those of the CPU.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "math.glsl"

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const uint GROUP = 64;

ARGS(quantize_args);
#include "quant.glsl"

#define MOST float((1u << BITS) - 1u)

float number(uint64_t group, uint i)
{
    return dt_get(p.w, int64_t(group * GROUP + i));
}

// What turns numbers into codes.
struct Coding {
    float scale, bias; // affine
    float unit;        // fp modes: numbers are divided by it,
    float factor;      // then multiplied by this (nvfp4)
    uint code;         // of the scale
};

Coding affine_coding(uint64_t group)
{
    Coding c = Coding(0.0, 0.0, 1.0, 1.0, 0u);
    float low = DT_HIGHEST, high = DT_LOWEST;
    for (uint i = 0u; i < GROUP; i++) {
        float v = number(group, i);
        low = is_nan(v) ? low : min(low, v);
        high = is_nan(v) ? high : max(high, v);
    }
    if (BITS == 1u) { // both ends, with no room for a zero between them
        c.scale = max(high - low, 1e-7);
        c.bias = low;
        return c;
    }
    bool from_low = abs(low) > abs(high);
    float edge = from_low ? low : high;
    c.scale = max(divide_f32(high - low, MOST), 1e-7);
    if (!from_low)
        c.scale = -c.scale;
    float q0 = roundEven(divide_f32(edge, c.scale));
    if (q0 != 0.0) {
        c.scale = divide_f32(edge, q0);
        c.bias = edge;
    }
    return c;
}

// Code of the least power of two that is not below a number above zero.
uint power_above(uint bits)
{
    if (bits < 0x00800000u)
        return bits > 0x00400000u ? 1u : 0u;
    return min((bits >> 23) + ((bits & 0x7fffffu) != 0u ? 1u : 0u), 254u);
}

// A number that is not finite makes the scale the largest there is: an infinite power of two, or 448.
Coding fp_coding(uint64_t group)
{
    Coding c = Coding(0.0, 0.0, 1.0, 1.0, 0u);
    uint bits = 0u; // of the largest absolute value, above those of infinity for NaN
    for (uint i = 0u; i < GROUP; i++)
        bits = max(bits, floatBitsToUint(number(group, i)) & ~SIGN_BIT);
    float most = uintBitsToFloat(min(bits, INF_BITS));
    float scale = dt_round(divide_f32(most, BITS == 4u ? 6.0 : 448.0));
    if (MODE == MODE_NVFP4) {
        if (is_given(p.global_scale))
            c.factor = divide_f32(2688.0, F32Buf(p.global_scale).v[0]);
        c.code = bits < INF_BITS ? fp8_encode(scale * c.factor) : 0x7eu;
        c.unit = dt_round(fp8_decode(c.code));
    } else {
        c.code = is_zero(scale) ? 127u : power_above(floatBitsToUint(scale));
        c.code = bits < INF_BITS ? c.code : 255u;
        c.unit = dt_round(fp_scale(c.code));
    }
    return c;
}

// The nearest number, the first of two that are as near.
uint fp4_encode(float v)
{
    uint code = 0u;
    float best = abs(MODE == MODE_NVFP4 ? v : dt_round(v));
    for (uint i = 1u; i < 16u; i++) {
        precise float difference = v - fp4_decode(i);
        float distance = abs(MODE == MODE_NVFP4 ? difference : dt_round(difference));
        if (distance < best) {
            best = distance;
            code = i;
        }
    }
    return code;
}

// What is no number, or not finite, becomes the largest number that there is. A NaN is positive: hardware
// that converts float16 drops its sign.
uint beyond_encode(float v)
{
    uint sign = is_nan(v) ? 0u : floatBitsToUint(v) & SIGN_BIT;
    return MODE == MODE_MXFP8 ? 0x7eu | sign >> 24 : 7u | sign >> 28;
}

uint code_of(float v, Coding c)
{
    if (IS_AFFINE) {
        precise float above = v - c.bias;
        float place = roundEven(divide_f32(above, c.scale));
        return is_nan(place) ? 0u : uint(clamp(place, 0.0, MOST));
    }
    if (!is_finite(v))
        return beyond_encode(v);
    float scaled = dt_round(divide_f32(v, c.unit)) * c.factor;
    return MODE == MODE_MXFP8 ? fp8_encode(scaled) : fp4_encode(scaled);
}

void main()
{
    uint64_t group = grid_index();
    if (group >= p.n)
        return;
    Coding c;
    if (IS_AFFINE) {
        c = affine_coding(group);
        dt_set(p.scales, int64_t(group), c.scale);
        dt_set(p.biases, int64_t(group), c.bias);
    } else {
        c = fp_coding(group);
        AT(U8Buf, p.scales, 1, group) = uint8_t(c.code);
    }

    uint64_t to = p.out_addr + group * (GROUP * BITS / 8u);
    uint word = 0u, have = 0u;
    for (uint i = 0u; i < GROUP; i++) {
        uint code = code_of(number(group, i), c);
        word |= code << have;
        have += BITS;
        if (have >= 32u) {
            U32Buf(to).v[0] = word;
            to += 4ul;
            have -= 32u;
            word = have > 0u ? code >> (BITS - have) : 0u;
        }
    }
}
