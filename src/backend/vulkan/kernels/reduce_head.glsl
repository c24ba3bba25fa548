// What reduce_row.comp and reduce_col.comp share beyond parts: walks of any layout, teams of lanes.
#include "reduce_parts.glsl"
#include "index.glsl"

layout(constant_id = 4) const bool WIDE = false;      // 16-byte loads
layout(constant_id = 6) const bool IN_PARTS = false;  // in_addr holds parts, not elements
layout(constant_id = 7) const uint TEAM_PARTS = 256u; // parts that fit in shared memory
layout(constant_id = 8) const bool RED_WALKS = false; // several reduced axes: red_walk, not red_stride

#include "team.glsl"

ARGS(reduce_args);

uint group_index()
{
    return gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
           gl_NumWorkGroups.y * gl_WorkGroupID.z);
}

int64_t kept_offset(uint64_t walk, int64_t stride, uint64_t index)
{
    return is_given(walk) ? walk_offset(Walk(walk), index) : int64_t(index) * stride;
}

// Known when the pipeline is built: a software device steps through the loops of a walk even where no
// lane takes them.
int64_t red_offset(uint64_t index)
{
    if (RED_WALKS)
        return walk_offset(Walk(p.red_walk), index);
    return int64_t(index) * p.red_stride;
}

void put(uint64_t slice, int64_t i, PART v)
{
    put_part(p.out_addr, slice * p.n_out, i, v);
}
