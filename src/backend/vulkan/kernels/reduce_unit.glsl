// Units of the reductions in blocks: what a lane loads at a time, and the elements in it.
#include "reduce_parts.glsl"

ARGS(reduce_block_args);
#include "block.glsl"

#if DT_BYTES == 8
#define UNIT uvec2
#define UNIT_BYTES 8
#define UNIT_VALUES 1
#else
#define UNIT uint
#define UNIT_BYTES 4
#define UNIT_VALUES (4 / DT_BYTES)
#endif

// Unit i of those at address for lane i.
UNIT unit_load(uint64_t address)
{
#if DT_BYTES == 8
    return block_words(address);
#else
    return block_word(address);
#endif
}

VAL unit_value(UNIT u, const int i)
{
#if DT_IS_COMPLEX
    return uintBitsToFloat(u);
#elif DT_BYTES == 8
    return VAL(packUint2x32(u));
#else
    return dt_from_bits(u >> (8 * DT_BYTES * i));
#endif
}

#if UNIT_VALUES == 4
#define EACH_VALUE(f) f(0); f(1); f(2); f(3)
#elif UNIT_VALUES == 2
#define EACH_VALUE(f) f(0); f(1)
#else
#define EACH_VALUE(f) f(0)
#endif

// All values of a unit into one part.
void take_unit(inout PART part, UNIT u, bool counts)
{
#define TAKE(i) part_take_if(part, unit_value(u, i), 0u, counts)
    EACH_VALUE(TAKE);
#undef TAKE
}

// Every value of a unit into a part of its own.
void take_column(inout PART part[UNIT_VALUES], UNIT u, bool counts)
{
#define TAKE(i) part_take_if(part[i], unit_value(u, i), 0u, counts)
    EACH_VALUE(TAKE);
#undef TAKE
}

void init_column(out PART part[UNIT_VALUES])
{
#define INIT(i) part[i] = part_init()
    EACH_VALUE(INIT);
#undef INIT
}

// Outputs i and following.
void put_column(uint64_t slice_start, int64_t i, PART part[UNIT_VALUES])
{
#define PUT(k) put_part(p.out_addr, slice_start, i + int64_t(k), part[k])
    EACH_VALUE(PUT);
#undef PUT
}
