#version 450
// Random bits: Threefry-2x32 with 20 rounds over a counter. Of the W words of a key, one invocation
// makes word i and word i + pairs from the counter (i, i + pairs); when W is odd, the last one makes
// a single word from (i, 0).
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"

ARGS(random_args);

uvec2 rounds(uvec2 x, uvec4 rotations)
{
    [[unroll]] for (int i = 0; i < 4; i++) {
        x.x += x.y;
        x.y = (x.y << rotations[i]) | (x.y >> (32u - rotations[i]));
        x.y ^= x.x;
    }
    return x;
}

uvec2 threefry(uvec2 key, uvec2 counter)
{
    const uvec4 even = uvec4(13u, 15u, 26u, 6u);
    const uvec4 odd = uvec4(17u, 29u, 16u, 24u);
    uvec3 ks = uvec3(key, key.x ^ key.y ^ 0x1bd11bdau);
    uvec2 x = counter + key;
    [[unroll]] for (uint i = 0u; i < 5u; i++) {
        x = rounds(x, (i & 1u) == 0u ? even : odd);
        x += uvec2(ks[(i + 1u) % 3u], ks[(i + 2u) % 3u] + i + 1u);
    }
    return x;
}

// Word `word` of the key whose bytes start at address; the last word may be cut short.
void put(uint64_t address, uint word, uint bits)
{
    uint64_t first = uint64_t(word) * 4ul;
    if ((p.key_bytes & 3ul) == 0ul) {
        U32Buf(address + first).v[0] = bits;
        return;
    }
    for (uint i = 0u; i < 4u && first + uint64_t(i) < p.key_bytes; i++)
        U8Buf(address + first + uint64_t(i)).v[0] = uint8_t((bits >> (8u * i)) & 0xffu);
}

void main()
{
    uint64_t t = grid_index();
    uint64_t key_index = p.n_keys == 1ul ? 0ul : t / uint64_t(p.pairs);
    uint i = uint(t - key_index * uint64_t(p.pairs));
    if (key_index >= p.n_keys || (p.n_keys == 1ul && t >= uint64_t(p.pairs)))
        return;
    int64_t at = is_given(p.key_walk) ? walk_offset(Walk(p.key_walk), key_index) :
                                        int64_t(key_index) * p.key_stride;
    uvec2 key = uvec2(AT(U32Buf, p.key_addr, 4, at), AT(U32Buf, p.key_addr, 4, at + p.word_stride));
    uint64_t address = p.out_addr + key_index * p.key_bytes;
    bool single = p.is_odd != 0u && i == p.pairs - 1u;
    uvec2 bits = threefry(key, uvec2(i, single ? 0u : i + p.pairs));
    put(address, i, bits.x);
    if (!single)
        put(address, i + p.pairs, bits.y);
}
