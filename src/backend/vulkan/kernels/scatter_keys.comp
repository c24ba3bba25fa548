#version 450
// The number of the place in the result for each position of a scatter: coordinates along the axes that
// positions go along, row by row.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "index_array.glsl"

ARGS(scatter_keys_args);

void main()
{
    uint64_t i = grid_index();
    if (i >= uint64_t(p.n))
        return;
    int64_t key = walk_offset(Walk(p.base_walk), i);
    bool is_inside = true;
    for (uint k = 0u; k < p.n_index; k++) {
        Index index = index_array(p.index_addr, k);
        int64_t value = index_value(p.index_addr, k, i);
        value += index.x.dim & (value >> 63);
        is_inside = is_inside && value >= 0l && value <= index.x.last;
        key += value * index.x.stride;
    }
    AT(U32Buf, p.keys, 4, i) = is_inside ? uint(key) : SCATTER_NOWHERE;
}
