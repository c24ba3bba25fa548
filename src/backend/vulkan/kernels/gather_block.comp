#version 450
// out[i] = src[index of position i] for slices of consecutive bytes, in blocks: a subgroup copies one
// piece of one slice; the last piece overlaps the one before it. The index is looked up digit by
// digit as the number of the task is, which makes it one that all lanes provably share.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "subgroup.glsl"
#define UNIT_BYTES 8
#include "unit.glsl"
#include "position.glsl"

layout(constant_id = 3) const uint CODE = 0u; // GATHER_<dtype> of the indices

ARGS(gather_block_args);
#include "block.glsl"

#define CHUNK uint(GATHER_BLOCK_LOADS * BLOCK_LANES)

uint64_t from, to; // addresses of the piece
bool is_live;

void copy(const int k)
{
    uvec2 words = block_words(from + uint64_t(k * BLOCK_LANES * 8));
    uint unit = uint(k * BLOCK_LANES) + block_lane();
    if (is_live)
        U64Buf(to + uint64_t(unit) * 8ul).v[0] = packUint2x32(words);
}

void main()
{
    uint task = block_task();
    is_live = task < p.n_tasks;
    task = min(task, p.n_tasks - 1u);
    uint i = task / p.pieces;
    uint first = min((task - i * p.pieces) * CHUNK, p.slice - CHUNK);
    int64_t index = read_index(p.index_addr, CODE, int64_t(i) * p.index_stride);
    uint row = block_uniform(uint(place_index(index, int64_t(p.dim), int64_t(p.last))));
    from = p.src_addr + uint64_t((int64_t(row) * p.src_stride + int64_t(first)) * 8l);
    to = p.out_addr + (uint64_t(i) * uint64_t(p.slice) + uint64_t(first)) * 8ul;
    BLOCK_16(copy, 0);
    BLOCK_16(copy, 16);
}
