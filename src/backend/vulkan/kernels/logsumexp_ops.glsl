// Parts of logsumexp: the largest value and the sum of exp(value - largest), in float32. See
// reduce_head.glsl for the contract. The largest value starts finite, so that a row of -infinities
// meets no difference of infinities and gives log(0).
#include "math.glsl"

#define PART vec2
#define PART_BYTES 8

PART part_init()
{
    return vec2(uintBitsToFloat(0xff7fffffu), 0.0);
}

float larger(float a, float b)
{
    return b > a ? b : a; // a NaN is left to the sum
}

PART part_join(PART a, PART b)
{
    float m = larger(a.x, b.x);
    return vec2(m, a.y * exp(a.x - m) + b.y * exp(b.x - m));
}

PART part_select(PART a, PART b, bool c)
{
    return mix(a, b, bvec2(c));
}

void part_take(inout PART a, VAL v, uint index)
{
    float m = larger(a.x, v);
    a = vec2(m, a.y * exp(a.x - m) + exp(v - m));
}

void part_take_block(inout PART a, VAL v[DT_PER16], uint index)
{
    float m = a.x;
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        m = larger(m, v[i]);
    float sum = a.y * exp(a.x - m);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        sum += exp(v[i] - m);
    a = vec2(m, sum);
}

void part_store(uint64_t address, int64_t i, PART v)
{
    dt_set(address, i, isinf(v.x) ? v.x : log_f32(v.y) + v.x);
}
