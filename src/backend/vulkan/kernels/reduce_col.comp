#version 450
// Reductions whose lanes hold neighbouring outputs: a workgroup is `team` lanes along a kept axis by
// as many rows of the reduced axes as fit. Wide lanes hold the outputs of 16 consecutive bytes.
// The uvec3 of the loops below is (first row, end, step), counted from the start of the slice.
#extension GL_GOOGLE_include_directive : require
#include "reduce_head.glsl"

uint64_t first_row; // of this slice; rows of a slice are counted in 32 bits

int64_t row_offset(uint r)
{
    return red_offset(first_row + uint64_t(r));
}

void take_wide(inout PART part[DT_PER16], uvec4 words, uint r, bool counts)
{
    VAL v[DT_PER16];
    dt_unpack(words, v);
    [[unroll]] for (int j = 0; j < DT_PER16; j++)
        part_take_if(part[j], v[j], uint(first_row) + r, counts);
}

uvec4 load_wide(int64_t base, uint r)
{
    return AT(U128Buf, p.in_addr, DT_BYTES, base + row_offset(r));
}

// Four loads in flight; the last round repeats a load instead of leaving one out. Written out,
// because loops around a walk are not unrolled.
void rows_wide(inout PART part[DT_PER16], int64_t base, uvec3 rows)
{
    uint step = rows.z, last = rows.y - 1u;
    for (uint r = rows.x; r < rows.y; r += 4u * step) {
        uvec4 w0 = load_wide(base, r);
        uvec4 w1 = load_wide(base, min(r + step, last));
        uvec4 w2 = load_wide(base, min(r + 2u * step, last));
        uvec4 w3 = load_wide(base, min(r + 3u * step, last));
        take_wide(part, w0, r, true);
        take_wide(part, w1, r + step, r + step <= last);
        take_wide(part, w2, r + 2u * step, r + 2u * step <= last);
        take_wide(part, w3, r + 3u * step, r + 3u * step <= last);
    }
}

VAL load_single(int64_t base, uint r)
{
    return dt_get(p.in_addr, base + row_offset(r));
}

void rows_single(inout PART part, int64_t base, uvec3 rows)
{
    uint step = rows.z, last = rows.y - 1u, index = uint(first_row);
    for (uint r = rows.x; r < rows.y; r += 4u * step) {
        VAL v0 = load_single(base, r);
        VAL v1 = load_single(base, min(r + step, last));
        VAL v2 = load_single(base, min(r + 2u * step, last));
        VAL v3 = load_single(base, min(r + 3u * step, last));
        part_take_if(part, v0, index + r, true);
        part_take_if(part, v1, index + r + step, r + step <= last);
        part_take_if(part, v2, index + r + 2u * step, r + 2u * step <= last);
        part_take_if(part, v3, index + r + 3u * step, r + 3u * step <= last);
    }
}

PART load_part(int64_t base, uint r)
{
    return AT(PartBuf, p.in_addr, PART_BYTES, base + row_offset(r));
}

void rows_parts(inout PART part, int64_t base, uvec3 rows)
{
    uint step = rows.z, last = rows.y - 1u;
    for (uint r = rows.x; r < rows.y; r += 4u * step) {
        PART a = load_part(base, r);
        PART b = load_part(base, min(r + step, last));
        PART c = load_part(base, min(r + 2u * step, last));
        PART d = load_part(base, min(r + 3u * step, last));
        part = part_join(part, a);
        part = part_select(part, part_join(part, b), r + step <= last);
        part = part_select(part, part_join(part, c), r + 2u * step <= last);
        part = part_select(part, part_join(part, d), r + 3u * step <= last);
    }
}

// As team_join, for all held outputs between the same two barriers; the lanes of the first row have
// the result.
void join_wide(inout PART part[DT_PER16], uint cols)
{
    uint span = gl_WorkGroupSize.x;
    for (uint mask = cols; mask < min(span, gl_SubgroupSize); mask <<= 1) {
        [[unroll]] for (int j = 0; j < DT_PER16; j++)
            part[j] = part_join(part[j], part_xor(part[j], mask));
    }
    if (!team_needs_shared(cols, span))
        return;
    [[unroll]] for (int j = 0; j < DT_PER16; j++)
        team_parts[uint(j) * span + lane_id()] = part[j];
    barrier();
    uint step = team_step(cols);
    for (uint k = (lane_id() & (cols - 1u)) + step; k < span; k += step) {
        [[unroll]] for (int j = 0; j < DT_PER16; j++)
            part[j] = part_join(part[j], team_parts[uint(j) * span + k]);
    }
}

void main()
{
    uint cols = 1u << p.log2_team;
    uint blocks = (p.run + cols - 1u) >> p.log2_team;
    uint group = group_index();
    uint rest = group / blocks;
    uint slice = rest / p.n_outer;
    uint outer = rest - slice * p.n_outer;
    uint x = (group - rest * blocks) * cols + (lane_id() & (cols - 1u));
    bool live = x < p.run && slice < p.slices;
    int64_t width = WIDE ? int64_t(DT_PER16) : 1l;
    PART part[DT_PER16];

    [[unroll]] for (int j = 0; j < DT_PER16; j++)
        part[j] = part_init();
    if (live) {
        int64_t base = kept_offset(p.kept_walk, p.kept_stride, uint64_t(outer)) +
                       int64_t(x) * width * p.lane_stride;
        first_row = uint64_t(slice) * p.chunk;
        uvec3 rows = uvec3(lane_id() >> p.log2_team, uint(min(p.n_red - first_row, p.chunk)),
                           gl_WorkGroupSize.x >> p.log2_team);
        if (IN_PARTS)
            rows_parts(part[0], base, rows);
        else if (WIDE)
            rows_wide(part, base, rows);
        else
            rows_single(part[0], base, rows);
    }
    if (WIDE)
        join_wide(part, cols);
    else
        part[0] = team_join(part[0], cols, gl_WorkGroupSize.x);
    if (!live || lane_id() >= cols)
        return;
    uint64_t out_walk = p.kept_walk + uint64_t(WALK_BYTES);
    int64_t out_base = kept_offset(out_walk, p.kept_out_stride, uint64_t(outer)) +
                       int64_t(x) * width * p.lane_out_stride;
    put(uint64_t(slice), out_base, part[0]);
    if (WIDE) {
        [[unroll]] for (int j = 1; j < DT_PER16; j++)
            put(uint64_t(slice), out_base + int64_t(j) * p.lane_out_stride, part[j]);
    }
}
