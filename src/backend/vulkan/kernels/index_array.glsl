// Index arrays: what lies at one of n_index times GATHER_INDEX_BYTES.
#include "position.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Index
{
    gather_index x;
};

Index index_array(uint64_t address, uint k)
{
    return Index(address + uint64_t(k) * uint64_t(GATHER_INDEX_BYTES));
}

// Number i of it, as it is in memory.
int64_t index_value(uint64_t address, uint k, uint64_t i)
{
    Index index = index_array(address, k);
    uint64_t walk = uint64_t(index) + uint64_t(GATHER_WALK_AT);
    return read_index(index.x.addr, index.x.code, walk_offset(Walk(walk), i));
}
