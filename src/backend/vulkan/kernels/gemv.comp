#version 450
// A few vectors times a matrix w of rows x k: limited by memory, so w is read once, coalesced, and
// no shared memory is spent on it.
//
// Unit stride along k: LANES invocations share ROWS rows and walk along k. Unit stride along the
// rows: an invocation holds neighbouring rows, LANES invocations are side by side, and the other
// ones of the workgroup take other k. Either way the sums of the invocations that share rows are
// then added up: in the subgroup, and through shared memory where they span several.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint LANES = 32; // along the unit stride; a power of two
layout(constant_id = 4) const uint ROWS = 1;   // of an invocation; with unit stride along k
layout(constant_id = 5) const uint VECTORS = 1;
layout(constant_id = 6) const uint FLAGS = 0;
layout(constant_id = 7) const uint EPILOGUE = 0;

ARGS(gemv_args);
#include "gemm.glsl"

const bool ALONG_K = (FLAGS & FLAG_A_ALONG_K) != 0u;
const bool WIDE = (FLAGS & FLAG_A_WIDE) != 0u;
const bool WIDE_X = (FLAGS & FLAG_B_WIDE) != 0u;
const uint THREADS = gl_WorkGroupSize.x;
const uint WIDTH = WIDE ? DT_PER16 : 1u; // elements per load
const uint HELD = ALONG_K ? ROWS : WIDTH; // rows of an invocation
const uint SUMS = HELD * VECTORS;

// The invocations tid, tid + NEAR, ... below FAR share rows.
const uint NEAR = ALONG_K ? 1u : LANES;
const uint FAR = ALONG_K ? LANES : THREADS;

ACC sums[SUMS]; // [row][vector]

// Sums of different subgroups meet here, ROUND of them at a time.
const uint ROUND = SUMS < 4u ? SUMS : 4u;
shared ACC parts[ROUND * THREADS];

uint tid;
uint64_t w_at, x_at;

VAL x_get(uint v, uint k)
{
    return dt_get(x_at, int64_t(v) * p.x_vec + int64_t(k) * p.x_k);
}

void w_read(int64_t index, out VAL v[DT_PER16])
{
    if (WIDE)
        dt_unpack(U128Buf(w_at + uint64_t(index * DT_BYTES)).v[0], v);
    else
        v[0] = dt_get(w_at, index);
}

void x_read(uint v, uint k, out VAL x[DT_PER16])
{
    if (WIDE_X)
        dt_unpack(U128Buf(x_at + uint64_t((int64_t(v) * p.x_vec + k) * DT_BYTES)).v[0], x);
    else
        [[unroll]] for (uint e = 0u; e < WIDTH; e++)
            x[e] = x_get(v, k + e);
}

// One load's width along k, for all rows of the invocation.
void dot_step(uint row, uint k)
{
    VAL x[VECTORS][DT_PER16];
    [[unroll]] for (uint v = 0u; v < VECTORS; v++)
        x_read(v, k, x[v]);
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        VAL w[DT_PER16];
        w_read(int64_t(min(row + r, p.rows - 1u)) * p.ld_w + k, w);
        [[unroll]] for (uint v = 0u; v < VECTORS; v++)
            [[unroll]] for (uint e = 0u; e < WIDTH; e++)
                sums[r * VECTORS + v] = mm_mul_add(w[e], x[v][e], sums[r * VECTORS + v]);
    }
}

// One k, for the neighbouring rows of the invocation.
void column_step(uint row, uint k)
{
    VAL w[DT_PER16];
    w_read(int64_t(k) * p.ld_w + row, w);
    [[unroll]] for (uint v = 0u; v < VECTORS; v++) {
        VAL x = x_get(v, k);
        [[unroll]] for (uint e = 0u; e < WIDTH; e++)
            sums[e * VECTORS + v] = mm_mul_add(w[e], x, sums[e * VECTORS + v]);
    }
}

// Four steps at a time keep four loads in flight.
#define WALK(step, row, first, last, stride)                                                       \
    {                                                                                              \
        uint k = first;                                                                            \
        for (; k + 3u * (stride) < (last); k += 4u * (stride))                                     \
            [[unroll]] for (uint u = 0u; u < 4u; u++)                                              \
                step(row, k + u * (stride));                                                       \
        for (; k < (last); k += (stride))                                                          \
            step(row, k);                                                                          \
    }

// Adds up the sums of invocations that share rows; the first of them then holds the result.
void combine()
{
    uint near = min(FAR, gl_SubgroupSize);
    for (uint mask = NEAR; mask < near; mask <<= 1)
        [[unroll]] for (uint i = 0u; i < SUMS; i++)
            sums[i] += sg_xor(sums[i], mask);
    uint step = max(near, NEAR);
    if (step >= FAR)
        return;
    [[unroll]] for (uint first = 0u; first < SUMS; first += ROUND) {
        barrier();
        [[unroll]] for (uint i = 0u; i < ROUND; i++)
            if (first + i < SUMS)
                parts[i * THREADS + tid] = sums[first + i];
        barrier();
        for (uint other = tid + step; other < tid - tid % FAR + FAR; other += step)
            [[unroll]] for (uint i = 0u; i < ROUND; i++)
                if (first + i < SUMS)
                    sums[first + i] += parts[i * THREADS + other];
    }
}

// Of a row of w and a vector, the result for this batch.
ACC follow(ACC sum, uint batch, uint row, uint v)
{
#if DT_IS_FLOAT
    if ((FLAGS & FLAG_PROGRAM) != 0u) {
        const bool by_row = (FLAGS & FLAG_X_BY_ROW) != 0u;
        uint first = batch * (by_row ? VECTORS : p.rows);
        Sides s = epilogue_sides(p.epilogue, first + (by_row ? v : row), by_row ? row : v);
        return epilogue(sum, 0.0, s, p.epilogue);
    }
#endif
    return sum;
}

void put(uint64_t dst, uint64_t c, uint batch, uint row, uint v, ACC sum)
{
    int64_t at = int64_t(row) * p.dst_row + int64_t(v) * p.dst_vec;
    if (EPILOGUE == EPILOGUE_PARTIAL) {
        AT(PartBuf, dst, PART_BYTES, at) = sum;
        return;
    }
    if (EPILOGUE == EPILOGUE_SCALED) {
        VAL old = DT_ZERO;
        if (p.beta != 0.0)
            old = dt_get(c, int64_t(row) * p.c_row + int64_t(v) * p.c_vec);
        sum = mm_scaled(sum, p.alpha, p.beta, old);
    }
    dt_set(dst, at, follow(sum, batch, row, v));
}

void main()
{
    // Numbered so that the lanes of a subgroup are neighbours whatever the driver does.
    tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    uint lane = tid % LANES, line = tid / LANES, lines = THREADS / LANES;
    uint per_group = ALONG_K ? lines * ROWS : LANES * WIDTH;
    uint groups = (p.rows + per_group - 1u) / per_group;
    uint id = mm_group(), rest = id / groups;
    uint split = rest % p.splits, batch = rest / p.splits;
    if (batch >= p.n_batch)
        return;

    uint row = (id - rest * groups) * per_group + (ALONG_K ? line * ROWS : lane * WIDTH);
    i64vec3 offset = mm_batch_offsets(p.batch, i64vec3(p.batch_w, p.batch_x, p.batch_c), batch);
    w_at = p.w + uint64_t(offset.x * DT_BYTES);
    x_at = p.x + uint64_t(offset.y * DT_BYTES);
    uint k_begin = split * p.k_split, k_end = min(p.k, k_begin + p.k_split);
    [[unroll]] for (uint i = 0u; i < SUMS; i++)
        sums[i] = DT_ZERO;
    if (ALONG_K)
        WALK(dot_step, row, k_begin + lane * WIDTH, k_end, LANES * WIDTH)
    else if (row < p.rows)
        WALK(column_step, row, k_begin + line, k_end, lines)
    combine();

    if (tid % FAR >= NEAR)
        return;
    uint64_t c = p.c + uint64_t(offset.z * DT_BYTES);
    uint64_t dst = p.dst;
    if (EPILOGUE == EPILOGUE_PARTIAL)
        dst += (uint64_t(split) * p.n_batch + batch) * p.rows * VECTORS * PART_BYTES;
    else
        dst += uint64_t(batch) * p.rows * VECTORS * DT_BYTES;
    [[unroll]] for (uint r = 0u; r < HELD; r++)
        if (row + r < p.rows)
            [[unroll]] for (uint v = 0u; v < VECTORS; v++)
                put(dst, c, batch, row + r, v, sums[r * VECTORS + v]);
}
