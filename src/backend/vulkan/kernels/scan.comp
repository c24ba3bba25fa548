#version 450
// Scans of rows. A workgroup scans a chunk of a row: every lane its stretch, then the lanes' totals in
// shared memory. Rows of several chunks take three passes: totals of the chunks (IS_TOTAL), a scan of
// those by the same kernel, and the scan itself with what comes before each chunk carried in.
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dtype.glsl"
#if DT_IS_FLOAT || DT_IS_COMPLEX
#include "math.glsl"
#endif
#if DT_IS_COMPLEX
#include "complex.glsl"
#endif

layout(constant_id = 3) const uint OP = 0u; // enum scan_kind
layout(constant_id = 4) const bool IS_TOTAL = false;
layout(constant_id = 5) const uint LANES = 256u; // the workgroup

ARGS(scan_args);
BUF(ValBuf, VAL, DT_VAL_BYTES);

// What changes nothing: of sums -0, because -0 + x is x where x is a zero, too.
#if DT_IS_COMPLEX
VAL identity()
{
    switch (OP) {
    case SCAN_OP_MAX:
        return vec2(-inf_f32());
    case SCAN_OP_MIN:
        return vec2(inf_f32());
    case SCAN_OP_PROD:
        return DT_ONE;
    default:
        return vec2(uintBitsToFloat(SIGN_BIT));
    }
}

VAL combine(VAL a, VAL b)
{
    switch (OP) {
    case SCAN_OP_MAX:
        return !is_nan_c64(a) && (is_nan_c64(b) || greater_c64(b, a)) ? b : a;
    case SCAN_OP_MIN:
        return !is_nan_c64(a) && (is_nan_c64(b) || greater_c64(a, b)) ? b : a;
    case SCAN_OP_PROD:
        return vec2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
    default:
        return a + b;
    }
}
#else
VAL identity()
{
    switch (OP) {
    case SCAN_OP_MAX:
        return DT_LOWEST;
    case SCAN_OP_MIN:
        return DT_HIGHEST;
    case SCAN_OP_PROD:
        return DT_ONE;
#if DT_IS_FLOAT
    case SCAN_OP_LOGADDEXP:
        return DT_LOWEST;
    case SCAN_OP_SUM:
        return uintBitsToFloat(SIGN_BIT);
#endif
    default:
        return DT_ZERO;
    }
}

#if DT_IS_FLOAT
float log_add_exp(float a, float b)
{
    float high = max(a, b), low = min(a, b);
    if (is_nan(a) || is_nan(b))
        return nan_f32();
    if (is_inf(high) || is_inf(low))
        return high;
    return high + log(1.0 + exp(low - high));
}
#else
bool is_nan(VAL v) { return false; }
#endif

VAL combine(VAL a, VAL b)
{
    switch (OP) {
    case SCAN_OP_MAX:
        return !is_nan(a) && (b > a || is_nan(b)) ? b : a;
    case SCAN_OP_MIN:
        return !is_nan(a) && (b < a || is_nan(b)) ? b : a;
    case SCAN_OP_PROD:
        return a * b;
#if DT_IS_FLOAT
    case SCAN_OP_LOGADDEXP:
        return log_add_exp(a, b);
#endif
    default:
        return a + b;
    }
}
#endif

// 0 + v. By bits, because a compiler may take v for it.
VAL from_zero(VAL v)
{
#if DT_IS_COMPLEX
    return vec2(is_zero(v.x) ? 0.0 : v.x, is_zero(v.y) ? 0.0 : v.y);
#elif DT_IS_FLOAT
    return is_zero(v) ? 0.0 : v;
#else
    return v;
#endif
}

shared VAL lane_total[LANES];

// What the lanes before this one make together; every invocation must call. The last lane's entry
// then holds the total of all.
VAL before_lane(VAL mine)
{
    uint lane = gl_LocalInvocationID.x;
    lane_total[lane] = mine;
    barrier();
    for (uint step = 1u; step < LANES; step <<= 1) {
        VAL sum = lane_total[lane];
        if (lane >= step)
            sum = combine(lane_total[lane - step], sum);
        barrier();
        lane_total[lane] = sum;
        barrier();
    }
    return lane == 0u ? identity() : lane_total[lane - 1u];
}

void main()
{
    uint64_t group = grid_index() / uint64_t(LANES);
    uint64_t row = group / uint64_t(p.chunks);
    uint chunk = uint(group - row * uint64_t(p.chunks));
    if (row >= p.n_rows)
        return;
    int64_t base = int64_t(row * uint64_t(p.row_len));
    uint first = (chunk * LANES + gl_LocalInvocationID.x) * SCAN_PER_LANE;
    VAL v[SCAN_PER_LANE];
    VAL total = identity();
    [[unroll]] for (uint i = 0u; i < SCAN_PER_LANE; i++) {
        uint at = first + i;
        uint place = p.reverse != 0u ? p.row_len - 1u - at : at;
        v[i] = at < p.row_len ? dt_load(AT(DtBuf, p.in_addr, DT_BYTES, base + int64_t(place))) :
                               identity();
        total = combine(total, v[i]);
    }
    VAL sum = before_lane(total);
    if (IS_TOTAL) {
        if (gl_LocalInvocationID.x == 0u)
            AT(ValBuf, p.out_addr, DT_VAL_BYTES, int64_t(group)) = lane_total[LANES - 1u];
        return;
    }
    if (is_given(p.carry_addr))
        sum = combine(AT(ValBuf, p.carry_addr, DT_VAL_BYTES, int64_t(group)), sum);
    if (OP == SCAN_OP_SUM && p.begin == SCAN_BEGIN_ZERO)
        sum = from_zero(sum);
    [[unroll]] for (uint i = 0u; i < SCAN_PER_LANE; i++) {
        uint at = first + i;
        uint place = p.reverse != 0u ? p.row_len - 1u - at : at;
        VAL next = combine(sum, v[i]);
        if (at < p.row_len)
            AT(DtBuf, p.out_addr, DT_BYTES, base + int64_t(place)) =
                dt_store(p.begin == SCAN_BEGIN_FIRST ? next : sum);
        sum = next;
    }
}
