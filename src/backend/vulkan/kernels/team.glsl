// Teams: power-of-two groups of neighbouring lanes of a workgroup that work on one result.
//
// The includer includes subgroup.glsl and defines, before including this file:
//   PART                      what a lane holds
//   PART part_join(PART, PART)    associative and commutative
//   PART part_xor(PART, uint)     the part of another lane of the subgroup
//   TEAM_PARTS                parts in shared memory, at least the workgroup size
// All lanes of the workgroup call team_join, in uniform control flow.
shared PART team_parts[TEAM_PARTS];

// The number of this invocation, such that subgroups are runs of lanes.
uint lane_id()
{
    return gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
}

// True if subgroups have to meet in shared memory.
bool team_needs_shared(uint cols, uint span)
{
    return span > gl_SubgroupSize && cols < span;
}

// Distance in shared memory between parts that are still to be joined once the subgroups are done.
uint team_step(uint cols)
{
    return max(cols, gl_SubgroupSize);
}

// Joins the lanes of a block of span lanes that have the same number modulo cols; every one of them
// gets the result. cols and span are powers of two.
PART team_join(PART v, uint cols, uint span)
{
    uint lane = lane_id();
    for (uint mask = cols; mask < min(span, gl_SubgroupSize); mask <<= 1)
        v = part_join(v, part_xor(v, mask));
    if (!team_needs_shared(cols, span))
        return v;
    barrier(); // the previous call's parts have been read
    team_parts[lane] = v;
    barrier();
    uint first = (lane & ~(span - 1u)) + (lane & (cols - 1u));
    PART r = team_parts[first];
    for (uint k = team_step(cols); k < span; k += team_step(cols))
        r = part_join(r, team_parts[first + k]);
    return r;
}
