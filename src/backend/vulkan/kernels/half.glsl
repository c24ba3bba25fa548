// 16-bit floats without hardware help. Both conversions round to nearest even and keep NaN a NaN.

float bf16_to_f32(uint16_t h)
{
    return uintBitsToFloat(uint(h) << 16);
}

uint16_t f32_to_bf16(float f)
{
    uint bits = floatBitsToUint(f);
    uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    return uint16_t(is_nan ? (bits >> 16) | 0x40u : rounded);
}

// The conversion instruction's rounding mode is the driver's choice unless a module asks for one
// (SPV_KHR_float_controls), so the rounding is done on the bits.
float16_t f32_to_f16(float f)
{
    uint bits = floatBitsToUint(f);
    uint sign = (bits >> 16) & 0x8000u;
    uint mag = bits & 0x7fffffffu;
    uint h;
    if (mag >= 0x47800000u) { // 65536 and above, infinity, NaN
        h = mag > 0x7f800000u ? 0x7e00u : 0x7c00u;
    } else if (mag < 0x38800000u) { // below 2^-14: the sum aligns the mantissa and rounds it
        h = floatBitsToUint(uintBitsToFloat(mag) + 0.5) - 0x3f000000u;
    } else { // a carry out of the mantissa is the next exponent, up to infinity
        h = (mag - 0x38000000u + 0xfffu + ((mag >> 13) & 1u)) >> 13;
    }
    return uint16BitsToFloat16(uint16_t(sign | h));
}
