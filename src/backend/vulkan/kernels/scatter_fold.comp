#version 450
// Slices of one place are combined with what is there, in their order; a lane holds one unit of 16 bytes,
// or one element. Positions are cut into chunks, so that many slices of one place are no lane's work
// alone: what reaches beyond its chunk becomes a part, for which every chunk has two places, of what
// comes from the chunk before or begins with this one, and of what begins inside. A second dispatch
// (IS_JOIN) combines the parts.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"
#include "reduce_ops.glsl"
#include "scatter.glsl"

layout(constant_id = 4) const bool IS_JOIN = false;

#define UNIT_BYTES (PER_LANE * DT_BYTES)

BUF(PartBuf, PART, PART_BYTES);

struct held {
    PART v[PER_LANE];
};

// A unit, at an offset in units.
held load(uint64_t address, int64_t at)
{
    held h;
#if PER_LANE == 1
    h.v[0] = part_of(dt_get(address, at));
#else
    VAL v[DT_PER16];
    dt_unpack(AT(U128Buf, address, 16, at), v);
    [[unroll]] for (int i = 0; i < PER_LANE; i++)
        h.v[i] = part_of(v[i]);
#endif
    return h;
}

void store(int64_t at, held h)
{
#if PER_LANE == 1
    dt_set(p.dst, at, VAL(h.v[0]));
#else
    VAL v[DT_PER16];
    [[unroll]] for (int i = 0; i < PER_LANE; i++)
        v[i] = VAL(h.v[i]);
    AT(U128Buf, p.dst, 16, at) = dt_pack(v);
#endif
}

void take(inout held h, held more)
{
    [[unroll]] for (int i = 0; i < PER_LANE; i++)
        h.v[i] = part_join(h.v[i], more.v[i]);
}

uint64_t part_at(uint number, uint64_t j)
{
    return (uint64_t(number) * p.slice + j) * uint64_t(PER_LANE);
}

void put_part(uint number, uint64_t j, held h)
{
    [[unroll]] for (int i = 0; i < PER_LANE; i++)
        AT(PartBuf, p.parts, PART_BYTES, part_at(number, j) + uint64_t(i)) = h.v[i];
}

held get_part(uint number, uint64_t j)
{
    held h;
    [[unroll]] for (int i = 0; i < PER_LANE; i++)
        h.v[i] = AT(PartBuf, p.parts, PART_BYTES, part_at(number, j) + uint64_t(i));
    return h;
}

bool has_key(uint i, uint key)
{
    return i < p.n && key_at(min(i, p.n - 1u)) == key;
}

// From position i to the end of its place or chunk.
void fold(uint i, uint64_t j)
{
    uint key = key_at(i), chunk = i / p.chunk, inside = i - chunk * p.chunk;
    bool is_first = i == 0u || key_at(max(i, 1u) - 1u) != key;
    if (key == SCATTER_NOWHERE || (!is_first && inside != 0u))
        return;
    uint end = i + min(p.chunk - inside, p.n - i);
    int64_t to = dst_offset(key, j), from = update_inside(j);
    held h = load(is_first ? p.dst : p.updates, is_first ? to : from + update_offset(i));
    uint next = is_first ? i : i + 1u;
    for (; next < end && has_key(next, key); next++)
        take(h, load(p.updates, from + update_offset(next)));
    bool goes_on = next == end && has_key(next, key);
    if (is_first && !goes_on)
        store(to, h);
    else
        put_part(2u * chunk + (inside != 0u ? 1u : 0u), j, h);
}

// The place that begins in this chunk and reaches into the next one.
void join(uint chunk, uint64_t j)
{
    uint first = chunk * p.chunk, key = key_at(first + p.chunk - 1u);
    bool begins_before = chunk != 0u && key_at(max(first, 1u) - 1u) == key;
    if (key == SCATTER_NOWHERE || begins_before || !has_key(first + p.chunk, key))
        return;
    held h = get_part(2u * chunk + (key_at(first) == key ? 0u : 1u), j);
    for (uint next = first + p.chunk; has_key(next, key); next += p.chunk)
        take(h, get_part(2u * (next / p.chunk), j));
    store(dst_offset(key, j), h);
}

void main()
{
    uint64_t j;
    uint i = lane_item(j);
    if (IS_JOIN) {
        if (i < (p.n - 1u) / p.chunk)
            join(i, j);
    } else if (i < p.n) {
        fold(i, j);
    }
}
