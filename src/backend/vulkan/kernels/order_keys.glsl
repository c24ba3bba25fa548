// Unsigned keys in the order of elements: both zeros are equal, NaN comes last. Complex numbers go by
// real part, then by imaginary part; a NaN in either makes a NaN.
#if DT_BYTES == 8
#define KEY uint64_t
#define KEY_BYTES 8
#define KEY_LAST 0xfffffffffffffffful
#else
#define KEY uint
#define KEY_BYTES 4
#define KEY_LAST 0xffffffffu
#endif
BUF(KeyBuf, KEY, KEY_BYTES);

#ifdef STORE
#define KEY_NAN 0xffffffffu

uint float_key(float v)
{
    uint bits = floatBitsToUint(v), size = bits & 0x7fffffffu;
    uint key = bits == size ? bits | 0x80000000u : ~bits;
    key = size == 0u ? 0x80000000u : key;
    return size > 0x7f800000u ? KEY_NAN : key;
}

KEY key_of(VAL v)
{
#if DT_IS_FLOAT
    return float_key(v);
#elif DT_IS_COMPLEX
    uint real = float_key(v.x), imaginary = float_key(v.y);
    bool is_nan = max(real, imaginary) == KEY_NAN;
    return is_nan ? KEY_LAST : KEY(real) << 32 | KEY(imaginary);
#elif defined(DT_INT64)
    return KEY(v) ^ 0x8000000000000000ul;
#elif defined(DT_INT8) || defined(DT_INT16) || defined(DT_INT32)
    return KEY(v) ^ 0x80000000u;
#else
    return KEY(v);
#endif
}
#endif
