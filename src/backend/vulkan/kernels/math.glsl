/* Real functions in float32, written out because the precision Vulkan promises for the built-ins is
 * too low (sin and cos: 2^-11 absolute, exp: 3 + 2|x| ulp, sqrt and division: 2.5 ulp and more).
 * Results are within a few ulp; division and square root are correctly rounded.
 *
 * Nothing here relies on a fused fma (a driver may split it), on subnormals in arithmetic (a driver
 * may flush them) or on how NaN passes through comparisons: NaN is recognised by its bits.
 * Parameters are const, so that the compiled functions take them by value. */

const uint INF_BITS = 0x7f800000u;
const uint SIGN_BIT = 0x80000000u;

float inf_f32()
{
    return uintBitsToFloat(INF_BITS);
}

float nan_f32()
{
    return uintBitsToFloat(0x7fc00000u);
}

/* By bits: a device may take subnormals for zeros where it compares. */
bool is_zero(const float x)
{
    return (floatBitsToUint(x) & ~SIGN_BIT) == 0u;
}

bool is_nan(const float x)
{
    return (floatBitsToUint(x) & ~SIGN_BIT) > INF_BITS;
}

bool is_inf(const float x)
{
    return (floatBitsToUint(x) & ~SIGN_BIT) == INF_BITS;
}

/* Not by three bitwise operations alone: where the other side of a selection is the sign's own number,
 * as in `is_nan(x) ? x : with_sign(r, x)`, LLVM 19 to 21 join all of it into one masked vpternlog with
 * its operands in the wrong order (seen in llvmpipe of Mesa 25 and 26 on CPUs with AVX-512). Numbers
 * that a device may flush in a negation keep their bits. */
float with_sign(const float magnitude, const float sign)
{
    uint m = floatBitsToUint(magnitude) & ~SIGN_BIT;

    if (m < 0x00800000u)
        return uintBitsToFloat(m | (floatBitsToUint(sign) & SIGN_BIT));
    return floatBitsToInt(sign) < 0 ? -uintBitsToFloat(m) : uintBitsToFloat(m);
}

/* 2^k for k in [-126, 127]. */
float pow2(const int k)
{
    return uintBitsToFloat(uint(k + 127) << 23);
}

/* x * 2^k in two steps, so that results near both ends of the range come out right. */
float scale2(const float x, const int k)
{
    int c = clamp(k, -252, 254);
    int h = c >> 1;

    return x * pow2(h) * pow2(c - h);
}

/* The rounding error of p = a * b, exact: products of 12-bit halves have no error. */
float mul_error(const float a, const float b, const float p)
{
    float ah = uintBitsToFloat(floatBitsToUint(a) & 0xfffff000u);
    float bh = uintBitsToFloat(floatBitsToUint(b) & 0xfffff000u);
    float al = a - ah;
    float bl = b - bh;

    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}

/* ---- division and square root ----
 * An estimate from the driver, then the exact remainder in integers: it is small, so arithmetic
 * modulo 2^32 gives it in full, and it says how far the estimate is from the nearest result. */

/* A finite magnitude above zero as m * 2^(e - 150), m in [2^23, 2^24). */
struct parts {
    uint m;
    int e;
};

parts split(const uint magnitude)
{
    uint i = magnitude;
    int shift = 0;
    parts z;

    if (i < 0x00800000u) {
        i = floatBitsToUint(float(int(i)));
        shift = 149;
    }
    z.m = (i & 0x007fffffu) | 0x00800000u;
    z.e = int(i >> 23) - shift;
    return z;
}

/* m * 2^(e - 150) rounded to its final precision, m in [2^23, 2^24]. */
float join(const uint m, const int e, const uint sign)
{
    if (e >= 255)
        return uintBitsToFloat(sign | INF_BITS);
    if (e >= 1)
        return uintBitsToFloat(sign | ((uint(e - 1) << 23) + m));
    int s = 1 - e;
    if (s > 25)
        return uintBitsToFloat(sign);
    return uintBitsToFloat(sign | ((m + (1u << (s - 1)) - 1u + ((m >> s) & 1u)) >> s));
}

/* Conversions go through int, which CPUs have in hardware too. */
float quotient(const parts a, const parts b, const uint sign)
{
    bool below = a.m < b.m;
    int n = int(below ? a.m << 1 : a.m);
    int m = int(b.m);
    float r = 1.0 / float(m);
    int q = int(float(n) * r * 8388608.0);
    int rem = (n << 23) - q * m;
    int d = int(roundEven(float(rem) * r));

    rem -= d * m;
    q += d + (2 * rem > m ? 1 : 0) - (2 * rem < -m ? 1 : 0);
    return join(uint(q), a.e - b.e + (below ? 126 : 127), sign);
}

float divide_f32(const float a, const float b)
{
    uint ma = floatBitsToUint(a) & ~SIGN_BIT;
    uint mb = floatBitsToUint(b) & ~SIGN_BIT;
    uint sign = (floatBitsToUint(a) ^ floatBitsToUint(b)) & SIGN_BIT;

    if (ma - 1u < INF_BITS - 1u && mb - 1u < INF_BITS - 1u)
        return quotient(split(ma), split(mb), sign);
    if (ma > INF_BITS || mb > INF_BITS || ma == mb) /* 0 / 0 and inf / inf are all that is left */
        return nan_f32();
    return uintBitsToFloat(sign | (ma == INF_BITS || mb == 0u ? INF_BITS : 0u));
}

/* x = f * 4^k, f in [1, 4), given as the 25-bit integer f * 2^23. */
parts split_root(const uint magnitude)
{
    parts z = split(magnitude);
    int k = z.e - 127;

    z.m <<= k & 1;
    z.e = (k - (k & 1)) / 2;
    return z;
}

float sqrt_f32(const float x)
{
    uint i = floatBitsToUint(x);

    if (i - 1u >= INF_BITS - 1u) /* zeros, infinity and NaN stay, negative numbers are NaN */
        return i == SIGN_BIT || i <= INF_BITS || is_nan(x) ? x : nan_f32();
    parts z = split_root(i);
    int m = int(z.m);
    float f = float(m) * pow2(-23);
    float r = inversesqrt(f);
    int s = int(f * r * 8388608.0);
    int rem = (m << 23) - s * s;
    int d = int(roundEven(float(rem) * r * pow2(-24)));

    rem -= d * (2 * s + d);
    s += d;
    s += (rem > s ? 1 : 0) - (rem <= -s ? 1 : 0);
    return join(uint(s), z.e + 127, 0u);
}

float rsqrt_f32(const float x)
{
    uint i = floatBitsToUint(x);

    if ((i & ~SIGN_BIT) == 0u)
        return uintBitsToFloat(i | INF_BITS);
    if (i >= INF_BITS)
        return i == INF_BITS ? 0.0 : nan_f32();
    parts z = split_root(i);
    return inversesqrt(float(int(z.m)) * pow2(-23)) * pow2(-z.e);
}

/* ---- exponentials ---- */

/* x = k ln 2 + r, |r| <= ln 2 / 2. k is rounded by adding 1.5 * 2^23, which leaves it in the low
 * bits; the first part of ln 2 has 15 bits, so its product with k is exact. (precise is for kernels
 * that include this file: a driver would let the constants cancel, and those of fma, which precise
 * does not reach.) */
struct exp_arg {
    float r;
    int k;
};

exp_arg exp_reduce(const float x)
{
    precise float t = x * 1.44269502 + 12582912.0;
    precise float k = t - 12582912.0;
    precise float high = k * -0.693145752 + x;
    precise float r = k * -1.42860677e-6 + high;
    exp_arg z;

    z.r = r;
    z.k = floatBitsToInt(t) - 0x4b400000;
    return z;
}

float exp_poly(const float r)
{
    float p = fma(r, 0.00138117024, 0.00836842787);

    p = fma(r, p, 0.0416683778);
    p = fma(r, p, 0.166665256);
    p = fma(r, p, 0.49999994);
    precise float q = fma(r * r, p, r) + 1.0;
    return q;
}

/* exp(x) * 2^s without overflow in between. */
float exp_scaled(const float x, const int s)
{
    exp_arg z = exp_reduce(clamp(x, -250.0, 250.0));
    float p = scale2(exp_poly(z.r), z.k + s);

    return is_nan(x) ? x : p;
}

float exp_f32(const float x)
{
    exp_arg z = exp_reduce(clamp(x, -105.0, 90.0));
    int h = z.k >> 1;
    precise float p = exp_poly(z.r) * pow2(h) * pow2(z.k - h);

    return is_nan(x) ? x : p;
}

float expm1_f32(const float x)
{
    exp_arg z = exp_reduce(clamp(x, -25.0, 89.0));
    float p = fma(z.r, 0.000199500413, 0.00139332202);

    p = fma(z.r, p, 0.00833320152);
    p = fma(z.r, p, 0.0416664854);
    p = fma(z.r, p, 0.166666672);
    p = fma(z.r, p, 0.5);
    p = fma(z.r * z.r, p, z.r);
    if (z.k != 0) { /* halved, because 2^128 does not exist */
        float t = pow2(z.k - 1);
        p = 2.0 * fma(t, p, t - 0.5);
    } else if (abs(x) < 1e-7) {
        p = x; /* keeps -0 and subnormals */
    }
    return is_nan(x) ? x : p;
}

/* Rounded once: kernels that contain it give the same bits, whatever the driver makes of a '/'. */
float sigmoid_f32(const float x)
{
    float e = exp_f32(-abs(x));
    precise float sum = 1.0 + e;

    return divide_f32((floatBitsToUint(x) & SIGN_BIT) != 0u ? e : 1.0, sum);
}

/* ---- logarithms ---- */

/* log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], plus a small term that joins it late. */
float log1p_poly(const float f, const float small)
{
    float z = f * f;
    float p = fma(f, 0.069941707, -0.116868004);

    p = fma(f, p, 0.117794842);
    p = fma(f, p, -0.123975269);
    p = fma(f, p, 0.142342135);
    p = fma(f, p, -0.166688889);
    p = fma(f, p, 0.200013533);
    p = fma(f, p, -0.249999851);
    p = fma(f, p, 0.333333254);
    return f + (fma(f * z, p, small) - 0.5 * z);
}

/* x = 2^k (1 + f), f as above, for finite x > 0. */
struct log_arg {
    float f;
    float k;
};

log_arg log_reduce(const uint bits)
{
    bool subnormal = bits < 0x00800000u;
    uint i = subnormal ? floatBitsToUint(float(int(bits))) : bits;
    int k = int(i - 0x3f3504f3u) >> 23;
    log_arg z;

    z.f = uintBitsToFloat(i - (uint(k) << 23)) - 1.0;
    z.k = float(k - (subnormal ? 149 : 0));
    return z;
}

bool log_is_edge(const float x)
{
    return floatBitsToUint(x) - 1u >= INF_BITS - 1u;
}

/* Zeros, negative numbers, infinity, NaN. */
float log_edge(const float x)
{
    uint i = floatBitsToUint(x);

    if ((i & ~SIGN_BIT) == 0u)
        return -inf_f32();
    return i == INF_BITS ? x : nan_f32();
}

float log_f32(const float x)
{
    if (log_is_edge(x))
        return log_edge(x);
    log_arg z = log_reduce(floatBitsToUint(x));
    return fma(z.k, 0.693145752, log1p_poly(z.f, z.k * 1.42860677e-6));
}

float log2_f32(const float x)
{
    if (log_is_edge(x))
        return log_edge(x);
    log_arg z = log_reduce(floatBitsToUint(x));
    float l = log1p_poly(z.f, 0.0);
    return z.k + fma(l, 1.92596303e-8, l * 1.44269502);
}

float log10_f32(const float x)
{
    if (log_is_edge(x))
        return log_edge(x);
    log_arg z = log_reduce(floatBitsToUint(x));
    return fma(z.k, 0.301025391, fma(log1p_poly(z.f, 0.0), 0.434294492, z.k * 4.60503907e-6));
}

float log1p_f32(const float x)
{
    if (x > -0.29 && x < 0.41)
        return abs(x) < 1e-7 ? x : log1p_poly(x, 0.0);
    float u = 1.0 + x;
    if (log_is_edge(u))
        return is_nan(x) ? x : log_edge(u);
    log_arg z = log_reduce(floatBitsToUint(u));
    float c = u >= 2.0 ? 1.0 - (u - x) : x - (u - 1.0); /* what 1 + x lost, to be divided by u */
    c *= pow2(-min(int(z.k), 126)) * (1.0 - z.f + z.f * z.f);
    return fma(z.k, 0.693145752, log1p_poly(z.f, z.k * 1.42860677e-6 + c));
}

float log_add_exp_f32(const float a, const float b)
{
    if (is_nan(a) || is_nan(b))
        return nan_f32();
    float hi = a > b ? a : b;
    float lo = a > b ? b : a;
    if (is_inf(hi) || is_inf(lo))
        return hi;
    return hi + log1p_f32(exp_f32(lo - hi));
}

/* ---- power ---- */

struct pair {
    float hi, lo;
};

/* log2 of a finite x > 0 with about 32 bits: log(m) = 2 atanh((m - 1) / (m + 1)). */
pair log2_pair(const uint bits)
{
    log_arg z = log_reduce(bits);
    float d = z.f + 2.0;
    float s = z.f / d;
    float p = s * d;
    float rest = ((z.f - p) - mul_error(s, d, p)) - s * (z.f - (d - 2.0));
    float w = s * s;
    float t = fma(w, fma(w, fma(w, 0.217677474, 0.286258638), 0.399991721), 0.666666687);
    float small = fma(s * w, t, 2.0 * rest / d);
    float h = 2.0 * s + small;
    float l = small - (h - 2.0 * s);
    float q = h * 1.44269502;
    float qe = mul_error(h, 1.44269502, q) + fma(h, 1.92596303e-8, l * 1.44269502);
    pair r;

    r.hi = z.k + q;
    r.lo = (q - (r.hi - z.k)) + qe;
    return r;
}

float exp2_pair(const float hi, const float lo)
{
    float k = roundEven(hi);
    float r = (hi - k) + lo;
    float p = fma(r, 1.47084775e-5, 0.00015454019);

    p = fma(r, p, 0.00133365788);
    p = fma(r, p, 0.00961808395);
    p = fma(r, p, 0.0555040613);
    p = fma(r, p, 0.240226507);
    p = fma(r, p, 0.693147182);
    return scale2(fma(r, p, 1.0), int(k));
}

/* |x|^y for |x| neither 0, 1 nor infinite. */
float power_magnitude(const uint bits, const float y)
{
    pair l = log2_pair(bits);
    float hi = clamp(y * l.hi, -300.0, 300.0);

    if (abs(hi) >= 300.0)
        return hi > 0.0 ? inf_f32() : 0.0;
    return exp2_pair(hi, mul_error(y, l.hi, hi) + y * l.lo);
}

float power_f32(const float x, const float y)
{
    uint m = floatBitsToUint(x) & ~SIGN_BIT;
    uint n = floatBitsToUint(y) & ~SIGN_BIT;
    bool negative = (floatBitsToUint(x) & SIGN_BIT) != 0u;
    bool down = (floatBitsToUint(y) & SIGN_BIT) != 0u;
    bool is_integer = abs(y) >= 8388608.0 || (floor(y) == y && n >= 0x3f800000u);
    bool is_odd = is_integer && abs(y) < 16777216.0 && floor(y * 0.5) != y * 0.5;
    float r;

    if (n == 0u || floatBitsToUint(x) == 0x3f800000u)
        return 1.0;
    if (is_nan(x) || is_nan(y) || (negative && !is_integer && m - 1u < INF_BITS - 1u))
        return nan_f32();
    if (m == 0u || m == INF_BITS)
        r = (m == 0u) == down ? inf_f32() : 0.0;
    else if (m == 0x3f800000u)
        r = 1.0;
    else if (n == INF_BITS)
        r = (m > 0x3f800000u) != down ? inf_f32() : 0.0;
    else
        r = power_magnitude(m, y);
    return negative && is_odd ? -r : r;
}

/* ---- remainder ---- */

/* fmod of magnitudes by long division, 8 bits of the quotient at a time. */
float remainder_long(const uint x, const uint y)
{
    parts a = split(x);
    parts b = split(y);
    int e = a.e - b.e;
    uint r = a.m;

    if (x < y)
        return uintBitsToFloat(x);
    r %= b.m;
    while (e > 0) {
        int s = min(e, 8);
        r = (r << s) % b.m;
        e -= s;
    }
    if (r == 0u)
        return 0.0;
    parts z = split(floatBitsToUint(float(r)));
    return join(z.m, z.e + b.e - 150, 0u);
}

/* The result has the sign of the divisor; a zero has that of the dividend. */
float remainder_f32(const float x, const float y)
{
    uint mx = floatBitsToUint(x) & ~SIGN_BIT;
    uint my = floatBitsToUint(y) & ~SIGN_BIT;
    float r;

    if (mx >= INF_BITS || my > INF_BITS || my == 0u)
        return nan_f32();
    if (mx >= 0x00800000u && mx < 0x7b800000u && my > 0x21800000u && my < 0x71800000u &&
        mx < my + 0x0a000000u) {
        float q = roundEven(x / y);
        float p = q * y;
        r = (x - p) - mul_error(q, y, p); /* exact, |r| <= |y| / 2 */
    } else {
        r = my == INF_BITS ? x : with_sign(remainder_long(mx, my), x);
    }
    if ((floatBitsToUint(r) & ~SIGN_BIT) == 0u)
        return uintBitsToFloat(floatBitsToUint(x) & SIGN_BIT);
    bool differs = ((floatBitsToUint(r) ^ floatBitsToUint(y)) & SIGN_BIT) != 0u;
    return differs ? r + y : r;
}

/* ---- circular functions ---- */

/* x = q * pi / 2 + r; |r| <= pi / 4 but for rounding. */
struct angle {
    float r;
    int q;
};

/* Bits 32 * word to 32 * word + 31 of 2 / pi, after 32 zeros. Without branches or tables, which would
 * cost more to build and to run than the selections. */
uint two_over_pi(const uint word)
{
    bool odd = (word & 1u) != 0u;
    bool upper = (word & 2u) != 0u;
    uint low = upper ? (odd ? 0xfc2757d1u : 0x4e441529u) : (odd ? 0xa2f9836eu : 0u);
    uint high = upper ? (odd ? 0xfe5163abu : 0x3c439041u) : (odd ? 0xdb629599u : 0xf534ddc0u);

    return (word & 4u) != 0u ? high : low;
}

/* 32 bits that start `shift` bits into hi. */
uint funnel(const uint hi, const uint lo, const uint shift)
{
    return shift == 0u ? hi : (hi << shift) | (lo >> (32u - shift));
}

/* Payne and Hanek: the 24 bits of x times the 96 bits of 2 / pi that do not make whole turns. */
angle angle_large(const float x)
{
    uint i = floatBitsToUint(x);
    uint m = (i & 0x007fffffu) | 0x00800000u;
    uint start = ((i >> 23) & 255u) - 120u;
    uint w = start >> 5;
    uint s = start & 31u;
    uint t1 = two_over_pi(w + 1u);
    uint t2 = two_over_pi(w + 2u);
    uint h1;
    uint l1;
    uint h2;
    uint l2;
    umulExtended(m, funnel(t1, t2, s), h1, l1);
    umulExtended(m, funnel(t2, two_over_pi(w + 3u), s), h2, l2);
    uint mid = l1 + h2;
    uint top = m * funnel(two_over_pi(w), t1, s) + h1 + (mid < l1 ? 1u : 0u);
    uint f1 = (top << 2) | (mid >> 30);
    uint f0 = (mid << 2) | (l2 >> 30);
    bool up = (f1 & SIGN_BIT) != 0u; /* more than half a quadrant: count from the next one */

    if (up) {
        f0 = ~f0;
        f1 = ~f1;
    }
    float r = (float(f1) * pow2(-32) + float(f0) * pow2(-64)) * 1.57079637;
    int q = int(top >> 30) + (up ? 1 : 0);
    bool flip = (i & SIGN_BIT) != 0u;
    angle z;
    z.r = up != flip ? -r : r;
    z.q = flip ? -q : q;
    return z;
}

/* Below 2^13 the quotient has 13 bits and three parts of pi / 2 have 11: the products are exact. */
angle angle_reduce(const float x)
{
    if (abs(x) > 8192.0)
        return angle_large(x);
    precise float t = x * 0.636619747 + 12582912.0; /* rounds, so it must not be undone */
    precise float k = t - 12582912.0;
    float r = fma(k, -0.000483751297, fma(k, -1.5703125, x));
    angle z;
    z.r = fma(k, -2.56334407e-12, fma(k, -7.54953362e-8, r));
    z.q = floatBitsToInt(t) - 0x4b400000;
    return z;
}

/* r with the sign of x, which it has but for zeros. */
float keep_sign(const float r, const float x)
{
    return uintBitsToFloat(floatBitsToUint(r) | (floatBitsToUint(x) & SIGN_BIT));
}

float sin_poly(const float r)
{
    float z = r * r;
    float p = fma(z, fma(z, fma(z, 2.83986697e-6, -0.000198540234), 0.0083333822), -0.166666672);

    return keep_sign(fma(r * z, p, r), r);
}

float cos_poly(const float r)
{
    float z = r * r;
    float p = fma(z, fma(z, fma(z, -3.08422045e-7, 2.4843046e-5), -0.00138890347), 0.0416666679);

    return fma(z * z, p, fma(z, -0.5, 1.0));
}

/* sin(r + q pi / 2) */
float sin_angle(const float r, const int q)
{
    float v = (q & 1) == 0 ? sin_poly(r) : cos_poly(r);

    return (q & 2) == 0 ? v : -v;
}

bool is_finite(const float x)
{
    return (floatBitsToUint(x) & ~SIGN_BIT) < INF_BITS;
}

float sin_f32(const float x)
{
    angle z = angle_reduce(x);

    return is_finite(x) ? sin_angle(z.r, z.q) : nan_f32();
}

float cos_f32(const float x)
{
    angle z = angle_reduce(x);

    return is_finite(x) ? sin_angle(z.r, z.q + 1) : nan_f32();
}

float tan_f32(const float x)
{
    angle z = angle_reduce(x);
    float s = sin_poly(z.r);
    float c = cos_poly(z.r);
    bool odd = (z.q & 1) != 0;

    return is_finite(x) ? (odd ? -c : s) / (odd ? s : c) : nan_f32();
}

float arcsin_poly(const float x)
{
    float z = x * x;
    float p = fma(z, 0.0405242369, 0.0252203662);

    p = fma(z, p, 0.045240134);
    p = fma(z, p, 0.0749734417);
    p = fma(z, p, 0.16666694);
    return fma(x * z, p, x);
}

float arcsin_f32(const float x)
{
    float a = abs(x);

    if (is_nan(x) || a > 1.0)
        return nan_f32();
    if (a <= 0.5)
        return arcsin_poly(x);
    float r = arcsin_poly(sqrt_f32(fma(a, -0.5, 0.5)));
    return with_sign((1.57079637 - 2.0 * r) - 4.37113883e-8, x);
}

float arccos_f32(const float x)
{
    float a = abs(x);

    if (is_nan(x) || a > 1.0)
        return nan_f32();
    if (a <= 0.5)
        return 1.57079637 - (arcsin_poly(x) + 4.37113883e-8);
    float r = 2.0 * arcsin_poly(sqrt_f32(fma(a, -0.5, 0.5)));
    return x > 0.0 ? r : 3.14159274 - (r + 8.74227766e-8);
}

/* x in [0, 1] */
float arctan_poly(const float x)
{
    float z = x * x;
    float p = fma(z, -0.00207071146, 0.0121726785);

    p = fma(z, p, -0.0335584879);
    p = fma(z, p, 0.0603863783);
    p = fma(z, p, -0.0854767933);
    p = fma(z, p, 0.110023052);
    p = fma(z, p, -0.142739251);
    p = fma(z, p, 0.199994579);
    p = fma(z, p, -0.333333284);
    return fma(x * z, p, x);
}

float arctan_f32(const float x)
{
    float a = abs(x);

    if (is_nan(x) || a < 1e-7)
        return x;
    float r = arctan_poly(a > 1.0 ? 1.0 / min(a, 1e30) : a);
    return with_sign(a > 1.0 ? 1.57079637 - (r + 4.37113883e-8) : r, x);
}

float arctan2_f32(const float y, const float x)
{
    uint ay = floatBitsToUint(y) & ~SIGN_BIT; /* magnitudes as bits: subnormals keep their order */
    uint ax = floatBitsToUint(x) & ~SIGN_BIT;
    uint hi = max(ax, ay);
    uint lo = min(ax, ay);
    float r;

    if (hi > INF_BITS)
        return nan_f32();
    if (hi == lo) /* both zero or both infinite included */
        r = hi == 0u ? 0.0 : 0.785398185;
    else
        r = arctan_poly(divide_f32(uintBitsToFloat(lo), uintBitsToFloat(hi)));
    if (ay > ax)
        r = 1.57079637 - (r + 4.37113883e-8);
    if ((floatBitsToUint(x) & SIGN_BIT) != 0u)
        r = 3.14159274 - (r + 8.74227766e-8);
    return with_sign(r, y);
}

/* ---- hyperbolic functions ---- */

float sinh_f32(const float x)
{
    float a = abs(x);
    float r;

    if (a < 1.0) {
        float z = x * x;
        float p = fma(z, fma(z, 2.78083508e-6, 0.000198431255), 0.00833330955);
        p = fma(z, p, 0.166666672);
        return fma(x * z, p, x);
    }
    r = exp_scaled(a, -1);
    return with_sign(a < 20.0 ? r - 0.25 / r : r, x);
}

float cosh_f32(const float x)
{
    float r = exp_scaled(abs(x), -1);

    return abs(x) < 20.0 ? r + 0.25 / r : r;
}

float tanh_f32(const float x)
{
    float a = abs(x);

    if (a < 0.6) {
        float z = x * x;
        float p = fma(z, 0.00241285237, -0.00846072007);
        p = fma(z, p, 0.0218110401);
        p = fma(z, p, -0.053966172);
        p = fma(z, p, 0.133333534);
        p = fma(z, p, -0.333333343);
        return keep_sign(fma(x * z, p, x), x);
    }
    float r = 1.0 - 2.0 / (exp_f32(2.0 * min(a, 20.0)) + 1.0);
    return is_nan(x) ? x : with_sign(r, x);
}

float arcsinh_f32(const float x)
{
    float a = abs(x);

    if (a < 0.6) {
        float z = x * x;
        float p = fma(z, 0.00749552948, -0.0187176056);
        p = fma(z, p, 0.0296708997);
        p = fma(z, p, -0.0445740633);
        p = fma(z, p, 0.0749972388);
        p = fma(z, p, -0.166666642);
        return keep_sign(fma(x * z, p, x), x);
    }
    if (is_nan(x) || a >= 1e5)
        return with_sign(log_f32(a) + 0.693147182, x);
    return with_sign(log_f32(a + sqrt_f32(fma(a, a, 1.0))), x);
}

float arccosh_f32(const float x)
{
    float t = x - 1.0;

    if (is_nan(x) || x >= 1e5)
        return log_f32(x) + 0.693147182;
    return x < 1.0 ? nan_f32() : log1p_f32(t + sqrt_f32(t * (t + 2.0)));
}

float arctanh_f32(const float x)
{
    float a = abs(x);

    if (a < 0.5) {
        float z = x * x;
        float p = fma(z, 0.16886434, 0.0573246405);
        p = fma(z, p, 0.116531745);
        p = fma(z, p, 0.14245145);
        p = fma(z, p, 0.200012147);
        p = fma(z, p, 0.333333254);
        return fma(x * z, p, x);
    }
    return with_sign(0.5 * log1p_f32(divide_f32(2.0 * a, 1.0 - a)), x);
}

/* ---- error function ---- */

float erf_f32(const float x)
{
    float a = abs(x);

    if (a < 1.0) {
        float z = x * x;
        float p = fma(z, 7.80690316e-5, -0.00079978531);
        p = fma(z, p, 0.0051871622);
        p = fma(z, p, -0.0268533472);
        p = fma(z, p, 0.112835787);
        p = fma(z, p, -0.37612626);
        p = fma(z, p, 0.128379166);
        return fma(x, p, x);
    }
    float t = min(a, 4.0);
    float p = fma(t, 2.17028137e-5, -0.000441521464);
    p = fma(t, p, 0.00420547277);
    p = fma(t, p, -0.0252107196);
    p = fma(t, p, 0.108422525);
    p = fma(t, p, 0.633216143);
    p = fma(t, p, 1.12958038);
    p = fma(t, p, -0.00018847092);
    return is_nan(x) ? x : with_sign(1.0 - exp_f32(-p), x);
}

float erfinv_f32(const float x)
{
    float a = abs(x);
    float p;

    if (is_nan(x) || a >= 1.0)
        return a == 1.0 ? with_sign(inf_f32(), x) : nan_f32();
    float w = -log_f32((1.0 - a) * (1.0 + a));
    if (w < 5.0) {
        float t = w - 2.5;
        p = fma(t, -8.26404101e-9, 2.79403931e-8);
        p = fma(t, p, 4.60215858e-7);
        p = fma(t, p, -3.52123948e-6);
        p = fma(t, p, -4.94426422e-6);
        p = fma(t, p, 0.000218570727);
        p = fma(t, p, -0.00125275506);
        p = fma(t, p, -0.00417766441);
        p = fma(t, p, 0.24664028);
        p = fma(t, p, 1.50140941);
    } else {
        float t = sqrt_f32(w) - 3.0;
        p = fma(t, -0.000197958958, 9.92586502e-5);
        p = fma(t, p, 0.00134970865);
        p = fma(t, p, -0.00367203541);
        p = fma(t, p, 0.00573672308);
        p = fma(t, p, -0.00762289297);
        p = fma(t, p, 0.00944005605);
        p = fma(t, p, 1.00167418);
        p = fma(t, p, 2.83297682);
    }
    return p * x;
}
