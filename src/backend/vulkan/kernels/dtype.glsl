// The kernel's dtype, chosen by the build with -DDT_<NAME>=1.
//
//   STORE     what memory holds             VAL       what registers hold (half types widen to float)
//   ACC       what sums accumulate in       DtBuf     STORE view of an address
//   DT_BYTES  bytes of one element          DT_PER16  elements in 16 bytes
//   DT_VAL_BYTES  of VAL in memory (not of bool)
//   dt_load(STORE) -> VAL                   dt_store(VAL) -> STORE, rounding to nearest even
//   dt_get(address, i) -> VAL               dt_set(address, i, VAL): i is a signed 64-bit index
//   dt_unpack(uvec4, out VAL[DT_PER16])     dt_pack(VAL[DT_PER16]) -> uvec4: 16 bytes at once
//   DT_ZERO, DT_ONE                         of type VAL
//   DT_LOWEST, DT_HIGHEST                   identities of max and min (reals; infinities for floats)
//   DT_IS_FLOAT, DT_IS_INT, DT_IS_BOOL, DT_IS_COMPLEX: exactly one is 1
#include "half.glsl"

#define DT_IS_FLOAT 0
#define DT_IS_INT 0
#define DT_IS_BOOL 0
#define DT_IS_COMPLEX 0

#if defined(DT_BOOL)
#define STORE uint8_t
#define VAL bool
#define ACC int
#define DT_BYTES 1
#define DT_ZERO false
#define DT_ONE true
#define DT_LOWEST false
#define DT_HIGHEST true
#undef DT_IS_BOOL
#define DT_IS_BOOL 1
#elif defined(DT_UINT8)
#define STORE uint8_t
#define VAL uint
#define ACC uint
#define DT_BYTES 1
#define DT_HIGHEST 0xffu
#elif defined(DT_UINT16)
#define STORE uint16_t
#define VAL uint
#define ACC uint
#define DT_BYTES 2
#define DT_HIGHEST 0xffffu
#elif defined(DT_UINT32)
#define STORE uint
#define VAL uint
#define ACC uint
#define DT_BYTES 4
#define DT_HIGHEST 0xffffffffu
#elif defined(DT_UINT64)
#define STORE uint64_t
#define VAL uint64_t
#define ACC uint64_t
#define DT_BYTES 8
#define DT_HIGHEST 0xfffffffffffffffful
#elif defined(DT_INT8)
#define STORE int8_t
#define VAL int
#define ACC int
#define DT_BYTES 1
#define DT_LOWEST (-0x80)
#define DT_HIGHEST 0x7f
#elif defined(DT_INT16)
#define STORE int16_t
#define VAL int
#define ACC int
#define DT_BYTES 2
#define DT_LOWEST (-0x8000)
#define DT_HIGHEST 0x7fff
#elif defined(DT_INT32)
#define STORE int
#define VAL int
#define ACC int
#define DT_BYTES 4
#define DT_LOWEST (-0x7fffffff - 1)
#define DT_HIGHEST 0x7fffffff
#elif defined(DT_INT64)
#define STORE int64_t
#define VAL int64_t
#define ACC int64_t
#define DT_BYTES 8
#define DT_LOWEST (-0x7fffffffffffffffl - 1l)
#define DT_HIGHEST 0x7fffffffffffffffl
#elif defined(DT_FLOAT16)
#define STORE float16_t
#define VAL float
#define ACC float
#define DT_BYTES 2
#undef DT_IS_FLOAT
#define DT_IS_FLOAT 1
#elif defined(DT_BFLOAT16)
#define STORE uint16_t
#define VAL float
#define ACC float
#define DT_BYTES 2
#undef DT_IS_FLOAT
#define DT_IS_FLOAT 1
#elif defined(DT_FLOAT32)
#define STORE float
#define VAL float
#define ACC float
#define DT_BYTES 4
#undef DT_IS_FLOAT
#define DT_IS_FLOAT 1
#elif defined(DT_COMPLEX64)
#define STORE vec2
#define VAL vec2
#define ACC vec2
#define DT_BYTES 8
#define DT_ZERO vec2(0.0)
#define DT_ONE vec2(1.0, 0.0)
#undef DT_IS_COMPLEX
#define DT_IS_COMPLEX 1
#else
#error "no dtype: the kernel's row in kernels.def must list dtypes"
#endif

#if !DT_IS_FLOAT && !DT_IS_BOOL && !DT_IS_COMPLEX
#undef DT_IS_INT
#define DT_IS_INT 1
#endif

#ifndef DT_ZERO
#define DT_ZERO VAL(0)
#define DT_ONE VAL(1)
#endif
#if DT_IS_FLOAT
#define DT_HIGHEST uintBitsToFloat(0x7f800000u)
#define DT_LOWEST uintBitsToFloat(0xff800000u)
#elif DT_IS_INT && !defined(DT_LOWEST)
#define DT_LOWEST VAL(0)
#endif

#define DT_PER16 (16 / DT_BYTES)
#define DT_VAL_BYTES (DT_BYTES == 8 ? 8 : 4)

BUF(DtBuf, STORE, DT_BYTES);

VAL dt_load(STORE s)
{
#if DT_IS_BOOL
    return s != uint8_t(0);
#elif defined(DT_BFLOAT16)
    return bf16_to_f32(s);
#else
    return VAL(s);
#endif
}

STORE dt_store(VAL v)
{
#if defined(DT_BFLOAT16)
    return f32_to_bf16(v);
#elif defined(DT_FLOAT16)
    return f32_to_f16(v);
#else
    return STORE(v);
#endif
}

// The value that v has once stored.
VAL dt_round(VAL v)
{
    return dt_load(dt_store(v));
}

VAL dt_get(uint64_t address, int64_t i)
{
    return dt_load(AT(DtBuf, address, DT_BYTES, i));
}

void dt_set(uint64_t address, int64_t i, VAL v)
{
    AT(DtBuf, address, DT_BYTES, i) = dt_store(v);
}

// Bits of element i out of a 32-bit word, and back.
VAL dt_from_bits(uint bits)
{
#if DT_IS_BOOL
    return (bits & 0xffu) != 0u;
#elif defined(DT_UINT8)
    return bits & 0xffu;
#elif defined(DT_INT8)
    return bitfieldExtract(int(bits), 0, 8);
#elif defined(DT_UINT16)
    return bits & 0xffffu;
#elif defined(DT_INT16)
    return bitfieldExtract(int(bits), 0, 16);
#elif defined(DT_FLOAT16)
    return unpackHalf2x16(bits & 0xffffu).x;
#elif defined(DT_BFLOAT16)
    return uintBitsToFloat(bits << 16);
#elif defined(DT_FLOAT32)
    return uintBitsToFloat(bits);
#elif DT_BYTES == 4
    return VAL(bits);
#else
    return DT_ZERO;
#endif
}

uint dt_to_bits(VAL v)
{
#if DT_IS_BOOL
    return v ? 1u : 0u;
#elif defined(DT_FLOAT16)
    return uint(float16BitsToUint16(f32_to_f16(v)));
#elif defined(DT_BFLOAT16)
    return uint(f32_to_bf16(v));
#elif defined(DT_FLOAT32)
    return floatBitsToUint(v);
#elif DT_BYTES == 1
    return uint(v) & 0xffu;
#elif DT_BYTES == 2
    return uint(v) & 0xffffu;
#elif DT_BYTES == 4
    return uint(v);
#else
    return 0u;
#endif
}

void dt_unpack(uvec4 w, out VAL v[DT_PER16])
{
#if defined(DT_COMPLEX64)
    v[0] = uintBitsToFloat(w.xy);
    v[1] = uintBitsToFloat(w.zw);
#elif DT_BYTES == 8
    v[0] = VAL(packUint2x32(w.xy));
    v[1] = VAL(packUint2x32(w.zw));
#else
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[i] = dt_from_bits(w[i * DT_BYTES / 4] >> (8 * (i * DT_BYTES % 4)));
#endif
}

uvec4 dt_pack(VAL v[DT_PER16])
{
#if defined(DT_COMPLEX64)
    return uvec4(floatBitsToUint(v[0]), floatBitsToUint(v[1]));
#elif DT_BYTES == 8
    return uvec4(unpackUint2x32(uint64_t(v[0])), unpackUint2x32(uint64_t(v[1])));
#else
    uvec4 w = uvec4(0u);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        w[i * DT_BYTES / 4] |= dt_to_bits(v[i]) << (8 * (i * DT_BYTES % 4));
    return w;
#endif
}
