// How a tile of a product leaves its kernel, and which tile a workgroup computes. Reads gemm_args,
// with PACKED qmm_args, or with UNFOLDED conv_args: its batches are the groups.
#ifdef UNFOLDED
#define N_BATCH p.groups
#define ROW_PITCH (uint64_t(p.n) * p.groups)
#else
#define N_BATCH p.n_batch
#define ROW_PITCH uint64_t(p.n)
#endif

// The next step along k from k on.
#ifdef SPARSE
#include "sparse.glsl"
#define NEXT(at, k) next_step(at.blocks, k, at.k_end, BK)
#else
#define NEXT(at, k) (k)
#endif

// Where this workgroup is: its corner in the product, its batch and its part of k.
struct Place {
    uint row0, col0;
    uint batch;
    uint k_begin, k_end;
    bool is_idle; // the grid is larger than the work
#ifdef SPARSE
    Blocks blocks;
#endif
    uint64_t a, b, c, dst;
};

// Tiles are numbered in bands of p.band rows of tiles, each band column by column, so that the
// workgroups that run together share rows of a and columns of b through the cache.
uvec2 tile_of(uint id, uint tiles_m, uint tiles_n)
{
    uint band = id / (p.band * tiles_n);
    uint in_band = id - band * p.band * tiles_n;
    uint rows = min(tiles_m - band * p.band, p.band);
    return uvec2(band * p.band + in_band % rows, in_band / rows);
}

Place place_of(uint group, uint tile_m, uint tile_n)
{
    uint tiles_m = (p.m + tile_m - 1u) / tile_m, tiles_n = (p.n + tile_n - 1u) / tile_n;
    uint rest = group / (tiles_m * tiles_n);
    uvec2 tile = tile_of(group - rest * tiles_m * tiles_n, tiles_m, tiles_n);
    uint split = rest % p.splits;
    Place at;
    at.row0 = tile.x * tile_m;
    at.col0 = tile.y * tile_n;
    at.batch = rest / p.splits;
    at.k_begin = split * p.k_split;
    at.k_end = min(p.k, at.k_begin + p.k_split);
    at.is_idle = at.batch >= N_BATCH;
#ifdef PACKED
    at.a = packed_aim(at.batch);
    at.b = at.c = 0ul;
#elif defined(UNFOLDED)
    at.a = p.a + uint64_t(at.batch) * (unfold.c.d * DT_BYTES);
    at.b = p.b + uint64_t(at.batch) * p.n * p.k * DT_BYTES;
    at.c = 0ul;
#else
    i64vec3 offset =
        mm_batch_offsets(p.batch, i64vec3(p.batch_a, p.batch_b, p.batch_c), at.batch);
    at.a = p.a + uint64_t(offset.x * DT_BYTES);
    at.b = p.b + uint64_t(offset.y * DT_BYTES);
    at.c = p.c + uint64_t(offset.z * DT_BYTES);
#endif
#ifdef SPARSE
    uint batch = min(at.batch, p.n_batch - 1u);
    uvec2 part_of_k = segment_part(batch, split, uvec2(at.k_begin, at.k_end));
    at.blocks = blocks_of(at.row0, at.col0, batch);
    at.k_end = part_of_k.y;
    at.k_begin = at.blocks.factor == 0.0 ? at.k_end : part_of_k.x;
#endif
    uint bytes = EPILOGUE == EPILOGUE_PARTIAL ? PART_BYTES : DT_BYTES;
    uint64_t part = EPILOGUE == EPILOGUE_PARTIAL ? uint64_t(split) * N_BATCH * p.m * p.n : 0ul;
#ifdef UNFOLDED
    uint64_t first = uint64_t(at.batch) * p.n;
#else
    uint64_t first = uint64_t(at.batch) * p.m * p.n;
#endif
    at.dst = p.dst + (part + first) * bytes;
    return at;
}

// Stores four neighbouring elements of a row; those past the edges are dropped.
void put_quad(Place at, uint row, uint col, Quad q)
{
    if (row >= p.m || col >= p.n)
        return;
#ifdef SPARSE
    q *= at.blocks.factor;
#endif
#if !defined(PACKED) && !defined(UNFOLDED)
    if (EPILOGUE == EPILOGUE_SCALED) {
        int64_t c_at = int64_t(row) * p.c_row;
        [[unroll]] for (int i = 0; i < 4; i++)
            if (col + i < p.n) {
                VAL c = p.beta == 0.0 ? DT_ZERO : dt_get(at.c, c_at + int64_t(col + i) * p.c_col);
                QUAD_SET(q, i, mm_scaled(quad_get(q, i), p.alpha, p.beta, c));
            }
    }
#endif
#if DT_IS_FLOAT && !defined(UNFOLDED)
    if ((FLAGS & FLAG_PROGRAM) != 0u)
        [[unroll]] for (int i = 0; i < 4; i++)
            if (col + i < p.n) {
                Sides s = epilogue_sides(p.epilogue, at.batch * p.m + row, col + i);
                q[i] = epilogue(q[i], 0.0, s, p.epilogue);
            }
#endif
    uint64_t index = uint64_t(row) * ROW_PITCH + col;
    bool whole = p.n % 4u == 0u;
    if (EPILOGUE == EPILOGUE_PARTIAL) {
        if (whole)
            quad_store_part(at.dst + index * PART_BYTES, q);
        else
            [[unroll]] for (int i = 0; i < 4; i++)
                if (col + i < p.n)
                    PartBuf(at.dst + index * PART_BYTES).v[i] = quad_get(q, i);
    } else {
        if (whole)
            quad_store(at.dst + index * DT_BYTES, q);
        else
            [[unroll]] for (int i = 0; i < 4; i++)
                if (col + i < p.n)
                    dt_set(at.dst, int64_t(index) + i, quad_get(q, i));
    }
}
