// Unsigned keys in the order of elements: both zeros are equal, NaN comes last.
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
KEY key_of(STORE s)
{
    VAL v = dt_load(s);
#if DT_IS_FLOAT
    uint bits = floatBitsToUint(v), size = bits & 0x7fffffffu;
    if (size > 0x7f800000u)
        return KEY_LAST;
    if (size == 0u)
        return 0x80000000u;
    return bits == size ? bits | 0x80000000u : ~bits;
#elif defined(DT_INT64)
    return KEY(v) ^ 0x8000000000000000ul;
#elif defined(DT_INT8) || defined(DT_INT16) || defined(DT_INT32)
    return KEY(v) ^ 0x80000000u;
#else
    return KEY(v);
#endif
}
#endif
