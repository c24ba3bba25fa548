// 8-bit floats: 4 bits of exponent, 3 of mantissa, no infinities; the largest code is NaN. By bits,
// because a device may flush the subnormals of both formats.
float fp8_decode(uint v)
{
    uint exponent = v >> 3 & 15u, mantissa = v & 7u;
    uint bits = exponent == 0u ? floatBitsToUint(float(mantissa) * 0.001953125)
                               : (exponent + 120u) << 23 | mantissa << 20;
    bits = (v & 0x7fu) == 0x7fu ? 0x7fc00000u : bits;
    return uintBitsToFloat(bits | (v & 0x80u) << 24);
}

// Nearest even; what lies beyond the largest number, and NaN, become the largest.
uint fp8_encode(float v)
{
    uint bits = floatBitsToUint(v) & 0x7fffffffu, sign = floatBitsToUint(v) >> 24 & 0x80u;
    if (bits >= 0x43f00000u) // 480: rounds past 448
        return sign | 0x7eu;
    uint code;
    if (bits < 0x3c800000u) // 2^-6: the sum aligns the mantissa and rounds it
        code = floatBitsToUint(uintBitsToFloat(bits) + 16384.0) - 0x46800000u;
    else
        code = (bits + 0x7ffffu + (bits >> 20 & 1u) - (120u << 23)) >> 20;
    return sign | min(code, 0x7eu);
}
