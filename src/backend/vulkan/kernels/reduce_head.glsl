// What reduce_row.comp and reduce_col.comp share: elements, the parts that they are combined into,
// walks of any layout, teams of lanes. The build chooses the family: -DOPS_REDUCE, -DOPS_ARG_REDUCE
// or -DOPS_LOGSUMEXP. A family's *_ops.glsl gives
//
//   PART, PART_BYTES                  what is kept while elements are combined, and its array stride
//   part_init()                       the part of no elements
//   part_join(a, b)                   of two sets of elements
//   part_take(a, value, index)        one more element; index counts along the reduced axes
//   part_take_block(a, values, index) DT_PER16 consecutive ones
//   part_select(a, b, c)              c ? b : a, without a branch
//   part_store(address, i, part)      writes output element i
#include "common.glsl"
#include "dtype.glsl"
#include "index.glsl"

#if defined(OPS_REDUCE)
#include "reduce_ops.glsl"
#elif defined(OPS_ARG_REDUCE)
#include "arg_reduce_ops.glsl"
#else
#include "logsumexp_ops.glsl"
#endif

layout(constant_id = 4) const bool WIDE = false;      // 16-byte loads
layout(constant_id = 5) const bool OUT_PARTS = false; // out_addr holds parts, not results
layout(constant_id = 6) const bool IN_PARTS = false;  // in_addr holds parts, not elements
layout(constant_id = 7) const uint TEAM_PARTS = 256u; // parts that fit in shared memory
layout(constant_id = 8) const bool RED_WALKS = false; // several reduced axes: red_walk, not red_stride

#include "subgroup.glsl"
#if defined(OPS_ARG_REDUCE)
PART part_xor(PART v, uint mask)
{
    return PART(sg_xor(v.key, mask), sg_xor(v.index, mask));
}
#else
PART part_xor(PART v, uint mask)
{
    return sg_xor(v, mask);
}
#endif

// Selections instead of branches: spirv-opt unrolls only loops without a branch in them, and values
// that a loop indexes end up in slow memory.
void part_take_if(inout PART a, VAL v, uint index, bool counts)
{
    PART next = a;
    part_take(next, v, index);
    a = part_select(a, next, counts);
}

BUF(PartBuf, PART, PART_BYTES >= 8 ? 8 : 4);

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

// Reductions that are too long for one team are cut into slices: the first dispatch leaves parts
// (OUT_PARTS), output i of slice s at s * n_out + i, the second one joins them.
void put(uint64_t slice, int64_t i, PART v)
{
    if (OUT_PARTS)
        AT(PartBuf, p.out_addr, PART_BYTES, slice * p.n_out + uint64_t(i)) = v;
    else
        part_store(p.out_addr, i, v);
}
