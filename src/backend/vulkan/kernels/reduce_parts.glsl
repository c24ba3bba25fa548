// What all reduction kernels share: elements, and the parts that they are combined into. The build
// chooses the family: -DOPS_REDUCE, -DOPS_ARG_REDUCE or -DOPS_LOGSUMEXP. A family's *_ops.glsl gives
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

#if defined(OPS_REDUCE)
#include "reduce_ops.glsl"
#elif defined(OPS_ARG_REDUCE)
#include "arg_reduce_ops.glsl"
#else
#include "logsumexp_ops.glsl"
#endif

layout(constant_id = 5) const bool OUT_PARTS = false; // out_addr holds parts, not results

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

// Reductions that are too long for one team are cut into slices: the first dispatch leaves parts
// (OUT_PARTS), output i of slice s at s * n_out + i, the second one joins them.
void put_part(uint64_t address, uint64_t slice_start, int64_t i, PART v)
{
    if (OUT_PARTS)
        AT(PartBuf, address, PART_BYTES, slice_start + uint64_t(i)) = v;
    else
        part_store(address, i, v);
}
