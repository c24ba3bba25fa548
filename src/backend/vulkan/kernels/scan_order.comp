#version 450
// Scans whose steps must be taken one after the other: complex logarithms of sums differ by multiples of
// 2 pi i when they are added up in another order. An invocation goes through a row.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#include "math.glsl"
#include "complex.glsl"

ARGS(scan_args);

void main()
{
    uint64_t row = grid_index();
    if (row >= p.n_rows)
        return;
    int64_t base = int64_t(row * uint64_t(p.row_len));
    VAL sum = vec2(-inf_f32(), 0.0);
    for (uint at = 0u; at < p.row_len; at++) {
        int64_t place = base + int64_t(p.reverse != 0u ? p.row_len - 1u - at : at);
        VAL v = dt_get(p.in_addr, place);
        VAL next = at == 0u ? v : log_add_exp_c64(sum, v);
        dt_set(p.out_addr, place, p.begin == SCAN_BEGIN_FIRST ? next : sum);
        sum = next;
    }
}
