#version 450
// dst[a * dst_stride + b] = src[b * src_stride + a] for every batch: a copy whose source and
// destination are consecutive along different axes. A tile goes through shared memory, so that both
// sides are accessed in whole rows of the tile.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"

ARGS(transpose_args);

#if UNIT_BYTES == 1
#define UNIT uint8_t
#define UnitBuf U8Buf
#elif UNIT_BYTES == 2
#define UNIT uint16_t
#define UnitBuf U16Buf
#elif UNIT_BYTES == 4
#define UNIT uint
#define UnitBuf U32Buf
#else
#define UNIT uvec2
BUF(UnitBuf, uvec2, 8);
#endif

#define TILE TRANSPOSE_TILE
#define STEP (TRANSPOSE_THREADS / TILE) // rows that a workgroup moves at a time

shared UNIT tile[TILE][TILE + 1]; // the odd row length keeps columns in different banks

int64_t batch_offset(uint64_t walk, int64_t stride, uint64_t batch)
{
    return is_given(walk) ? walk_offset(Walk(walk), batch) : int64_t(batch) * stride;
}

void main()
{
    uint64_t group = grid_index() / uint64_t(gl_WorkGroupSize.x);
    uint64_t tiles = uint64_t(p.tiles_a) * uint64_t(p.tiles_b);
    uint64_t batch = p.n_batch == 1ul ? 0ul : group / tiles;
    if (group >= tiles * p.n_batch)
        return;
    uint number = uint(group - batch * tiles);
    uint a0 = number % p.tiles_a * TILE;
    uint b0 = number / p.tiles_a * TILE;
    uint x = gl_LocalInvocationID.x % TILE;
    uint y = gl_LocalInvocationID.x / TILE;
    int64_t src = batch_offset(p.src_walk, p.src_batch, batch);
    int64_t dst = batch_offset(p.dst_walk, p.dst_batch, batch);

    [[unroll]] for (uint i = 0u; i < TILE; i += STEP) {
        uint a = a0 + x;
        uint b = b0 + y + i;
        if (a < p.n_a && b < p.n_b)
            tile[y + i][x] = AT(UnitBuf, p.src_addr, UNIT_BYTES,
                                src + int64_t(b) * p.src_stride + int64_t(a));
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < TILE; i += STEP) {
        uint a = a0 + y + i;
        uint b = b0 + x;
        if (a < p.n_a && b < p.n_b)
            AT(UnitBuf, p.dst_addr, UNIT_BYTES,
               dst + int64_t(a) * p.dst_stride + int64_t(b)) = tile[x][y + i];
    }
}
