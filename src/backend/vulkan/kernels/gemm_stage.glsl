// One 16-bit operand's way from memory through registers into shared memory, in chunks of 16 bytes
// that keep the operand's own order. Included once per operand, with
//   SIDE(name)        the operand's own names
//   SIDE_TILE         rows of a, or columns of b, in a tile     SIDE_EXTENT  and in the matrix
//   SIDE_ALONG_K      its flag                                  SIDE_LD      its leading dimension
//   SIDE_BASE         its first chunk in shared memory
// or SIDE_UNFOLDED for a leading dimension: it is the unfolded one, along k, whose chunks are
// channels of one tap.

const uint SIDE(pitch) = PITCH(SIDE_ALONG_K, SIDE_TILE);
const uint SIDE(stage_step) = SIDE_ALONG_K ? BK / 8u : BK * SIDE(pitch);
const uint SIDE(line) = (SIDE_ALONG_K ? BK : SIDE_TILE) / 8u; // chunks in a row of one stage
const uint SIDE(chunks) = SIDE_TILE * BK / 8u;
const uint SIDE(share) = (SIDE(chunks) + THREADS - 1u) / THREADS; // chunks of one invocation
#ifdef SIDE_UNFOLDED
Row SIDE(row)[SIDE(share)];
#else
int SIDE(offset)[SIDE(share)]; // bytes from the tile's first chunk
#endif
uvec4 SIDE(reg)[SIDE(share)];

// Row and chunk within it of chunk number i of this invocation.
uvec2 SIDE(chunk)(uint i)
{
    uint id = tid + i * THREADS;
    return uvec2(id / SIDE(line), id % SIDE(line));
}

#ifdef SIDE_UNFOLDED

void SIDE(aim)(uint first)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++)
        SIDE(row)[i] = unfold_row(min(first + SIDE(chunk)(i).x, SIDE_EXTENT - 1u));
}

// From memory to registers; zeros where the input ends, and past the end of k. Mostly all chunks of
// an invocation are of the same k.
void SIDE(fetch)(uint64_t base, uint first, uint k0, uint k_end)
{
    const bool one_k = THREADS % SIDE(line) == 0u;
    Tap tap = unfold_tap(k0 + tid % SIDE(line) * 8u);
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        bool inside = SIDE(chunks) % THREADS == 0u || tid + i * THREADS < SIDE(chunks);
        uint k = k0 + (one_k ? tid % SIDE(line) : SIDE(chunk)(i).y) * 8u;
        int64_t bytes;
        if (!one_k)
            tap = unfold_tap(k);
        SIDE(reg)[i] = uvec4(0u);
        if (inside && (!K_EDGE || k < k_end) && unfold_find(SIDE(row)[i], tap, bytes))
            SIDE(reg)[i] = U128Buf(base + uint64_t(bytes)).v[0];
    }
}

#else

// Rows past the edge repeat the last one: they only reach elements that are never stored.
void SIDE(aim)(uint first)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 at = SIDE(chunk)(i);
        if (SIDE_ALONG_K)
            at.x = min(at.x, SIDE_EXTENT - 1u - first);
        else
            at.y = min(at.y, (SIDE_EXTENT - 1u - first) / 8u);
        SIDE(offset)[i] = int(at.x) * SIDE_LD * 2 + int(at.y) * 16;
    }
}

// From memory to registers; zeros past the end of k.
void SIDE(fetch)(uint64_t base, uint first, uint k0, uint k_end)
{
    int64_t corner = SIDE_ALONG_K ? int64_t(first) * SIDE_LD + k0 : int64_t(k0) * SIDE_LD + first;
    base += uint64_t(corner * 2l);
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        bool inside = SIDE(chunks) % THREADS == 0u || tid + i * THREADS < SIDE(chunks);
        uvec2 at = SIDE(chunk)(i);
        uint k = k0 + (SIDE_ALONG_K ? at.y * 8u : at.x);
        SIDE(reg)[i] = uvec4(0u);
        if (inside && (!K_EDGE || k < k_end)) {
            SIDE(reg)[i] = U128Buf(base + uint64_t(int64_t(SIDE(offset)[i]))).v[0];
            if (K_EDGE && SIDE_ALONG_K && k + 8u > k_end)
                SIDE(reg)[i] = keep_first(SIDE(reg)[i], k_end - k);
        }
    }
}

#endif

// From registers to shared memory.
void SIDE(stash)(uint stage)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 at = SIDE(chunk)(i);
        if (SIDE(chunks) % THREADS == 0u || tid + i * THREADS < SIDE(chunks))
            tile[SIDE_BASE + stage * SIDE(stage_step) + at.x * SIDE(pitch) + at.y] = SIDE(reg)[i];
    }
}

// First chunk of the fragment that begins at row (column) x and at k of a stage.
uint SIDE(fragment)(uint stage, uint x, uint k)
{
    uint at = SIDE_BASE + stage * SIDE(stage_step);
    return at + (SIDE_ALONG_K ? x * SIDE(pitch) + k / 8u : k * SIDE(pitch) + x / 8u);
}

#undef SIDE
#undef SIDE_TILE
#undef SIDE_EXTENT
#undef SIDE_ALONG_K
#undef SIDE_LD
#undef SIDE_UNFOLDED
#undef SIDE_BASE
