#version 450
// Gradients of attention without its weights in memory: they are computed again, tile by tile, in
// float.
//
//   w = exp(score - maximum) / sum     of a query row and a key
//   d = w * (cotangent . value - mean) where the mean over the row's keys is cotangent . result
//   q's: sum of d * key, k's: of d * query (both times scale), v's: of w * cotangent
//
// Rows of a kv head are its query heads at all positions. Without KEYS a workgroup owns rows and goes
// over the keys twice: for maximum and sum, which it leaves in memory, and for q's gradient. With KEYS
// it owns keys and goes over the rows, of which it finds maximum and sum. Nothing is added up by
// several workgroups.
//
// Rows are read in chunks of CHUNK quads, whatever their length. TX lanes share the owned rows of a
// tile's scores, four by four; sums go to lanes by quads.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"

layout(constant_id = 3) const uint FLAGS = 0u; // SDPA_*
layout(constant_id = 4) const uint TX = 16u;
layout(constant_id = 5) const uint TY = 16u;
layout(constant_id = 6) const uint GROUP = 1u;
layout(constant_id = 7) const uint D = 64u;
layout(constant_id = 8) const uint DV = 64u;

ARGS(sdpa_vjp_args);
#include "attn.glsl"

#ifdef KEYS
#define OWN_A SDPA_VJP_K
#define OWN_B SDPA_VJP_V
#define OTHER_A SDPA_VJP_Q
#define OTHER_B SDPA_VJP_COTAN
#else
#define OWN_A SDPA_VJP_Q
#define OWN_B SDPA_VJP_COTAN
#define OTHER_A SDPA_VJP_K
#define OTHER_B SDPA_VJP_V
#endif

const uint THREADS = TX * TY;
const uint OWN = 4u * TY, OTHER = 4u * TX;
const uint CHUNK = SDPA_VJP_CHUNK, PITCH = CHUNK + 1u;
const uint CHUNKS_K = (D + 4u * CHUNK - 1u) / (4u * CHUNK);
const uint CHUNKS_V = (DV + 4u * CHUNK - 1u) / (4u * CHUNK);
const uint RPT = 32u / TX; // owned rows of which a lane sums up a quad
const uint PITCH_W = OTHER + 1u;

shared vec4 own_rows[OWN * PITCH], other_rows[OTHER * PITCH];
shared float weights[OWN * PITCH_W];
shared vec4 row_stats[OWN > OTHER ? OWN : OTHER]; // of the tile's query rows

float scores[16], slopes[16];
vec4 sums_a[CHUNKS_K * RPT];
#ifdef KEYS
vec4 sums_b[CHUNKS_V * RPT];
#endif

uint tid, tx, ty;
uint batch, kv, first_own, n_own, n_other;

BUF(U64x2Buf, uvec2, 8);

layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Operands
{
    sdpa_operand op[SDPA_VJP_OPERANDS];
};

// ---- memory ----

bool is_of_rows(const uint operand)
{
    return operand != SDPA_VJP_K && operand != SDPA_VJP_V;
}

uint64_t row_address(const uint operand, uint row)
{
    sdpa_operand x = Operands(p.operands).op[operand];
    uint head = is_of_rows(operand) ? head_of(kv, row) : kv;
    uint pos = is_of_rows(operand) ? position_of(row) : row;
    int64_t at = int64_t(batch) * x.batch + int64_t(head) * x.head + int64_t(pos) * x.pos;
    return x.addr + uint64_t(at * int64_t(DT_BYTES));
}

// Elements 4 * quad ... of a row of n, zeros behind its end.
vec4 load_quad(uint64_t row, uint quad, uint n)
{
    vec4 v = vec4(0.0);
    if (WIDE) {
        if (4u * quad >= n)
            return v;
#if DT_BYTES == 2
        uvec2 w = AT(U64x2Buf, row, 8, quad);
        return vec4(dt_from_bits(w.x), dt_from_bits(w.x >> 16), dt_from_bits(w.y),
                    dt_from_bits(w.y >> 16));
#else
        return uintBitsToFloat(AT(U128Buf, row, 16, quad));
#endif
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        if (4u * quad + i < n)
            v[i] = dt_get(row, int64_t(4u * quad + i));
    return v;
}

vec4 quad_of(const uint operand, uint row, uint end, uint chunk, uint quad)
{
    uint n = operand == SDPA_VJP_Q || operand == SDPA_VJP_K ? D : DV;
    if (row >= end)
        return vec4(0.0);
    return load_quad(row_address(operand, row), chunk * CHUNK + quad, n);
}

void stage_own(const uint operand, uint chunk)
{
    for (uint id = tid; id < OWN * CHUNK; id += THREADS) {
        uint r = id / CHUNK, c = id % CHUNK;
        own_rows[r * PITCH + c] = quad_of(operand, first_own + r, n_own, chunk, c);
    }
}

void stage_other(const uint operand, uint first, uint chunk)
{
    for (uint id = tid; id < OTHER * CHUNK; id += THREADS) {
        uint r = id / CHUNK, c = id % CHUNK;
        other_rows[r * PITCH + c] = quad_of(operand, first + r, n_other, chunk, c);
    }
}

uint64_t stats_address(uint row)
{
    uint64_t head = uint64_t(batch) * p.n_kv + kv;
    return p.stats + 4ul * SDPA_VJP_STATS * (head * (uint64_t(GROUP) * p.n_q) + row);
}

// ---- products of tiles ----

// Owned row ty * 4 + i times other row tx + j * TX is number 4 * i + j.
void multiply(inout float v[16])
{
    for (uint c = 0u; c < CHUNK; c++) {
        vec4 b[4];
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            b[j] = other_rows[(tx + j * TX) * PITCH + c];
        [[unroll]] for (uint i = 0u; i < 4u; i++) {
            vec4 a = own_rows[(ty * 4u + i) * PITCH + c];
            [[unroll]] for (uint j = 0u; j < 4u; j++)
                v[4u * i + j] += dot(a, b[j]);
        }
    }
}

void clear(out float v[16])
{
    [[unroll]] for (uint i = 0u; i < 16u; i++)
        v[i] = 0.0;
}

void multiply_a(uint first)
{
    clear(scores);
    for (uint c = 0u; c < CHUNKS_K; c++) {
        barrier();
        stage_own(OWN_A, c);
        stage_other(OTHER_A, first, c);
        barrier();
        multiply(scores);
    }
}

void multiply_b(uint first)
{
    clear(slopes);
    for (uint c = 0u; c < CHUNKS_V; c++) {
        barrier();
        stage_own(OWN_B, c);
        stage_other(OTHER_B, first, c);
        barrier();
        multiply(slopes);
    }
}

// What lanes leave in shared memory, times the chunk of the other rows that is there.
uint sum_quad, sum_row;

void add_chunk(inout vec4 sum[RPT])
{
    for (uint first = 0u; first < OTHER; first += 4u)
        [[unroll]] for (uint k = 0u; k < 4u; k++) {
            vec4 v = other_rows[(first + k) * PITCH + sum_quad];
            [[unroll]] for (uint i = 0u; i < RPT; i++)
                sum[i] += weights[(sum_row + i) * PITCH_W + first + k] * v;
        }
}

#define ADD_PRODUCTS(sums, chunks, operand, first)                                                 \
    [[unroll]] for (uint c = 0u; c < chunks; c++) {                                                \
        vec4 sum[RPT];                                                                             \
        barrier();                                                                                 \
        stage_other(operand, first, c);                                                            \
        barrier();                                                                                 \
        [[unroll]] for (uint i = 0u; i < RPT; i++)                                                 \
            sum[i] = sums[c * RPT + i];                                                            \
        add_chunk(sum);                                                                            \
        [[unroll]] for (uint i = 0u; i < RPT; i++)                                                 \
            sums[c * RPT + i] = sum[i];                                                            \
    }

void leave(float v[16])
{
    barrier(); // the last ones have been read
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++)
            weights[(ty * 4u + i) * PITCH_W + tx + j * TX] = v[4u * i + j];
}

// ---- scores ----

uint row_of(uint first, uint i, uint j)
{
#ifdef KEYS
    return first + tx + j * TX;
#else
    return first_own + ty * 4u + i;
#endif
}

uint key_of(uint first, uint i, uint j)
{
#ifdef KEYS
    return first_own + ty * 4u + i;
#else
    return first + tx + j * TX;
#endif
}

// The score in units of log2: ABSENT, HIDDEN or a number.
float score_of(uint first, uint i, uint j)
{
    uint row = row_of(first, i, j), key = key_of(first, i, j);
    if (row >= GROUP * p.n_q || key >= keys_of(position_of(row)))
        return ABSENT;
    float s = scores[4u * i + j] * (p.scale * LOG2_E);
    if (MASK_BOOL || MASK_ADD)
        s = masked(s, mask_row(batch, head_of(kv, row), position_of(row)), key);
    return s;
}

// Scores become weights, slopes what the scores' cotangents are.
void weigh(uint first)
{
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            float s = score_of(first, i, j);
            vec4 stats = row_stats[row_of(first, i, j) -
#ifdef KEYS
                                   first];
#else
                                   first_own];
#endif
            float w = weight_of(s, stats.x) * stats.y;
            scores[4u * i + j] = w;
            slopes[4u * i + j] = s > HIDDEN ? w * (slopes[4u * i + j] - stats.z) : 0.0;
        }
}

#ifndef KEYS
// ---- maximum and sum of rows, which their lanes have parts of ----

float largest[4], total[4];

void take_scores(uint first)
{
    [[unroll]] for (uint i = 0u; i < 4u; i++)
        [[unroll]] for (uint j = 0u; j < 4u; j++) {
            float s = score_of(first, i, j);
            float top = max(largest[i], s);
            total[i] = total[i] * exp2(largest[i] - top) + weight_of(s, top);
            largest[i] = top;
        }
}

// cotangent . result of a row
float mean_of(uint row)
{
    uint64_t a = row_address(SDPA_VJP_COTAN, row), b = row_address(SDPA_VJP_OUT, row);
    float sum = 0.0;
    for (uint c = 0u; 4u * c < DV; c++)
        sum += dot(load_quad(a, c, DV), load_quad(b, c, DV));
    return sum;
}

void join_row(uint r)
{
    uint row = first_own + r;
    float top = ABSENT, sum = 0.0;
    for (uint k = 0u; k < TX; k++)
        top = max(top, weights[r * PITCH_W + k]);
    if (SINKS)
        top = max(top, sink_of(head_of(kv, row)));
    for (uint k = 0u; k < TX; k++)
        sum += weights[r * PITCH_W + TX + k] * exp2(weights[r * PITCH_W + k] - top);
    if (SINKS)
        sum += exp2(sink_of(head_of(kv, row)) - top);
    vec4 stats = vec4(top, sum > 0.0 ? 1.0 / sum : 0.0, mean_of(row), 0.0);
    row_stats[r] = stats;
    AT(U128Buf, stats_address(row), 16, 0) = floatBitsToUint(stats);
}

void find_stats(uint end)
{
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        largest[i] = ABSENT;
        total[i] = 0.0;
    }
    for (uint first = 0u; first < end; first += OTHER) {
        multiply_a(first);
        take_scores(first);
    }
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        weights[(ty * 4u + i) * PITCH_W + tx] = largest[i];
        weights[(ty * 4u + i) * PITCH_W + TX + tx] = total[i];
    }
    barrier();
    for (uint r = tid; r < OWN; r += THREADS)
        if (first_own + r < n_own)
            join_row(r);
        else
            row_stats[r] = vec4(0.0);
    barrier();
}
#else
void load_stats(uint first)
{
    barrier(); // the last ones have been read
    for (uint r = tid; r < OTHER; r += THREADS)
        row_stats[r] = first + r < n_other
                           ? uintBitsToFloat(AT(U128Buf, stats_address(first + r), 16, 0))
                           : vec4(0.0);
}
#endif

// ---- results ----

void store(uint64_t dst, uint row, uint n, uint chunk, vec4 v)
{
    uint at = 4u * (chunk * CHUNK + sum_quad);
    if (row >= n_own)
        return;
#ifdef KEYS
    uint64_t to = (uint64_t(batch) * p.n_kv + kv) * p.n_k + row;
#else
    uint64_t head = uint64_t(batch) * (p.n_kv * GROUP) + head_of(kv, row);
    uint64_t to = head * p.n_q + position_of(row);
#endif
    [[unroll]] for (uint e = 0u; e < 4u; e++)
        if (at + e < n)
            dt_set(dst, int64_t(to * n + at + e), v[e]);
}

void place(uint heads)
{
    uint number = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                  gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint tile = number / heads, head = number - tile * heads;
    first_own = tile * OWN;
    batch = head / p.n_kv;
    kv = head - batch * p.n_kv;
}

void main()
{
    uint group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y +
                 gl_NumWorkGroups.y * gl_WorkGroupID.z);
    if (group >= p.n_items)
        return;
    place(p.n_batch * p.n_kv);
    tid = gl_LocalInvocationIndex;
    tx = tid % TX;
    ty = tid / TX;
    sum_quad = tid % CHUNK;
    sum_row = tid / CHUNK * RPT;
    uint begin = 0u;
#ifdef KEYS
    n_own = p.n_k;
    n_other = GROUP * p.n_q;
    if (CAUSAL && first_own + p.n_q > p.n_k) // rows before see none of the keys
        begin = (first_own + p.n_q - p.n_k) * GROUP / OTHER * OTHER;
    [[unroll]] for (uint i = 0u; i < CHUNKS_V * RPT; i++)
        sums_b[i] = vec4(0.0);
#else
    n_own = GROUP * p.n_q;
    n_other = keys_of(position_of(min(first_own + OWN, n_own) - 1u));
    find_stats(n_other);
#endif
    [[unroll]] for (uint i = 0u; i < CHUNKS_K * RPT; i++)
        sums_a[i] = vec4(0.0);
    for (uint first = begin; first < n_other; first += OTHER) {
#ifdef KEYS
        load_stats(first);
#endif
        multiply_a(first);
        multiply_b(first);
        weigh(first);
#ifdef KEYS
        leave(scores);
        ADD_PRODUCTS(sums_b, CHUNKS_V, OTHER_B, first)
#endif
        leave(slopes);
        ADD_PRODUCTS(sums_a, CHUNKS_K, OTHER_A, first)
    }
    [[unroll]] for (uint i = 0u; i < RPT; i++) {
        [[unroll]] for (uint c = 0u; c < CHUNKS_K; c++)
            store(p.dst[0], first_own + sum_row + i, D, c, sums_a[c * RPT + i] * p.scale);
#ifdef KEYS
        [[unroll]] for (uint c = 0u; c < CHUNKS_V; c++)
            store(p.dst[1], first_own + sum_row + i, DV, c, sums_b[c * RPT + i]);
#endif
    }
}
