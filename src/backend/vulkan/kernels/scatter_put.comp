#version 450
// Of the slices of one place the last one is copied, in units of 1 to 16 bytes.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "unit.glsl"
#include "scatter.glsl"

void main()
{
    uint64_t j;
    uint i = lane_item(j);
    if (i >= p.n)
        return;
    uint key = key_at(i);
    bool is_last = i + 1u >= p.n || key_at(min(i + 1u, p.n - 1u)) != key;
    if (key == SCATTER_NOWHERE || !is_last)
        return;
    AT(UnitBuf, p.dst, UNIT_BYTES, dst_offset(key, j)) =
        AT(UnitBuf, p.updates, UNIT_BYTES, update_offset(i) + update_inside(j));
}
