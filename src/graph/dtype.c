#include "graph/dtype.h"

#include "base/to_int.h"

const struct dt_info dt_table[DT_COUNT] = {
#define DTYPE(id, size, kind, name) [DT_##id] = { size, DT_KIND_##kind, name },
#include "graph/dtype.def"
#undef DTYPE
};

static enum dtype promote_floats(enum dtype a, enum dtype b)
{
    if (a == b)
        return a;
    if (a == DT_FLOAT64 || b == DT_FLOAT64)
        return DT_FLOAT64;
    return DT_FLOAT32; /* float16 with bfloat16, or either with float32 */
}

/* u is unsigned, i is signed: the narrowest signed type that holds both. */
static enum dtype promote_mixed_sign(enum dtype u, enum dtype i)
{
    static const enum dtype signed_of_size[] = {
        [1] = DT_INT8, [2] = DT_INT16, [4] = DT_INT32, [8] = DT_INT64
    };

    if (dt_size(u) == 8)
        return DT_FLOAT32;
    return signed_of_size[MAX(2 * dt_size(u), dt_size(i))];
}

enum dtype dt_promote(enum dtype a, enum dtype b)
{
    uint8_t ka = dt_table[a].kind, kb = dt_table[b].kind;

    if (ka > kb)
        return dt_promote(b, a);
    if (ka == DT_KIND_B || kb == DT_KIND_C)
        return b;
    if (kb == DT_KIND_F)
        return ka == DT_KIND_F ? promote_floats(a, b) : b;
    if (ka != kb)
        return promote_mixed_sign(a, b);
    return dt_size(a) >= dt_size(b) ? a : b;
}

enum dtype dt_at_least_float(enum dtype t)
{
    return dt_is_inexact(t) ? t : dt_promote(t, DT_FLOAT32);
}

static float from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t to_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

float dt_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;

    if (exponent == 31)
        return from_bits(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) /* subnormal: mantissa units of 2^-24 */
        return from_bits(sign | to_bits((float)mantissa * 0x1p-24f));
    return from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t dt_f32_to_f16(float f)
{
    uint32_t bits = to_bits(f), sign = (bits >> 16) & 0x8000u;
    uint32_t magnitude = bits & 0x7fffffffu;

    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* at or above the midpoint between 65504 and 65536 */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) /* below 2^-14: let an addition round to units of 2^-24 */
        return (uint16_t)(sign | (to_bits(from_bits(magnitude) + 0.5f) - to_bits(0.5f)));
    return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}

uint64_t dt_f64_to_int(double v, enum dtype t)
{
    switch (t) {
    case DT_UINT64:
        return to_uint64(v);
    case DT_UINT32:
    case DT_INT64:
        return (uint64_t)to_int64(v);
    default:
        return (uint64_t)to_int32(v);
    }
}
