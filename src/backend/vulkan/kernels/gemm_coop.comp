#version 450
// Matrix product of 16-bit floats on matrix units (KHR cooperative matrices), f32 accumulation.
//
// A workgroup of GM x GN subgroups computes a tile; each subgroup FM x FN fragments of EDGE x EDGE.
// Operands are staged in shared memory, FK fragments along k. One stage: written between two
// barriers. Two stages: the next one is written while this one is multiplied.
//
// Loops over fragments are unrolled by the preprocessor: accumulators indexed by a loop that the
// driver does not unroll live in local memory, which was measured to cost a factor of six to ten.
// The lists go up to 4 x 8 x 4 fragments; what FM, FN and FK leave out folds away.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef DT_BFLOAT16
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#else
#define ELEMENT float16_t
#endif
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"

layout(constant_id = 3) const uint LANES = 32; // of a subgroup
layout(constant_id = 4) const uint EDGE = 16;  // of a fragment: 16, or 8
layout(constant_id = 5) const uint GM = 2;
layout(constant_id = 6) const uint GN = 2;
layout(constant_id = 7) const uint FM = 4;
layout(constant_id = 8) const uint FN = 4;
layout(constant_id = 9) const uint FK = 2;
layout(constant_id = 10) const uint STAGES = 2;
layout(constant_id = 11) const uint FLAGS = 0;
layout(constant_id = 12) const uint EPILOGUE = 0;

#ifdef UNFOLDED // a is
ARGS(conv_args);
#include "unfold.glsl"
#else
ARGS(gemm_args);
#endif
#include "gemm.glsl"
#include "gemm_out.glsl"

const bool A_ALONG_K = (FLAGS & FLAG_A_ALONG_K) != 0u;
const bool B_ALONG_K = (FLAGS & FLAG_B_ALONG_K) != 0u;
const bool K_EDGE = (FLAGS & FLAG_K_EDGE) != 0u;
const uint THREADS = LANES * GM * GN;
const uint WM = EDGE * FM, WN = EDGE * FN; // tile of a subgroup
const uint BM = WM * GM, BN = WN * GN, BK = EDGE * FK; // tile of the workgroup

// Shared memory in chunks of 16 bytes. All stages of a row lie side by side with one padding for
// all of them: an odd pitch spreads the rows of a fragment over all banks.
#define PITCH(along_k, rows) (((along_k ? STAGES * BK : rows) / 8u) | 1u)
#define SIZE(along_k, rows) ((along_k ? rows : STAGES * BK) * PITCH(along_k, rows))
const uint A_SIZE = SIZE(A_ALONG_K, BM);
const uint STAGED = A_SIZE + SIZE(B_ALONG_K, BN);
// At the end each subgroup passes its accumulators through EDGE rows of floats.
const uint STRIP_PITCH = WN / 4u + 1u;
const uint STRIP = EDGE * STRIP_PITCH;
const uint STRIPS = GM * GN * STRIP;
shared uvec4 tile[STAGED > STRIPS ? STAGED : STRIPS];

uint tid;

// The first n of eight 16-bit elements, zeros after them.
uvec4 keep_first(uvec4 chunk, uint n)
{
    uvec4 left = uvec4(max(ivec4(int(n)) - ivec4(0, 2, 4, 6), 0));
    return chunk & mix(uvec4(0xffffu) * uvec4(equal(left, uvec4(1u))), uvec4(0xffffffffu),
                       greaterThan(left, uvec4(1u)));
}

#define SIDE(name) a_##name
#define SIDE_TILE BM
#define SIDE_EXTENT p.m
#define SIDE_ALONG_K A_ALONG_K
#ifdef UNFOLDED
#define SIDE_UNFOLDED
#else
#define SIDE_LD p.ld_a
#endif
#define SIDE_BASE 0u
#include "gemm_stage.glsl"

#define SIDE(name) b_##name
#define SIDE_TILE BN
#define SIDE_EXTENT p.n
#define SIDE_ALONG_K B_ALONG_K
#ifdef UNFOLDED
#define SIDE_LD int(p.k)
#else
#define SIDE_LD p.ld_b
#endif
#define SIDE_BASE A_SIZE
#include "gemm_stage.glsl"

void fetch(Place at, uint k0)
{
    if (!K_EDGE)
        k0 = min(k0, at.k_end - BK); // the last tile again, which nobody uses
    a_fetch(at.a, at.row0, k0, at.k_end);
    b_fetch(at.b, at.col0, k0, at.k_end);
}

void stash(uint stage)
{
    a_stash(stage);
    b_stash(stage);
}

#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COL_MAJOR gl_CooperativeMatrixLayoutColumnMajor
#define FRAGMENT_A coopmat<ELEMENT, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseA>
#define FRAGMENT_B coopmat<ELEMENT, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseAccumulator>

#define FOR_I(X) X(0) X(1) X(2) X(3)
#define FOR_J(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define FOR_K(X) X(0) X(1) X(2) X(3)
#define FOR_I_WITH(X, j) X(0, j) X(1, j) X(2, j) X(3, j)
#define FOR_J_WITH(X, i) X(i, 0) X(i, 1) X(i, 2) X(i, 3) X(i, 4) X(i, 5) X(i, 6) X(i, 7)

#define DECLARE(i, j) SUM sum_##i##_##j = SUM(0.0);
#define DECLARE_ROW(i) FOR_J_WITH(DECLARE, i)

#define LOAD_A(i)                                                                                  \
    FRAGMENT_A a_##i;                                                                              \
    if (i < FM) {                                                                                  \
        uint from = a_fragment(stage, sub_m + i * EDGE, k);                                        \
        if (A_ALONG_K)                                                                             \
            coopMatLoad(a_##i, tile, from, a_pitch, ROW_MAJOR);                                    \
        else                                                                                       \
            coopMatLoad(a_##i, tile, from, a_pitch, COL_MAJOR);                                    \
    }
#define MULTIPLY(i, j)                                                                             \
    if (i < FM)                                                                                    \
        sum_##i##_##j = coopMatMulAdd(a_##i, b, sum_##i##_##j);
#define COLUMN(j)                                                                                  \
    if (j < FN) {                                                                                  \
        FRAGMENT_B b;                                                                              \
        uint from = b_fragment(stage, sub_n + j * EDGE, k);                                        \
        if (B_ALONG_K)                                                                             \
            coopMatLoad(b, tile, from, b_pitch, COL_MAJOR);                                        \
        else                                                                                       \
            coopMatLoad(b, tile, from, b_pitch, ROW_MAJOR);                                        \
        FOR_I_WITH(MULTIPLY, j)                                                                    \
    }
#define STEP(step)                                                                                 \
    if (step < FK) {                                                                               \
        const uint k = step * EDGE;                                                                \
        FOR_I(LOAD_A)                                                                              \
        FOR_J(COLUMN)                                                                              \
    }

// A row of fragments goes through the subgroup's strip to its own lanes; this loop touches none.
#define SPILL(i, j)                                                                                \
    if (j < FN)                                                                                    \
        coopMatStore(sum_##i##_##j, tile, strip + j * (EDGE / 4u), STRIP_PITCH, ROW_MAJOR);
#define FINISH_ROW(i)                                                                              \
    if (i < FM) {                                                                                  \
        FOR_J_WITH(SPILL, i)                                                                       \
        subgroupBarrier();                                                                         \
        put_strip(at, strip, at.row0 + sub_m + i * EDGE, at.col0 + sub_n);                         \
        subgroupBarrier();                                                                         \
    }

void put_strip(Place at, uint strip, uint row, uint col)
{
    [[dont_unroll]] for (uint id = gl_SubgroupInvocationID; id < EDGE * WN / 4u; id += LANES) {
        uint y = id / (WN / 4u), x = id % (WN / 4u);
        put_quad(at, row + y, col + x * 4u, uintBitsToFloat(tile[strip + y * STRIP_PITCH + x]));
    }
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
    const uint sub_m = gl_SubgroupID / GN * WM, sub_n = gl_SubgroupID % GN * WN;
    FOR_I(DECLARE_ROW)

    a_aim(at.row0);
    b_aim(at.col0);
    uint k0 = NEXT(at, at.k_begin);
    fetch(at, k0);
    if (STAGES == 2u) {
        stash(0u);
        fetch(at, k0 + BK);
    }
    barrier();
    uint stage = 0u;
    [[dont_unroll]] while (k0 < at.k_end) {
        stash(STAGES - 1u - stage);
        if (STAGES == 1u)
            barrier();
        uint ahead = NEXT(at, k0 + STAGES * BK); // sparse products have one stage
        fetch(at, ahead);
        FOR_K(STEP)
        barrier();
        stage = STAGES - 1u - stage;
        k0 = STAGES == 1u ? ahead : k0 + BK;
    }

    const uint strip = gl_SubgroupID * STRIP;
    FOR_I(FINISH_ROW)
}
