// Parts of argmin and argmax: the best value and where it is. See reduce_head.glsl for the contract.
// The first index wins a tie; a NaN never wins, so that a row of NaNs gives index 0.
layout(constant_id = 3) const uint IS_MAX = 0u;

#if DT_IS_BOOL
#define KEY uint
#else
#define KEY VAL
#endif

struct Part {
    KEY key;
    uint index;
};
#define PART Part
#define PART_BYTES (DT_BYTES == 8 ? 16 : 8)

PART part_init()
{
    return PART(IS_MAX != 0u ? KEY(DT_LOWEST) : KEY(DT_HIGHEST), 0u);
}

PART part_select(PART a, PART b, bool c)
{
    return PART(mix(a.key, b.key, c), mix(a.index, b.index, c));
}

PART part_join(PART a, PART b)
{
    bool better = IS_MAX != 0u ? b.key > a.key : b.key < a.key;
    bool first = b.key == a.key && b.index < a.index;
    return part_select(a, b, mix(better, true, first));
}

void part_take(inout PART a, VAL v, uint index)
{
    a = part_join(a, PART(KEY(v), index));
}

// Of consecutive elements a later one has to be better, so that indices need not be compared. What is
// not better than nothing has no index that would win.
void part_take_block(inout PART a, VAL v[DT_PER16], uint index)
{
    PART best = PART(part_init().key, 0xffffffffu);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        KEY key = KEY(v[i]);
        bool better = IS_MAX != 0u ? key > best.key : key < best.key;
        best = part_select(best, PART(key, index + uint(i)), better);
    }
    a = part_join(a, best);
}

void part_store(uint64_t address, int64_t i, PART v)
{
    AT(U32Buf, address, 4, i) = v.index;
}
