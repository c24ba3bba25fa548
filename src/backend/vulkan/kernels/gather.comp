#version 450
// out[i, j] = src[indices of position i, j in the slice], for elements of any dtype as units of 1 to
// 16 bytes. An index that is negative counts from the end; one that is out of range is clamped.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "unit.glsl"
#include "index_array.glsl"

ARGS(gather_args);

// Offset of the slice that position i selects.
int64_t position_offset(uint64_t i)
{
    int64_t offset = is_given(p.base_walk) ? walk_offset(Walk(p.base_walk), i) : 0l;
    for (uint k = 0u; k < p.n_index; k++) {
        Index index = index_array(p.index_addr, k);
        int64_t value = index_value(p.index_addr, k, i);
        offset += place_index(value, index.x.dim, index.x.last) * index.x.stride;
    }
    return offset;
}

int64_t source_offset(uint64_t unit)
{
    bool small = p.n <= 0xfffffffful; // 64-bit divisions cost a subroutine
    uint64_t i = small ? uint64_t(uint(unit) / uint(p.slice)) : unit / p.slice;
    uint64_t j = unit - i * p.slice;
    int64_t inside = is_given(p.slice_walk) ? walk_offset(Walk(p.slice_walk), j) : int64_t(j);
    return position_offset(i) + inside;
}

void put(uint64_t to, UNIT v)
{
    if (to < p.n)
        AT(UnitBuf, p.out_addr, UNIT_BYTES, to) = v;
}

// Four loads in flight; the last round repeats one instead of leaving it out.
void main()
{
    uint64_t step = uint64_t(gl_WorkGroupSize.x);
    uint64_t to = grid_index() / step * step * uint64_t(GATHER_PER_LANE) +
                  uint64_t(gl_LocalInvocationID.x);
    int64_t from0 = source_offset(min(to, p.n - 1ul));
    int64_t from1 = source_offset(min(to + step, p.n - 1ul));
    int64_t from2 = source_offset(min(to + 2ul * step, p.n - 1ul));
    int64_t from3 = source_offset(min(to + 3ul * step, p.n - 1ul));
    UNIT v0 = AT(UnitBuf, p.src_addr, UNIT_BYTES, from0);
    UNIT v1 = AT(UnitBuf, p.src_addr, UNIT_BYTES, from1);
    UNIT v2 = AT(UnitBuf, p.src_addr, UNIT_BYTES, from2);
    UNIT v3 = AT(UnitBuf, p.src_addr, UNIT_BYTES, from3);
    put(to, v0);
    put(to + step, v1);
    put(to + 2ul * step, v2);
    put(to + 3ul * step, v3);
}
