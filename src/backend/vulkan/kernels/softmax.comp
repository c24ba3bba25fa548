#version 450
// Softmax over rows of consecutive elements. A team of lanes holds a whole row in registers, some
// blocks of 16 bytes per lane; with HAS_PARTS the rows are longer than that, their largest values and
// sums are there already (logsumexp parts), and a workgroup scales a piece of a row.
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
layout(constant_id = 5) const bool HAS_EDGES = true; // rows start or end inside of a block

PART part_xor(PART v, uint mask)
{
    return sg_xor(v, mask);
}
#include "team.glsl"

ARGS(softmax_args);
BUF(PartBuf, PART, 8);

// The blocks that this lane holds. Everything below is written out for each of them instead of
// looping, so that they stay in registers. A row with edges touches one block more than its length
// asks for: the fifth block keeps that from doubling the team.
#define MAX_BLOCKS (SOFTMAX_BLOCKS + 1)
uvec4 words[MAX_BLOCKS];
VAL v[MAX_BLOCKS][DT_PER16];
int64_t first[MAX_BLOCKS]; // element of the row that the block begins with
bool held[MAX_BLOCKS];
uint64_t in_row, out_row;
float largest; // of the row, or of what this lane holds of it
#define ALL_BLOCKS(f) f(0); f(1); f(2); f(3); if (HAS_EDGES) f(4)

bool is_inside(int64_t at)
{
    if (!HAS_EDGES)
        return true;
    return at >= 0l && at + int64_t(DT_PER16) <= int64_t(p.row_len);
}

// Element i of a block at an edge of the row, by its bits.
#if DT_BYTES == 4
#define BITS uint
#define BitsBuf U32Buf
#else
#define BITS uint16_t
#define BitsBuf U16Buf
#endif
#define BLOCK_WORD(i) ((i) * DT_BYTES / 4)
#define BLOCK_SHIFT(i) (8 * ((i) * DT_BYTES % 4))

void load(const int k)
{
    if (!held[k])
        return;
    if (is_inside(first[k])) {
        words[k] = AT(U128Buf, in_row, DT_BYTES, first[k]);
        return;
    }
    uint lowest = dt_to_bits(DT_LOWEST);
    uvec4 w = uvec4(0u);
    for (int i = 0; i < DT_PER16; i++) {
        int64_t at = first[k] + int64_t(i);
        uint bits = lowest;
        if (at >= 0l && at < int64_t(p.row_len))
            bits = uint(AT(BitsBuf, in_row, DT_BYTES, at));
        w[BLOCK_WORD(i)] |= bits << BLOCK_SHIFT(i);
    }
    words[k] = w;
}

void unpack(const int k)
{
    if (!held[k])
        return;
    dt_unpack(words[k], v[k]);
    if (!HAS_PARTS) {
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            largest = larger(largest, v[k][i]);
    }
}

float sum; // of the exponentials that this lane holds

void exponentiate(const int k)
{
    if (!held[k])
        return;
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        v[k][i] = exp(v[k][i] - largest);
        sum += v[k][i];
    }
}

float scale;

void store(const int k)
{
    if (!held[k])
        return;
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[k][i] *= scale;
    uvec4 w = dt_pack(v[k]);
    uint64_t address = out_row + uint64_t(first[k] * int64_t(DT_BYTES));
    if (is_inside(first[k]) && (!HAS_EDGES || (uint(address) & 15u) == 0u)) {
        U128Buf(address).v[0] = w;
        return;
    }
    for (int i = 0; i < DT_PER16; i++) {
        int64_t at = first[k] + int64_t(i);
        if (at >= 0l && at < int64_t(p.row_len))
            AT(BitsBuf, out_row, DT_BYTES, at) = BITS(w[BLOCK_WORD(i)] >> BLOCK_SHIFT(i));
    }
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint team = 1u << p.log2_team;
    uint lane = lane_id() & (team - 1u);
    uint64_t row = uint64_t(group / p.pieces) * uint64_t(gl_WorkGroupSize.x >> p.log2_team) +
                   uint64_t(lane_id() >> p.log2_team);
    bool live = row < p.n_rows;
    int64_t offset = int64_t(row) * p.row_stride;
    if (is_given(p.row_walk) && live)
        offset = walk_offset(Walk(p.row_walk), row);
    in_row = p.in_addr + uint64_t(offset * int64_t(DT_BYTES));
    out_row = p.out_addr + row * uint64_t(p.row_len) * uint64_t(DT_BYTES);
    int64_t shift = int64_t((uint(in_row) & 15u) / uint(DT_BYTES));
    uint per_lane = uint(HAS_EDGES ? MAX_BLOCKS : SOFTMAX_BLOCKS);
    [[unroll]] for (int k = 0; k < MAX_BLOCKS; k++) {
        uint block = ((group % p.pieces) * per_lane + uint(k)) * team + lane;
        first[k] = int64_t(block) * int64_t(DT_PER16) - shift;
        held[k] = first[k] < (live ? int64_t(p.row_len) : -16l);
    }

    ALL_BLOCKS(load);
    PART part = part_init();
    if (HAS_PARTS && live)
        part = AT(PartBuf, p.parts_addr, PART_BYTES, row);
    largest = part.x;
    sum = 0.0;
    ALL_BLOCKS(unpack);
    ALL_BLOCKS(exponentiate);
    if (!HAS_PARTS)
        part = team_join(vec2(largest, sum), 1u, team);
    scale = exp(largest - part.x) / part.y;
    ALL_BLOCKS(store);
}
