#version 450
// A pass of the Hadamard transform: a tile of elements goes through shared memory. It takes some
// stages of butterflies, the widest first, of which an invocation does up to four in registers, or
// the sums over the blocks of a base, or both. Passes hand sums over in f32.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"

layout(constant_id = 3) const uint BASE = 1;
layout(constant_id = 4) const bool IS_FIRST = true; // the input is the op's
layout(constant_id = 5) const bool IS_LAST = true;  // the output is

ARGS(hadamard_args);

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Rows
{
    uint row[HADAMARD_ROWS];
};

shared float tile[HADAMARD_TILE];

uint64_t base;

// Elements from the first of the tile on; past the end of the array for the rest of the last tile.
uint64_t place(uint t)
{
    uint64_t far = uint64_t(t >> p.log2_columns) * p.pitch;
    return base + far + uint64_t(t & ((1u << p.log2_columns) - 1u));
}

float fetch(uint t)
{
    uint64_t at = place(t);
    if (at >= p.size)
        return 0.0;
    return IS_FIRST ? dt_get(p.in_addr, int64_t(at)) : AT(F32Buf, p.in_addr, 4, at);
}

void put(uint t, float v)
{
    uint64_t at = place(t);
    if (at >= p.size)
        return;
    if (IS_LAST)
        dt_set(p.out_addr, int64_t(at), v * p.scale);
    else
        AT(F32Buf, p.out_addr, 4, at) = v;
}

// R stages whose narrowest butterflies are 2^bit apart.
#define STAGES(R)                                                                                  \
    void stages_##R(uint bit, bool from_memory)                                                    \
    {                                                                                              \
        const uint n = 1u << R;                                                                    \
        for (uint item = gl_LocalInvocationIndex; item < p.tile >> R; item += gl_WorkGroupSize.x) { \
            uint first = item >> bit << (bit + R) | (item & ((1u << bit) - 1u));                   \
            float v[n];                                                                            \
            [[unroll]] for (uint j = 0u; j < n; j++) {                                             \
                uint at = first | j << bit;                                                        \
                v[j] = from_memory ? fetch(at) : tile[at];                                         \
            }                                                                                      \
            [[unroll]] for (uint h = n / 2u; h > 0u; h /= 2u)                                      \
                [[unroll]] for (uint j = 0u; j < n; j++)                                           \
                    if ((j & h) == 0u) {                                                           \
                        float a = v[j], b = v[j | h];                                              \
                        v[j] = a + b;                                                              \
                        v[j | h] = a - b;                                                          \
                    }                                                                              \
            [[unroll]] for (uint j = 0u; j < n; j++)                                               \
                tile[first | j << bit] = v[j];                                                     \
        }                                                                                          \
        barrier();                                                                                 \
    }
STAGES(1u)
STAGES(2u)
STAGES(3u)
STAGES(4u)

void load()
{
    for (uint t = gl_LocalInvocationIndex; t < p.tile; t += gl_WorkGroupSize.x)
        tile[t] = fetch(t);
    barrier();
}

// The bits from p.first_bit on. What four do not divide comes first.
void butterflies()
{
    uint left = p.n_bits, rest = left & 3u;
    bool from_memory = true;
    if (rest != 0u) {
        left -= rest;
        if (rest == 1u)
            stages_1u(p.first_bit + left, true);
        else if (rest == 2u)
            stages_2u(p.first_bit + left, true);
        else
            stages_3u(p.first_bit + left, true);
        from_memory = false;
    }
    for (; left > 0u; left -= 4u) {
        if (from_memory)
            stages_4u(p.first_bit + left - 4u, true);
        else
            stages_4u(p.first_bit + left - 4u, false);
        from_memory = false;
    }
}

// Rows of BASE blocks of 2^log2_block elements.
void sums()
{
    uint block = 1u << p.log2_block, columns = p.tile / BASE;
    for (uint item = gl_LocalInvocationIndex; item < columns; item += gl_WorkGroupSize.x) {
        uint first = (item >> p.log2_block) * BASE << p.log2_block | (item & (block - 1u));
        float v[BASE];
        [[unroll]] for (uint q = 0u; q < BASE; q++)
            v[q] = tile[first + (q << p.log2_block)];
        for (uint j = 0u; j < BASE; j++) {
            uint signs = Rows(p.rows).row[j];
            float sum = 0.0;
            [[unroll]] for (uint q = 0u; q < BASE; q++)
                sum += (signs >> q & 1u) != 0u ? v[q] : -v[q];
            put(first + (j << p.log2_block), sum);
        }
    }
}

void main()
{
    uint64_t group = uint64_t(gl_WorkGroupID.x) +
                     uint64_t(gl_NumWorkGroups.x) * (uint64_t(gl_WorkGroupID.y) +
                     uint64_t(gl_NumWorkGroups.y) * uint64_t(gl_WorkGroupID.z));
    if (group >= p.n_tiles)
        return;
    uint64_t section = group / uint64_t(p.tiles_across);
    uint64_t across = group - section * uint64_t(p.tiles_across);
    base = section * p.section + (across << p.log2_columns);
    if (p.n_bits > 0u)
        butterflies();
    else
        load();
    if (BASE > 1u)
        sums();
    else
        for (uint t = gl_LocalInvocationIndex; t < p.tile; t += gl_WorkGroupSize.x)
            put(t, tile[t]);
}
