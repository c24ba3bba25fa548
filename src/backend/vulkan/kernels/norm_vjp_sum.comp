#version 450
// Adds up what the teams of norm_vjp.comp left of the gradients of weight and bias.
//
// A workgroup takes COLUMNS neighbouring columns; its rows of lanes share the parts, in an order that
// depends on sizes alone.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"

layout(constant_id = 3) const uint COLUMNS = 32u;
layout(constant_id = 4) const uint SLICES = 8u; // COLUMNS * SLICES: the workgroup

ARGS(norm_vjp_sum_args);

shared float sums[COLUMNS * SLICES];

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint lane = gl_LocalInvocationIndex;
    uint column = group * COLUMNS + lane % COLUMNS, slice = lane / COLUMNS;
    bool live = column < p.columns;
    float sum = 0.0;
    for (uint i = slice; i < p.n_parts; i += SLICES)
        if (live)
            sum += AT(F32Buf, p.parts, 4, uint64_t(i) * p.columns + column);
    sums[lane] = sum;
    barrier();
    if (slice > 0u || !live)
        return;
    for (uint i = 1u; i < SLICES; i++)
        sum += sums[lane + i * COLUMNS];
    uint vector = column < p.row_len ? 0u : 1u;
    dt_set(p.dst[vector], int64_t(column - vector * p.row_len), sum);
}
