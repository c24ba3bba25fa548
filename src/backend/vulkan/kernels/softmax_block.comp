#version 450
// The second half of softmax over long rows, in blocks: a subgroup scales one piece of one row, whose
// largest value and sum are there already (logsumexp parts). The last piece of a row overlaps the
// one before it, but writes only what that one does not: the row may be scaled in place.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "subgroup.glsl"

ARGS(softmax_block_args);
#include "block.glsl"

BUF(PartBuf, vec2, 8);

// A unit is 8 bytes.
#define CHUNK uint(SOFTMAX_BLOCK_LOADS * BLOCK_LANES)

uint64_t from, to; // addresses of the piece
uint skipped;      // units that the piece before has
bool is_live;
float largest, scale; // of the row

float scaled(uint bits)
{
    return exp(dt_from_bits(bits) - largest) * scale;
}

uint scaled_word(uint word)
{
#if DT_BYTES == 4
    return dt_to_bits(scaled(word));
#else
    return dt_to_bits(scaled(word)) | dt_to_bits(scaled(word >> 16)) << 16;
#endif
}

void scale_unit(const int k)
{
    uvec2 words = block_words(from + uint64_t(k * BLOCK_LANES * 8));
    uint unit = uint(k * BLOCK_LANES) + block_lane();
    uint64_t v = packUint2x32(uvec2(scaled_word(words.x), scaled_word(words.y)));
    if (is_live && unit >= skipped)
        U64Buf(to + uint64_t(unit) * 8ul).v[0] = v;
}

void main()
{
    uint task = block_task();
    is_live = task < p.n_tasks;
    task = min(task, p.n_tasks - 1u);
    uint row = task / p.pieces;
    uint piece = task - row * p.pieces;
    uint first = min(piece * CHUNK, p.row_len - CHUNK);
    skipped = piece * CHUNK - first;
    from = p.in_addr + uint64_t((int64_t(row) * p.row_stride + int64_t(first)) * 8l);
    to = p.out_addr + (uint64_t(row) * uint64_t(p.row_len) + uint64_t(first)) * 8ul;
    vec2 part = AT(PartBuf, p.parts_addr, 8, row);
    largest = part.x;
    scale = 1.0 / part.y;
    BLOCK_16(scale_unit, 0);
}
