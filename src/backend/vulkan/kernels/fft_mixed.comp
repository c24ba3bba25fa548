#version 450
// Fourier transforms of lines whose length has small factors. A workgroup has some lines side by side in
// shared memory and takes one factor after the other, from one half of the memory to the other.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "math.glsl"
#include "fft_small.glsl"
#include "fft_root.glsl"

layout(constant_id = 3) const uint LOAD = 0u;  // FFT_LOAD_...
layout(constant_id = 4) const uint STORE = 0u; // FFT_STORE_...
layout(constant_id = 5) const uint FLAGS = 0u;
layout(constant_id = 6) const uint ROOM = 1024u; // numbers of all lines

ARGS(fft_args);
#include "fft.glsl"
#define FFT_MOST 13
#include "fft_odd.glsl"

shared vec2 numbers[2 * ROOM]; // number j of line l is at j * p.lines + l
shared int64_t line_src[FFT_MAX_LINES];
shared int64_t line_dst[FFT_MAX_LINES];
shared uint line_u[FFT_MAX_LINES];

// What a step does: s numbers are transformed alike, and behind it n are left to be.
struct step_place {
    uint from, to, count, s, n;
    float inverse; // 1 / n
};

// v[k] times root p k of n: those of powers of two are computed, the others products of them.
void twist(inout vec2 v[FFT_MOST], const int r, const uint q, const step_place t)
{
    vec2 w[FFT_MOST];

    [[unroll]] for (int k = 1; k < r; k++) {
        int top = k >= 8 ? 8 : k >= 4 ? 4 : k >= 2 ? 2 : 1;
        w[k] = k == top ? root_by(q * uint(k), t.n, t.inverse) : times(w[top], w[k - top]);
        v[k] = times(v[k], w[k]);
    }
}

#define STEP(R, DFT)                                                                               \
    void step##R(const step_place t, const uint u)                                                 \
    {                                                                                              \
        vec2 v[FFT_MOST];                                                                          \
        uint q = u / t.s;                                                                          \
        [[unroll]] for (int j = 0; j < R; j++)                                                     \
            v[j] = numbers[t.from + u + uint(j) * t.count];                                        \
        DFT;                                                                                       \
        twist(v, R, q, t);                                                                         \
        uint at = t.to + u + q * t.s * uint(R - 1);                                                \
        [[unroll]] for (int k = 0; k < R; k++)                                                     \
            numbers[at + uint(k) * t.s] = v[k];                                                    \
    }
STEP(2, dft2(v[0], v[1]))
STEP(3, dft3(v))
STEP(4, dft4(v[0], v[1], v[2], v[3]))
STEP(5, dft5(v))
STEP(7, dft7(v))
STEP(8, dft8(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]))
STEP(11, dft11(v))
STEP(13, dft13(v))

void run_step(const step_place t, const uint radix)
{
    for (uint u = gl_LocalInvocationID.x; u < t.count; u += gl_WorkGroupSize.x) {
        switch (radix) {
        case 2u:
            step2(t, u);
            break;
        case 3u:
            step3(t, u);
            break;
        case 4u:
            step4(t, u);
            break;
        case 5u:
            step5(t, u);
            break;
        case 7u:
            step7(t, u);
            break;
        case 8u:
            step8(t, u);
            break;
        case 11u:
            step11(t, u);
            break;
        default:
            step13(t, u);
            break;
        }
    }
}

void load_lines(uint lines)
{
    for (uint i = gl_LocalInvocationID.x; i < p.n * lines; i += gl_WorkGroupSize.x) {
        uint l = has(FFT_LINES_IN) ? i % lines : i / p.n;
        uint j = has(FFT_LINES_IN) ? i / lines : i - l * p.n;
        numbers[j * lines + l] =
            load_number(line_src[l], line_u[l] + j * p.before * p.parts);
    }
}

// All of the steps; gives where the results are.
uint transform(uint lines)
{
    step_place t = { 0u, ROOM, 0u, lines, p.n, 1.0 };

    for (uint radices = p.radices; radices != 0u; radices >>= 4) {
        uint radix = radices & 15u;
        t.count = p.n * lines / radix;
        t.inverse = divide_f32(1.0, float(t.n));
        barrier();
        run_step(t, radix);
        t.from = ROOM - t.from;
        t.to = ROOM - t.to;
        t.s *= radix;
        t.n /= radix;
    }
    barrier();
    return t.from;
}

// Result k of a line.
vec2 result_of(uint from, uint lines, uint l, uint k)
{
    vec2 z = numbers[from + (k < p.n ? k : 0u) * lines + l];

    if (STORE == FFT_STORE_HALF)
        z = spectrum_of_pairs(z, numbers[from + (p.n - k) % p.n * lines + l], k, p.n);
    if (p.parts > 1u)
        z = times(z, root(line_u[l] / p.before * k, p.n * p.parts));
    return z;
}

void store_lines(uint from, uint lines)
{
    uint n = p.n + (STORE == FFT_STORE_HALF ? 1u : 0u);

    for (uint i = gl_LocalInvocationID.x; i < n * lines; i += gl_WorkGroupSize.x) {
        uint l = has(FFT_LINES_OUT) ? i % lines : i / n;
        uint k = has(FFT_LINES_OUT) ? i / lines : i - l * n;
        store_number(line_dst[l], result_place(line_u[l], k), result_of(from, lines, l, k));
    }
}

void main()
{
    uint64_t first = grid_index() / uint64_t(gl_WorkGroupSize.x) << p.lines;
    if (first >= uint64_t(p.n_lines))
        return;
    uint lines = min(1u << p.lines, p.n_lines - uint(first));
    for (uint l = gl_LocalInvocationID.x; l < lines; l += gl_WorkGroupSize.x) {
        line_place place = place_of(uint(first) + l);
        line_src[l] = place.src;
        line_dst[l] = place.dst;
        line_u[l] = place.u;
    }
    barrier();
    load_lines(lines);
    store_lines(transform(lines), lines);
}
