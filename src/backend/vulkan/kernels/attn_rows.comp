#version 450
// Attention of a few rows, all of the same kv head, over its keys.
//
// LPK lanes share a key and its value; a subgroup takes several keys at a time, a workgroup more, UK
// of them per step so that loads are in flight. Every lane keeps a running maximum, weight and sum of
// its part of the values; subgroups and then the workgroup join them. With SPLIT several workgroups
// share the keys, and the last to finish joins their results.
//
// HEADS: the queries, and the last key and value, come from products; see attn_heads.glsl.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#ifdef HEADS
#include "math.glsl"
#endif
#include "subgroup.glsl"
#include "last.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // SDPA_*
layout(constant_id = 4) const uint LPK = 8u;
layout(constant_id = 5) const uint UK = 4u;
layout(constant_id = 6) const uint ROWS = 1u;
layout(constant_id = 7) const uint SUBGROUPS = 1u; // of a workgroup, at most
layout(constant_id = 8) const uint GROUP = 1u;
layout(constant_id = 9) const uint D = 64u;
layout(constant_id = 10) const uint DV = 64u;

#ifdef HEADS
layout(constant_id = 15) const uint KV_HEADS = 1u;
ARGS(attn_heads_args);
attn_heads_more more;
#define MODEL_FILES_ADDR more.parts
#define COUNTERS_ADDR more.counters
#define KEYS_BATCH more.keys_batch
#define VALUES_BATCH more.values_batch
#else
ARGS(sdpa_args);
#define MODEL_FILES_ADDR p.parts
#define COUNTERS_ADDR p.counters
#define KEYS_BATCH p.k_batch
#define VALUES_BATCH p.v_batch
#endif
#include "attn.glsl"

// Blocks of 16 bytes: block b of a lane is number b * LPK + (lane of the key) of the row.
const uint BLOCKS_K = (D + DT_PER16 - 1u) / DT_PER16;
const uint BLOCKS_V = (DV + DT_PER16 - 1u) / DT_PER16;
const uint HELD_K = (BLOCKS_K + LPK - 1u) / LPK;
const uint HELD_V = (BLOCKS_V + LPK - 1u) / LPK;
const uint DIMS_K = HELD_K * DT_PER16;
const uint DIMS_V = HELD_V * DT_PER16;

float q[ROWS * DIMS_K]; // times scale and log2(e)
float sums[ROWS * DIMS_V];
float largest[ROWS], weight[ROWS];
uvec4 keys[UK * HELD_K], values[UK * HELD_V];

// Sums of the subgroups; a row of them is DV sums, then maximum and weight.
const uint PITCH = DV + 2u;
shared float joined[SUBGROUPS * ROWS * PITCH];
// Maximum and weight of the splits of every row.
shared vec2 split_part[SPLIT ? ROWS * SDPA_SPLITS : 1u];

uint sub;                // lane of the key
uint batch, kv, tile;    // of this workgroup
uint64_t k_rows, v_rows; // of the kv head

layout(buffer_reference, scalar, buffer_reference_align = 4) coherent buffer PartsBuf
{
    float v[];
};

// ---- memory ----

// Block `block` of a row of n elements, as its bits.
uvec4 load_block(uint64_t row, uint block, uint n)
{
    if (WIDE)
        return block * DT_PER16 < n ? AT(U128Buf, row, 16, block) : uvec4(0u);
    VAL v[DT_PER16];
    [[unroll]] for (uint i = 0u; i < DT_PER16; i++) {
        uint e = block * DT_PER16 + i;
        v[i] = e < n ? dt_get(row, int64_t(e)) : DT_ZERO;
    }
    return dt_pack(v);
}

// Where a step finds its keys; those behind the end are the last one again.
uint key_of(uint u, uint first, uint end, uint stride, uint group)
{
    return min(first + u * stride + group, end - 1u);
}

uint row_number(uint r)
{
    return min(tile * ROWS + r, GROUP * N_Q - 1u);
}

#ifdef HEADS
#include "attn_heads.glsl"
#else
bool is_in_memory(uint key)
{
    return true;
}
#endif

void load_keys(uint first, uint end, uint stride, uint group)
{
    [[unroll]] for (uint u = 0u; u < UK; u++) {
        uint key = key_of(u, first, end, stride, group);
        uint64_t k = k_rows + uint64_t(int64_t(key) * int64_t(p.k_pos) * int64_t(DT_BYTES));
        uint64_t v = v_rows + uint64_t(int64_t(key) * int64_t(p.v_pos) * int64_t(DT_BYTES));
        bool live = is_in_memory(key);
        [[unroll]] for (uint b = 0u; b < HELD_K; b++)
            keys[u * HELD_K + b] = live ? load_block(k, b * LPK + sub, D) : uvec4(0u);
        [[unroll]] for (uint b = 0u; b < HELD_V; b++)
            values[u * HELD_V + b] = live ? load_block(v, b * LPK + sub, DV) : uvec4(0u);
    }
}

#ifndef HEADS
uvec4 query_block(uint r, uint block)
{
    uint row = row_number(r);
    int64_t at = int64_t(batch) * p.q_batch + int64_t(head_of(kv, row)) * p.q_head +
                 int64_t(position_of(row)) * p.q_pos;
    return load_block(p.q + uint64_t(at * int64_t(DT_BYTES)), block, D);
}
#endif

void load_queries()
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++)
        [[unroll]] for (uint b = 0u; b < HELD_K; b++) {
            VAL v[DT_PER16];
            dt_unpack(query_block(r, b * LPK + sub), v);
            [[unroll]] for (uint i = 0u; i < DT_PER16; i++)
                q[r * DIMS_K + b * DT_PER16 + i] = v[i] * (p.scale * LOG2_E);
        }
}

// ---- one step over keys ----

float over_lanes(float v)
{
    [[unroll]] for (uint mask = 1u; mask < 64u; mask <<= 1)
        if (mask < LPK)
            v += sg_xor(v, mask);
    return v;
}

float score(uint r, uint u)
{
    float sum = 0.0;
    [[unroll]] for (uint b = 0u; b < HELD_K; b++) {
        VAL k[DT_PER16];
        dt_unpack(keys[u * HELD_K + b], k);
        [[unroll]] for (uint i = 0u; i < DT_PER16; i++)
            sum = fma(k[i], q[r * DIMS_K + b * DT_PER16 + i], sum);
    }
    return over_lanes(sum);
}

void step_row(uint r, uint first, uint end, uint stride, uint group)
{
    float s[UK];
    float top = largest[r];
    uint row = row_number(r);
    uint seen = min(keys_of(position_of(row)), end);
    int64_t mask = 0l;
    if (MASK_BOOL || MASK_ADD)
        mask = mask_row(batch, head_of(kv, row), position_of(row));
    [[unroll]] for (uint u = 0u; u < UK; u++) {
        uint key = first + u * stride + group;
        s[u] = score(r, u);
        if (MASK_BOOL || MASK_ADD)
            s[u] = masked(s[u], mask, min(key, p.n_k - 1u));
        s[u] = key < seen ? s[u] : ABSENT;
        top = max(top, s[u]);
    }
    float fade = exp2(largest[r] - top);
    largest[r] = top;
    weight[r] *= fade;
    [[unroll]] for (uint i = 0u; i < DIMS_V; i++)
        sums[r * DIMS_V + i] *= fade;
    [[unroll]] for (uint u = 0u; u < UK; u++) {
        float w = weight_of(s[u], top);
        weight[r] += w;
        [[unroll]] for (uint b = 0u; b < HELD_V; b++) {
            VAL v[DT_PER16];
            dt_unpack(values[u * HELD_V + b], v);
            [[unroll]] for (uint i = 0u; i < DT_PER16; i++) {
                uint at = r * DIMS_V + b * DT_PER16 + i;
                sums[at] = fma(w, v[i], sums[at]);
            }
        }
    }
}

// ---- joining ----

// All lanes of the subgroup that hold the same part of the values.
void join_subgroup(uint r)
{
    for (uint mask = LPK; mask < gl_SubgroupSize; mask <<= 1) {
        float other = sg_xor(largest[r], mask);
        float top = max(largest[r], other);
        float mine = exp2(largest[r] - top), theirs = exp2(other - top);
        largest[r] = top;
        weight[r] = weight[r] * mine + sg_xor(weight[r], mask) * theirs;
        [[unroll]] for (uint i = 0u; i < DIMS_V; i++) {
            uint at = r * DIMS_V + i;
            sums[at] = sums[at] * mine + sg_xor(sums[at], mask) * theirs;
        }
    }
}

void stash_row(uint r)
{
    uint to = (gl_SubgroupID * ROWS + r) * PITCH;
    if (gl_SubgroupInvocationID >= LPK)
        return;
    [[unroll]] for (uint b = 0u; b < HELD_V; b++)
        [[unroll]] for (uint i = 0u; i < DT_PER16; i++) {
            uint e = (b * LPK + sub) * DT_PER16 + i;
            if (e < DV)
                joined[to + e] = sums[r * DIMS_V + b * DT_PER16 + i];
        }
    if (sub == 0u) {
        joined[to + DV] = largest[r];
        joined[to + DV + 1u] = weight[r];
    }
}

// Sum, maximum and weight of element e of row r over the workgroup.
vec3 join_group(uint r, uint e)
{
    float top = ABSENT, sum = 0.0, total = 0.0;
    [[unroll]] for (uint s = 0u; s < SUBGROUPS; s++)
        if (s < gl_NumSubgroups)
            top = max(top, joined[(s * ROWS + r) * PITCH + DV]);
    [[unroll]] for (uint s = 0u; s < SUBGROUPS; s++)
        if (s < gl_NumSubgroups) {
            uint at = (s * ROWS + r) * PITCH;
            float fade = exp2(joined[at + DV] - top);
            sum += joined[at + e] * fade;
            total += joined[at + DV + 1u] * fade;
        }
    return vec3(sum, top, total);
}

void store(uint r, uint e, vec3 v)
{
    uint row = tile * ROWS + r;
    if (row >= GROUP * N_Q)
        return;
    uint head = head_of(kv, row);
    if (SINKS) {
        float sink = sink_of(head);
        float top = max(v.y, sink);
        float fade = exp2(v.y - top);
        v.x *= fade;
        v.z = v.z * fade + exp2(sink - top);
    }
    float result = v.z > 0.0 ? v.x / v.z : 0.0;
    dt_set(p.dst, dst_row(batch, head, position_of(row)) + int64_t(e), result);
}

// First float of the part of a row that a split leaves behind.
uint64_t part_of(uint item, uint split, uint r)
{
    return MODEL_FILES_ADDR + 4ul * PITCH * ((uint64_t(item) * p.splits + split) * ROWS + r);
}

// Leaves this workgroup's part in memory; true in the last workgroup of its rows to do so.
bool leave_part(uint item, uint split)
{
    for (uint at = gl_LocalInvocationIndex; at < ROWS * DV; at += gl_WorkGroupSize.x) {
        uint r = at / DV, e = at % DV;
        vec3 v = join_group(r, e);
        PartsBuf part = PartsBuf(part_of(item, split, r));
        part.v[e] = v.x;
        if (e == 0u) {
            part.v[DV] = v.y;
            part.v[DV + 1u] = v.z;
        }
    }
    return is_last_of(p.splits, COUNTERS_ADDR + uint64_t(item) * COUNTER_BYTES);
}

// Loads go in batches, because one alone takes as long as many.
const uint BATCH = 16u;
float batch_v[BATCH];

void load_batch(uint item, uint first, uint at)
{
    uint r = min(at / DV, ROWS - 1u), e = at % DV;
    [[unroll]] for (uint i = 0u; i < BATCH; i++)
        batch_v[i] = PartsBuf(part_of(item, min(first + i, p.splits - 1u), r)).v[e];
}

vec3 join_parts(uint item, uint at)
{
    uint r = at / DV;
    float top = ABSENT, sum = 0.0, total = 0.0;
    for (uint s = 0u; s < p.splits; s++)
        top = max(top, split_part[r * SDPA_SPLITS + s].x);
    for (uint first = 0u; first < p.splits; first += BATCH) {
        if (first > 0u)
            load_batch(item, first, at);
        [[unroll]] for (uint i = 0u; i < BATCH; i++)
            if (first + i < p.splits) {
                vec2 part = split_part[r * SDPA_SPLITS + first + i];
                float fade = exp2(part.x - top);
                sum = fma(batch_v[i], fade, sum);
                total = fma(part.y, fade, total);
            }
    }
    return vec3(sum, top, total);
}

// The results of the rows from all splits.
void finish_splits(uint item)
{
    uint lane = gl_LocalInvocationIndex;
    load_batch(item, 0u, lane);
    for (uint i = lane; i < ROWS * p.splits; i += gl_WorkGroupSize.x) {
        uint r = i / p.splits, s = i % p.splits;
        PartsBuf part = PartsBuf(part_of(item, s, r));
        split_part[r * SDPA_SPLITS + s] = vec2(part.v[DV], part.v[DV + 1u]);
    }
    barrier();
    for (uint at = lane; at < ROWS * DV; at += gl_WorkGroupSize.x) {
        if (at != lane)
            load_batch(item, 0u, at);
        store(at / DV, at % DV, join_parts(item, at));
    }
}

void main()
{
    uint number = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                  gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint item = SPLIT ? number / p.splits : number;
    uint split = SPLIT ? number - item * p.splits : 0u;
#ifdef HEADS
    more = More(p.more).m;
#else
    if (item >= p.n_items)
        return;
#endif
    uint tiles = (GROUP * N_Q + ROWS - 1u) / ROWS;
    uint head = item / tiles;
    tile = item - head * tiles;
    batch = head / N_KV;
    kv = head - batch * N_KV;
    k_rows = p.k + uint64_t(int64_t(kv) * p.k_head * DT_BYTES);
    v_rows = p.v + uint64_t(int64_t(kv) * p.v_head * DT_BYTES);
    if (batch > 0u) {
        k_rows += uint64_t(int64_t(batch) * KEYS_BATCH * DT_BYTES);
        v_rows += uint64_t(int64_t(batch) * VALUES_BATCH * DT_BYTES);
    }
    sub = gl_SubgroupInvocationID % LPK;
    uint group = (gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID) / LPK;
    uint stride = gl_WorkGroupSize.x / LPK;

    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        largest[r] = ABSENT;
        weight[r] = 0.0;
        [[unroll]] for (uint i = 0u; i < DIMS_V; i++)
            sums[r * DIMS_V + i] = 0.0;
    }
    uint end = keys_of(position_of(row_number(ROWS - 1u)));
    uint chunk = SPLIT ? (end + p.splits - 1u) / p.splits : end;
    uint begin = split * chunk;
    end = min(begin + chunk, end);
    if (begin < end)
        load_keys(begin, end, stride, group);
#ifdef HEADS
    bool has_new = begin < end && end == p.n_k;
    turn_heads(has_new);
#endif
    load_queries();
    for (uint first = begin; first < end; first += UK * stride) {
        if (first != begin)
            load_keys(first, end, stride, group);
#ifdef HEADS
        if (has_new)
            take_new(first, end, stride, group);
#endif
        [[unroll]] for (uint r = 0u; r < ROWS; r++)
            step_row(r, first, end, stride, group);
    }
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        join_subgroup(r);
        stash_row(r);
    }
    barrier();
    if (SPLIT) {
        if (leave_part(item, split))
            finish_splits(item);
        return;
    }
    for (uint at = gl_LocalInvocationIndex; at < ROWS * DV; at += gl_WorkGroupSize.x)
        store(at / DV, at % DV, join_group(at / DV, at % DV));
}
