#version 450
// dst[dst_start + walk of i] = src[src_start + walk of i], for elements of any dtype as units of 1
// to 16 bytes. A start is computed from positions in memory, by every lane on its own: they are few,
// and the same for all.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "unit.glsl"
#include "position.glsl"

ARGS(copy_dynamic_args);

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Start
{
    copy_start s;
};

int64_t start_offset(uint64_t address)
{
    int64_t offset = 0l;
    if (!is_given(address))
        return offset;
    Start a = Start(address);
    for (uint k = 0u; k < a.s.n; k++) {
        int64_t position = read_index(a.s.addr, a.s.code, int64_t(k) * a.s.apart);
        offset += place_index(position, int64_t(a.s.dim[k]), int64_t(a.s.last[k])) * a.s.stride[k];
    }
    return offset;
}

int64_t unit_offset(uint64_t walk, uint64_t i)
{
    return is_given(walk) ? walk_offset(Walk(walk), i) : int64_t(i);
}

UNIT get(int64_t start, uint64_t i)
{
    return AT(UnitBuf, p.src_addr, UNIT_BYTES, start + unit_offset(p.src_walk, min(i, p.n - 1ul)));
}

void put(int64_t start, uint64_t i, UNIT v)
{
    if (i < p.n)
        AT(UnitBuf, p.dst_addr, UNIT_BYTES, start + unit_offset(p.dst_walk, i)) = v;
}

// Four loads in flight; the last round repeats one instead of leaving it out.
void main()
{
    uint64_t step = uint64_t(gl_WorkGroupSize.x);
    uint64_t i = grid_index() / step * step * uint64_t(COPY_DYNAMIC_PER_LANE) +
                 uint64_t(gl_LocalInvocationID.x);
    int64_t from = start_offset(p.src_start);
    int64_t to = start_offset(p.dst_start);
    UNIT v0 = get(from, i);
    UNIT v1 = get(from, i + step);
    UNIT v2 = get(from, i + 2ul * step);
    UNIT v3 = get(from, i + 3ul * step);
    put(to, i, v0);
    put(to, i + step, v1);
    put(to, i + 2ul * step, v2);
    put(to, i + 3ul * step, v3);
}
