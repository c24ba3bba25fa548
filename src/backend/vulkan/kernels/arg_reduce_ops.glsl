// Parts of argmin and argmax: the best rank and where it is. See reduce_head.glsl for the contract.
// The highest rank wins, and of equal ones the first; NaN ranks above everything, for both.
#include "order_keys.glsl"

layout(constant_id = 3) const uint IS_MAX = 0u;

struct Part {
    KEY key;
    uint index;
};
#define PART Part
#define PART_BYTES (DT_BYTES == 8 ? 16 : 8)

PART part_init()
{
    return PART(KEY(0), 0xffffffffu);
}

KEY rank_of(VAL v)
{
    KEY key = key_of(v);
#if DT_IS_FLOAT || DT_IS_COMPLEX
    return IS_MAX != 0u || key == KEY_LAST ? key : ~key;
#else
    return IS_MAX != 0u ? key : ~key;
#endif
}

PART part_select(PART a, PART b, bool c)
{
    return PART(mix(a.key, b.key, c), mix(a.index, b.index, c));
}

PART part_join(PART a, PART b)
{
    bool first = b.key == a.key && b.index < a.index;
    return part_select(a, b, mix(b.key > a.key, true, first));
}

void part_take(inout PART a, VAL v, uint index)
{
    a = part_join(a, PART(rank_of(v), index));
}

// Of consecutive elements a later one has to be better, so that indices need not be compared.
void part_take_block(inout PART a, VAL v[DT_PER16], uint index)
{
    PART best = PART(rank_of(v[0]), index);
    [[unroll]] for (int i = 1; i < DT_PER16; i++) {
        KEY key = rank_of(v[i]);
        best = part_select(best, PART(key, index + uint(i)), key > best.key);
    }
    a = part_join(a, best);
}

void part_store(uint64_t address, int64_t i, PART v)
{
    AT(U32Buf, address, 4, i) = v.index;
}
