#version 450
// Gradients of RMSNorm and LayerNorm over rows of consecutive elements, everything in float:
//
//   n = (x - mean) * factor     what the norm made of x
//   d = cotangent * weight
//   dx = factor * (d - mean of d (LayerNorm) - n * mean of d * n)
//   weight's: the sum of cotangent * n over all rows, bias': of the cotangent
//
// A team of lanes holds a row in registers, or walks over it in pieces, and does several rows one
// after the other, whose share of the vectors' gradients it adds up: in registers, or where it walks
// in its part of memory. norm_vjp_sum.comp adds the parts. A lane reads all that it needs of an
// element before it writes there, so that dx may lie where x or the cotangent does.
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
const uint WEIGHT_VECTOR = NORM_WEIGHT | NORM_VECTORS, BIAS_VECTOR = NORM_BIAS | NORM_VECTORS;
const bool WEIGHT_GRAD = (FLAGS & WEIGHT_VECTOR) == WEIGHT_VECTOR;
const bool BIAS_GRAD = (FLAGS & BIAS_VECTOR) == BIAS_VECTOR;
const bool WIDE = (FLAGS & NORM_WIDE) != 0u;
const bool WALK = (FLAGS & NORM_WALK) != 0u;

ARGS(norm_vjp_args);
#define PART vec4
#include "norm_rows.glsl"

RowShare share;
uint64_t x_row, t_row, out_row, part_row;
bool is_first; // of the team's rows
float mean, factor, mean_d, mean_dn;
vec4 total;

uvec4 t_words[NORM_BLOCKS], weight_words[NORM_BLOCKS];
const uint HELD = NORM_BLOCKS * DT_PER16;
float weight_sums[HELD], bias_sums[HELD];

void keep_cotangent(const int k)
{
    t_words[k] = row_words[k];
}

void load_weight(const int k)
{
    VAL w[DT_PER16];
    row_get(share, p.weight, p.weight_stride, row_at(share, row_first, k), w);
    weight_words[k] = dt_pack(w);
}

// The piece of the row that begins with block `first`. A row in registers has its weight there, too.
void load_piece(uint first)
{
    row_load(share, t_row, 1, first);
    ALL_BLOCKS(keep_cotangent)
    row_load(share, x_row, 1, first);
    if (WALK && WEIGHT) {
        ALL_BLOCKS(load_weight)
    }
}

// x - mean, 0 outside of the row.
void centred(const int k, out VAL x[DT_PER16])
{
    dt_unpack(row_words[k], x);
    if (CENTRED) {
        uint at = row_at(share, row_first, k);
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            x[i] = row_has(share, at + uint(i) * row_step(share)) ? x[i] - mean : 0.0;
    }
}

void weighed(const int k, out VAL d[DT_PER16])
{
    dt_unpack(t_words[k], d);
    if (WEIGHT) {
        VAL w[DT_PER16];
        dt_unpack(weight_words[k], w);
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            d[i] *= w[i];
    }
}

void sum_block(const int k)
{
    VAL x[DT_PER16];
    dt_unpack(row_words[k], x);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        total.x += x[i];
}

void add_sums()
{
    ALL_BLOCKS(sum_block)
}

// Sums of squares, of d * (x - mean) and of d.
void product_block(const int k)
{
    VAL x[DT_PER16], d[DT_PER16];
    centred(k, x);
    weighed(k, d);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        total.x = fma(x[i], x[i], total.x);
        total.y = fma(d[i], x[i], total.y);
        total.z += d[i];
    }
}

void add_products()
{
    ALL_BLOCKS(product_block)
}

// Adds to a float of the team's part of memory, which only this lane uses.
void add_to_part(uint vector, uint column, float v)
{
    uint64_t to = part_row + (uint64_t(vector) * p.row_len + column) * 4ul;
    F32Buf b = F32Buf(to);
    b.v[0] = is_first ? v : b.v[0] + v;
}

uint bias_vector()
{
    return WEIGHT_GRAD ? 1u : 0u;
}

void add_vectors(const int k, VAL n[DT_PER16])
{
    uint at = row_at(share, row_first, k);
    VAL t[DT_PER16];
    dt_unpack(t_words[k], t);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        uint column = at + uint(i) * row_step(share);
        if (!WALK) {
            weight_sums[k * DT_PER16 + i] = fma(t[i], n[i], weight_sums[k * DT_PER16 + i]);
            bias_sums[k * DT_PER16 + i] += t[i];
        } else if (row_has(share, column)) {
            if (WEIGHT_GRAD)
                add_to_part(0u, column, t[i] * n[i]);
            if (BIAS_GRAD)
                add_to_part(bias_vector(), column, t[i]);
        }
    }
}

void finish_block(const int k)
{
    VAL n[DT_PER16], d[DT_PER16];
    centred(k, n);
    weighed(k, d);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        n[i] *= factor;
    if (WEIGHT_GRAD || BIAS_GRAD)
        add_vectors(k, n);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        d[i] = factor * (d[i] - mean_d - n[i] * mean_dn);
    row_put(share, out_row, row_at(share, row_first, k), d);
}

void finish_piece()
{
    ALL_BLOCKS(finish_block)
}

// One loop for both: everything is written out for each block, once is enough.
uint pieces_end;
#define ALL_PIECES(f)                                                                              \
    for (uint first = 0u; first < (WALK ? pieces_end : 1u); first += BLOCKS * share.lanes) {       \
        if (WALK)                                                                                  \
            load_piece(first);                                                                     \
        f();                                                                                       \
    }

void do_row(uint64_t row, uint team)
{
    bool live = row < p.n_rows;
    uint64_t number = live ? row : 0ul;
    float n = float(p.row_len);
    share.n = live ? p.row_len : 0u;
    x_row = p.x + uint64_t(row_offset(p.x_walk, p.x_stride, number) * int64_t(DT_BYTES));
    t_row = p.cotan + uint64_t(row_offset(p.t_walk, p.t_stride, number) * int64_t(DT_BYTES));
    out_row = p.dst + number * uint64_t(p.row_len) * uint64_t(DT_BYTES);
    if (!WALK)
        load_piece(0u);
    mean = 0.0;
    total = vec4(0.0);
    if (CENTRED) {
        ALL_PIECES(add_sums)
        mean = team_join(total, 1u, team).x / n;
        total = vec4(0.0);
    }
    ALL_PIECES(add_products)
    total = team_join(total, 1u, team);
    factor = inversesqrt(total.x / n + p.eps);
    mean_dn = factor * total.y / n;
    mean_d = CENTRED ? total.z / n : 0.0;
    ALL_PIECES(finish_piece)
}

void put_sums(const int k)
{
    uint at = row_at(share, 0u, k);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        uint column = at + uint(i) * row_step(share);
        if (row_has(share, column)) {
            if (WEIGHT_GRAD)
                add_to_part(0u, column, weight_sums[k * DT_PER16 + i]);
            if (BIAS_GRAD)
                add_to_part(bias_vector(), column, bias_sums[k * DT_PER16 + i]);
        }
    }
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint team = 1u << p.log2_team;
    uint64_t number = uint64_t(group) * uint64_t(gl_WorkGroupSize.x >> p.log2_team) +
                      uint64_t(lane_id() >> p.log2_team);
    share.lane = lane_id() & (team - 1u);
    share.lanes = p.lanes;
    share.n = p.row_len;
    pieces_end = (p.row_len + DT_PER16 - 1u) / DT_PER16;
    part_row = p.parts + number * uint64_t(p.row_len) *
               uint64_t((WEIGHT_GRAD ? 4u : 0u) + (BIAS_GRAD ? 4u : 0u));
    is_first = true;
    row_first = 0u;
    if (!WALK && WEIGHT) {
        ALL_BLOCKS(load_weight)
    }
    [[unroll]] for (uint i = 0u; i < HELD; i++) {
        weight_sums[i] = 0.0;
        bias_sums[i] = 0.0;
    }
    for (uint i = 0u; i < p.rows; i++) {
        do_row(number * p.rows + i, team);
        is_first = false;
    }
    is_first = true;
    share.n = number * p.rows < p.n_rows ? p.row_len : 0u;
    if (!WALK && (WEIGHT_GRAD || BIAS_GRAD)) {
        ALL_BLOCKS(put_sums)
    }
}
