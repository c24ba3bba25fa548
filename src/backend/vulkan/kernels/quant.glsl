// Packed numbers (docs/runtime.md). The including file declares the specialization constants
//   MODE, BITS, GROUP: how numbers are packed
// and includes common.glsl first.
#define MODE_AFFINE 0u
#define MODE_MXFP4 1u
#define MODE_MXFP8 2u
#define MODE_NVFP4 3u

#include "fp8.glsl"

const bool IS_AFFINE = MODE == MODE_AFFINE;

// 4-bit floats: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
float fp4_decode(uint v)
{
    uint magnitude = v & 7u;
    // Twice the number: 0, 1, then 2 or 3 times a power of two.
    uint twice = magnitude < 2u ? magnitude : (2u | (magnitude & 1u)) << ((magnitude >> 1) - 1u);
    return uintBitsToFloat(floatBitsToUint(0.5 * float(twice)) | (v & 8u) << 28);
}

// The scale that a byte of the fp modes stands for.
float fp_scale(uint v)
{
    if (MODE == MODE_NVFP4)
        return fp8_decode(v);
    return uintBitsToFloat(v == 0u ? 0x00400000u : v << 23);
}

// What a code stands for, before scale and bias.
float code_value(uint code)
{
    if (MODE == MODE_AFFINE)
        return float(code);
    return MODE == MODE_MXFP8 ? fp8_decode(code) : fp4_decode(code);
}

// Eight neighbouring codes are eight times BITS of the stream: at most two words.
const uint EIGHT_BITS = 8u * BITS;

uint code_at(uvec2 words, uint shift, uint i)
{
    uint at = shift + i * BITS, mask = (1u << BITS) - 1u;
    uint low = at < 32u ? words.x >> at : words.y >> (at - 32u);
    if (at < 32u && at + BITS > 32u)
        low |= words.y << (32u - at);
    return low & mask;
}
