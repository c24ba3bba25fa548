#version 450
// Attention of many rows without matrix units: tiles of rows and keys in shared memory, in float.
//
// A workgroup takes BQ rows of a kv head (all its query heads at all positions) and goes over the keys
// BK at a time. TX lanes, all of one subgroup, share RPT rows: for scores each takes KPT keys, for
// sums every TX-th quad of a value.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // SDPA_*
layout(constant_id = 4) const uint TX = 16u;
layout(constant_id = 5) const uint TY = 8u;
layout(constant_id = 6) const uint RPT = 4u;
layout(constant_id = 7) const uint KPT = 2u;
layout(constant_id = 8) const uint GROUP = 1u;
layout(constant_id = 9) const uint D = 64u;
layout(constant_id = 10) const uint DV = 64u;

ARGS(sdpa_args);
#include "attn.glsl"

const uint THREADS = TX * TY;
const uint BQ = TY * RPT, BK = TX * KPT;
const uint QUADS_K = (D + 3u) / 4u, QUADS_V = (DV + 3u) / 4u;
const uint VPT = (QUADS_V + TX - 1u) / TX; // quads of a value that a lane sums up
// Odd pitches spread rows over all banks.
const uint PITCH_K = QUADS_K | 1u, PITCH_V = QUADS_V | 1u;
shared vec4 queries[BQ * PITCH_K];
shared vec4 staged[BK * (PITCH_K > PITCH_V ? PITCH_K : PITCH_V)]; // keys, then values
shared float weights[BQ * (BK + 1u)];

float scores[RPT * KPT];
vec4 sums[RPT * VPT];
float largest[RPT], weight[RPT];

uint tid, tx, ty;
uint batch, kv, first_row, n_rows; // of the kv head

BUF(U64x2Buf, uvec2, 8);

// Elements 4 * quad ... of a row of n, times a factor.
vec4 load_quad(uint64_t row, uint quad, uint n)
{
    vec4 v = vec4(0.0);
    if (WIDE) {
#if DT_BYTES == 2
        uvec2 w = AT(U64x2Buf, row, 8, quad);
        return vec4(dt_from_bits(w.x), dt_from_bits(w.x >> 16), dt_from_bits(w.y),
                    dt_from_bits(w.y >> 16));
#else
        return uintBitsToFloat(AT(U128Buf, row, 16, quad));
#endif
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        if (4u * quad + i < n)
            v[i] = dt_get(row, int64_t(4u * quad + i));
    return v;
}

uint row_number(uint r)
{
    return min(first_row + r, n_rows - 1u);
}

void stage_queries()
{
    for (uint id = tid; id < BQ * QUADS_K; id += THREADS) {
        uint r = id / QUADS_K, c = id % QUADS_K, row = row_number(r);
        int64_t at = int64_t(batch) * p.q_batch + int64_t(head_of(kv, row)) * p.q_head +
                     int64_t(position_of(row)) * p.q_pos;
        vec4 v = load_quad(p.q + uint64_t(at * DT_BYTES), c, D);
        queries[r * PITCH_K + c] = v * (p.scale * LOG2_E);
    }
}

// Keys past the end repeat the last one, which no row sees twice.
void stage(uint64_t rows, int pos, uint first, const bool is_keys)
{
    uint quads = is_keys ? QUADS_K : QUADS_V, pitch = is_keys ? PITCH_K : PITCH_V;
    uint n = is_keys ? D : DV;
    for (uint id = tid; id < BK * quads; id += THREADS) {
        uint r = id / quads, c = id % quads;
        int64_t at = int64_t(min(first + r, p.n_k - 1u)) * int64_t(pos);
        staged[r * pitch + c] = load_quad(rows + uint64_t(at * DT_BYTES), c, n);
    }
}

void multiply()
{
    [[unroll]] for (uint i = 0u; i < RPT * KPT; i++)
        scores[i] = 0.0;
    for (uint d = 0u; d < QUADS_K; d++) {
        vec4 k[KPT];
        [[unroll]] for (uint j = 0u; j < KPT; j++)
            k[j] = staged[(tx + j * TX) * PITCH_K + d];
        [[unroll]] for (uint i = 0u; i < RPT; i++) {
            vec4 q = queries[(ty * RPT + i) * PITCH_K + d];
            [[unroll]] for (uint j = 0u; j < KPT; j++)
                scores[i * KPT + j] += dot(q, k[j]);
        }
    }
}

float over_row_max(float v)
{
    [[unroll]] for (uint mask = 1u; mask < 64u; mask <<= 1)
        if (mask < TX)
            v = max(v, sg_xor(v, mask));
    return v;
}

float over_row_sum(float v)
{
    [[unroll]] for (uint mask = 1u; mask < 64u; mask <<= 1)
        if (mask < TX)
            v += sg_xor(v, mask);
    return v;
}

// Weights of row i of this lane, left for the lanes that share it.
void weigh(uint i, uint first)
{
    uint row = row_number(ty * RPT + i);
    uint position = position_of(row), seen = keys_of(position);
    int64_t mask = 0l;
    if (MASK_BOOL || MASK_ADD)
        mask = mask_row(batch, head_of(kv, row), position);
    float top = largest[i];
    [[unroll]] for (uint j = 0u; j < KPT; j++) {
        uint key = first + tx + j * TX;
        float s = scores[i * KPT + j];
        if (MASK_BOOL || MASK_ADD)
            s = masked(s, mask, min(key, p.n_k - 1u));
        s = key < seen ? s : ABSENT;
        scores[i * KPT + j] = s;
        top = max(top, s);
    }
    top = over_row_max(top);
    float fade = exp2(largest[i] - top);
    largest[i] = top;
    weight[i] *= fade;
    [[unroll]] for (uint v = 0u; v < VPT; v++)
        sums[i * VPT + v] *= fade;
    [[unroll]] for (uint j = 0u; j < KPT; j++) {
        float w = weight_of(scores[i * KPT + j], top);
        weight[i] += w;
        weights[(ty * RPT + i) * (BK + 1u) + tx + j * TX] = w;
    }
}

void add_values()
{
    for (uint key = 0u; key < BK; key++) {
        vec4 v[VPT];
        [[unroll]] for (uint j = 0u; j < VPT; j++)
            if (tx + j * TX < QUADS_V)
                v[j] = staged[key * PITCH_V + tx + j * TX];
        [[unroll]] for (uint i = 0u; i < RPT; i++) {
            float w = weights[(ty * RPT + i) * (BK + 1u) + key];
            [[unroll]] for (uint j = 0u; j < VPT; j++)
                sums[i * VPT + j] = fma(vec4(w), v[j], sums[i * VPT + j]);
        }
    }
}

void store_row(uint i)
{
    float total = over_row_sum(weight[i]), fade = 1.0;
    uint row = row_number(ty * RPT + i);
    uint head = head_of(kv, row);
    if (SINKS) {
        float sink = sink_of(head);
        float top = max(largest[i], sink);
        fade = exp2(largest[i] - top);
        total = total * fade + exp2(sink - top);
    }
    float scale = total > 0.0 ? fade / total : 0.0;
    if (first_row + ty * RPT + i >= n_rows)
        return;
    int64_t to = dst_row(batch, head, position_of(row));
    [[unroll]] for (uint j = 0u; j < VPT; j++)
        [[unroll]] for (uint e = 0u; e < 4u; e++) {
            uint at = 4u * (tx + j * TX) + e;
            if (at < DV)
                dt_set(p.dst, to + int64_t(at), sums[i * VPT + j][e] * scale);
        }
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
    uint64_t k_rows = p.k + uint64_t((int64_t(batch) * p.k_batch + int64_t(kv) * p.k_head) *
                                     DT_BYTES);
    uint64_t v_rows = p.v + uint64_t((int64_t(batch) * p.v_batch + int64_t(kv) * p.v_head) *
                                     DT_BYTES);
    tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    tx = tid % TX;
    ty = tid / TX;
    [[unroll]] for (uint i = 0u; i < RPT; i++) {
        largest[i] = ABSENT;
        weight[i] = 0.0;
        [[unroll]] for (uint j = 0u; j < VPT; j++)
            sums[i * VPT + j] = vec4(0.0);
    }

    stage_queries();
    uint end = keys_of(position_of(row_number(BQ - 1u)));
    for (uint first = 0u; first < end; first += BK) {
        barrier(); // queries are there, or the last values have been read
        stage(k_rows, p.k_pos, first, true);
        barrier();
        multiply();
        barrier();
        stage(v_rows, p.v_pos, first, false);
        [[unroll]] for (uint i = 0u; i < RPT; i++)
            weigh(i, first);
        barrier();
        add_values();
    }
    [[unroll]] for (uint i = 0u; i < RPT; i++)
        store_row(i);
}
