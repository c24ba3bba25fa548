// Rows spread over the lanes of a team, for norms. All who norm a row of some length use the same
// spreading, so that its sum comes out with the same bits wherever it is computed.
//
// In memory order a piece of a row is `lanes` blocks of DT_PER16 elements for each k < NORM_BLOCKS.
// Wide: a lane holds whole blocks. Else neighbouring lanes hold neighbouring elements.
//
// The includer includes dtype.glsl and subgroup.glsl, and defines
//   WIDE          constant: rows in whole blocks
//   BLOCKS        constant: blocks of a lane, at most NORM_BLOCKS
//   TEAM_PARTS    as team.glsl wants it
//   PART          what the lanes of a team add up: float, or several
#ifndef PART
#define PART float
#endif
PART part_join(PART a, PART b)
{
    return a + b;
}
PART part_xor(PART v, uint mask)
{
    return sg_xor(v, mask);
}
#include "team.glsl"

struct RowShare {
    uint lane, lanes; // of the row
    uint n;           // elements of the row; 0 for lanes that have no row
};

// What a lane holds of a row, by its bits: half the registers for 16-bit types, and the more rows are
// in flight.
uvec4 row_words[NORM_BLOCKS];

// The first element of block k in the piece that begins with block `first`, and the distance to the
// next one.
uint row_at(RowShare s, uint first, const int k)
{
    uint block = first + uint(k) * s.lanes;
    return WIDE ? (block + s.lane) * DT_PER16 : block * DT_PER16 + s.lane;
}

uint row_step(RowShare s)
{
    return WIDE ? 1u : s.lanes;
}

bool row_has(RowShare s, uint at)
{
    return s.lane < s.lanes && at < s.n;
}

// Everything is written out for each block instead of looping, so that blocks stay in registers.
#define ALL_BLOCKS(f)                                                                              \
    f(0);                                                                                          \
    if (BLOCKS > 1u)                                                                               \
        f(1);                                                                                      \
    if (BLOCKS > 2u) {                                                                             \
        f(2);                                                                                      \
        f(3);                                                                                      \
    }

// Elements of one block, zeros where there are none.
void row_get(RowShare s, uint64_t row, int stride, uint at, out VAL v[DT_PER16])
{
    if (WIDE) {
        uvec4 words = uvec4(0u);
        if (row_has(s, at))
            words = AT(U128Buf, row, DT_BYTES, at);
        dt_unpack(words, v);
        return;
    }
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        uint e = at + uint(i) * s.lanes;
        v[i] = row_has(s, e) ? dt_get(row, int64_t(e) * int64_t(stride)) : DT_ZERO;
    }
}

void row_put(RowShare s, uint64_t row, uint at, VAL v[DT_PER16])
{
    if (WIDE) {
        if (row_has(s, at))
            AT(U128Buf, row, DT_BYTES, at) = dt_pack(v);
        return;
    }
    [[unroll]] for (int i = 0; i < DT_PER16; i++) {
        uint e = at + uint(i) * s.lanes;
        if (row_has(s, e))
            dt_set(row, int64_t(e), v[i]);
    }
}

// The blocks of a piece into row_words.
RowShare row_share;
uint64_t row_address;
int row_stride;
uint row_first;
void row_load_block(const int k)
{
    uint at = row_at(row_share, row_first, k);
    row_words[k] = uvec4(0u);
    if (WIDE) {
        if (row_has(row_share, at))
            row_words[k] = AT(U128Buf, row_address, DT_BYTES, at);
        return;
    }
    VAL v[DT_PER16];
    row_get(row_share, row_address, row_stride, at, v);
    row_words[k] = dt_pack(v);
}
void row_load(RowShare s, uint64_t row, int stride, uint first)
{
    row_share = s;
    row_address = row;
    row_stride = stride;
    row_first = first;
    ALL_BLOCKS(row_load_block)
}

float row_total;
void row_square_block(const int k)
{
    VAL v[DT_PER16];
    dt_unpack(row_words[k], v);
    [[unroll]] for (int i = 0; i < DT_PER16; i++)
        row_total = fma(v[i], v[i], row_total);
}
// Adds the squares of row_words to a sum.
float row_squares(float sum)
{
    row_total = sum;
    ALL_BLOCKS(row_square_block)
    return row_total;
}
