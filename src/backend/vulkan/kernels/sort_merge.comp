#version 450
// Merges neighbouring sorted runs of pairs: every invocation finds by bisection where its stretch of
// the result begins in both runs, and writes it. Of equal keys the earlier run's come first.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define DT_BYTES UNIT_BYTES
#include "order_keys.glsl"
#include "unit.glsl"

layout(constant_id = 3) const bool IS_ARG = false;
layout(constant_id = 4) const bool IS_RUN = false; // leave pairs, not results

ARGS(sort_args);

KEY key_at(int64_t i)
{
    return AT(KeyBuf, p.from_keys, KEY_BYTES, i);
}

// How many of the first `diagonal` elements of the result come from the first run, which starts at a
// and has n_a elements; the second one follows it.
uint split(int64_t a, uint n_a, uint n_b, uint diagonal)
{
    int64_t b = a + int64_t(n_a);
    uint low = diagonal > n_b ? diagonal - n_b : 0u, high = min(diagonal, n_a);
    while (low < high) {
        uint mid = (low + high) >> 1;
        if (key_at(a + int64_t(mid)) <= key_at(b + int64_t(diagonal - 1u - mid)))
            low = mid + 1u;
        else
            high = mid;
    }
    return low;
}

void put(int64_t base, uint at, KEY key, uint place)
{
    int64_t to = base + int64_t(at);
    if (IS_RUN) {
        AT(KeyBuf, p.to_keys, KEY_BYTES, to) = key;
        AT(U32Buf, p.to_places, 4, to) = place;
    } else if (IS_ARG) {
        AT(U32Buf, p.out_addr, 4, to) = place;
    } else {
        AT(UnitBuf, p.out_addr, UNIT_BYTES, to) =
            AT(UnitBuf, p.in_addr, UNIT_BYTES, base + int64_t(place));
    }
}

void main()
{
    uint stretches = (p.row_len + SORT_PER_LANE - 1u) / SORT_PER_LANE;
    uint64_t t = grid_index();
    uint64_t row = t / uint64_t(stretches);
    if (row >= p.n_rows)
        return;
    uint first = uint(t - row * uint64_t(stretches)) * SORT_PER_LANE;
    uint start = first / (2u * p.run) * (2u * p.run); // of the two runs
    uint n_a = min(p.run, p.row_len - start);
    uint n_b = min(p.run, p.row_len - start - n_a);
    int64_t base = int64_t(row * uint64_t(p.row_len));
    int64_t a = base + int64_t(start), b = a + int64_t(n_a);
    uint i = split(a, n_a, n_b, first - start), j = first - start - i;
    uint end = min(first + SORT_PER_LANE, p.row_len);
    for (uint at = first; at < end; at++) {
        bool is_a = j >= n_b || (i < n_a && key_at(a + int64_t(i)) <= key_at(b + int64_t(j)));
        int64_t from = is_a ? a + int64_t(i) : b + int64_t(j);
        put(base, at, key_at(from), AT(U32Buf, p.from_places, 4, from));
        i += is_a ? 1u : 0u;
        j += is_a ? 0u : 1u;
    }
}
