/* What every elementwise op computes for one element.
 *
 * The functions are compiled without optimisation and packed into a table (tools/gen_spirv_lib.py);
 * the emitter links those a program needs into the module it writes. <op>_<type> implements an op
 * of ops.def for a working type:
 *   f32   float16, bfloat16, float32         c64   complex64 as vec2(real, imaginary)
 *   i32   int8, int16, int32                 i64   int64
 *   u32   uint8, uint16, uint32              u64   uint64                  bool  bool
 * The emitter rounds or wraps results to their dtype. An op without a function for a type is
 * unsupported there. main is added by the build. */
#version 460
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_GOOGLE_include_directive : require
layout(local_size_x = 1) in;

#include "math.glsl"
#include "complex.glsl"
#include "fp8.glsl"

/* ---- ops that every type spells alike ---- */

#define UNARY(op, S, T, expr)                                                                      \
    T op##_##S(const T x)                                                                          \
    {                                                                                              \
        return expr;                                                                               \
    }
#define BINARY(op, S, T, expr)                                                                     \
    T op##_##S(const T a, const T b)                                                               \
    {                                                                                              \
        return expr;                                                                               \
    }
#define TEST(op, S, T, expr)                                                                       \
    bool op##_##S(const T a, const T b)                                                            \
    {                                                                                              \
        return expr;                                                                               \
    }

#define SELECT(S, T)                                                                               \
    T select_##S(const bool condition, const T a, const T b)                                       \
    {                                                                                              \
        return condition ? a : b;                                                                  \
    }

/* Everything that is not zero is true. */
#define LOGICAL(S, T)                                                                              \
    bool logical_not_##S(const T x)                                                                \
    {                                                                                              \
        return x == T(0);                                                                          \
    }                                                                                              \
    TEST(logical_and, S, T, a != T(0) && b != T(0))                                                \
    TEST(logical_or, S, T, a != T(0) || b != T(0))

#define ORDERED(S, T)                                                                              \
    TEST(equal, S, T, a == b)                                                                      \
    TEST(not_equal, S, T, a != b)                                                                  \
    TEST(greater, S, T, a > b)                                                                     \
    TEST(greater_equal, S, T, a >= b)                                                              \
    TEST(less, S, T, a < b)                                                                        \
    TEST(less_equal, S, T, a <= b)

#define ARITHMETIC(S, T)                                                                           \
    BINARY(add, S, T, a + b)                                                                       \
    BINARY(subtract, S, T, a - b)                                                                  \
    BINARY(multiply, S, T, a * b)                                                                  \
    UNARY(square, S, T, x * x)

#define IDENTITY(op, S, T) UNARY(op, S, T, x)

/* ---- integers ---- */

/* Shifts by the width or more shift everything out. */
#define INTEGER(S, T, bits)                                                                        \
    SELECT(S, T)                                                                                   \
    LOGICAL(S, T)                                                                                  \
    ORDERED(S, T)                                                                                  \
    TEST(nan_equal, S, T, a == b)                                                                  \
    ARITHMETIC(S, T)                                                                               \
    IDENTITY(ceil, S, T)                                                                           \
    IDENTITY(floor, S, T)                                                                          \
    IDENTITY(round, S, T)                                                                          \
    UNARY(negative, S, T, -x)                                                                      \
    UNARY(bitwise_invert, S, T, ~x)                                                                \
    BINARY(bitwise_and, S, T, a & b)                                                               \
    BINARY(bitwise_or, S, T, a | b)                                                                \
    BINARY(bitwise_xor, S, T, a ^ b)                                                               \
    BINARY(left_shift, S, T, b >= T(0) && b < T(bits) ? a << b : T(0))                             \
    BINARY(maximum, S, T, a > b ? a : b)                                                           \
    BINARY(minimum, S, T, a < b ? a : b)                                                           \
    T power_loop_##S(const T base, const T exponent)                                               \
    {                                                                                              \
        T r = T(1);                                                                                \
        T b = base;                                                                                \
        for (T e = exponent; e > T(0); e >>= 1) {                                                  \
            if ((e & T(1)) != T(0))                                                                \
                r *= b;                                                                            \
            b *= b;                                                                                \
        }                                                                                          \
        return r;                                                                                  \
    }                                                                                              \
    T arange_##S(const T start, const T step, const uint i)                                        \
    {                                                                                              \
        return start + T(i) * step;                                                                \
    }

/* A division by 0 or of the lowest number by -1 must not reach the hardware, which may trap even in
 * lanes that are switched off: such divisors are replaced, not branched around. Quotients are
 * rounded downwards. */
#define SIGNED(S, T, bits)                                                                         \
    INTEGER(S, T, bits)                                                                            \
    UNARY(abs, S, T, x < T(0) ? -x : x)                                                            \
    UNARY(sign, S, T, T(x > T(0) ? 1 : 0) - T(x < T(0) ? 1 : 0))                                   \
    BINARY(right_shift, S, T, b >= T(0) && b < T(bits) ? a >> b : (a < T(0) ? T(-1) : T(0)))       \
    BINARY(power, S, T, b < T(0) ? T(0) : power_loop_##S(a, b))                                    \
    T safe_divisor_##S(const T b)                                                                  \
    {                                                                                              \
        return b == T(0) || b == T(-1) ? T(1) : b;                                                 \
    }                                                                                              \
    T divide_##S(const T a, const T b)                                                             \
    {                                                                                              \
        T d = safe_divisor_##S(b);                                                                 \
        T q = a / d;                                                                               \
        T below = a - q * d != T(0) && (a < T(0)) != (d < T(0)) ? T(1) : T(0);                     \
        return b == T(0) ? T(0) : b == T(-1) ? -a : q - below;                                     \
    }                                                                                              \
    T remainder_##S(const T a, const T b)                                                          \
    {                                                                                              \
        T d = safe_divisor_##S(b);                                                                 \
        T r = a - a / d * d;                                                                       \
        return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;                                  \
    }

#define UNSIGNED(S, T, bits)                                                                       \
    INTEGER(S, T, bits)                                                                            \
    IDENTITY(abs, S, T)                                                                            \
    UNARY(sign, S, T, x != T(0) ? T(1) : T(0))                                                     \
    BINARY(right_shift, S, T, b < T(bits) ? a >> b : T(0))                                         \
    BINARY(power, S, T, power_loop_##S(a, b))                                                      \
    T divide_##S(const T a, const T b)                                                             \
    {                                                                                              \
        T q = a / (b == T(0) ? T(1) : b);                                                          \
        return b == T(0) ? T(0) : q;                                                               \
    }                                                                                              \
    BINARY(remainder, S, T, a - divide_##S(a, b) * b)

SIGNED(i32, int, 32)
SIGNED(i64, int64_t, 64)
UNSIGNED(u32, uint, 32)
UNSIGNED(u64, uint64_t, 64)

/* ---- bool: what C makes of the integers 0 and 1 ---- */

SELECT(bool, bool)
UNARY(logical_not, bool, bool, !x)
BINARY(logical_and, bool, bool, a && b)
BINARY(logical_or, bool, bool, a || b)
IDENTITY(abs, bool, bool)
IDENTITY(ceil, bool, bool)
IDENTITY(floor, bool, bool)
IDENTITY(round, bool, bool)
IDENTITY(sign, bool, bool)
IDENTITY(square, bool, bool)
BINARY(add, bool, bool, a || b)
BINARY(subtract, bool, bool, a != b)
BINARY(multiply, bool, bool, a && b)
BINARY(maximum, bool, bool, a || b)
BINARY(minimum, bool, bool, a && b)
BINARY(bitwise_and, bool, bool, a && b)
BINARY(bitwise_or, bool, bool, a || b)
BINARY(bitwise_xor, bool, bool, a != b)
BINARY(power, bool, bool, a || !b)
BINARY(divide, bool, bool, a && b)
BINARY(remainder, bool, bool, a && !b)
BINARY(equal, bool, bool, a == b)
BINARY(nan_equal, bool, bool, a == b)
BINARY(not_equal, bool, bool, a != b)
BINARY(greater, bool, bool, a && !b)
BINARY(greater_equal, bool, bool, a || !b)
BINARY(less, bool, bool, !a && b)
BINARY(less_equal, bool, bool, !a || b)

/* ---- float ---- */

SELECT(f32, float)
TEST(logical_and, f32, float, !is_zero(a) && !is_zero(b))
TEST(logical_or, f32, float, !is_zero(a) || !is_zero(b))

bool logical_not_f32(const float x)
{
    return is_zero(x);
}

ORDERED(f32, float)
ARITHMETIC(f32, float)
TEST(nan_equal, f32, float, a == b || (is_nan(a) && is_nan(b)))
UNARY(abs, f32, float, uintBitsToFloat(floatBitsToUint(x) & ~SIGN_BIT)) /* subnormals stay */
UNARY(negative, f32, float, uintBitsToFloat(floatBitsToUint(x) ^ SIGN_BIT))
/* By bits: a device may take subnormals for zeros. */
bool is_subnormal(const float x)
{
    return (floatBitsToUint(x) & ~SIGN_BIT) - 1u < 0x007fffffu;
}
UNARY(ceil, f32, float, is_subnormal(x) && floatBitsToInt(x) > 0 ? 1.0 : ceil(x))
UNARY(floor, f32, float, is_subnormal(x) && floatBitsToInt(x) < 0 ? -1.0 : floor(x))
UNARY(round, f32, float, roundEven(x))

/* Chosen among bits: Mesa makes -0.0 of a choice between -1.0 and 0.0. */
float sign_f32(const float x)
{
    uint one = floatBitsToUint(1.0) | (floatBitsToUint(x) & SIGN_BIT);
    return uintBitsToFloat(is_zero(x) || is_nan(x) ? 0u : one);
}

BINARY(maximum, f32, float, is_nan(a) || a > b ? a : b)
BINARY(minimum, f32, float, is_nan(a) || a < b ? a : b)

float arange_f32(const float start, const float step, const uint i)
{
    return start + float(i) * step;
}

uint to_fp8_f32(const float x)
{
    return fp8_encode(x);
}

float from_fp8_u32(const uint x)
{
    return fp8_decode(x);
}

/* ---- complex ---- */

#define C64(op, expr) UNARY(op, c64, vec2, expr)

SELECT(c64, vec2)
C64(negative, vec2(negative_f32(x.x), negative_f32(x.y)))
C64(conjugate, vec2(x.x, -x.y))
C64(round, roundEven(x))
BINARY(add, c64, vec2, a + b)
BINARY(subtract, c64, vec2, a - b)
BINARY(maximum, c64, vec2, is_nan_c64(a) || greater_c64(a, b) ? a : b)
BINARY(minimum, c64, vec2, is_nan_c64(a) || greater_c64(b, a) ? a : b)
TEST(equal, c64, vec2, a.x == b.x && a.y == b.y)
TEST(not_equal, c64, vec2, a.x != b.x || a.y != b.y)
TEST(nan_equal, c64, vec2, nan_equal_f32(a.x, b.x) && nan_equal_f32(a.y, b.y))
TEST(less, c64, vec2, greater_c64(b, a))
TEST(greater_equal, c64, vec2, a.x > b.x || (a.x == b.x && a.y >= b.y))
TEST(less_equal, c64, vec2, greater_equal_c64(b, a))
bool logical_not_c64(const vec2 x)
{
    return is_zero(x.x) && is_zero(x.y);
}

TEST(logical_and, c64, vec2, !logical_not_c64(a) && !logical_not_c64(b))
TEST(logical_or, c64, vec2, !logical_not_c64(a) || !logical_not_c64(b))

float real_c64(const vec2 x)
{
    return x.x;
}

float imag_c64(const vec2 x)
{
    return x.y;
}

vec2 arange_c64(const vec2 start, const vec2 step, const uint i)
{
    return vec2(arange_f32(start.x, step.x, i), 0.0);
}

/* ---- conversions: cast_<from>_<to> ---- */

/* Out of range saturates, NaN becomes 0; negative numbers wrap in unsigned types. */
int cast_f32_i32(const float x)
{
    return is_nan(x) ? 0 : x >= 2147483648.0 ? 2147483647 : int(max(x, -2147483648.0));
}

int64_t cast_f32_i64(const float x)
{
    float lowest = -9223372036854775808.0;

    return is_nan(x) ? int64_t(0) : x >= -lowest ? 0x7fffffffffffffffl : int64_t(max(x, lowest));
}

uint cast_f32_u32(const float x)
{
    return x < 0.0 ? uint(cast_f32_i32(x)) : is_nan(x) ? 0u : uint(min(x, 4294967040.0));
}

uint64_t cast_f32_u64(const float x)
{
    if (x < 9223372036854775808.0)
        return uint64_t(cast_f32_i64(x));
    return is_nan(x) ? uint64_t(0) : uint64_t(min(x, 18446742974197923840.0));
}

#define CAST(from, F, to, T, expr)                                                                 \
    T cast_##from##_##to(const F x)                                                                \
    {                                                                                              \
        return expr;                                                                               \
    }
#define CAST_INT(from, F)                                                                          \
    CAST(from, F, bool, bool, x != F(0))                                                           \
    CAST(from, F, f32, float, float(x))                                                            \
    CAST(from, F, c64, vec2, vec2(float(x), 0.0))

/* A 64-bit integer is put together from words, not converted: Mesa 22.3 compares a converted one
 * with a constant wrongly (sign, abs, power and shifts of a fused cast). */
CAST_INT(i32, int)
CAST_INT(u32, uint)
CAST_INT(i64, int64_t)
CAST_INT(u64, uint64_t)
CAST(i32, int, u32, uint, uint(x))
CAST(i32, int, i64, int64_t, packInt2x32(ivec2(x, x >> 31)))
CAST(i32, int, u64, uint64_t, packUint2x32(uvec2(x, x >> 31)))
CAST(u32, uint, i32, int, int(x))
CAST(u32, uint, i64, int64_t, packInt2x32(ivec2(x, 0)))
CAST(u32, uint, u64, uint64_t, packUint2x32(uvec2(x, 0u)))
CAST(i64, int64_t, i32, int, int(x))
CAST(i64, int64_t, u32, uint, uint(x))
CAST(i64, int64_t, u64, uint64_t, uint64_t(x))
CAST(u64, uint64_t, i32, int, int(x))
CAST(u64, uint64_t, u32, uint, uint(x))
CAST(u64, uint64_t, i64, int64_t, int64_t(x))

CAST(bool, bool, i32, int, x ? 1 : 0)
CAST(bool, bool, u32, uint, x ? 1u : 0u)
CAST(bool, bool, i64, int64_t, packInt2x32(ivec2(x ? 1 : 0, 0)))
CAST(bool, bool, u64, uint64_t, packUint2x32(uvec2(x ? 1u : 0u, 0u)))
CAST(bool, bool, f32, float, x ? 1.0 : 0.0)
CAST(bool, bool, c64, vec2, vec2(x ? 1.0 : 0.0, 0.0))

CAST(f32, float, bool, bool, !is_zero(x))
CAST(f32, float, c64, vec2, vec2(x, 0.0))
CAST(c64, vec2, bool, bool, !logical_not_c64(x))
CAST(c64, vec2, f32, float, x.x)
CAST(c64, vec2, i32, int, cast_f32_i32(x.x))
CAST(c64, vec2, u32, uint, cast_f32_u32(x.x))
CAST(c64, vec2, i64, int64_t, cast_f32_i64(x.x))
CAST(c64, vec2, u64, uint64_t, cast_f32_u64(x.x))

/* ---- storage: <dtype>_load takes the bits, _store gives them, _round is both ---- */

float float16_load(const uint h)
{
    uint m = h & 0x7fffu;
    float v = m < 0x0400u ? float(m) * pow2(-24)
                          : uintBitsToFloat((m << 13) + (m < 0x7c00u ? 0x38000000u : 0x70000000u));

    return uintBitsToFloat(floatBitsToUint(v) | (h & 0x8000u) << 16);
}

/* Below 2^-14 the spacing is 2^-24, which is what adding 0.5 rounds to. */
uint float16_store(const float x)
{
    uint u = floatBitsToUint(x);
    uint m = u & ~SIGN_BIT;
    uint h = (m - 0x38000000u + 0xfffu + ((m >> 13) & 1u)) >> 13;

    if (m < 0x38800000u)
        h = floatBitsToUint(uintBitsToFloat(m) + 0.5) - 0x3f000000u;
    else if (m >= 0x477ff000u)
        h = m > INF_BITS ? 0x7e00u : 0x7c00u;
    return h | ((u & SIGN_BIT) >> 16);
}

float float16_round(const float x)
{
    uint u = floatBitsToUint(x);
    uint m = u & ~SIGN_BIT;
    uint r = (m + 0xfffu + ((m >> 13) & 1u)) & 0xffffe000u;

    if (m < 0x38800000u)
        r = floatBitsToUint((uintBitsToFloat(m) + 0.5) - 0.5);
    else if (m >= 0x477ff000u)
        r = m > INF_BITS ? 0x7fc00000u : INF_BITS; /* as a store and a load make it */
    return uintBitsToFloat(r | (u & SIGN_BIT));
}

float bfloat16_load(const uint h)
{
    return uintBitsToFloat(h << 16);
}

float bfloat16_round(const float x)
{
    uint u = floatBitsToUint(x);
    uint r = (u + 0x7fffu + ((u >> 16) & 1u)) & 0xffff0000u;

    return is_nan(x) ? nan_f32() : uintBitsToFloat(r);
}

uint bfloat16_store(const float x)
{
    return floatBitsToUint(bfloat16_round(x)) >> 16;
}
