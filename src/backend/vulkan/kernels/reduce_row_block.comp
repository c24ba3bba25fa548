#version 450
// Reductions of rows of consecutive elements in blocks: a subgroup makes one slice of one output.
#extension GL_GOOGLE_include_directive : require
#include "reduce_unit.glsl"

#define CHUNK uint(REDUCE_BLOCK_LOADS * BLOCK_LANES)
#define CHAINS 4 // of parts that do not wait for each other

uint64_t first; // address of the slice
uint skipped;   // units that the slice before has
PART part[CHAINS];

void take(const int k)
{
    UNIT u = unit_load(first + uint64_t(k * BLOCK_LANES * UNIT_BYTES));
    bool counts = uint(k * BLOCK_LANES) + block_lane() >= skipped;
    take_unit(part[k % CHAINS], u, counts);
}

void main()
{
    uint task = block_task();
    uint o = task / p.slices;
    uint slice = task - o * p.slices;
    uint from = min(slice * CHUNK, p.n_red - CHUNK);
    skipped = slice * CHUNK - from;
    first = p.in_addr +
            uint64_t((int64_t(o) * p.kept_stride + int64_t(from)) * int64_t(UNIT_BYTES));
    part[0] = part[1] = part[2] = part[3] = part_init();
    BLOCK_64(take, 0);

    PART all = part_join(part_join(part[0], part[1]), part_join(part[2], part[3]));
    all = part_join(all, part_xor(all, 1u));
    all = part_join(all, part_xor(all, 2u));
    all = part_join(all, part_xor(all, 4u));
    if (block_lane() == 0u && task < p.n_tasks)
        put_part(p.out_addr, uint64_t(slice) * p.n_out, int64_t(o), all);
}
