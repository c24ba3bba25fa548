#version 450
// From the spectrum of pairs of real numbers, which are real and imaginary parts, to the first half of the
// spectrum of the numbers: where the lines of a transform are longer than a workgroup's memory.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "index.glsl"
#include "math.glsl"
#include "fft_small.glsl"
#include "fft_root.glsl"

ARGS(fft_half_args);
BUF(C64Buf, vec2, 8);

void main()
{
    uint64_t i = grid_index();
    uint64_t n = uint64_t(p.n) + 1ul;
    if (i >= n * p.n_lines)
        return;
    uint64_t line = p.batch_first != 0u ? i % p.n_lines : i / n;
    uint k = uint(p.batch_first != 0u ? i / p.n_lines : i - line * n);
    int64_t src = int64_t(line) * p.src_batch;
    int64_t dst = is_given(p.walk) ? walk_offset(Walk(p.walk), line) : int64_t(line) * p.dst_batch;
    uint other = k == 0u ? 0u : p.n - k;
    vec2 a = AT(C64Buf, p.src, 8, src + int64_t(k < p.n ? k : 0u) * p.src_step);
    vec2 b = AT(C64Buf, p.src, 8, src + int64_t(other) * p.src_step);
    AT(C64Buf, p.dst, 8, dst + int64_t(k) * p.dst_step) = spectrum_of_pairs(a, b, k, p.n);
}
