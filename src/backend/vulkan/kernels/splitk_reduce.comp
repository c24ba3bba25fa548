#version 450
// The end of a product whose k was split over several workgroups: adds up the parts.
//
// One invocation makes four neighbouring elements of the result, of which all have p.size.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"

layout(constant_id = 3) const uint FLAGS = 0;
layout(constant_id = 4) const uint EPILOGUE = 0;

ARGS(splitk_args);
#include "gemm.glsl"

VAL old_value(uint64_t index)
{
    uint64_t row = index / p.n;
    uint col = uint(index - row * p.n), batch = uint(row / p.m);
    row -= uint64_t(batch) * p.m;
    int64_t at = mm_batch_offsets(p.batch, i64vec3(0l, 0l, p.batch_c), batch).z;
    return dt_get(p.c, at + int64_t(row) * p.c_row + int64_t(col) * p.c_col);
}

VAL finish(VAL sum, uint64_t index)
{
    if (EPILOGUE == EPILOGUE_SCALED)
        sum = mm_scaled(sum, p.alpha, p.beta, p.beta == 0.0 ? DT_ZERO : old_value(index));
#if DT_IS_FLOAT
    if ((FLAGS & FLAG_PROGRAM) != 0u) {
        uint row = uint(index / p.n);
        Sides s = epilogue_sides(p.epilogue, row, uint(index - uint64_t(row) * p.n));
        sum = epilogue(sum, 0.0, s, p.epilogue);
    }
#endif
    return sum;
}

void main()
{
    uint64_t first = grid_index() * 4ul;
    if (first >= p.size)
        return;
    if (p.size % 4ul == 0ul) {
        Quad sum = QUAD_ZERO;
        for (uint s = 0u; s < p.splits; s++) {
            Quad part = quad_load_part(p.parts + (s * p.size + first) * PART_BYTES);
            [[unroll]] for (int i = 0; i < 4; i++)
                QUAD_SET(sum, i, quad_get(sum, i) + quad_get(part, i));
        }
        [[unroll]] for (int i = 0; i < 4; i++)
            QUAD_SET(sum, i, finish(quad_get(sum, i), first + i));
        quad_store(p.dst + first * DT_BYTES, sum);
        return;
    }
    for (uint64_t index = first; index < min(first + 4ul, p.size); index++) {
        VAL sum = DT_ZERO;
        for (uint s = 0u; s < p.splits; s++)
            sum += AT(PartBuf, p.parts, PART_BYTES, s * p.size + index);
        dt_set(p.dst, int64_t(index), finish(sum, index));
    }
}
