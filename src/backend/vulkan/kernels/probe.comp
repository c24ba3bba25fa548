#version 450
// A kernel whose result is easy to predict; the runtime's tests run it.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

ARGS(probe_args);

void main()
{
    uint i = uint(grid_index());
    if (i >= p.n)
        return;
    uint x = is_given(p.in_addr) ? U32Buf(p.in_addr).v[i] : i;
    U32Buf(p.out_addr).v[i] = x * p.mul + p.add;
}
