// Teams: power-of-two groups of neighbouring lanes of a workgroup that work on one result.
//
// The includer includes subgroup.glsl and defines, before including this file:
//   PART                      what a lane holds
//   PART part_join(PART, PART)    associative and commutative
//   PART part_xor(PART, uint)     the part of another lane of the subgroup
//   TEAM_PARTS                parts in shared memory: workgroup size times values joined at once
// All lanes of the workgroup call team_join, in uniform control flow.
shared PART team_parts[TEAM_PARTS];

// The number of this invocation, such that subgroups are runs of lanes.
uint lane_id()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

// Joins within the subgroup: lanes with the same number modulo cols, inside blocks of span lanes.
PART team_join_subgroup(PART v, uint cols, uint span)
{
    for (uint mask = cols; mask < min(span, gl_SubgroupSize); mask <<= 1)
        v = part_join(v, part_xor(v, mask));
    return v;
}

// Between two barriers: leaves the lane's part, then joins those of the other subgroups.
void team_leave(uint slot, PART v)
{
    team_parts[slot * gl_WorkGroupSize.x + lane_id()] = v;
}

PART team_collect(uint slot, uint cols, uint span)
{
    uint lane = lane_id();
    uint first = slot * gl_WorkGroupSize.x + (lane & ~(span - 1u)) + (lane & (cols - 1u));
    uint step = max(cols, gl_SubgroupSize);
    PART r = team_parts[first];
    for (uint k = step; k < span; k += step)
        r = part_join(r, team_parts[first + k]);
    return r;
}

bool team_needs_shared(uint cols, uint span)
{
    return span > gl_SubgroupSize && cols < span;
}

// Joins the lanes of a block of span lanes that have the same number modulo cols; every one of them
// gets the result. cols and span are powers of two.
PART team_join(PART v, uint cols, uint span)
{
    v = team_join_subgroup(v, cols, span);
    if (!team_needs_shared(cols, span))
        return v;
    barrier(); // the previous call's parts have been read
    team_leave(0u, v);
    barrier();
    return team_collect(0u, cols, span);
}
