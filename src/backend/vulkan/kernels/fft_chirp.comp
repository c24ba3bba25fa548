#version 450
// The chirp that turns a Fourier transform of any length into a convolution (L. Bluestein).
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "math.glsl"
#include "fft_small.glsl"
#include "fft_root.glsl"

ARGS(fft_chirp_args);
BUF(C64Buf, vec2, 8);

void main()
{
    uint64_t i = grid_index();
    if (i >= uint64_t(p.n))
        return;
    C64Buf(p.table).v[uint(i)] = root(uint(i * i % uint64_t(2u * p.n)), 2u * p.n);
}
