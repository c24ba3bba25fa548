#version 450
// Attention of many rows on matrix units (KHR cooperative matrices): 16-bit operands, f32 sums.
//
// The rows of a kv head, all its query heads at all positions, are cut into tiles. A workgroup takes a
// tile, EDGE rows for each of its subgroups, and goes over the keys BK at a time; keys and values of a
// step are staged in shared memory for all subgroups. Scores pass through a strip of shared memory,
// because the units do not tell which lane holds which row: there lanes find maxima and weights of
// their rows, and leave the weights as the next operand. Sums are rescaled only when a maximum grows
// by more than SLACK, so that nearly all steps go without.
//
// Loops over fragments are unrolled by the preprocessor, as in gemm_coop.comp.
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_vote : require
#ifdef DT_BFLOAT16
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#else
#define ELEMENT float16_t
#endif
#include "common.glsl"
#include "dtype.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // SDPA_*
layout(constant_id = 4) const uint LANES = 32u; // of a subgroup
layout(constant_id = 5) const uint EDGE = 16u;  // of a fragment: 16, or 8
layout(constant_id = 6) const uint SUBGROUPS = 4u;
layout(constant_id = 7) const uint FK = 2u; // fragments of keys in a step
layout(constant_id = 8) const uint GROUP = 1u;
layout(constant_id = 9) const uint D = 128u;
layout(constant_id = 10) const uint DV = 128u;

ARGS(sdpa_args);
#include "attn.glsl"

const float SLACK = 8.0;
const uint THREADS = LANES * SUBGROUPS;
const uint BQ = EDGE * SUBGROUPS, BK = EDGE * FK;
const uint FD = (D + EDGE - 1u) / EDGE, FV = (DV + EDGE - 1u) / EDGE; // fragments of a row
const uint LINE_K = FD * EDGE / 8u, LINE_V = FV * EDGE / 8u;          // chunks of 16 bytes
// Odd pitches spread the rows of a fragment over all banks.
const uint PITCH_K = LINE_K | 1u, PITCH_V = LINE_V | 1u;
const uint SIZE_K = BK * PITCH_K, SIZE_V = BK * PITCH_V;
const uint SIZE_Q = BQ * PITCH_K; // before the first keys
// A strip: scores as floats, then weights in their place; beside it, factors for the sums.
const uint PITCH_S = BK / 4u + 1u, PITCH_P = BK / 8u + 1u, PITCH_F = EDGE / 4u + 1u;
const uint STRIP = EDGE * (PITCH_S + PITCH_F);
const uint STAGED = SIZE_Q > SIZE_K + SIZE_V ? SIZE_Q : SIZE_K + SIZE_V;
shared uvec4 tile[STAGED + SUBGROUPS * STRIP];

// Lanes that share a row of the strip, and their columns.
const uint SHARERS = LANES / EDGE;
const uint COLS = BK / SHARERS;

uint tid, strip, factors;
uint batch, kv, first_row, n_rows; // of the kv head
uint64_t k_rows, v_rows;

// ---- staging ----

const uint SHARE_K = (BK * LINE_K + THREADS - 1u) / THREADS;
const uint SHARE_V = (BK * LINE_V + THREADS - 1u) / THREADS;
uvec4 k_reg[SHARE_K], v_reg[SHARE_V];

// Chunk c of row `key`; keys past the end repeat the last one, which no row sees twice.
uvec4 load_chunk(uint64_t rows, uint key, int pos, uint c, uint size)
{
    if (c * 8u >= size)
        return uvec4(0u);
    int64_t at = int64_t(min(key, p.n_k - 1u)) * int64_t(pos) + int64_t(c * 8u);
    return U128Buf(rows + uint64_t(at * 2l)).v[0];
}

void fetch(uint first)
{
    [[unroll]] for (uint i = 0u; i < SHARE_K; i++) {
        uint id = tid + i * THREADS;
        if (BK * LINE_K % THREADS == 0u || id < BK * LINE_K)
            k_reg[i] = load_chunk(k_rows, first + id / LINE_K, p.k_pos, id % LINE_K, D);
    }
    [[unroll]] for (uint i = 0u; i < SHARE_V; i++) {
        uint id = tid + i * THREADS;
        if (BK * LINE_V % THREADS == 0u || id < BK * LINE_V)
            v_reg[i] = load_chunk(v_rows, first + id / LINE_V, p.v_pos, id % LINE_V, DV);
    }
}

void stash_keys()
{
    [[unroll]] for (uint i = 0u; i < SHARE_K; i++) {
        uint id = tid + i * THREADS;
        if (BK * LINE_K % THREADS == 0u || id < BK * LINE_K)
            tile[id / LINE_K * PITCH_K + id % LINE_K] = k_reg[i];
    }
}

void stash_values()
{
    [[unroll]] for (uint i = 0u; i < SHARE_V; i++) {
        uint id = tid + i * THREADS;
        if (BK * LINE_V % THREADS == 0u || id < BK * LINE_V)
            tile[SIZE_K + id / LINE_V * PITCH_V + id % LINE_V] = v_reg[i];
    }
}

uint row_number(uint r)
{
    return min(first_row + r, n_rows - 1u);
}

void stash_queries()
{
    for (uint id = tid; id < BQ * LINE_K; id += THREADS) {
        uint r = id / LINE_K, c = id % LINE_K, row = row_number(r);
        int64_t at = int64_t(batch) * p.q_batch + int64_t(head_of(kv, row)) * p.q_head +
                     int64_t(position_of(row)) * p.q_pos + int64_t(c * 8u);
        uvec4 chunk = uvec4(0u);
        if (c * 8u < D)
            chunk = U128Buf(p.q + uint64_t(at * 2l)).v[0];
        tile[r * PITCH_K + c] = chunk;
    }
}

// ---- rows of scores ----

// The row of the strip that this lane shares, and what it knows of it.
uint lane_row, lane_part; // in the strip; among the sharers
uint row_position, row_head;
float largest, weight; // weight: of this lane's columns
float score_scale;

float over_sharers_max(float v)
{
    [[unroll]] for (uint mask = 1u; mask < 64u; mask <<= 1)
        if (mask < SHARERS)
            v = max(v, sg_xor(v, mask));
    return v;
}

float over_sharers_sum(float v)
{
    [[unroll]] for (uint mask = 1u; mask < 64u; mask <<= 1)
        if (mask < SHARERS)
            v += sg_xor(v, mask);
    return v;
}

float scores[COLS];

void read_scores()
{
    uint from = strip + lane_row * PITCH_S + lane_part * (COLS / 4u);
    [[unroll]] for (uint i = 0u; i < COLS / 4u; i++) {
        vec4 s = uintBitsToFloat(tile[from + i]);
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            scores[4u * i + j] = s[j] * score_scale;
    }
}

// Masks, and keys that this lane's row does not see.
void hide_scores(uint first)
{
    first += lane_part * COLS;
    if (MASK_BOOL || MASK_ADD) {
        int64_t row = mask_row(batch, row_head, row_position);
        [[unroll]] for (uint i = 0u; i < COLS; i++)
            scores[i] = masked(scores[i], row, min(first + i, p.n_k - 1u));
    }
    uint seen = keys_of(row_position);
    [[unroll]] for (uint i = 0u; i < COLS; i++)
        scores[i] = first + i < seen ? scores[i] : ABSENT;
}

// Eight weights as the operand's bits. Weights are numbers of moderate size: no care for infinities,
// and ties may go up.
uvec4 pack_weights(float w[8])
{
#ifdef DT_BFLOAT16
    uvec4 low = floatBitsToUint(vec4(w[0], w[2], w[4], w[6])) + 0x8000u;
    uvec4 high = floatBitsToUint(vec4(w[1], w[3], w[5], w[7])) + 0x8000u;
    return low >> 16 | (high & 0xffff0000u);
#else
    return uvec4(packHalf2x16(vec2(w[0], w[1])), packHalf2x16(vec2(w[2], w[3])),
                 packHalf2x16(vec2(w[4], w[5])), packHalf2x16(vec2(w[6], w[7])));
#endif
}

// Weights instead of scores. True if the sums are to be multiplied by the factors.
bool weigh(uint first, bool hides)
{
    read_scores();
    if (hides)
        hide_scores(first);
    float top = ABSENT;
    [[unroll]] for (uint i = 0u; i < COLS; i++)
        top = max(top, scores[i]);
    top = over_sharers_max(top);
    bool grows = subgroupAny(top > largest + SLACK);
    if (grows) {
        float next = max(top, largest);
        float factor = exp2(largest - next);
        largest = next;
        weight *= factor;
        for (uint i = lane_part; i < EDGE / 4u; i += SHARERS)
            tile[factors + lane_row * PITCH_F + i] = floatBitsToUint(vec4(factor));
    }
    subgroupBarrier(); // all lanes have read their scores
    [[unroll]] for (uint i = 0u; i < COLS / 8u; i++) {
        float w[8];
        [[unroll]] for (uint j = 0u; j < 8u; j++) {
            w[j] = exp2(scores[8u * i + j] - largest);
            if (hides)
                w[j] = weight_of(scores[8u * i + j], largest);
            weight += w[j];
        }
        tile[strip + lane_row * PITCH_P + lane_part * (COLS / 8u) + i] = pack_weights(w);
    }
    subgroupBarrier();
    return grows;
}

// ---- fragments ----

#define ROW_MAJOR gl_CooperativeMatrixLayoutRowMajor
#define COL_MAJOR gl_CooperativeMatrixLayoutColumnMajor
#define FRAGMENT_A coopmat<ELEMENT, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseA>
#define FRAGMENT_B coopmat<ELEMENT, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, EDGE, EDGE, gl_MatrixUseAccumulator>

#define FOR_KEYS(X) X(0) X(1) X(2) X(3)
#define FOR_KEYS_WITH(X, d) X(0, d) X(1, d) X(2, d) X(3, d)
#define FOR_DIMS(X)                                                                                \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define FOR_DIMS_WITH(X, k)                                                                        \
    X(0, k) X(1, k) X(2, k) X(3, k) X(4, k) X(5, k) X(6, k) X(7, k) X(8, k) X(9, k) X(10, k)       \
    X(11, k) X(12, k) X(13, k) X(14, k) X(15, k)

#define LOAD_Q(d)                                                                                  \
    FRAGMENT_A q_##d;                                                                              \
    if (d < FD)                                                                                    \
        coopMatLoad(q_##d, tile, sub_row * PITCH_K + d * EDGE / 8u, PITCH_K, ROW_MAJOR);
#define DECLARE_SUM(d) SUM sum_##d = SUM(0.0);

#define CLEAR_SCORE(k) SUM score_##k = SUM(0.0);
#define SCORE(k, d)                                                                                \
    if (k < FK) {                                                                                  \
        FRAGMENT_B b;                                                                              \
        coopMatLoad(b, tile, k * EDGE * PITCH_K + d * EDGE / 8u, PITCH_K, COL_MAJOR);              \
        score_##k = coopMatMulAdd(q_##d, b, score_##k);                                            \
    }
#define SCORE_STEP(d)                                                                              \
    if (d < FD) {                                                                                  \
        FOR_KEYS_WITH(SCORE, d)                                                                    \
    }
#define SPILL_SCORE(k)                                                                             \
    if (k < FK)                                                                                    \
        coopMatStore(score_##k, tile, strip + k * (EDGE / 4u), PITCH_S, ROW_MAJOR);
#define RESCALE(d)                                                                                 \
    if (d < FV)                                                                                    \
        sum_##d = sum_##d * factor;
#define ADD_VALUES(d, k)                                                                           \
    if (d < FV) {                                                                                  \
        FRAGMENT_B b;                                                                              \
        coopMatLoad(b, tile, SIZE_K + k * EDGE * PITCH_V + d * EDGE / 8u, PITCH_V, ROW_MAJOR);     \
        sum_##d = coopMatMulAdd(a, b, sum_##d);                                                    \
    }
#define VALUE_STEP(k)                                                                              \
    if (k < FK) {                                                                                  \
        FRAGMENT_A a;                                                                              \
        coopMatLoad(a, tile, strip + k * (EDGE / 8u), PITCH_P, ROW_MAJOR);                         \
        FOR_DIMS_WITH(ADD_VALUES, k)                                                               \
    }

// Sums leave through the strip, FK fragments at a time.
#define FINISH(d)                                                                                  \
    if (d < FV) {                                                                                  \
        coopMatStore(sum_##d, tile, strip + d % FK * (EDGE / 4u), PITCH_S, ROW_MAJOR);             \
        if (d % FK == FK - 1u || d + 1u == FV) {                                                   \
            subgroupBarrier();                                                                     \
            put_strip(d / FK * BK, scale);                                                         \
            subgroupBarrier();                                                                     \
        }                                                                                          \
    }

// Columns from `first` on of this lane's row.
void put_strip(uint first, float scale)
{
    if (first_row + gl_SubgroupID * EDGE + lane_row >= n_rows)
        return;
    uint from = strip + lane_row * PITCH_S + lane_part * (COLS / 4u);
    uint64_t to = p.dst + uint64_t(dst_row(batch, row_head, row_position) * 2l);
    first += lane_part * COLS;
    [[unroll]] for (uint i = 0u; i < COLS / 8u; i++) {
        vec4 a = uintBitsToFloat(tile[from + 2u * i]) * scale;
        vec4 b = uintBitsToFloat(tile[from + 2u * i + 1u]) * scale;
        VAL v[DT_PER16] = VAL[DT_PER16](a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w);
        if (first + 8u * i < DV)
            U128Buf(to + uint64_t(first + 8u * i) * 2ul).v[0] = dt_pack(v);
    }
}

// What the sums of this lane's row are to be multiplied with at the end.
float final_scale()
{
    float total = over_sharers_sum(weight);
    float fade = 1.0;
    if (SINKS) {
        float sink = sink_of(row_head);
        float top = max(largest, sink);
        fade = exp2(largest - top);
        total = total * fade + exp2(sink - top);
    }
    return total > 0.0 ? fade / total : 0.0;
}

void main()
{
    uint number = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                  gl_NumWorkGroups.y * gl_WorkGroupID.z);
    if (number >= p.n_items)
        return;
    n_rows = GROUP * p.n_q;
    uint tiles = (n_rows + BQ - 1u) / BQ;
    uint heads = p.n_items / tiles; // of all batches
    // The last rows see the most keys: they come first.
    uint head = number % heads;
    first_row = (tiles - 1u - number / heads) * BQ;
    batch = head / p.n_kv;
    kv = head - batch * p.n_kv;
    k_rows = p.k + uint64_t((int64_t(batch) * p.k_batch + int64_t(kv) * p.k_head) * 2l);
    v_rows = p.v + uint64_t((int64_t(batch) * p.v_batch + int64_t(kv) * p.v_head) * 2l);
    tid = gl_SubgroupID * LANES + gl_SubgroupInvocationID;
    const uint sub_row = gl_SubgroupID * EDGE;
    strip = STAGED + gl_SubgroupID * STRIP;
    factors = strip + EDGE * PITCH_S;
    lane_row = gl_SubgroupInvocationID / SHARERS;
    lane_part = gl_SubgroupInvocationID % SHARERS;
    uint row = row_number(sub_row + lane_row);
    row_position = position_of(row);
    row_head = head_of(kv, row);
    largest = ABSENT;
    weight = 0.0;
    score_scale = p.scale * LOG2_E;

    fetch(0u);
    stash_queries();
    barrier();
    FOR_DIMS(LOAD_Q)
    FOR_DIMS(DECLARE_SUM)
    uint end = keys_of(position_of(row_number(BQ - 1u)));
    uint edge = keys_of(position_of(row_number(sub_row))); // from here on some row sees less
    [[dont_unroll]] for (uint first = 0u; first < end; first += BK) {
        barrier(); // the queries, or the last keys and values, have been read
        stash_keys();
        stash_values();
        barrier();
        if (first + BK < end)
            fetch(first + BK);
        FOR_KEYS(CLEAR_SCORE)
        FOR_DIMS(SCORE_STEP)
        FOR_KEYS(SPILL_SCORE)
        subgroupBarrier();
        if (weigh(first, MASK_BOOL || MASK_ADD || first + BK > edge)) {
            SUM factor;
            coopMatLoad(factor, tile, factors, PITCH_F, ROW_MAJOR);
            FOR_DIMS(RESCALE)
        }
        FOR_KEYS(VALUE_STEP)
    }
    subgroupBarrier();
    float scale = final_scale();
    FOR_DIMS(FINISH)
}
