#version 450
// Reductions whose lanes hold neighbouring outputs: a workgroup is `team` lanes along a kept axis by
// as many rows of the reduced axes as fit. Wide lanes hold the outputs of 16 consecutive bytes.
// The uvec3 of the loops below is (first row, end, step), counted from the start of the slice.
#extension GL_GOOGLE_include_directive : require
#include "reduce_head.glsl"

#define HELD_MAX DT_PER16
#define HELD(j) (WIDE || (j) == 0) // constant bounds keep the parts in registers

uint64_t first_row; // of this slice; rows of a slice are counted in 32 bits

int64_t row_offset(uint r)
{
    return axis_offset(p.red_walk, p.red_stride, first_row + uint64_t(r));
}

void take_wide(inout PART part[HELD_MAX], uvec4 words, uint r)
{
    VAL v[DT_PER16];
    dt_unpack(words, v);
    [[unroll]] for (int j = 0; j < HELD_MAX; j++)
        part_take(part[j], v[j], r);
}

// Four loads in flight; the last round repeats a load instead of leaving one out.
void rows_wide(inout PART part[HELD_MAX], int64_t base, uvec3 rows)
{
    for (uint r = rows.x; r < rows.y; r += 4u * rows.z) {
        uvec4 w[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            w[k] = AT(U128Buf, p.in_addr, DT_BYTES,
                      base + row_offset(min(r + k * rows.z, rows.y - 1u)));
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            if (r + k * rows.z < rows.y)
                take_wide(part, w[k], uint(first_row) + r + k * rows.z);
    }
}

void rows_single(inout PART part, int64_t base, uvec3 rows)
{
    for (uint r = rows.x; r < rows.y; r += 4u * rows.z) {
        VAL v[4];
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            v[k] = dt_get(p.in_addr, base + row_offset(min(r + k * rows.z, rows.y - 1u)));
        [[unroll]] for (uint k = 0u; k < 4u; k++)
            if (r + k * rows.z < rows.y)
                part_take(part, v[k], uint(first_row) + r + k * rows.z);
    }
}

void rows_parts(inout PART part, int64_t base, uvec3 rows)
{
    for (uint r = rows.x; r < rows.y; r += rows.z)
        part = part_join(part, AT(PartBuf, p.in_addr, PART_BYTES, base + row_offset(r)));
}

void join_rows(inout PART part[HELD_MAX], uint cols)
{
    uint span = gl_WorkGroupSize.x;
    [[unroll]] for (int j = 0; j < HELD_MAX; j++)
        if (HELD(j))
            part[j] = team_join_subgroup(part[j], cols, span);
    if (!team_needs_shared(cols, span))
        return;
    [[unroll]] for (int j = 0; j < HELD_MAX; j++)
        if (HELD(j))
            team_leave(uint(j), part[j]);
    barrier();
    if (lane_id() < cols) {
        [[unroll]] for (int j = 0; j < HELD_MAX; j++)
            if (HELD(j))
                part[j] = team_collect(uint(j), cols, span);
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
    PART part[HELD_MAX];

    [[unroll]] for (int j = 0; j < HELD_MAX; j++)
        part[j] = part_init();
    if (live) {
        int64_t base = axis_offset(p.kept_walk, p.kept_stride, uint64_t(outer)) +
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
    join_rows(part, cols);
    if (!live || lane_id() >= cols)
        return;
    int64_t out_base = axis_offset(p.kept_out_walk, p.kept_out_stride, uint64_t(outer)) +
                       int64_t(x) * width * p.lane_out_stride;
    [[unroll]] for (int j = 0; j < HELD_MAX; j++)
        if (HELD(j))
            put(uint64_t(slice), out_base + int64_t(j) * p.lane_out_stride, part[j]);
}
