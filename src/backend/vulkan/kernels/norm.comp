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
    VAL a[DT_PER16], b[DT_PER16];
    dt_unpack(row_words[k], a);
    row_get(share, addend_row, 1, row_at(share, row_first, k), b);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        a[i] += b[i];
    row_words[k] = dt_pack(a);
}

// The piece of the row that begins with block `first`.
void load_piece(uint first)
{
    row_load(share, x_row, 1, first);
    if (ADDEND) {
        ALL_BLOCKS(add_block)
    }
}

// Weight and bias of a row in registers are on their way before the sums are done.
const bool IS_EARLY = WIDE && !WALK;
uvec4 weight_words[NORM_BLOCKS], bias_words[NORM_BLOCKS];

void load_early(const int k)
{
    uint at = row_at(share, 0u, k);
    if (WEIGHT && row_has(share, at))
        weight_words[k] = AT(U128Buf, p.weight, DT_BYTES, at);
    if (BIAS && row_has(share, at))
        bias_words[k] = AT(U128Buf, p.bias, DT_BYTES, at);
}

void get_weight(const int k, uint at, out VAL w[DT_PER16])
{
    if (IS_EARLY)
        dt_unpack(weight_words[k], w);
    else
        row_get(share, p.weight, p.weight_stride, at, w);
}

void get_bias(const int k, uint at, out VAL b[DT_PER16])
{
    if (IS_EARLY)
        dt_unpack(bias_words[k], b);
    else
        row_get(share, p.bias, p.bias_stride, at, b);
}

void sum_block(const int k)
{
    VAL v[DT_PER16];
    dt_unpack(row_words[k], v);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        total += v[i];
}

// Squares of differences from the mean, which the zeros outside of the row must not have.
void square_block(const int k)
{
    uint at = row_at(share, row_first, k);
    VAL v[DT_PER16];
    dt_unpack(row_words[k], v);
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        float d = row_has(share, at + uint(i) * row_step(share)) ? v[i] - mean : 0.0;
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

#ifdef DT_BFLOAT16
// Rounding that takes no care for NaN, in half the instructions: those of integers are what norms of
// this type wait for.
uint round_bits(float v)
{
    uint bits = floatBitsToUint(v);
    return bits + 0x7fffu + ((bits >> 16) & 1u);
}

// True if no value is NaN or infinite: zero times those is not zero.
bool are_finite(VAL v[DT_PER16])
{
    precise float probe = 0.0;
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        probe += v[i] * 0.0;
    return floatBitsToUint(probe) << 1 == 0u;
}

void round_block(inout VAL v[DT_PER16])
{
    if (are_finite(v)) {
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            v[i] = uintBitsToFloat(round_bits(v[i]) & 0xffff0000u);
    } else {
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            v[i] = dt_round(v[i]);
    }
}

uvec4 pack_block(VAL v[DT_PER16])
{
    if (!are_finite(v))
        return dt_pack(v);
    uvec4 w;
    [[unroll]] for (int i = 0; i < 4; i++)
        w[i] = round_bits(v[2 * i]) >> 16 | (round_bits(v[2 * i + 1]) & 0xffff0000u);
    return w;
}
#else
void round_block(inout VAL v[DT_PER16])
{
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[i] = dt_round(v[i]);
}
#define pack_block dt_pack
#endif

void put_words(uint64_t row, uint at, uvec4 words)
{
    if (row_has(share, at))
        AT(U128Buf, row, DT_BYTES, at) = words;
}

void finish_block(const int k)
{
    uint at = row_at(share, row_first, k);
    VAL v[DT_PER16], w[DT_PER16];
    dt_unpack(row_words[k], v);
    if (ADDEND && WIDE)
        put_words(sum_row, at, row_words[k]);
    else if (ADDEND)
        row_put(share, sum_row, at, v);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        v[i] = (v[i] - mean) * factor;
    if (WEIGHT) {
        get_weight(k, at, w);
        round_block(v);
        [[unroll]] for (int i = 0; i < DT_PER16; i++)
            v[i] *= w[i];
    }
    if (BIAS) {
        get_bias(k, at, w);
        round_block(v);
        [[unroll]] for (int i = 0; i < DT_PER16; i++) {
            precise VAL sum = v[i] + w[i];
            v[i] = sum;
        }
    }
    if (WIDE)
        put_words(out_row, at, pack_block(v));
    else
        row_put(share, out_row, at, v);
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
    return row_offset(walk, stride, live ? row_number : 0ul);
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

    if (IS_EARLY) {
        ALL_BLOCKS(load_early)
    }
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
