#version 450
// Reductions whose lanes share an output: neighbouring lanes read neighbouring elements of the
// reduced axes. A team of lanes makes one output, or one slice of it. A short slice has a workgroup, and
// the last workgroup of an output joins its slices: another dispatch would take longer than all.
#extension GL_GOOGLE_include_directive : require
#include "reduce_head.glsl"
#include "last.glsl"

layout(constant_id = 9) const bool LAST_JOINS = false;

layout(buffer_reference, scalar, buffer_reference_align = PART_BYTES >= 8 ? 8 : 4)
    coherent buffer SliceBuf
{
    PART v[];
};

uint team;  // lanes per team
uint lane;  // of this invocation in its team

void take_words(inout PART part, uvec4 words, uint index, bool counts)
{
    VAL v[DT_PER16];
    PART next = part;
    dt_unpack(words, v);
    part_take_block(next, v, index);
    part = part_select(part, next, counts);
}

// Elements [begin, end) of a run of consecutive elements whose first one is at address. Loads of 16
// bytes where the address allows, four of them in flight; single elements at both ends.
void take_run(inout PART part, uint64_t address, uint begin, uint end)
{
    uint64_t first = address + uint64_t(begin) * uint64_t(DT_BYTES);
    uint n = end - begin;
    uint head = min(n, ((16u - (uint(first) & 15u)) & 15u) / uint(DT_BYTES));
    uint blocks = (n - head) / uint(DT_PER16);
    uint tail = head + blocks * uint(DT_PER16);
    U128Buf body = U128Buf(first + uint64_t(head) * uint64_t(DT_BYTES));
    uint index = begin + head;

    for (uint i = lane; i < n - (tail - head); i += team) {
        uint at = begin + (i < head ? i : i + (tail - head));
        part_take(part, dt_get(address, int64_t(at)), at);
    }
    if (LAST_JOINS) {
        for (uint b = lane; b < blocks; b += team)
            take_words(part, body.v[b], index + b * uint(DT_PER16), true);
        return;
    }
    // The last round repeats a load instead of leaving one out: all four stay in flight.
    for (uint b = lane; b < blocks; b += 4u * team) {
        uvec4 w[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            w[k] = body.v[min(b + k * team, blocks - 1u)];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            take_words(part, w[k], index + (b + k * team) * uint(DT_PER16), b + k * team < blocks);
    }
}

void take_runs(inout PART part, uint64_t address, uint64_t begin, uint64_t end)
{
    uint64_t run = uint64_t(p.run);
    while (begin < end) {
        uint64_t row = p.n_red == run ? 0ul : begin / run;
        uint from = uint(begin - row * run);
        uint to = uint(min(run, uint64_t(from) + (end - begin)));
        int64_t offset = red_offset(row * run);
        take_run(part, address + uint64_t(offset * int64_t(DT_BYTES)), from, to);
        begin += uint64_t(to - from);
    }
}

VAL element(uint64_t address, uint64_t r)
{
    return dt_get(address, red_offset(r));
}

// Any strides: one element at a time, four loads in flight. Written out, because loops around a walk
// are not unrolled.
void take_elements(inout PART part, uint64_t address, uint64_t begin, uint64_t end)
{
    uint64_t step = uint64_t(team);
    for (uint64_t r = begin + uint64_t(lane); r < end; r += 4ul * step) {
        VAL v0 = element(address, r);
        VAL v1 = element(address, min(r + step, end - 1ul));
        VAL v2 = element(address, min(r + 2ul * step, end - 1ul));
        VAL v3 = element(address, min(r + 3ul * step, end - 1ul));
        part_take_if(part, v0, uint(r), true);
        part_take_if(part, v1, uint(r + step), r + step < end);
        part_take_if(part, v2, uint(r + 2ul * step), r + 2ul * step < end);
        part_take_if(part, v3, uint(r + 3ul * step), r + 3ul * step < end);
    }
}

PART join_subgroup(PART v)
{
    for (uint mask = 1u; mask < gl_SubgroupSize; mask <<= 1)
        v = part_join(v, part_xor(v, mask));
    return v;
}

// The parts of all lanes, for those of the first subgroup.
PART join_in_first(PART v)
{
    v = join_subgroup(v);
    if (gl_NumSubgroups == 1u)
        return v;
    if (gl_SubgroupInvocationID == 0u)
        team_parts[gl_SubgroupID] = v;
    barrier();
    v = part_init();
    for (uint i = gl_SubgroupInvocationID; i < gl_NumSubgroups; i += gl_SubgroupSize)
        v = part_join(v, team_parts[i]);
    return gl_SubgroupID == 0u ? join_subgroup(v) : v;
}

uint64_t part_at(uint64_t o, uint slice)
{
    return p.parts + (o * uint64_t(p.slices) + uint64_t(slice)) * uint64_t(PART_BYTES);
}

// One subgroup leaves the part of its slice in memory; the last one to do so joins them all.
void finish_slice(uint64_t o, uint slice, PART part)
{
    bool last = false;
    if (gl_SubgroupInvocationID == 0u) {
        SliceBuf(part_at(o, slice)).v[0] = part;
        last = arrive_last(p.slices, p.counters + o * uint64_t(COUNTER_BYTES));
    }
    subgroupBarrier();
    if (subgroupShuffle(uint(last), 0u) == 0u)
        return;
    part = part_init();
    for (uint s = gl_SubgroupInvocationID; s < p.slices; s += 4u * gl_SubgroupSize) {
        PART v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            v[k] = SliceBuf(part_at(o, min(s + k * gl_SubgroupSize, p.slices - 1u))).v[0];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            part = part_select(part, part_join(part, v[k]), s + k * gl_SubgroupSize < p.slices);
    }
    part = join_subgroup(part);
    if (gl_SubgroupInvocationID == 0u)
        part_store(p.out_addr, int64_t(o), part);
}

void main()
{
    team = 1u << p.log2_team;
    lane = lane_id() & (team - 1u);
    uint64_t item = uint64_t(group_index()) * uint64_t(gl_WorkGroupSize.x >> p.log2_team) +
                    uint64_t(lane_id() >> p.log2_team);
    uint64_t slice = 0ul, o = item;
    if (p.slices > 1u) {
        slice = uint64_t(uint(item) / uint(p.n_out));
        o = item - slice * p.n_out;
    }
    bool live = slice < uint64_t(p.slices) && o < p.n_out;
    PART part = part_init();

    if (live) {
        uint64_t address = p.in_addr + uint64_t(kept_offset(p.kept_walk, p.kept_stride, o) *
                                                int64_t(DT_BYTES));
        uint64_t begin = slice * p.chunk;
        uint64_t end = min(p.n_red, begin + p.chunk);
        if (WIDE)
            take_runs(part, address, begin, end);
        else
            take_elements(part, address, begin, end);
    }
    if (LAST_JOINS) {
        part = join_in_first(part);
        if (live && gl_SubgroupID == 0u)
            finish_slice(o, uint(slice), part);
        return;
    }
    part = team_join(part, 1u, team);
    if (live && lane == 0u)
        put(slice, int64_t(o), part);
}
