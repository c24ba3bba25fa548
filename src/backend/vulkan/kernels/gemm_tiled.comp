#version 450
// Matrix product on the ordinary lanes.
//
// A workgroup computes a BM x BN tile, an invocation TM x TN of it in blocks of 4 x 4 that are
// spread over its group of 32 invocations, so that shared memory is read 16 bytes at a time without
// bank conflicts. Both operands lie in shared memory with k outermost, in f32. Two buffers: while
// one tile is multiplied, the next is written and the one after it is on its way from memory.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"

layout(constant_id = 3) const uint BM = 64;
layout(constant_id = 4) const uint BN = 64;
layout(constant_id = 5) const uint BK = 16;
layout(constant_id = 6) const uint TM = 8;
layout(constant_id = 7) const uint TN = 4;
layout(constant_id = 8) const uint FLAGS = 0;
layout(constant_id = 9) const uint EPILOGUE = 0;

#ifdef PACKED // b is quantized
layout(constant_id = 10) const uint MODE = 0;
layout(constant_id = 11) const uint BITS = 4;
layout(constant_id = 12) const uint GROUP = 64;

ARGS(qmm_args);
#include "quant.glsl"
#include "gemm_packed.glsl"
#elif defined(UNFOLDED) // a is
ARGS(conv_args);
#include "unfold.glsl"
#else
ARGS(gemm_args);
#endif
#include "gemm.glsl"
#include "gemm_out.glsl"

const bool A_ALONG_K = (FLAGS & FLAG_A_ALONG_K) != 0u;
const bool B_ALONG_K = (FLAGS & FLAG_B_ALONG_K) != 0u;
const bool A_WIDE = (FLAGS & FLAG_A_WIDE) != 0u;
const bool B_WIDE = (FLAGS & FLAG_B_WIDE) != 0u;
const uint THREADS = (BM / TM) * (BN / TN);

// One k of shared memory in quads: BM of a, BN of b, and padding that spreads rows over the banks.
const uint PITCH = (BM + BN + 4u) / 4u;
const uint PLANE = BK * PITCH;
const uint STAGE = (DT_IS_COMPLEX + 1u) * PLANE;
shared vec4 tile[2u * STAGE];

uint tid;

#define SIDE(name) a_##name
#define SIDE_TILE BM
#define SIDE_EXTENT p.m
#define SIDE_ALONG_K A_ALONG_K
#define SIDE_WIDE A_WIDE
#ifdef UNFOLDED
#define SIDE_UNFOLDED
#else
#define SIDE_LD p.ld_a
#endif
#define SIDE_AT 0u
#include "gemm_side.glsl"

#define SIDE(name) b_##name
#define SIDE_TILE BN
#define SIDE_EXTENT p.n
#define SIDE_ALONG_K B_ALONG_K
#define SIDE_WIDE B_WIDE
#ifdef PACKED
#define SIDE_PACKED
#elif defined(UNFOLDED)
#define SIDE_LD p.k
#else
#define SIDE_LD p.ld_b
#endif
#define SIDE_AT (BM / 4u)
#include "gemm_side.glsl"

Quad acc[TM * TN / 4u];

Quad tile_quad(uint at)
{
#if DT_IS_COMPLEX
    return Quad(tile[at], tile[at + PLANE]);
#else
    return tile[at];
#endif
}

// acc += x * q for one element x of a and four of b.
void product(uint at, VAL x, Quad q)
{
#if DT_IS_COMPLEX
    acc[at].re = fma(vec4(x.x), q.re, fma(vec4(-x.y), q.im, acc[at].re));
    acc[at].im = fma(vec4(x.x), q.im, fma(vec4(x.y), q.re, acc[at].im));
#else
    acc[at] = fma(vec4(x), q, acc[at]);
#endif
}

void multiply(uint stage, uint first_a, uint first_b)
{
    [[unroll]] for (uint k = 0u; k < BK; k++) {
        Quad a[TM / 4u], b[TN / 4u];
        uint at = stage + k * PITCH;
        [[unroll]] for (uint i = 0u; i < TM / 4u; i++)
            a[i] = tile_quad(at + first_a + i * 4u);
        [[unroll]] for (uint j = 0u; j < TN / 4u; j++)
            b[j] = tile_quad(at + first_b + j * 8u);
        [[unroll]] for (uint i = 0u; i < TM; i++)
            [[unroll]] for (uint j = 0u; j < TN / 4u; j++)
                product(i * (TN / 4u) + j, quad_get(a[i / 4u], i % 4u), b[j]);
    }
}

void fetch(Place at, uint k0)
{
    a_fetch(at.row0, k0, at.k_end);
    b_fetch(at.col0, k0, at.k_end);
#ifdef SPARSE
    float factor = k0 < at.k_end ? step_factor(at.blocks, k0) : 0.0;
    [[unroll]] for (uint i = 0u; i < 4u * a_share; i++)
        a_reg[i] *= factor;
#endif
}

void stash(uint stage)
{
    a_stash(stage);
    b_stash(stage);
}

void main()
{
#ifdef UNFOLDED
    unfold_init();
#endif
    Place at = place_of(mm_group(), BM, BN);
    if (at.is_idle)
        return;
    tid = gl_LocalInvocationIndex;

    // 32 invocations cover 4 TM x 8 TN. Bits 0 and 4 of the lane choose the rows, bits 1-3 the
    // columns: neighbours read the same quad of b, lanes two apart the same quad of a.
    uint lane = tid & 31u, part = tid >> 5, parts_n = BN / (8u * TN);
    uint lane_m = (lane & 1u) | (lane >> 4) << 1, lane_n = lane >> 1 & 7u;
    uint part_m = part / parts_n * (4u * TM), part_n = part % parts_n * (8u * TN);
    uint first_a = part_m / 4u + lane_m, first_b = (BM + part_n) / 4u + lane_n;

    [[unroll]] for (uint i = 0u; i < TM * TN / 4u; i++)
        acc[i] = QUAD_ZERO;
    a_aim(at.a, at.row0);
    b_aim(at.b, at.col0);
    uint k = NEXT(at, at.k_begin), ahead = NEXT(at, k + BK);
    fetch(at, k);
    stash(0u);
    fetch(at, ahead);
    barrier();
    uint stage = 0u;
    while (k < at.k_end) {
        stash(STAGE - stage);
        k = ahead;
        ahead = NEXT(at, ahead + BK);
        fetch(at, ahead);
        multiply(stage, first_a, first_b);
        barrier();
        stage = STAGE - stage;
    }

    uint row = at.row0 + part_m + lane_m * 4u, col = at.col0 + part_n + lane_n * 4u;
    [[unroll]] for (uint i = 0u; i < TM; i++)
        [[unroll]] for (uint j = 0u; j < TN / 4u; j++)
            put_quad(at, row + i / 4u * 16u + i % 4u, col + j * 32u, acc[i * (TN / 4u) + j]);
}
