#version 450
// Convolutions with few channels in a group, which leave the tiles of a matrix product empty.
//
// A workgroup computes a tile of positions by output channels of all groups, an invocation four
// neighbouring channels of POSITIONS positions that are spread over the tile, so that neighbouring
// invocations read neighbouring channels. Weights pass through shared memory, STEP of k at a time.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"

layout(constant_id = 3) const uint LANES = 8; // along channels, four of them each
layout(constant_id = 4) const uint POSITIONS = 4;
layout(constant_id = 5) const uint STEP = 16;
layout(constant_id = 6) const uint FLAGS = 0;
layout(constant_id = 7) const uint EPILOGUE = 0;

ARGS(conv_args);
#include "unfold.glsl"
#include "gemm.glsl"

// FLAGS besides: what four neighbouring output channels read.
#define FLAG_ONE_CHANNEL 1024u   // the same
#define FLAG_OWN_CHANNELS 2048u  // four neighbours that lie in one aligned quad
                                 // else each one of its own group

shared vec4 weights[STEP * LANES];

// The weights of STEP k for the channels of the tile; zeros past the edges.
void stage_weights(uint channel0, uint k0, uint k_end)
{
    const uint total = p.n * p.groups;
    for (uint i = gl_LocalInvocationIndex; i < STEP * LANES * 4u; i += gl_WorkGroupSize.x) {
        uint channel = i / STEP, k = i % STEP;
        float w = 0.0;
        if (channel0 + channel < total && k0 + k < k_end)
            w = dt_get(p.b, int64_t(channel0 + channel) * p.k + k0 + k);
        weights[k * LANES + channel / 4u][channel % 4u] = w;
    }
}

uint64_t group_base[4]; // of the input's first element, for each of the four channels

vec4 inputs_at(int64_t bytes)
{
    if ((FLAGS & FLAG_ONE_CHANNEL) != 0u)
        return vec4(dt_get(group_base[0] + uint64_t(bytes), 0l));
    if ((FLAGS & FLAG_OWN_CHANNELS) != 0u)
        return quad_load(group_base[0] + uint64_t(bytes));
    vec4 x;
    [[unroll]] for (int e = 0; e < 4; e++)
        x[e] = dt_get(group_base[e] + uint64_t(bytes), 0l);
    return x;
}

void put(uint position, uint channel, uint split, vec4 sum)
{
    const uint total = p.n * p.groups;
    if (position >= p.m || channel >= total)
        return;
    uint64_t at = uint64_t(position) * total + channel;
    if (EPILOGUE == EPILOGUE_PARTIAL) {
        at += uint64_t(split) * p.m * total;
        [[unroll]] for (uint e = 0u; e < 4u; e++)
            if (channel + e < total)
                PartBuf(p.dst + at * PART_BYTES).v[e] = sum[e];
    } else if (total % 4u == 0u) {
        quad_store(p.dst + at * DT_BYTES, sum);
    } else {
        [[unroll]] for (uint e = 0u; e < 4u; e++)
            if (channel + e < total)
                dt_set(p.dst, int64_t(at + e), sum[e]);
    }
}

void main()
{
    unfold_init();
    const uint total = p.n * p.groups, rows = gl_WorkGroupSize.x / LANES;
    uint tiles_n = (total + 4u * LANES - 1u) / (4u * LANES);
    uint tiles_m = (p.m + rows * POSITIONS - 1u) / (rows * POSITIONS);
    uint group = mm_group();
    uint tile_n = group % tiles_n, tile_m = group / tiles_n % tiles_m;
    uint split = group / tiles_n / tiles_m;
    if (split >= p.splits)
        return;
    uint lane = gl_LocalInvocationIndex % LANES;
    uint channel = (tile_n * LANES + lane) * 4u;
    uint position0 = tile_m * rows * POSITIONS + gl_LocalInvocationIndex / LANES;

    [[unroll]] for (uint e = 0u; e < 4u; e++)
        group_base[e] =
            p.a + uint64_t(min(channel + e, total - 1u) / p.n) * (unfold.c.d * DT_BYTES);
    Row row[POSITIONS];
    vec4 sum[POSITIONS];
    [[unroll]] for (uint i = 0u; i < POSITIONS; i++) {
        row[i] = unfold_row(min(position0 + i * rows, p.m - 1u));
        sum[i] = vec4(0.0);
    }
    uint k_begin = split * p.k_split, k_end = min(p.k, k_begin + p.k_split);
    for (uint k0 = k_begin; k0 < k_end; k0 += STEP) {
        stage_weights(tile_n * LANES * 4u, k0, k_end);
        barrier();
        for (uint k = 0u; k < min(STEP, k_end - k0); k++) {
            Tap tap = unfold_tap(k0 + k);
            vec4 w = weights[k * LANES + lane];
            [[unroll]] for (uint i = 0u; i < POSITIONS; i++) {
                int64_t bytes;
                if (unfold_find(row[i], tap, bytes))
                    sum[i] = fma(inputs_at(bytes), w, sum[i]);
            }
        }
        barrier();
    }
    [[unroll]] for (uint i = 0u; i < POSITIONS; i++)
        put(position0 + i * rows, channel, split, sum[i]);
}
