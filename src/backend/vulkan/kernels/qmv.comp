#version 450
// A few vectors times packed matrices whose rows lie along k: limited by memory, so every word is
// read once, coalesced.
//
// A block is SPAN neighbouring numbers of a row, which share a scale. LANES invocations walk along
// ROWS rows, a block each at a time; SPLITS such teams share the k of the rows. x lies in shared
// memory in the form that the product wants. Per block the product is
//   scale * sum(x * code) + bias * sum(x)
// With INT_DOT, x of a block are 15-bit integers times a power of two, split into two signed bytes
// for the integer dot product: below the rounding of the 16-bit floats that x and the result are.
// Else the sum is in float32, and a code becomes a float without conversion as the mantissa of
// 1 + code / 2^BITS.
//
// MANY: several matrices times the same x, each with a result of its own. PAIR: two, whose products
// become one result. Before the product x may be normed, and after it a program may follow. All
// intermediate results round to the dtype as separate ops would.
#extension GL_GOOGLE_include_directive : require
#ifdef INT_DOT
#extension GL_EXT_integer_dot_product : require
#endif
#include "common.glsl"
#include "dtype.glsl"
#include "epilogue.glsl"
#include "subgroup.glsl"

layout(constant_id = 3) const uint LANES = 32;
layout(constant_id = 4) const uint ROWS = 1;
layout(constant_id = 5) const uint SPLITS = 1;
layout(constant_id = 6) const uint VECTORS = 1; // a power of two
layout(constant_id = 7) const uint K = 1024;
layout(constant_id = 8) const uint SPAN = 32;
layout(constant_id = 9) const uint STEPS = 1; // blocks of an invocation in one pass over x
layout(constant_id = 10) const uint FLAGS = 0;
layout(constant_id = 11) const uint SETS = 1;
layout(constant_id = 12) const uint MODE = 0;
layout(constant_id = 13) const uint BITS = 4;
layout(constant_id = 14) const uint GROUP = 64;

#ifdef MANY
ARGS(qmv_sets_args);
#elif defined(PAIR)
ARGS(qmv_pair_args);
#else
ARGS(qmv_args);
#endif
#include "quant.glsl"
#include "qmm_batch.glsl"

const bool WIDE_W = (FLAGS & QMV_WIDE_W) != 0u;
const bool WIDE_X = (FLAGS & QMV_WIDE_X) != 0u;
const bool NORM = (FLAGS & QMV_NORM) != 0u;
const bool BATCH = (FLAGS & QMV_BATCH) != 0u;
const bool IS_CENTRED = (FLAGS & QMV_CENTRED) != 0u;
const bool HAS_NORM_BIAS = (FLAGS & QMV_NORM_BIAS) != 0u;
const bool PROGRAM = (FLAGS & QMV_PROGRAM) != 0u;
const bool IN_MEMORY = (FLAGS & QMV_IN_MEMORY) != 0u;
#ifdef PAIR
const bool PAIRED = true; // rows of two matrices in turn
#else
const bool PAIRED = false;
#endif

const uint THREADS = gl_WorkGroupSize.x;
const uint TEAMS = THREADS / (LANES * SPLITS);
const uint OUTS = PAIRED ? ROWS / 2u : ROWS; // result rows of a team
const uint SUMS = ROWS * VECTORS;
const uint HELD = SUMS > LANES ? SUMS / LANES : 1u; // sums of an invocation after reduction
const uint EIGHTS = SPAN / 8u;                      // of a block
const uint WORDS = SPAN * BITS / 32u;
const uint PASS = SPAN * LANES * SPLITS * STEPS;
const uint PASSES = (K + PASS - 1u) / PASS;
const uint STAGED = K < PASS ? K : PASS; // k of x in shared memory
const bool IS_EVEN = K % PASS == 0u;

// Eight x are one uvec4 of bytes, or two of floats. Neighbouring blocks of a segment lie side by
// side, so that neighbouring lanes read neighbouring memory.
#ifdef INT_DOT
#define QUADS 1u
#else
#define QUADS 2u
#endif
const uint SEGMENTS = (STAGED + SPAN * LANES - 1u) / (SPAN * LANES);
shared uvec4 xs[VECTORS * SEGMENTS * EIGHTS * QUADS * LANES];
shared vec2 xs_sums[VECTORS * SEGMENTS * LANES]; // sum of a block, unit of its integers
shared float split_sums[SPLITS > 1u ? TEAMS * SUMS * SPLITS : 1u];
shared float squares[NORM ? THREADS : 1u];

uint tid, lane, slice, team;

BUF(WordPairBuf, uvec2, 8);

// ---- the matrices ----

struct Matrix {
    uint64_t w, scales, biases, out_addr;
    uint n;
};

#ifdef MANY
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer QmvSets
{
    qmv_set v[];
};
#endif

Matrix matrix_at(uint i)
{
#ifdef MANY
    if (IN_MEMORY) {
        qmv_set s = QmvSets(p.set[0].w).v[i];
        return Matrix(s.w, s.scales, s.biases, s.out_addr, s.n);
    }
    qmv_pushed s = p.set[0];
    uint n = p.n[0];
    [[unroll]] for (uint j = 1u; j < QMV_PUSHED; j++)
        if (j == i) {
            s = p.set[j];
            n = p.n[j];
        }
    return Matrix(s.w, s.scales, s.biases, s.out_addr, n);
#else
#ifdef PAIR
    if (i == 1u)
        return Matrix(p.w2, p.scales2, p.biases2, p.out_addr, p.n);
#endif
    return Matrix(p.w, p.scales, p.biases, p.out_addr, p.n);
#endif
}

uint all_vectors()
{
#ifdef MANY
    return IN_MEMORY ? p.n[0] : 1u;
#else
    return p.m;
#endif
}

int64_t vector_distance()
{
#ifdef MANY
    return IN_MEMORY ? int64_t(int(p.n[1])) : 0l;
#else
    return int64_t(p.ld_x);
#endif
}

Matrix matrix[2]; // in use: one, or a pair
uint64_t x_at;
uint first_vector; // of the batch, all vectors of all batches being numbered

// Takes the matrix and the rows of a block of rows in use; returns the team's first result row.
uint aim(uint block)
{
    const uint per_group = TEAMS * OUTS;
    uint passed = 0u; // matrices that end before the block
    matrix[0] = matrix_at(0u);
    if (PAIRED)
        matrix[1] = matrix_at(1u);
    else
        [[unroll]] for (uint i = 1u; i < SETS; i++) {
            uint blocks = (matrix[0].n + per_group - 1u) / per_group;
            if (passed == i - 1u && block >= blocks) {
                block -= blocks;
                matrix[0] = matrix_at(i);
                passed = i;
            }
        }
    return (block * TEAMS + team) * OUTS;
}

uint all_blocks()
{
#ifdef MANY
    const uint per_group = TEAMS * OUTS;
    uint blocks = (matrix_at(0u).n + per_group - 1u) / per_group;
    [[unroll]] for (uint i = 1u; i < SETS; i++)
        blocks += (matrix_at(i).n + per_group - 1u) / per_group;
    return blocks;
#else
    return p.blocks;
#endif
}

// ---- words and scales of an invocation's blocks ----

// Only constants index these, so that they stay in registers.
uint words[ROWS * STEPS * WORDS];
vec2 affine[ROWS * STEPS];

void load_words(uint64_t at, uint to)
{
    if (WIDE_W && WORDS % 4u == 0u)
        [[unroll]] for (uint i = 0u; i < WORDS / 4u; i++) {
            uvec4 v = U128Buf(at).v[i];
            [[unroll]] for (uint j = 0u; j < 4u; j++)
                words[to + 4u * i + j] = v[j];
        }
    else if (WIDE_W && WORDS % 2u == 0u)
        [[unroll]] for (uint i = 0u; i < WORDS / 2u; i++) {
            uvec2 v = WordPairBuf(at).v[i];
            words[to + 2u * i] = v.x;
            words[to + 2u * i + 1u] = v.y;
        }
    else
        [[unroll]] for (uint i = 0u; i < WORDS; i++)
            words[to + i] = U32Buf(at).v[i];
}

// Scale and bias number `group` of a row.
vec2 load_affine(uint64_t scales, uint64_t biases, uint group)
{
    if (IS_AFFINE)
        return vec2(dt_load(DtBuf(scales).v[group]), dt_load(DtBuf(biases).v[group]));
    return vec2(fp_scale(uint(U8Buf(scales).v[group])), 0.0);
}

// Blocks outside of k count nothing.
void load(uint first_row, uint pass)
{
    [[unroll]] for (uint r = 0u; r < ROWS; r++) {
        const uint which = PAIRED ? r & 1u : 0u;
        uint row = min(first_row + (PAIRED ? r >> 1 : r), matrix[which].n - 1u);
        uint64_t w = matrix[which].w + uint64_t(row) * (K / 8u * BITS);
        uint64_t group = uint64_t(row) * (K / GROUP * (IS_AFFINE ? DT_BYTES : 1));
        [[unroll]] for (uint s = 0u; s < STEPS; s++) {
            uint block = pass * (PASS / SPAN) + (s * SPLITS + slice) * LANES + lane;
            const uint at = r * STEPS + s;
            if (IS_EVEN || block < K / SPAN) {
                load_words(w + block * (WORDS * 4u), at * WORDS);
                affine[at] = load_affine(matrix[which].scales + group,
                                              matrix[which].biases + group, block * SPAN / GROUP);
            } else {
                affine[at] = vec2(0.0);
                [[unroll]] for (uint i = 0u; i < WORDS; i++)
                    words[at * WORDS + i] = 0u;
            }
        }
    }
}

// ---- x ----

void get_eight(uint64_t at, out float v[8])
{
    if (!WIDE_X) {
        [[unroll]] for (uint i = 0u; i < 8u; i++)
            v[i] = dt_get(at, int64_t(i));
        return;
    }
    [[unroll]] for (uint q = 0u; q < 8u / DT_PER16; q++) {
        VAL part[DT_PER16];
        dt_unpack(U128Buf(at).v[q], part);
        [[unroll]] for (uint i = 0u; i < DT_PER16; i++)
            v[q * DT_PER16 + i] = part[i];
    }
}

void read_eight(uint vector, uint k, out float v[8])
{
    uint64_t at = x_at + k * DT_BYTES;
    at += uint64_t(int64_t(min(vector, all_vectors() - 1u)) * vector_distance() * DT_BYTES);
    get_eight(at, v);
}

// Four signed bytes in a word.
uint bytes(ivec4 v)
{
    uvec4 b = uvec4(v) & 0xffu;
    return b.x | b.y << 8 | b.z << 16 | b.w << 24;
}

// The order in which a word of weights shows its codes: 4 bits in two halves, 8 bits as they are.
uvec4 integers(float v[8], float inverse)
{
    ivec4 a, b;
    [[unroll]] for (uint i = 0u; i < 4u; i++) {
        a[i] = int(roundEven(v[BITS == 4u ? 2u * i : i] * inverse));
        b[i] = int(roundEven(v[BITS == 4u ? 2u * i + 1u : i + 4u] * inverse));
    }
    ivec4 high_a = (a + 128) >> 8, high_b = (b + 128) >> 8;
    return uvec4(bytes(high_a), bytes(high_b), bytes(a - 256 * high_a), bytes(b - 256 * high_b));
}

// Stages eight x of a vector. The invocations of a block call together.
void stage_eight(uint vector, uint eight, float v[8])
{
    uint block = eight / EIGHTS, j = eight % EIGHTS;
    uint segment = vector * SEGMENTS + block / LANES;
    uint to = (segment * EIGHTS + j) * QUADS * LANES + block % LANES;
    precise float sum = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    float unit = 1.0;
    [[unroll]] for (uint mask = 1u; mask < EIGHTS; mask <<= 1)
        sum += sg_xor(sum, mask);
#ifdef INT_DOT
    float most = 0.0;
    [[unroll]] for (uint i = 0u; i < 8u; i++)
        most = max(most, abs(v[i]));
    [[unroll]] for (uint mask = 1u; mask < EIGHTS; mask <<= 1)
        most = max(most, sg_xor(most, mask));
    // The largest has 14 bits before the point.
    uint exponent = max(floatBitsToUint(most) >> 23, 14u);
    unit = uintBitsToFloat((exponent - 13u) << 23);
    xs[to] = integers(v, uintBitsToFloat((267u - exponent) << 23));
#else
    xs[to] = floatBitsToUint(vec4(v[0], v[1], v[2], v[3]));
    xs[to + LANES] = floatBitsToUint(vec4(v[4], v[5], v[6], v[7]));
#endif
    if (j == 0u)
        xs_sums[segment * LANES + block % LANES] = vec2(sum, unit);
}

const uint STAGED_EIGHTS = STAGED / 8u;
const uint SHARE = (STAGED_EIGHTS + THREADS - 1u) / THREADS; // eights of an invocation

// Adds up over the workgroup; all of it calls together.
float total_of(float v)
{
    for (uint mask = 1u; mask < gl_SubgroupSize; mask <<= 1)
        v += sg_xor(v, mask);
    if (gl_SubgroupInvocationID == 0u)
        squares[gl_SubgroupID] = v;
    barrier();
    v = squares[0];
    for (uint i = 1u; i < gl_NumSubgroups; i++)
        v += squares[i];
    return v;
}

uint64_t norm_bias()
{
#ifdef MANY
    return p.set[1].w;
#else
    return p.norm_bias;
#endif
}

// x as it is normed: kept in registers while its squares are summed. Its weights are on their way
// before anything waits.
void stage_normed(uint vector)
{
    float kept[SHARE * 8u], weight[SHARE * 8u], bias[HAS_NORM_BIAS ? SHARE * 8u : 1u], total = 0.0;
    [[unroll]] for (uint c = 0u; c < SHARE; c++) {
        uint eight = tid + c * THREADS;
        float v[8] = float[8](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0), w[8] = v, b[8] = v;
        if (eight < STAGED_EIGHTS) {
            read_eight(vector, eight * 8u, v);
            get_eight(p.norm + eight * (8u * DT_BYTES), w);
            if (HAS_NORM_BIAS)
                get_eight(norm_bias() + eight * (8u * DT_BYTES), b);
        }
        [[unroll]] for (uint i = 0u; i < 8u; i++) {
            kept[c * 8u + i] = v[i];
            weight[c * 8u + i] = w[i];
            if (HAS_NORM_BIAS)
                bias[c * 8u + i] = b[i];
            total = IS_CENTRED ? total + v[i] : fma(v[i], v[i], total);
        }
    }
    if (vector > 0u)
        barrier(); // the sums of the vector before have been read
    total = total_of(total);
    if (IS_CENTRED) {
        float mean = total / float(K);
        total = 0.0;
        [[unroll]] for (uint c = 0u; c < SHARE; c++)
            [[unroll]] for (uint i = 0u; i < 8u; i++) {
                float d = tid + c * THREADS < STAGED_EIGHTS ? kept[c * 8u + i] - mean : 0.0;
                kept[c * 8u + i] = d;
                total = fma(d, d, total);
            }
        barrier();
        total = total_of(total);
    }
    float factor = inversesqrt(total / float(K) + p.eps);
    [[unroll]] for (uint c = 0u; c < SHARE; c++) {
        uint eight = tid + c * THREADS;
        if (eight < STAGED_EIGHTS) {
            float v[8];
            [[unroll]] for (uint i = 0u; i < 8u; i++) {
                v[i] = dt_round(dt_round(kept[c * 8u + i] * factor) * weight[c * 8u + i]);
                if (HAS_NORM_BIAS)
                    v[i] = dt_round(v[i] + bias[c * 8u + i]);
            }
            stage_eight(vector, eight, v);
        }
    }
}

void stage(uint pass)
{
    uint eights = min(STAGED, K - pass * PASS) / 8u;
    if (NORM) {
        for (uint vector = 0u; vector < VECTORS; vector++)
            stage_normed(vector);
    } else {
        for (uint i = tid; i < eights * VECTORS; i += THREADS) {
            uint vector = VECTORS == 1u ? 0u : i / eights;
            uint eight = i - vector * eights;
            float v[8];
            read_eight(vector, pass * PASS + eight * 8u, v);
            stage_eight(vector, eight, v);
        }
    }
    barrier();
}

// ---- the product ----

float sums[SUMS];
uvec4 xr[EIGHTS * QUADS];

#ifdef INT_DOT
#define DOT(a, b) dotPacked4x8EXT(int(a), int(b))

float block_dot(uint at, vec2 ab, vec2 x)
{
    int high = 0, low = 0;
    float shift = 0.0;
    [[unroll]] for (uint j = 0u; j < EIGHTS; j++) {
        uint a, b;
        if (BITS == 4u) {
            a = words[at + j] & 0x0f0f0f0fu;
            b = words[at + j] >> 4 & 0x0f0f0f0fu;
        } else { // as signed bytes: 128 less
            a = words[at + 2u * j] ^ 0x80808080u;
            b = words[at + 2u * j + 1u] ^ 0x80808080u;
            shift = 128.0;
        }
        high += DOT(a, xr[j].x) + DOT(b, xr[j].y);
        low += DOT(a, xr[j].z) + DOT(b, xr[j].w);
    }
    precise float sum = fma(ab.x * x.y, float(256 * high + low), fma(ab.x, shift, ab.y) * x.x);
    return sum;
}
#else
float code_float(uint at, uint i)
{
    const uint bit = i * BITS, word = bit / 32u, shift = bit % 32u, top = 23u - BITS;
    uint w = words[at + word];
    if (!IS_AFFINE) {
        w = w >> shift & ((1u << BITS) - 1u);
        return code_value(w);
    }
    if (shift + BITS > 32u)
        w = (w >> shift | words[at + word + 1u] << (32u - shift)) << top;
    else
        w = shift < top ? w << (top - shift) : w >> (shift - top);
    return uintBitsToFloat((w & ((1u << BITS) - 1u) << top) | 0x3f800000u);
}

float block_dot(uint at, vec2 ab, vec2 x)
{
    precise vec4 sum = vec4(0.0);
    [[unroll]] for (uint q = 0u; q < SPAN / 4u; q++) {
        vec4 w = vec4(code_float(at, 4u * q), code_float(at, 4u * q + 1u),
                      code_float(at, 4u * q + 2u), code_float(at, 4u * q + 3u));
        sum = fma(uintBitsToFloat(xr[q]), w, sum);
    }
    precise float total = (sum.x + sum.y) + (sum.z + sum.w);
    precise float affine_sum = fma(ab.x * float(1u << BITS), total - x.x, ab.y * x.x);
    return IS_AFFINE ? affine_sum : ab.x * total;
}
#endif

void multiply_segment(uint s, uint segment)
{
    [[unroll]] for (uint v = 0u; v < VECTORS; v++) {
        uint from = (v * SEGMENTS + segment) * EIGHTS * QUADS * LANES + lane;
        [[unroll]] for (uint i = 0u; i < EIGHTS * QUADS; i++)
            xr[i] = xs[from + i * LANES];
        vec2 x = xs_sums[(v * SEGMENTS + segment) * LANES + lane];
        [[unroll]] for (uint r = 0u; r < ROWS; r++) {
            precise float sum = sums[r * VECTORS + v] +
                                block_dot((r * STEPS + s) * WORDS, affine[r * STEPS + s], x);
            sums[r * VECTORS + v] = sum;
        }
    }
}

void multiply(uint pass)
{
    [[unroll]] for (uint s = 0u; s < STEPS; s++) {
        uint segment = s * SPLITS + slice;
        // Blocks past the end of k were not staged.
        if (IS_EVEN || pass * (PASS / SPAN) + segment * LANES + lane < K / SPAN)
            multiply_segment(s, segment);
    }
}

// Adds up over the lanes of a team; the sums spread over the lanes on the way. Afterwards sums[i]
// is sum number first_sum() + i.
void reduce()
{
    [[unroll]] for (uint step = 1u; step < 7u; step++) {
        const uint other = LANES >> step, half_n = SUMS >> step;
        if (other > 0u && half_n > 0u) {
            bool upper = (lane & other) != 0u;
            [[unroll]] for (uint i = 0u; i < half_n; i++) {
                float keep = upper ? sums[i + half_n] : sums[i];
                float give = upper ? sums[i] : sums[i + half_n];
                sums[i] = keep + sg_xor(give, other);
            }
        } else if (other > 0u) {
            sums[0] += sg_xor(sums[0], other);
        }
    }
}

const uint PER_SUM = LANES > SUMS ? LANES / SUMS : 1u; // lanes that hold the same sum

uint first_sum()
{
    return lane / PER_SUM * HELD;
}

// ---- results ----

// What the program reads for the result of an invocation that has one, loaded with the weights.
const bool AHEAD = PROGRAM && SUMS <= LANES && VECTORS == 1u;
#ifndef MANY
Sides ahead;
#endif

void load_ahead(uint first_row)
{
#ifndef MANY
    uint row = first_row + (SPLITS > 1u ? tid - team * OUTS : first_sum() / (PAIRED ? 2u : 1u));
    if (AHEAD)
        ahead = epilogue_sides(p.epilogue, first_vector, min(row, matrix[0].n - 1u));
#endif
}

// other: the second product of a pair.
void put(uint row, uint vector, float v, float other)
{
    if (row >= matrix[0].n || vector >= all_vectors())
        return;
#ifndef MANY
    if (PROGRAM) {
        Sides sides = ahead;
        if (!AHEAD)
            sides = epilogue_sides(p.epilogue, first_vector + vector, row);
        v = epilogue(v, other, sides, p.epilogue);
    }
#endif
    dt_set(matrix[0].out_addr, int64_t(vector) * matrix[0].n + row, v);
}

// Sum number i of the team goes to its place; of a pair the second one only with the first.
void finish(uint first_row)
{
    if (SPLITS == 1u) {
        [[unroll]] for (uint i = 0u; i < HELD; i++) {
            uint sum = first_sum() + i, r = sum / VECTORS;
            float other = 0.0;
            if (PAIRED) // the sum of the other matrix is VECTORS behind
                other = HELD > VECTORS ? sums[i | VECTORS]
                                       : sg_xor(sums[i], VECTORS / HELD * PER_SUM);
            if (lane % PER_SUM == 0u && !(PAIRED && (r & 1u) != 0u))
                put(first_row + (PAIRED ? r >> 1 : r), sum % VECTORS, sums[i], other);
        }
        return;
    }
    if (lane % PER_SUM == 0u)
        [[unroll]] for (uint i = 0u; i < HELD; i++)
            split_sums[(team * SUMS + first_sum() + i) * SPLITS + slice] = sums[i];
    barrier();
    uint row0 = first_row - team * OUTS;
    for (uint i = tid; i < TEAMS * OUTS * VECTORS; i += THREADS) {
        uint out_row = i / VECTORS, vector = i % VECTORS;
        uint of = out_row / OUTS, r = out_row % OUTS * (PAIRED ? 2u : 1u);
        float v = 0.0, other = 0.0;
        [[unroll]] for (uint s = 0u; s < SPLITS; s++) {
            v += split_sums[(of * SUMS + r * VECTORS + vector) * SPLITS + s];
            if (PAIRED)
                other += split_sums[(of * SUMS + (r + 1u) * VECTORS + vector) * SPLITS + s];
        }
        put(row0 + out_row, vector, v, other);
    }
    barrier();
}

void clear()
{
    [[unroll]] for (uint i = 0u; i < SUMS; i++)
        sums[i] = 0.0;
}

void main()
{
    // Numbered so that the lanes of a team are neighbours whatever the driver does.
    tid = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    lane = tid % LANES;
    slice = tid / LANES % SPLITS;
    team = tid / (LANES * SPLITS);
    uint group = gl_WorkGroupID.x +
                 gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * gl_WorkGroupID.z);
    uint stride = gl_NumWorkGroups.x * gl_NumWorkGroups.y * gl_NumWorkGroups.z;
    x_at = p.x;
    uint blocks = all_blocks(), block = group;
#ifndef MANY
    uint batch = BATCH ? group / blocks : 0u;
    if (batch >= p.n_batch)
        return;
    if (BATCH) {
        block -= batch * blocks;
        stride = blocks; // one block each
    }
#endif
    uint first_row = aim(block);
#ifndef MANY
    first_vector = batch * p.m;
    if (BATCH) {
        int64_t at[4];
        qmm_offsets(p.batch, batch, at);
        x_at += uint64_t(at[0] * DT_BYTES);
        matrix[0].w += uint64_t(at[1] * 4l);
        matrix[0].scales += uint64_t(at[2] * (IS_AFFINE ? DT_BYTES : 1));
        matrix[0].biases += uint64_t(at[3] * DT_BYTES);
        matrix[0].out_addr += uint64_t(batch) * p.m * p.n * DT_BYTES;
#ifdef PAIR
        matrix[1].w += uint64_t(at[1] * 4l);
        matrix[1].scales += uint64_t(at[2] * (IS_AFFINE ? DT_BYTES : 1));
        matrix[1].biases += uint64_t(at[3] * DT_BYTES);
#endif
    }
#endif
    if (PASSES == 1u) {
        load(first_row, 0u); // weights do not wait for x
        load_ahead(first_row);
        stage(0u);
        for (;;) {
            clear();
            multiply(0u);
            reduce();
            finish(first_row);
            block += stride;
            if (block >= blocks)
                break;
            first_row = aim(block);
            load(first_row, 0u);
            load_ahead(first_row);
        }
        return;
    }
    clear();
    load_ahead(first_row);
    for (uint pass = 0u; pass < PASSES; pass++) {
        load(first_row, pass);
        stage(pass);
        multiply(pass);
        barrier();
    }
    reduce();
    finish(first_row);
}
