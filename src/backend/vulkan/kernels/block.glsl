// Reading memory in blocks, for software devices.
//
// llvmpipe (seen in Mesa 22.3) reads through a device address lane by lane, in a loop with a branch,
// unless it can prove that the address is the same in all lanes: then it is one scalar load. Only
// push constants and what is computed from them count as proof, at whatever index they are read, and
// only outside of any branch or loop. So
//   - the number of the subgroup's task is looked up, digit by digit, in a table among the push
//     constants that holds the numbers from 0 to BLOCK_DIGITS - 1;
//   - every lane reads all words of the subgroup's block and picks its own by its number in the
//     subgroup, which is a constant there: one vector load is what is left of it all;
//   - a kernel is straight code over a fixed number of words, and its last task overlaps the one
//     before it where the work does not divide.
// Every step is valid on any device whose subgroups are full; others just gain nothing by it.
//
// The includer includes subgroup.glsl and declares arguments p with the table p.digit. Kernels in
// GLSL are written for subgroups of BLOCK_LANES. Their rows in kernels.def say -O0: straight code is
// a list of calls then, a tenth of its size when inlined, which is left to the driver.

#define BLOCK_4(f, k) f((k)); f((k) + 1); f((k) + 2); f((k) + 3)
#define BLOCK_16(f, k) BLOCK_4(f, (k)); BLOCK_4(f, (k) + 4); BLOCK_4(f, (k) + 8); BLOCK_4(f, (k) + 12)
#define BLOCK_64(f, k) \
    BLOCK_16(f, (k)); BLOCK_16(f, (k) + 16); BLOCK_16(f, (k) + 32); BLOCK_16(f, (k) + 48)

uint block_lane()
{
    return gl_SubgroupInvocationID;
}

uint block_digit(uint number, uint shift)
{
    return p.digit[(number >> shift) & uint(BLOCK_DIGITS - 1)] << shift;
}

// A number that is the same in all lanes, as one that is known to be.
uint block_uniform(uint number)
{
    return block_digit(number, 0u) | block_digit(number, 4u) | block_digit(number, 8u) |
           block_digit(number, 12u) | block_digit(number, 16u) | block_digit(number, 20u) |
           block_digit(number, 24u) | block_digit(number, 28u);
}

// The number of this subgroup in the dispatch, the same in all its lanes.
uint block_task()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * gl_WorkGroupID.y;
    uint number = group * gl_NumSubgroups + gl_SubgroupID;
    return block_digit(number, 0u) | block_digit(number, 4u) | block_digit(number, 8u) |
           block_digit(number, 12u) | block_digit(number, 16u);
}

BUF(BlockBuf, uvec4, 4); // rows of a block may begin at any word

uint block_pick(uvec4 a, uvec4 b)
{
    uint lane = block_lane();
    uint v = a.x;
    v = lane == 1u ? a.y : v;
    v = lane == 2u ? a.z : v;
    v = lane == 3u ? a.w : v;
    v = lane == 4u ? b.x : v;
    v = lane == 5u ? b.y : v;
    v = lane == 6u ? b.z : v;
    return lane == 7u ? b.w : v;
}

// Word i of those at address for lane i. The address is a multiple of 4.
uint block_word(uint64_t address)
{
    BlockBuf words = BlockBuf(address);
    return block_pick(words.v[0], words.v[1]);
}

// The same for pairs of words.
uvec2 block_words(uint64_t address)
{
    BlockBuf words = BlockBuf(address);
    uvec4 a = words.v[0], b = words.v[1], c = words.v[2], d = words.v[3];
    return uvec2(block_pick(uvec4(a.xz, b.xz), uvec4(c.xz, d.xz)),
                 block_pick(uvec4(a.yw, b.yw), uvec4(c.yw, d.yw)));
}
