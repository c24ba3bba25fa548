#version 450
// Reductions of columns in blocks: a subgroup makes one slice of the outputs of neighbouring columns,
// REDUCE_BLOCK_COLS units of them per lane.
#extension GL_GOOGLE_include_directive : require
#include "reduce_unit.glsl"

#define ROWS uint(REDUCE_BLOCK_ROWS)
#define WIDTH uint(REDUCE_BLOCK_COLS * BLOCK_LANES)

uint64_t first; // address of the slice
uint skipped;   // rows that the slice before has
PART left[UNIT_VALUES], right[UNIT_VALUES];

void take(const int k)
{
    uint64_t row = first + uint64_t(int64_t(k) * p.red_stride * int64_t(UNIT_BYTES));
    take_column(left, unit_load(row), uint(k) >= skipped);
    take_column(right, unit_load(row + uint64_t(BLOCK_LANES * UNIT_BYTES)), uint(k) >= skipped);
}

void main()
{
    uint task = block_task();
    uint blocks = (p.columns + WIDTH - 1u) / WIDTH;
    uint rest = task / blocks;
    uint outer = rest / p.slices;
    uint slice = rest - outer * p.slices;
    uint column = min((task - rest * blocks) * WIDTH, p.columns - WIDTH);
    uint from = min(slice * ROWS, p.n_red - ROWS);
    skipped = slice * ROWS - from;
    int64_t at = int64_t(outer) * p.kept_stride + int64_t(from) * p.red_stride + int64_t(column);
    first = p.in_addr + uint64_t(at * int64_t(UNIT_BYTES));
    init_column(left);
    init_column(right);
    BLOCK_64(take, 0);

    if (task >= p.n_tasks)
        return;
    uint64_t slice_start = uint64_t(slice) * p.n_out;
    int64_t out_first = int64_t(outer) * int64_t(p.kept_out_stride) +
                        int64_t((column + block_lane()) * uint(UNIT_VALUES));
    put_column(slice_start, out_first, left);
    put_column(slice_start, out_first + int64_t(BLOCK_LANES * UNIT_VALUES), right);
}
