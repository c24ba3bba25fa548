// Shared by the attention kernels: masks, the end of a row. Scores are kept in units of log2, so that
// exp2 does.
//
// The includer declares ARGS(sdpa_args), FLAGS (SDPA_*), GROUP (query heads of a kv head) and DV. With
// HEADS defined it declares ARGS(attn_heads_args), `more` of its memory and KV_HEADS: one query, no mask.
#ifdef HEADS
#define N_Q 1u
#define N_KV KV_HEADS
#define MASK_ADDR 0ul
#define SINKS_ADDR more.sinks
#define SINKS_STRIDE more.sinks_stride
#else
#define N_Q p.n_q
#define N_KV p.n_kv
#define MASK_ADDR p.mask
#define SINKS_ADDR p.sinks
#define SINKS_STRIDE p.sinks_stride
#endif

const bool CAUSAL = (FLAGS & SDPA_CAUSAL) != 0u;
const bool MASK_BOOL = (FLAGS & SDPA_MASK_BOOL) != 0u;
const bool MASK_ADD = (FLAGS & SDPA_MASK_ADD) != 0u;
const bool SINKS = (FLAGS & SDPA_SINKS) != 0u;
const bool WIDE = (FLAGS & SDPA_WIDE) != 0u;
const bool SPLIT = (FLAGS & SDPA_SPLIT) != 0u;

const float LOG2_E = 1.44269504;
// No infinities, whose differences are no numbers. A key that a mask hides still counts in a row that
// has no other (its weight is 1 like that of all the others); one that is not there never does.
const float HIDDEN = -1e38;
const float ABSENT = -3e38;

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer MaskArgs
{
    sdpa_mask m;
};

float weight_of(float score, float largest)
{
    return score > 2.0 * HIDDEN ? exp2(score - largest) : 0.0;
}

// A row is a query head at a position; the rows of a kv head are numbered position by position.
uint position_of(uint row)
{
    return row / GROUP;
}

uint head_of(uint kv, uint row)
{
    return kv * GROUP + row % GROUP;
}

// Keys that a position sees, from 0.
uint keys_of(uint position)
{
    return CAUSAL ? min(position + 1u + p.n_k - N_Q, p.n_k) : p.n_k;
}

// Offset of a row of the mask, in elements.
int64_t mask_row(uint batch, uint head, uint position)
{
    MaskArgs a = MaskArgs(MASK_ADDR);
    return int64_t(batch) * a.m.batch + int64_t(head) * a.m.head + int64_t(position) * a.m.query;
}

float masked(float score, int64_t row, uint key)
{
    MaskArgs a = MaskArgs(MASK_ADDR);
    int64_t at = row + int64_t(key) * a.m.key;
    if (MASK_BOOL)
        return AT(U8Buf, a.m.addr, 1, at) != uint8_t(0) ? score : HIDDEN;
    float m = dt_get(a.m.addr, at);
    if (m < HIDDEN)
        return m < -3.4e38 && isinf(m) ? ABSENT : HIDDEN;
    return score + m * LOG2_E;
}

float sink_of(uint head)
{
    return dt_get(SINKS_ADDR, int64_t(head) * int64_t(SINKS_STRIDE)) * LOG2_E;
}

// Element 0 of a row of the result.
int64_t dst_row(uint batch, uint head, uint position)
{
    return ((int64_t(batch) * N_Q + position) * (N_KV * GROUP) + head) * DV;
}
