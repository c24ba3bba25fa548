#version 450
// RMSNorm and LayerNorm over rows of consecutive elements, optionally of a sum of two arrays. A team
// of lanes holds a row in registers, or walks over it in pieces.
//
// Every step rounds to the dtype as single ops would: the sum, the normed value, times weight, plus
// bias. A lane reads all that it needs of an element before it writes there, so that results may lie
// where operands do.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // NORM_*
layout(constant_id = 4) const uint TEAM_PARTS = 256u;
layout(constant_id = 5) const uint BLOCKS = 4u;

const bool CENTRED = (FLAGS & NORM_CENTRED) != 0u;
const bool WEIGHT = (FLAGS & NORM_WEIGHT) != 0u;
const bool BIAS = (FLAGS & NORM_BIAS) != 0u;
const bool ADDEND = (FLAGS & NORM_ADDEND) != 0u;
const bool WIDE = (FLAGS & NORM_WIDE) != 0u;
const bool WALK = (FLAGS & NORM_WALK) != 0u;

ARGS(norm_args);
#include "norm_rows.glsl"

RowShare share;
uint64_t row_number, x_row, addend_row, out_row, sum_row;
float mean, total, factor;

void add_block(const int k)
{
    VAL b[DT_PER16];
    row_get(share, addend_row, 1, row_at(share, row_first, k), b);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        row_v[k][i] = dt_round(row_v[k][i] + b[i]);
}

// The piece of the row that begins with block `first`.
void load_piece(uint first)
{
    row_load(share, x_row, 1, first);
    if (ADDEND) {
        ALL_BLOCKS(add_block)
    }
}

void sum_block(const int k)
{
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        total += row_v[k][i];
}

// Squares of differences from the mean, which the zeros outside of the row must not have.
void square_block(const int k)
{
    uint at = row_at(share, row_first, k);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        float d = row_has(share, at + uint(i) * row_step(share)) ? row_v[k][i] - mean : 0.0;
        total = fma(d, d, total);
    }
}

void add_sums()
{
    if (CENTRED) {
        ALL_BLOCKS(sum_block)
    } else {
        total = row_squares(total);
    }
}

void add_squares()
{
    ALL_BLOCKS(square_block)
}

void finish_block(const int k)
{
    uint at = row_at(share, row_first, k);
    if (ADDEND)
        row_put(share, sum_row, at, row_v[k]);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        row_v[k][i] = (row_v[k][i] - mean) * factor;
    VAL w[DT_PER16];
    if (WEIGHT) {
        row_get(share, p.weight, p.weight_stride, at, w);
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            row_v[k][i] = dt_round(row_v[k][i]) * w[i];
    }
    if (BIAS) {
        row_get(share, p.bias, p.bias_stride, at, w);
        [[unroll]] for (int i = 0; i < DT_PER16; i++) {
            precise VAL v = dt_round(row_v[k][i]) + w[i];
            row_v[k][i] = v;
        }
    }
    row_put(share, out_row, at, row_v[k]);
}

void finish_piece()
{
    ALL_BLOCKS(finish_block)
}

// f over all pieces of the row: the one that is in registers, or each in turn.
uint pieces_end;
#define ALL_PIECES(f)                                                                              \
    if (!WALK)                                                                                     \
        f();                                                                                       \
    else                                                                                           \
        for (uint first = 0u; first < pieces_end; first += BLOCKS * share.lanes) {                 \
            load_piece(first);                                                                     \
            f();                                                                                   \
        }

int64_t offset_of(uint64_t walk, int64_t stride, bool live)
{
    if (walk != 0ul && live)
        return walk_offset(Walk(walk), row_number);
    return int64_t(row_number) * stride;
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint team = 1u << p.log2_team;
    row_number = uint64_t(group) * uint64_t(gl_WorkGroupSize.x >> p.log2_team) +
                 uint64_t(lane_id() >> p.log2_team);
    bool live = row_number < p.n_rows;
    share.lane = lane_id() & (team - 1u);
    share.lanes = p.lanes;
    share.n = live ? p.row_len : 0u;
    x_row = p.x + uint64_t(offset_of(p.x_walk, p.x_stride, live) * int64_t(DT_BYTES));
    uint64_t dense = row_number * uint64_t(p.row_len) * uint64_t(DT_BYTES);
    out_row = p.dst + dense;
    if (ADDEND) {
        addend_row = p.addend +
                     uint64_t(offset_of(p.addend_walk, p.addend_stride, live) * int64_t(DT_BYTES));
        sum_row = p.sum + dense;
    }
    pieces_end = (p.row_len + DT_PER16 - 1u) / DT_PER16;

    if (!WALK)
        load_piece(0u);
    mean = 0.0;
    total = 0.0;
    ALL_PIECES(add_sums)
    float n = float(p.row_len);
    if (CENTRED) {
        mean = team_join(total, 1u, team) / n;
        total = 0.0;
        ALL_PIECES(add_squares)
    }
    factor = inversesqrt(team_join(total, 1u, team) / n + p.eps);
    ALL_PIECES(finish_piece)
}
