#version 450
// Softmax over rows of consecutive elements. A team of lanes holds a whole row in registers,
// SOFTMAX_BLOCKS times 16 bytes per lane; with HAS_PARTS the rows are longer than that, their largest
// values and sums are there already (logsumexp parts), and a workgroup scales a piece of a row.
//
// Rows start at any address, so blocks are counted from the 16-byte boundary at or below the first
// element, and a block that sticks out of its row is read and written element by element.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"
#include "subgroup.glsl"
#include "logsumexp_ops.glsl"

layout(constant_id = 3) const bool HAS_PARTS = false;
layout(constant_id = 4) const uint TEAM_PARTS = 256u;

PART part_xor(PART v, uint mask)
{
    return sg_xor(v, mask);
}
#include "team.glsl"

ARGS(softmax_args);
BUF(PartBuf, PART, 8);

bool is_inside(int64_t first)
{
    return first >= 0l && first + int64_t(DT_PER16) <= int64_t(p.row_len);
}

uvec4 load_block(uint64_t row, int64_t first)
{
    if (is_inside(first))
        return AT(U128Buf, row, DT_BYTES, first);
    VAL v[DT_PER16];
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        int64_t at = first + int64_t(i);
        v[i] = DT_LOWEST;
        if (at >= 0l && at < int64_t(p.row_len))
            v[i] = dt_get(row, at);
    }
    return dt_pack(v);
}

void store_block(uint64_t row, int64_t first, VAL v[DT_PER16])
{
    uint64_t address = row + uint64_t(first * int64_t(DT_BYTES));
    if (is_inside(first) && (uint(address) & 15u) == 0u) {
        U128Buf(address).v[0] = dt_pack(v);
        return;
    }
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        int64_t at = first + int64_t(i);
        if (at >= 0l && at < int64_t(p.row_len))
            dt_set(row, at, v[i]);
    }
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint team = 1u << p.log2_team;
    uint lane = lane_id() & (team - 1u);
    uint64_t r = uint64_t(group / p.pieces) * uint64_t(gl_WorkGroupSize.x >> p.log2_team) +
                 uint64_t(lane_id() >> p.log2_team);
    bool live = r < p.n_rows;
    int64_t offset = p.row_walk == 0ul ? int64_t(r) * p.row_stride :
                     live ? walk_offset(Walk(p.row_walk), r) : 0l;
    uint64_t in_row = p.in_addr + uint64_t(offset * int64_t(DT_BYTES));
    uint64_t out_row = p.out_addr + r * uint64_t(p.row_len) * uint64_t(DT_BYTES);
    int64_t shift = int64_t((uint(in_row) & 15u) / uint(DT_BYTES));
    int64_t first[SOFTMAX_BLOCKS];
    bool held[SOFTMAX_BLOCKS];
    VAL v[SOFTMAX_BLOCKS][DT_PER16];

    [[unroll]] for (int k = 0; k < SOFTMAX_BLOCKS; k++) {
        uint block = ((group % p.pieces) * uint(SOFTMAX_BLOCKS) + uint(k)) * team + lane;
        first[k] = int64_t(block) * int64_t(DT_PER16) - shift;
        held[k] = live && first[k] < int64_t(p.row_len);
    }
    uvec4 words[SOFTMAX_BLOCKS];
    [[unroll]] for (int k = 0; k < SOFTMAX_BLOCKS; k++)
        if (held[k])
            words[k] = load_block(in_row, first[k]);

    PART part = part_init();
    [[unroll]] for (int k = 0; k < SOFTMAX_BLOCKS; k++)
        if (held[k]) {
            dt_unpack(words[k], v[k]);
            [[unroll]] for (int i = 0; i < DT_PER16; i++)
                part.x = larger(part.x, v[k][i]);
        }
    if (HAS_PARTS && live)
        part = AT(PartBuf, p.parts_addr, PART_BYTES, r);
    float largest = part.x;
    [[unroll]] for (int k = 0; k < SOFTMAX_BLOCKS; k++)
        if (held[k]) {
            [[unroll]] for (int i = 0; i < DT_PER16; i++) {
                v[k][i] = exp(v[k][i] - largest);
                if (!HAS_PARTS)
                    part.y += v[k][i];
            }
        }
    if (!HAS_PARTS)
        part = team_join(part, 1u, team);
    float scale = exp(largest - part.x) / part.y;
    [[unroll]] for (int k = 0; k < SOFTMAX_BLOCKS; k++)
        if (held[k]) {
            [[unroll]] for (int i = 0; i < DT_PER16; i++)
                v[k][i] *= scale;
            store_block(out_row, first[k], v[k]);
        }
}
