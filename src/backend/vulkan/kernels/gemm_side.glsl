// One operand's way from memory through registers into shared memory, in blocks of 4 x 4 elements.
// Included once per operand, with
//   SIDE(name)        the operand's own names
//   SIDE_TILE         rows of a, or columns of b, in a tile     SIDE_EXTENT  and in the matrix
//   SIDE_ALONG_K, SIDE_WIDE                                     its flags
//   SIDE_LD           its leading dimension; or SIDE_PACKED: it is the packed one; or SIDE_UNFOLDED:
//                     it is the unfolded one, along k
//   SIDE_AT           its first quad in one k of shared memory

const uint SIDE(blocks) = SIDE_TILE / 4u * (BK / 4u);
const uint SIDE(share) = (SIDE(blocks) + THREADS - 1u) / THREADS; // blocks of one invocation
#ifdef SIDE_UNFOLDED
uint64_t SIDE(base);
Row SIDE(row)[4u * SIDE(share)];
#elif !defined(SIDE_PACKED)
uint64_t SIDE(from)[4u * SIDE(share)]; // addresses of a block's quads for k = 0
#endif
Quad SIDE(reg)[4u * SIDE(share)];

// Block number i of this invocation: first row (column) in quads and first k in quads. Neighbouring
// invocations take neighbouring memory.
uvec2 SIDE(block)(uint i)
{
    uint id = tid + i * THREADS;
    if (SIDE_ALONG_K)
        return uvec2(id / (BK / 4u), id % (BK / 4u));
    return uvec2(id % (SIDE_TILE / 4u), id / (SIDE_TILE / 4u));
}

#ifdef SIDE_PACKED

void SIDE(aim)(uint64_t base, uint first)
{
}

// From memory to registers; zeros past the end of k. Rows past the edge repeat the last one. The
// packed dimension has whole quads.
void SIDE(fetch)(uint first, uint k0, uint k_end)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 block = SIDE(block)(i) * 4u;
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint k = k0 + block.y + (SIDE_ALONG_K ? 0u : j);
            uint x = min(first + block.x + (SIDE_ALONG_K ? j : 0u), SIDE_EXTENT - 1u);
            Quad q = QUAD_ZERO;
            if (tid + i * THREADS < SIDE(blocks) && k < k_end)
                q = SIDE_ALONG_K ? packed_quad(x, k, p.k) : packed_quad(k, x & ~3u, p.n);
            SIDE(reg)[4u * i + j] = q;
        }
    }
}

#elif defined(SIDE_UNFOLDED)

// Rows past the edge repeat the last one.
void SIDE(aim)(uint64_t base, uint first)
{
    SIDE(base) = base;
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uint x = first + SIDE(block)(i).x * 4u;
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            SIDE(row)[4u * i + j] = unfold_row(min(x + j, SIDE_EXTENT - 1u));
    }
}

// Four channels of one tap, of the rows of a block.
void SIDE(fetch_wide)(uint i, uint k)
{
    Tap tap = unfold_tap(k);
    [[unroll]] for (uint j = 0u; j < 4u; j++) {
        int64_t bytes;
        if (unfold_find(SIDE(row)[4u * i + j], tap, bytes))
            SIDE(reg)[4u * i + j] = quad_load(SIDE(base) + uint64_t(bytes));
    }
}

// Single elements, which may be of different taps.
void SIDE(fetch_narrow)(uint i, uint k, uint k_end)
{
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        Tap tap = unfold_tap(k + e);
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            int64_t bytes;
            if (k + e < k_end && unfold_find(SIDE(row)[4u * i + j], tap, bytes))
                QUAD_SET(SIDE(reg)[4u * i + j], e, dt_get(SIDE(base) + uint64_t(bytes), 0l));
        }
    }
}

// From memory to registers; zeros where the input ends, and past the end of k.
void SIDE(fetch)(uint first, uint k0, uint k_end)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uint k = k0 + SIDE(block)(i).y * 4u;
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            SIDE(reg)[4u * i + j] = QUAD_ZERO;
        if (tid + i * THREADS < SIDE(blocks) && k < k_end) {
            if (SIDE_WIDE)
                SIDE(fetch_wide)(i, k);
            else
                SIDE(fetch_narrow)(i, k, k_end);
        }
    }
}

#else

// Rows past the edge repeat the last one: they only reach elements that are never stored.
void SIDE(aim)(uint64_t base, uint first)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 block = SIDE(block)(i) * 4u;
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            int64_t at;
            if (SIDE_ALONG_K)
                at = int64_t(min(first + block.x + j, SIDE_EXTENT - 1u)) * SIDE_LD + block.y;
            else
                at = int64_t(block.y + j) * SIDE_LD +
                     min(first + block.x, SIDE_EXTENT - (SIDE_WIDE ? 4u : 1u));
            SIDE(from)[4u * i + j] = base + uint64_t(at * DT_BYTES);
        }
    }
}

// Single elements, each with its own check: `first` is the tile's first row (column), k the quad's.
Quad SIDE(narrow)(uint64_t from, uint x, uint k, uint k_end)
{
    Quad q = QUAD_ZERO;
    uint room = SIDE_EXTENT - 1u - min(x, SIDE_EXTENT - 1u);
    [[unroll]] for (uint e = 0u; e < 4u; e++) {
        uint step = SIDE_ALONG_K ? e : min(e, room);
        if (k + (SIDE_ALONG_K ? e : 0u) < k_end)
            QUAD_SET(q, e, dt_get(from, int64_t(step)));
    }
    return q;
}

// From memory to registers; zeros past the end of k.
void SIDE(fetch)(uint first, uint k0, uint k_end)
{
    uint64_t step = uint64_t(int64_t(k0) * (SIDE_ALONG_K ? 1 : SIDE_LD) * DT_BYTES);
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 block = SIDE(block)(i) * 4u;
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            uint k = k0 + block.y + (SIDE_ALONG_K ? 0u : j);
            uint64_t from = SIDE(from)[4u * i + j] + step;
            Quad q = QUAD_ZERO;
            if (tid + i * THREADS < SIDE(blocks) && k < k_end) {
                if (SIDE_WIDE)
                    q = quad_load(from);
                else
                    q = SIDE(narrow)(from, first + block.x, k, k_end);
            }
            SIDE(reg)[4u * i + j] = q;
        }
    }
}

#endif

// From registers to shared memory, where k is outermost.
void SIDE(stash)(uint stage)
{
    [[unroll]] for (uint i = 0u; i < SIDE(share); i++) {
        uvec2 block = SIDE(block)(i);
        if (tid + i * THREADS < SIDE(blocks))
            [[unroll]] for (uint j = 0u; j < 4u; j++) {
                uint to = stage + (4u * block.y + j) * PITCH + SIDE_AT + block.x;
#define ACROSS(part)                                                                               \
    vec4(part(SIDE(reg)[4u * i])[j], part(SIDE(reg)[4u * i + 1u])[j],                              \
         part(SIDE(reg)[4u * i + 2u])[j], part(SIDE(reg)[4u * i + 3u])[j])
                tile[to] = SIDE_ALONG_K ? ACROSS(quad_re) : quad_re(SIDE(reg)[4u * i + j]);
#if DT_IS_COMPLEX
                tile[to + PLANE] = SIDE_ALONG_K ? ACROSS(quad_im) : quad_im(SIDE(reg)[4u * i + j]);
#endif
#undef ACROSS
            }
    }
}

#undef SIDE
#undef SIDE_TILE
#undef SIDE_EXTENT
#undef SIDE_ALONG_K
#undef SIDE_WIDE
#undef SIDE_PACKED
#undef SIDE_UNFOLDED
#undef SIDE_LD
#undef SIDE_AT
