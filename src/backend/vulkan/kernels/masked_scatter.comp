#version 450
// Where a mask is true, the values of its row one after the other; too few of them leave what is there.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "unit.glsl"

ARGS(masked_scatter_args);

void main()
{
    uint64_t i = grid_index();
    if (i >= p.n_rows * uint64_t(p.row_len))
        return;
    uint64_t row = i / uint64_t(p.row_len);
    uint at = uint(i - row * uint64_t(p.row_len));
    uint count = AT(U32Buf, p.counts, 4, i);
    uint before = at == 0u ? 0u : AT(U32Buf, p.counts, 4, max(i, 1ul) - 1ul);
    if (count == before || before >= p.n_values)
        return;
    AT(UnitBuf, p.dst, UNIT_BYTES, walk_offset(Walk(p.dst_walk), i)) =
        AT(UnitBuf, p.values, UNIT_BYTES,
           walk_offset(Walk(p.value_walk), row * uint64_t(p.n_values) + uint64_t(before)));
}
