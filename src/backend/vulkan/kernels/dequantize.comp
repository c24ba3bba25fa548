#version 450
// Unpacks numbers: one invocation makes eight neighbouring ones. Every step rounds to the dtype of
// the result, as MLX's separate ops do.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"
#include "position.glsl"

layout(constant_id = 3) const uint MODE = 0;
layout(constant_id = 4) const uint BITS = 4;
layout(constant_id = 5) const uint GROUP = 64;
layout(constant_id = 6) const uint ROWS = DEQUANTIZE_ALL;

ARGS(quantize_args);
#include "quant.glsl"

float scale_of(uint64_t group)
{
    if (IS_AFFINE)
        return dt_get(p.scales, int64_t(group));
    float scale = dt_round(fp_scale(uint(AT(U8Buf, p.scales, 1, group))));
    return is_given(p.global_scale) ? scale * (F32Buf(p.global_scale).v[0] / 2688.0) : scale;
}

// Where the eight numbers are that become those of this index.
uint64_t source_of(uint64_t index)
{
    if (ROWS == DEQUANTIZE_ALL)
        return index;
    bool small = p.n <= 0xfffffffful; // 64-bit divisions cost a subroutine
    uint64_t i = small ? uint64_t(uint(index) / p.per_row) : index / uint64_t(p.per_row);
    int64_t at = ROWS == DEQUANTIZE_WALK ? walk_offset(Walk(p.ids_walk), i)
                                         : int64_t(i) * p.ids_stride;
    int64_t row = place_index(read_index(p.ids, p.ids_code, at), int64_t(p.n_rows),
                              int64_t(p.n_rows) - 1l);
    return index + uint64_t((row - int64_t(i)) * int64_t(p.per_row));
}

void main()
{
    uint64_t index = grid_index();
    if (index >= p.n)
        return;
    uint64_t from = source_of(index);
    uint64_t bit = from * EIGHT_BITS, word = bit >> 5, group = from * 8ul / GROUP;
    uint shift = uint(bit & 31ul);
    uvec2 words = uvec2(AT(U32Buf, p.w, 4, word), 0u);
    if (shift + EIGHT_BITS > 32u)
        words.y = AT(U32Buf, p.w, 4, word + 1ul);
    float scale = scale_of(group);
    float bias = IS_AFFINE ? dt_get(p.biases, int64_t(group)) : 0.0;

    VAL v[8];
    [[unroll]] for (uint i = 0u; i < 8u; i++) {
        precise float scaled = code_value(code_at(words, shift, i)) * scale;
        precise float sum = dt_round(scaled) + bias;
        v[i] = IS_AFFINE ? sum : scaled;
    }
    uint64_t to = p.out_addr + index * (8u * DT_BYTES);
#if DT_BYTES == 2
    U128Buf(to).v[0] = dt_pack(v);
#else
    U128Buf(to).v[0] = floatBitsToUint(vec4(v[0], v[1], v[2], v[3]));
    U128Buf(to).v[1] = floatBitsToUint(vec4(v[4], v[5], v[6], v[7]));
#endif
}
