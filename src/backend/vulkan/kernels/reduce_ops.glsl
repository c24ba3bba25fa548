// Parts of sum, prod, min, max, all and any: one accumulator. See reduce_head.glsl for the contract.
// KIND is an enum reduce_kind; and, or work on truth values 0 and 1, as min and max do.
layout(constant_id = 3) const uint KIND = 2u;
#define KIND_AND 0u
#define KIND_OR 1u
#define KIND_SUM 2u
#define KIND_PROD 3u
#define KIND_MIN 4u
#define KIND_MAX 5u
#define KIND_IS_LOGICAL (KIND <= KIND_OR)

#define PART ACC
#define PART_BYTES (DT_BYTES == 8 ? 8 : 4)

#if DT_IS_COMPLEX
#define PART_ONE vec2(1.0, 0.0)
#define PART_HIGHEST vec2(uintBitsToFloat(0x7f800000u))
#define PART_LOWEST vec2(uintBitsToFloat(0xff800000u))
#else
#define PART_ONE PART(1)
#define PART_HIGHEST PART(DT_HIGHEST)
#define PART_LOWEST PART(DT_LOWEST)
#endif

PART part_init()
{
    if (KIND == KIND_PROD || KIND == KIND_AND)
        return PART_ONE;
    if (KIND == KIND_MIN)
        return PART_HIGHEST;
    if (KIND == KIND_MAX)
        return PART_LOWEST;
    return PART(0);
}

// Written as selections, not branches: the module holds many copies of this, and the driver folds
// them to one operation once it knows KIND.
#define KIND_IS_LESS (KIND == KIND_MIN || KIND == KIND_AND)

#if DT_IS_COMPLEX
// Real parts first, then imaginary ones; a NaN in one component stays in that component.
vec2 extreme(vec2 a, vec2 b)
{
    bool less = a.x < b.x || (a.x == b.x && a.y < b.y);
    bvec2 nan = bvec2(isnan(a.x) || isnan(b.x), isnan(a.y) || isnan(b.y));
    vec2 each = KIND_IS_LESS ? min(a, b) : max(a, b);
    vec2 whole = mix(b, a, bvec2(less == KIND_IS_LESS));
    return mix(mix(whole, each, bvec2(any(nan))), vec2(uintBitsToFloat(0x7fc00000u)), nan);
}

PART product(PART a, PART b)
{
    return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
#elif DT_IS_FLOAT
PART extreme(PART a, PART b)
{
    PART r = KIND_IS_LESS ? min(a, b) : max(a, b);
    return mix(mix(r, b, isnan(b)), a, isnan(a));
}
#else
PART extreme(PART a, PART b)
{
    return KIND_IS_LESS ? min(a, b) : max(a, b);
}
#endif

#if !DT_IS_COMPLEX
PART product(PART a, PART b)
{
    return a * b;
}
#endif

PART part_join(PART a, PART b)
{
    return KIND == KIND_SUM ? a + b : KIND == KIND_PROD ? product(a, b) : extreme(a, b);
}

PART part_of(VAL v)
{
    PART truth = v != DT_ZERO ? PART_ONE : PART(0);
    return KIND_IS_LOGICAL ? truth : PART(v);
}

PART part_select(PART a, PART b, bool c)
{
#if DT_IS_COMPLEX
    return mix(a, b, bvec2(c));
#else
    return mix(a, b, c);
#endif
}

void part_take(inout PART a, VAL v, uint index)
{
    a = part_join(a, part_of(v));
}

void part_take_block(inout PART a, VAL v[DT_PER16], uint index)
{
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        a = part_join(a, part_of(v[i]));
}

// Sums and products of small integers are 32-bit, truth values are bytes, the rest keeps its dtype.
void part_store(uint64_t address, int64_t i, PART v)
{
    if (KIND_IS_LOGICAL) {
        AT(U8Buf, address, 1, i) = uint8_t(v != PART(0) ? 1 : 0);
        return;
    }
#if DT_IS_BOOL || (DT_IS_INT && DT_BYTES < 4)
    if (KIND == KIND_SUM || KIND == KIND_PROD) {
        AT(U32Buf, address, 4, i) = uint(v);
        return;
    }
#endif
    dt_set(address, i, VAL(v));
}
