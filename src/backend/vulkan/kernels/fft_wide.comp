#version 450
// Fourier transforms of lines whose length is a power of two. Every lane has FFT_PER_LANE numbers in
// registers: of a line those at its place among the line's lanes, and at equal distances from there.
// Between steps of radix 16 or less they change places in shared memory, real parts first, then the
// imaginary ones, which take half of the room.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "math.glsl"
#include "fft_small.glsl"
#include "fft_root.glsl"

layout(constant_id = 3) const uint LOAD = 0u;  // FFT_LOAD_...
layout(constant_id = 4) const uint STORE = 0u; // FFT_STORE_...
layout(constant_id = 5) const uint FLAGS = 0u;
layout(constant_id = 6) const uint ROOM = 1088u; // floats: padded(numbers of all lines)

ARGS(fft_args);
#include "fft.glsl"

shared float room[ROOM];

// Where this lane works.
uint lane_line; // of the workgroup's lines
uint lane_at;   // place in the line
uint lane_step; // lanes of a line: distance of the lane's numbers
uint log_n;

// Place of a line's number in the room. Every sixteenth float is left out, so that steps of a power of
// two go through all banks.
uint room_at(uint number)
{
    uint at = has(FFT_LINES_IN) ? (number << p.lines) + lane_line : (lane_line << log_n) + number;

    return at + (at >> 4);
}

// ---- steps on registers ----

#define NUMBERS vec2 v[FFT_PER_LANE]

// The inverse of a power of two is exact.
vec2 root_2(const uint k, const uint log)
{
    return root_by(k, 1u << log, pow2(-int(log)));
}

void dft16(inout NUMBERS)
{
    const vec2 eighth = vec2(0.923879533, -0.382683432);
    const vec2 three = vec2(0.382683432, -0.923879533);

    [[unroll]] for (int a = 0; a < 4; a++)
        dft4(v[a], v[a + 4], v[a + 8], v[a + 12]);
    v[5] = times(v[5], eighth);
    v[6] = ROOT_HALF * vec2(v[6].x + v[6].y, v[6].y - v[6].x);
    v[7] = times(v[7], three);
    v[9] = ROOT_HALF * vec2(v[9].x + v[9].y, v[9].y - v[9].x);
    v[10] = turned(v[10]);
    v[11] = ROOT_HALF * vec2(v[11].y - v[11].x, -v[11].x - v[11].y);
    v[13] = times(v[13], three);
    v[14] = ROOT_HALF * vec2(v[14].y - v[14].x, -v[14].x - v[14].y);
    v[15] = -times(v[15], eighth);
    [[unroll]] for (int c = 0; c < 16; c += 4)
        dft4(v[c], v[c + 1], v[c + 2], v[c + 3]);
    vec2 w[FFT_PER_LANE] = v;
    [[unroll]] for (int k = 0; k < 16; k++)
        v[k] = w[k % 4 * 4 + k / 4];
}

// Numbers b and every `gap` after it times the powers of a root, which is `k` of 2^log.
void twist(inout NUMBERS, const int b, const int gap, const uint k, const uint log)
{
    vec2 w[FFT_PER_LANE];

    [[unroll]] for (int j = 1; j < FFT_PER_LANE / gap; j++) {
        int top = j >= 8 ? 8 : j >= 4 ? 4 : j >= 2 ? 2 : 1;
        w[j] = j == top ? root_2(k * uint(j), log) : times(w[top], w[j - top]);
        v[b + j * gap] = times(v[b + j * gap], w[j]);
    }
}

void butterflies(inout NUMBERS, const uint log_radix)
{
    switch (log_radix) {
    case 1u:
        [[unroll]] for (int b = 0; b < 8; b++)
            dft2(v[b], v[b + 8]);
        break;
    case 2u:
        [[unroll]] for (int b = 0; b < 4; b++)
            dft4(v[b], v[b + 4], v[b + 8], v[b + 12]);
        break;
    case 3u:
        [[unroll]] for (int b = 0; b < 2; b++)
            dft8(v[b], v[b + 2], v[b + 4], v[b + 6], v[b + 8], v[b + 10], v[b + 12], v[b + 14]);
        break;
    default:
        dft16(v);
        break;
    }
}

// Number b of the lane and every `gap` after it were transformed together: their roots, and where they go
// in the line.
#define SCATTER(gap)                                                                               \
    [[unroll]] for (int b = 0; b < gap; b++) {                                                     \
        uint u = lane_at + uint(b) * lane_step;                                                    \
        uint q = u >> log_s;                                                                       \
        twist(v, b, gap, q, log_n - log_s);                                                        \
        [[unroll]] for (int k = 0; k < FFT_PER_LANE / gap; k++)                                    \
            to[b + k * gap] =                                                                      \
                u + (q << log_s) * uint(FFT_PER_LANE / gap - 1) + (uint(k) << log_s);              \
    }

void scatter_places(out uint to[FFT_PER_LANE], inout NUMBERS, const uint log_radix,
                    const uint log_s)
{
    switch (log_radix) {
    case 1u:
        SCATTER(8)
        break;
    case 2u:
        SCATTER(4)
        break;
    case 3u:
        SCATTER(2)
        break;
    default:
        SCATTER(1)
        break;
    }
}

// Every lane gives its numbers to places `to` and gets those at `from`.
void exchange(inout NUMBERS, const uint to[FFT_PER_LANE], const uint from[FFT_PER_LANE])
{
    [[unroll]] for (int part = 0; part < 2; part++) {
        barrier();
        [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
            room[room_at(to[i])] = v[i][part];
        barrier();
        [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
            v[i][part] = room[room_at(from[i])];
    }
}

void transform(inout NUMBERS, const uint own[FFT_PER_LANE])
{
    uint log_s = 0u;

    for (uint radices = p.radices; radices != 0u; radices >>= 4) {
        uint log_radix = radices & 15u;
        butterflies(v, log_radix);
        if (log_s + log_radix < log_n) { // the results of the last step are where they belong
            uint to[FFT_PER_LANE];
            scatter_places(to, v, log_radix, log_s);
            exchange(v, to, own);
        }
        log_s += log_radix;
    }
}

// The roots between the lines of a transform: for result k of part q root q k of n * parts.
void twist_line(inout NUMBERS, const uint q)
{
    uint log = log_n + uint(findMSB(p.parts));
    vec2 w[FFT_PER_LANE];

    w[0] = root_2(q * lane_at, log);
    [[unroll]] for (int bit = 1; bit < FFT_PER_LANE; bit *= 2) {
        vec2 z = root_2(q * lane_step * uint(bit), log);
        [[unroll]] for (int i = 0; i < bit; i++)
            w[i + bit] = times(w[i], z);
    }
    [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
        v[i] = times(v[i], w[i]);
}

void store_half(const line_place l, NUMBERS, const uint own[FFT_PER_LANE], const bool is_there)
{
    uint from[FFT_PER_LANE];
    vec2 other[FFT_PER_LANE] = v;

    [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
        from[i] = (p.n - own[i]) & (p.n - 1u);
    exchange(other, own, from);
    if (!is_there)
        return;
    [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
        store_number(l.dst, own[i], spectrum_of_pairs(v[i], other[i], own[i], p.n));
    if (lane_at == 0u)
        store_number(l.dst, p.n, vec2(v[0].x - v[0].y, 0.0));
}

void main()
{
    uint lane = gl_LocalInvocationID.x;
    uint64_t first = grid_index() / uint64_t(gl_WorkGroupSize.x) << p.lines;
    NUMBERS;
    uint own[FFT_PER_LANE];

    if (first >= uint64_t(p.n_lines)) // all of the workgroup
        return;
    log_n = uint(findMSB(p.n));
    lane_step = p.n / FFT_PER_LANE;
    lane_line = has(FFT_LINES_IN) ? lane & ((1u << p.lines) - 1u) : lane / lane_step;
    lane_at = has(FFT_LINES_IN) ? lane >> p.lines : lane & (lane_step - 1u);
    bool is_there = uint(first) + lane_line < p.n_lines;
    line_place l = place_of(min(uint(first) + lane_line, p.n_lines - 1u));
    [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++) {
        own[i] = lane_at + uint(i) * lane_step;
        v[i] = load_number(l.src, l.u + own[i] * p.before * p.parts);
    }
    transform(v, own);
    if (STORE == FFT_STORE_HALF) {
        store_half(l, v, own, is_there);
        return;
    }
    if (p.parts > 1u)
        twist_line(v, l.u / p.before);
    if (!is_there)
        return;
    [[unroll]] for (int i = 0; i < FFT_PER_LANE; i++)
        store_number(l.dst, result_place(l.u, own[i]), v[i]);
}
