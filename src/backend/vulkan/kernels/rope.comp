#version 450
// Rows of heads on their way from one array to another: normed (RMSNorm), rotated by their position,
// or both, each step rounded as the single op rounds it. Up to ROPE_PARTS tensors share a dispatch.
//
// A team of lanes works on a row. The norm reads the row as norm.comp does. Where that leaves the two
// halves of every pair with one lane, the lane turns what it holds; else each lane reads its pairs
// again. A row may be written over itself.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"
#include "math.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // ROPE_*
layout(constant_id = 4) const uint TEAM_PARTS = 256u;
layout(constant_id = 5) const uint BLOCKS = 2u;

const bool TRADITIONAL = (FLAGS & ROPE_TRADITIONAL) != 0u;
const bool INVERSE = (FLAGS & ROPE_INVERSE) != 0u;
const bool WIDE = (FLAGS & ROPE_WIDE) != 0u;
const bool FREQS = (FLAGS & ROPE_FREQS) != 0u;
const bool TURNS = (FLAGS & ROPE_TURNS) != 0u;
const bool NORMS = (FLAGS & ROPE_NORMS) != 0u;
const bool HELD = (FLAGS & ROPE_HELD) != 0u;

ARGS(rope_args);
#include "norm_rows.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Parts
{
    rope_part part[ROPE_PARTS];
};

#define TURN_TABLE p.table
#define TURN_STRIDE p.table_stride
#define TURN_PAIRS p.pairs
#define ROW_SIZE p.size
#include "rope_rows.glsl"

uint64_t dst_row;

vec2 rotated(VAL a, VAL b, uint pair)
{
    return turn_by(a, b, turn_of(pair));
}

// ---- elements ----

VAL get_one(uint e)
{
    VAL v = dt_get(src_row, int64_t(e) * int64_t(part.src_stride));
    if (!row_is_normed())
        return v;
    VAL w = DT_ONE;
    if ((part.flags & ROPE_PART_WEIGHT) != 0u)
        w = dt_get(part.weight, int64_t(e) * int64_t(part.weight_stride));
    return dt_round(weighed(v, w));
}

void put_one(uint e, VAL v)
{
    dt_set(dst_row, int64_t(e) * int64_t(part.dst_stride), v);
}

void turn_one(uint pair)
{
    uint a = TRADITIONAL ? 2u * pair : pair;
    uint b = TRADITIONAL ? a + 1u : a + p.pairs;
    vec2 v = rotated(get_one(a), get_one(b), pair);
    put_one(a, v.x);
    put_one(b, v.y);
}

// ---- blocks of 16 bytes ----

void get_block(uint e, out VAL v[DT_PER16])
{
    dt_unpack(AT(U128Buf, src_row, DT_BYTES, e), v);
    if (!row_is_normed())
        return;
    VAL w[DT_PER16];
    if ((part.flags & ROPE_PART_WEIGHT) != 0u)
        dt_unpack(AT(U128Buf, part.weight, DT_BYTES, e), w);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[i] = dt_round(weighed(v[i], w[i]));
}

void put_block(uint e, VAL v[DT_PER16])
{
    AT(U128Buf, dst_row, DT_BYTES, e) = dt_pack(v);
}

void turn_block(uint e)
{
    VAL a[DT_PER16], b[DT_PER16];
    get_block(e, a);
    if (TRADITIONAL) {
        [[unroll]] for (int i = 0; i < DT_PER16; i += 2) {
            vec2 v = rotated(a[i], a[i + 1], (e + uint(i)) / 2u);
            a[i] = v.x;
            a[i + 1] = v.y;
        }
    } else {
        get_block(e + p.pairs, b);
        [[unroll]] for (int i = 0; i < DT_PER16; i++) {
            vec2 v = rotated(a[i], b[i], e + uint(i));
            a[i] = v.x;
            b[i] = v.y;
        }
        put_block(e + p.pairs, b);
    }
    put_block(e, a);
}

// ---- rows ----

// Units of a row: what turns together, then the rest one by one.
void move_row()
{
    uint unit = WIDE ? DT_PER16 : 1u; // elements
    uint turning = is_rotated ? 2u * p.pairs : 0u;
    uint turns = is_rotated ? (WIDE && TRADITIONAL ? turning : p.pairs) / unit : 0u;
    uint units = turns + (p.size - turning) / unit;
    for (uint u = share.lane; u < units; u += share.lanes) {
        uint rest = turning + (u - turns) * unit;
        if (u < turns) {
            if (WIDE)
                turn_block(u * unit);
            else
                turn_one(u);
        } else if (WIDE) {
            VAL v[DT_PER16];
            get_block(rest, v);
            put_block(rest, v);
        } else {
            put_one(rest, get_one(rest));
        }
    }
}

// A row that its team holds.
void move_held()
{
    VAL a[DT_PER16], b[DT_PER16];
    turn_held(a, b);
    put_block(share.lane * DT_PER16, a);
    put_block(share.lane * DT_PER16 + p.pairs, b);
}

// ---- places ----

int64_t head_offset(uint64_t walk, int64_t stride, uint head)
{
    return is_given(walk) ? walk_offset(Walk(walk), uint64_t(head)) : int64_t(head) * stride;
}

// Rows are numbered by batch, position and head.
void place_row(uint row)
{
    uint which = 0u, first_row = 0u;
    [[unroll]] for (uint i = 1u; i < ROPE_PARTS; i++)
        if (row >= p.first_row[i]) {
            which = i;
            first_row = p.first_row[i];
        }
    part = Parts(p.parts).part[which];
    row -= first_row;
    uint at = row / part.heads;
    uint head = row - at * part.heads;
    uint batch = at / p.positions;
    at -= batch * p.positions;
    int64_t src = int64_t(batch) * part.src_batch + int64_t(at) * part.src_position +
                  head_offset(part.head_walk, part.src_head, head);
    int64_t dst = int64_t(batch) * part.dst_batch + int64_t(at) * part.dst_position +
                  int64_t(head) * part.dst_head;
    src_row = part.src + uint64_t(src * int64_t(DT_BYTES));
    dst_row = part.dst + uint64_t(dst * int64_t(DT_BYTES));
    is_rotated = (part.flags & ROPE_PART_TURN) != 0u;
    position = at;
    int first = p.first;
    if (is_given(p.offset))
        first = AT(I32Buf, p.offset, 4, int64_t(batch) * p.offset_stride);
    angle_unit = float(int(at) + first) * p.scale;
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint team = 1u << p.log2_team;
    uint row = group * (gl_WorkGroupSize.x >> p.log2_team) + (lane_id() >> p.log2_team);
    bool live = row < p.n_rows;
    share.lane = lane_id() & (team - 1u);
    share.lanes = p.lanes;
    share.n = live ? p.size : 0u;
    place_row(live ? row : 0u);
    if (HELD)
        load_held();
    if (NORMS && HELD) {
        factor = norm_factor(row_squares(0.0), team);
    } else if (NORMS) {
        float sum = 0.0;
        for (uint first = 0u; first * DT_PER16 < p.size; first += BLOCKS * p.lanes) {
            row_load(share, src_row, part.src_stride, first);
            sum = row_squares(sum);
        }
        factor = norm_factor(sum, team);
    }
    if (!live || share.lane >= share.lanes)
        return;
    if (HELD)
        move_held();
    else
        move_row();
}
