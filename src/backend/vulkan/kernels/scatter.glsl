// Positions of a scatter in the order of their keys, and where their slices lie.
ARGS(scatter_args);

uint place_at(uint i)
{
    return AT(U32Buf, p.places, 4, i);
}

uint key_at(uint i)
{
    return AT(U32Buf, p.keys, 4, place_at(i));
}

// Of unit j of a slice, in the result and in the updates.
int64_t dst_offset(uint key, uint64_t j)
{
    int64_t inside = is_given(p.slice_walk) ? walk_offset(Walk(p.slice_walk), j) : int64_t(j);
    return walk_offset(Walk(p.key_walk), uint64_t(key)) + inside;
}

int64_t update_inside(uint64_t j)
{
    return is_given(p.slice_walk) ? walk_offset(Walk(p.slice_walk + uint64_t(WALK_BYTES)), j) : int64_t(j);
}

int64_t update_offset(uint i)
{
    return walk_offset(Walk(p.position_walk), uint64_t(place_at(i)));
}

// The lane's position or chunk, and its unit.
uint lane_item(out uint64_t j)
{
    uint64_t t = grid_index();
    bool small = t <= 0xfffffffful && p.slice <= 0xfffffffful; // 64-bit divisions cost a subroutine
    uint64_t i = small ? uint64_t(uint(t) / uint(p.slice)) : t / p.slice;
    j = t - i * p.slice;
    return uint(min(i, 0xfffffffful));
}
