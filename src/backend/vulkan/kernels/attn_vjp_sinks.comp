#version 450
// Gradients of attention's sinks from what attn_vjp.comp knows of every row: less the sink's weight
// times the row's mean cotangent, for all positions of a head in all batches. A workgroup takes a head.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // SDPA_*
layout(constant_id = 4) const uint GROUP = 1u;
const uint DV = 0u;

ARGS(sdpa_vjp_args);
#include "attn.glsl"

float add(float a, float b)
{
    return a + b;
}
WG_REDUCE(total, float, add)

void main()
{
    uint head = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                gl_NumWorkGroups.y * gl_WorkGroupID.z);
    if (head >= p.n_items)
        return;
    uint kv = head / GROUP;
    float sink = sink_of(head), sum = 0.0;
    for (uint i = gl_LocalInvocationIndex; i < p.n_batch * p.n_q; i += gl_WorkGroupSize.x) {
        uint batch = i / p.n_q, position = i - batch * p.n_q;
        uint64_t row = (uint64_t(batch) * p.n_kv + kv) * (uint64_t(GROUP) * p.n_q) +
                       position * GROUP + head % GROUP;
        vec4 stats = uintBitsToFloat(AT(U128Buf, p.stats, 16, row));
        sum -= exp2(sink - stats.x) * stats.y * stats.z;
    }
    sum = total_wg(sum);
    if (gl_LocalInvocationIndex == 0u)
        dt_set(p.dst[0], int64_t(head), sum);
}
