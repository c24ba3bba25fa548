#version 450
// Sorts tiles of rows in shared memory: bitonic, over pairs of an unsigned key, which is in the order
// of the elements, and the position, which settles ties. A row of one tile is finished here; of longer
// rows every tile becomes a sorted run of pairs for sort_merge.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "order_keys.glsl"

layout(constant_id = 3) const uint TILE = 2048u; // a power of two
layout(constant_id = 4) const bool IS_ARG = false;
layout(constant_id = 5) const bool IS_RUN = false; // leave pairs, not results

ARGS(sort_args);

shared KEY keys[TILE];
shared uint places[TILE];

bool is_after(KEY a, uint at_a, KEY b, uint at_b)
{
    return a > b || (a == b && at_a > at_b);
}

void exchange(uint i, uint j, bool ascending)
{
    KEY a = keys[i], b = keys[j];
    uint at_a = places[i], at_b = places[j];
    if (is_after(a, at_a, b, at_b) == ascending) {
        keys[i] = b;
        keys[j] = a;
        places[i] = at_b;
        places[j] = at_a;
    }
}

void sort_tile()
{
    for (uint size = 2u; size <= TILE; size <<= 1) {
        for (uint step = size >> 1; step > 0u; step >>= 1) {
            barrier();
            for (uint t = gl_LocalInvocationID.x; t < TILE / 2u; t += gl_WorkGroupSize.x) {
                uint i = ((t & ~(step - 1u)) << 1) | (t & (step - 1u));
                exchange(i, i + step, (i & size) == 0u);
            }
        }
    }
    barrier();
}

void main()
{
    uint64_t group = grid_index() / uint64_t(gl_WorkGroupSize.x);
    uint64_t row = group / uint64_t(p.tiles);
    uint first = uint(group - row * uint64_t(p.tiles)) * TILE;
    if (row >= p.n_rows)
        return;
    int64_t base = int64_t(row * uint64_t(p.row_len));
    for (uint i = gl_LocalInvocationID.x; i < TILE; i += gl_WorkGroupSize.x) {
        uint at = first + i;
        keys[i] = at < p.row_len ? key_of(dt_get(p.in_addr, base + int64_t(at))) :
                                  KEY_LAST;
        places[i] = at; // padding lies behind everything of the same key
    }
    sort_tile();
    uint n = min(TILE, p.row_len - first);
    for (uint i = gl_LocalInvocationID.x; i < n; i += gl_WorkGroupSize.x) {
        int64_t to = base + int64_t(first + i);
        if (IS_RUN) {
            AT(KeyBuf, p.to_keys, KEY_BYTES, to) = keys[i];
            AT(U32Buf, p.to_places, 4, to) = places[i];
        } else if (IS_ARG) {
            AT(U32Buf, p.out_addr, 4, to) = places[i];
        } else {
            AT(DtBuf, p.out_addr, DT_BYTES, to) =
                AT(DtBuf, p.in_addr, DT_BYTES, base + int64_t(places[i]));
        }
    }
}
