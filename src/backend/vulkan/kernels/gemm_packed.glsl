// The packed operand of a product: where it lies for a batch, and numbers of it. Reads qmm_args.
#include "qmm_batch.glsl"

// Addresses of the matrix in use.
uint64_t packed_words, packed_scales, packed_biases;

// Takes the matrix of a batch in use and returns the address of its x.
uint64_t packed_aim(uint batch)
{
    packed_words = p.w;
    packed_scales = p.scales;
    packed_biases = p.biases;
    if (!is_given(p.batch))
        return p.a;
    int64_t at[4];
    qmm_offsets(p.batch, min(batch, p.n_batch - 1u), at);
    packed_words += uint64_t(at[1] * 4l);
    packed_scales += uint64_t(at[2] * (IS_AFFINE ? DT_BYTES : 1));
    packed_biases += uint64_t(at[3] * DT_BYTES);
    return p.a + uint64_t(at[0] * DT_BYTES);
}

// Scale and bias of a group.
vec2 packed_affine(uint64_t group)
{
    if (IS_AFFINE)
        return vec2(dt_get(packed_scales, int64_t(group)), dt_get(packed_biases, int64_t(group)));
    return vec2(fp_scale(uint(AT(U8Buf, packed_scales, 1, group))), 0.0);
}

// Four neighbouring numbers of a row of `cols`; col is a multiple of four.
vec4 packed_quad(uint row, uint col, uint cols)
{
    uint64_t at = uint64_t(row) * cols + col, bit = at * BITS;
    uint64_t word = packed_words + (bit >> 5) * 4ul;
    uint shift = uint(bit & 31ul);
    uvec2 words = uvec2(U32Buf(word).v[0], 0u);
    if (shift + 4u * BITS > 32u)
        words.y = U32Buf(word).v[1];
    vec2 affine = packed_affine(at / GROUP);
    vec4 q;
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        q[i] = code_value(code_at(words, shift, i));
    precise vec4 v = q * affine.x + affine.y; // as every build of the kernel: with a program or not
    return v;
}
