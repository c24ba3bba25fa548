// The heads of one new position on their way into an attention.
//
// Teams norm and turn the rows of this workgroup's queries, and leave them in shared memory. In the
// workgroup whose keys end with the new one they do the same for the key and copy the value; the
// first tile of rows writes both to the caches, and nobody reads them there.
layout(constant_id = 11) const uint ROW_FLAGS = 0u; // ROPE_*, HEADS_*
layout(constant_id = 12) const uint TEAM_PARTS = 256u;
layout(constant_id = 13) const uint ROW_LANES = 8u;
layout(constant_id = 14) const uint LOG2_TEAM = 3u;

const bool INVERSE = (ROW_FLAGS & ROPE_INVERSE) != 0u;
const bool FREQS = (ROW_FLAGS & ROPE_FREQS) != 0u;
const bool TURNS = (ROW_FLAGS & ROPE_TURNS) != 0u;
const bool NORMS = (ROW_FLAGS & ROPE_NORMS) != 0u;
const bool NORM_Q = (ROW_FLAGS & HEADS_NORM_Q) != 0u;
const bool NORM_K = (ROW_FLAGS & HEADS_NORM_K) != 0u;
const uint BLOCKS = 2u;
#include "norm_rows.glsl"

#define TURN_TABLE p.table
#define TURN_STRIDE more.table_stride
#define TURN_PAIRS (D / 2u)
#define ROW_SIZE p.size
#include "rope_rows.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer More
{
    attn_heads_more m;
};

// Blocks of the rows: queries, key, value.
const uint NEW_KEY = ROWS, NEW_VALUE = ROWS + 1u;
shared uvec4 head_blocks[(ROWS + 2u) * BLOCKS_K];

bool is_in_memory(uint key)
{
    return key != p.n_k - 1u;
}

uvec4 query_block(uint r, uint block)
{
    return block < BLOCKS_K ? head_blocks[r * BLOCKS_K + block] : uvec4(0u);
}

uint64_t row_of(uint64_t rows, uint head, int head_stride)
{
    return rows + uint64_t(int64_t(head) * int64_t(head_stride) * int64_t(DT_BYTES));
}

void place_head(uint n)
{
    bool is_normed = n < NEW_KEY ? NORM_Q : n == NEW_KEY && NORM_K;
    part.weight = p.k_weight;
    if (n < NEW_KEY) {
        src_row = row_of(p.q_row, head_of(kv, row_number(n)), p.q_row_head);
        part.weight = p.q_weight;
    } else if (n == NEW_KEY) {
        src_row = row_of(p.k_row, kv, p.k_row_head);
    } else {
        src_row = row_of(p.v_row, kv, p.v_row_head);
    }
    if (batch > 0u) {
        int stride = n < NEW_KEY ? more.q_batch : n == NEW_KEY ? more.k_batch : more.v_batch;
        src_row += uint64_t(int64_t(batch) * int64_t(stride) * int64_t(DT_BYTES));
    }
    bool has_weight = is_normed && is_given(part.weight);
    part.flags = (is_normed ? ROPE_PART_NORM : 0u) | (has_weight ? ROPE_PART_WEIGHT : 0u);
    part.eps = p.eps;
    is_rotated = n != NEW_VALUE;
}

void place_turn()
{
    position = 0u;
    if (TURNS)
        return;
    int first = more.first;
    if (is_given(more.offset))
        first = AT(I32Buf, more.offset, 4, int64_t(batch) * more.offset_stride);
    angle_unit = float(first) * more.position_scale;
}

void put_new(uint n, uint block, uvec4 words)
{
    bool is_key = n == NEW_KEY;
    int64_t at = int64_t(p.n_k - 1u) * int64_t(is_key ? p.k_pos : p.v_pos);
    AT(U128Buf, (is_key ? k_rows : v_rows) + uint64_t(at * int64_t(DT_BYTES)), 16, block) = words;
}

void put_head(uint n)
{
    VAL a[DT_PER16], b[DT_PER16];
    turn_held(a, b);
    uvec4 words[2] = { dt_pack(a), dt_pack(b) };
    [[unroll]] for (int k = 0; k < 2; k++) {
        uint block = share.lane + uint(k) * share.lanes;
        head_blocks[n * BLOCKS_K + block] = words[k];
        if (n >= NEW_KEY && tile == 0u)
            put_new(n, block, words[k]);
    }
}

// The workgroup's rows into shared memory.
void turn_heads(bool has_new)
{
    uint teams = gl_WorkGroupSize.x >> LOG2_TEAM;
    uint rows = has_new ? ROWS + 2u : ROWS;
    place_turn();
    share.lane = lane_id() & ((1u << LOG2_TEAM) - 1u);
    share.lanes = ROW_LANES;
    for (uint first = 0u; first < ROWS + 2u; first += teams) {
        uint n = first + (lane_id() >> LOG2_TEAM);
        bool live = n < rows;
        share.n = live ? D : 0u;
        place_head(min(n, NEW_VALUE));
        load_held();
        if (NORMS)
            factor = norm_factor(row_squares(0.0), 1u << LOG2_TEAM);
        if (live && share.lane < share.lanes)
            put_head(n);
    }
    barrier();
}

// The new key and value for whoever has them among the keys of this step. (Mesa does not unroll a loop
// with a `continue`: the arrays would lie in memory, and LLVM 19 fails over what llvmpipe makes of it.)
void take_new(uint first, uint end, uint stride, uint group)
{
    [[unroll]] for (uint u = 0u; u < UK; u++) {
        bool is_new = !is_in_memory(key_of(u, first, end, stride, group));
        [[unroll]] for (uint b = 0u; b < HELD_K; b++) {
            uint block = b * LPK + sub;
            if (is_new && block < BLOCKS_K) {
                keys[u * HELD_K + b] = head_blocks[NEW_KEY * BLOCKS_K + block];
                values[u * HELD_K + b] = head_blocks[NEW_VALUE * BLOCKS_K + block];
            }
        }
    }
}
