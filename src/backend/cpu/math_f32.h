/* float32 functions without branches, so that loops over them vectorise.
 *
 * Where the last bit is hard to get in float32 the work is done in float64 with short polynomials
 * (near-minimax fits; the error of each is noted), which leaves one rounding at the end. Nothing
 * here uses a fused multiply-add, so every instruction set gives the same bits. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float f32_from(uint32_t u)
{
    float x;

    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t f64_bits(double x)
{
    uint64_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double f64_from(uint64_t u)
{
    double x;

    memcpy(&x, &u, sizeof x);
    return x;
}

/* Adding it rounds to an integer, which then stands in the low bits of the sum. */
#define INT_SHIFT_F32 0x1.8p23f
#define INT_SHIFT_F64 0x1.8p52

/* ---- exponentials ---- */

/* 2^k for k in [-126, 127]. */
static inline float f32_exp2i(int32_t k)
{
    return f32_from((uint32_t)(k + 127) << 23);
}

static inline float m_exp(float x)
{
    /* Beyond these the result is 0 or infinity; NaN passes. */
    x = x > 89.5f ? 89.5f : x;
    x = x < -104.0f ? -104.0f : x;
    float shifted = x * 0x1.715476p+0f + INT_SHIFT_F32;
    int32_t k = (int32_t)(f32_bits(shifted) - f32_bits(INT_SHIFT_F32));
    float kf = shifted - INT_SHIFT_F32;
    float r = x - kf * 0.693359375f; /* exact: 10 bits of ln 2 */
    r = r - kf * -2.1219444e-4f;
    float p = 0.0013950539f; /* error 3e-9 */
    p = p * r + 0.008368918f;
    p = p * r + 0.0416662051f;
    p = p * r + 0.166665186f;
    p = p * r + 0.5f;
    p = 1.0f + (r + r * r * p);
    /* Two factors, because 2^k alone leaves the range near both ends. */
    int32_t half = k >> 1;
    return p * f32_exp2i(half) * f32_exp2i(k - half);
}

/* exp for |x| <= 700, relative error 2e-14. */
static inline double d_exp(double x)
{
    double shifted = x * 0x1.71547652b82fep+0 + INT_SHIFT_F64;
    uint64_t k = f64_bits(shifted) - f64_bits(INT_SHIFT_F64);
    double kd = shifted - INT_SHIFT_F64;
    double r = x - kd * 0x1.62e42fefa39efp-1;
    double p = 2.7643301836440473e-06;
    p = p * r + 2.4882356429005373e-05;
    p = p * r + 0.00019841164250588536;
    p = p * r + 0.0013888807414534671;
    p = p * r + 0.0083333333875509012;
    p = p * r + 0.041666666990092555;
    p = p * r + 0.16666666666570693;
    p = p * r + 0.49999999999602124;
    return (1.0 + (r + r * r * p)) * f64_from((k + 1023) << 52);
}

static inline double d_clamp(double x, double low, double high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* exp(x) - 1 for |x| <= 700; small arguments by series, where the difference would cancel. */
static inline double d_expm1(double x)
{
    double series = x * (1.0 + x * (0.5 + x * (1.0 / 6 + x * (1.0 / 24))));
    double direct = d_exp(x) - 1.0;

    return fabs(x) < 0x1p-10 ? series : direct;
}

static inline float m_expm1(float x)
{
    return (float)d_expm1(d_clamp(x, -150.0, 150.0));
}

static inline float m_sigmoid(float x)
{
    float e = m_exp(-fabsf(x));

    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

static inline float m_tanh(float x)
{
    double e = d_expm1(d_clamp(2.0 * (double)x, -40.0, 40.0));

    return (float)(e / (e + 2.0));
}

static inline float m_sinh(float x)
{
    double e = d_expm1(d_clamp(fabs((double)x), 0.0, 150.0));
    float result = copysignf((float)(0.5 * (e + e / (e + 1.0))), x);

    return x != x ? x : result;
}

static inline float m_cosh(float x)
{
    double e = d_exp(d_clamp(x, -150.0, 150.0));

    return (float)(0.5 * (e + 1.0 / e));
}

/* ---- logarithms ---- */

/* log of a positive finite normal number, relative error 1e-13. */
static inline double d_log(double x)
{
    /* x = 2^k m with m in [sqrt(1/2), sqrt(2)) */
    uint64_t shifted = f64_bits(x) - 0x3fe6a09e667f3bcdull;
    uint64_t biased = (shifted + (1024ull << 52)) >> 52; /* k + 1024, never negative */
    double k = f64_from(0x4330000000000000ull | biased) - (0x1p52 + 1024.0);
    double m = f64_from(f64_bits(x) - ((biased - 1024) << 52));
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0.19585503848132649; /* error 6e-14 */
    p = p * z + 0.22176100211549213;
    p = p * z + 0.28572111139026524;
    p = p * z + 0.39999995604485117;
    p = p * z + 0.66666666675848751;
    return k * 0x1.62e42fefa39efp-1 + (2.0 * s + s * z * p);
}

/* The result for arguments that have no finite logarithm. */
static inline float log_edges(float x, float result)
{
    result = x == 0.0f ? -INFINITY : result;
    result = x < 0.0f ? NAN : result;
    result = x == INFINITY ? x : result;
    return x != x ? x : result;
}

static inline float m_log(float x)
{
    return log_edges(x, (float)d_log(x));
}

static inline float m_log2(float x)
{
    return log_edges(x, (float)(d_log(x) * 0x1.71547652b82fep+0));
}

static inline float m_log10(float x)
{
    return log_edges(x, (float)(d_log(x) * 0x1.bcb7b1526e50ep-2));
}

/* log(1 + x); 1 + x loses the low bits of a small x, so there the series stands in. */
static inline double d_log1p(double x)
{
    double series = x * (1.0 - x * (0.5 - x * (1.0 / 3 - x * 0.25)));
    double direct = d_log(1.0 + x);

    return fabs(x) < 0x1p-10 ? series : direct;
}

static inline float m_log1p(float x)
{
    float result = (float)d_log1p(x);

    result = x == -1.0f ? -INFINITY : result;
    result = x < -1.0f ? NAN : result;
    result = x == INFINITY ? x : result;
    return x != x ? x : result;
}

static inline float m_asinh(float x)
{
    double a = fabs((double)x);
    double small = a * (1.0 - a * a * (1.0 / 6));
    double large = d_log(a + sqrt(a * a + 1.0));
    float result = (float)(a < 0x1p-10 ? small : large);

    result = a == (double)INFINITY ? INFINITY : result;
    result = copysignf(result, x);
    return x != x ? x : result;
}

static inline float m_acosh(float x)
{
    double d = x;
    float result = (float)d_log(d + sqrt((d - 1.0) * (d + 1.0)));

    result = x < 1.0f ? NAN : result;
    result = x == INFINITY ? x : result;
    return x != x ? x : result;
}

static inline float m_atanh(float x)
{
    double a = fabs((double)x);
    double small = a * (1.0 + a * a * (1.0 / 3));
    double large = 0.5 * d_log((1.0 + a) / (1.0 - a));
    float result = (float)(a < 0x1p-10 ? small : large);

    result = a == 1.0 ? INFINITY : result;
    result = copysignf(result, x);
    result = a > 1.0 ? NAN : result;
    return x != x ? x : result;
}

/* log(exp(x) + exp(y)) */
static inline float m_logaddexp(float x, float y)
{
    float high = x > y || x != x ? x : y;
    float low = x < y || x != x ? x : y;
    double d = d_exp(d_clamp((double)low - (double)high, -700.0, 0.0));
    float result = (float)((double)high + d_log1p(d));

    return low == -INFINITY || high == INFINITY ? high : result;
}

/* ---- circular functions ---- */

/* Up to here the reduction below is exact enough; larger arguments go to the C library. */
#define TRIG_MAX 1e6f

struct quadrant {
    double r;   /* in [-pi/4, pi/4] */
    uint64_t q; /* in the low two bits */
};

static inline struct quadrant trig_reduce(double x)
{
    double shifted = x * 0x1.45f306dc9c883p-1 + INT_SHIFT_F64;
    double k = shifted - INT_SHIFT_F64;
    /* pi/2 in two parts; the first has 33 bits, so its product with k is exact. */
    double r = (x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a626331p-34;

    return (struct quadrant){ r, f64_bits(shifted) };
}

static inline double d_sin_poly(double r)
{
    double z = r * r;
    double p = 2.7182371815996148e-06; /* error 5e-12 */

    p = p * z - 0.00019839327124563841;
    p = p * z + 0.0083333293622334555;
    p = p * z - 0.16666666641425962;
    return r * (1.0 + z * p); /* keeps the sign of zero */
}

static inline double d_cos_poly(double r)
{
    double z = r * r;
    double p = -2.7209546890117215e-07; /* error 1e-13 */

    p = p * z + 2.4799511750605435e-05;
    p = p * z - 0.0013888883722559192;
    p = p * z + 0.041666666622476048;
    return 1.0 - 0.5 * z + z * z * p;
}

/* One of the two series, with the sign of the half turn. q counts quarter turns. */
static inline float sin_of_quadrant(double r, uint64_t q)
{
    double v = (q & 1) ? d_cos_poly(r) : d_sin_poly(r);

    return (float)f64_from(f64_bits(v) ^ ((q & 2) << 62));
}

static inline float m_sin(float x)
{
    struct quadrant t = trig_reduce(x);

    return sin_of_quadrant(t.r, t.q);
}

static inline float m_cos(float x)
{
    struct quadrant t = trig_reduce(x);

    return sin_of_quadrant(t.r, t.q + 1);
}

static inline float m_tan(float x)
{
    struct quadrant t = trig_reduce(x);
    double s = d_sin_poly(t.r), c = d_cos_poly(t.r);
    double up = (t.q & 1) ? -c : s, down = (t.q & 1) ? s : c;

    return (float)(up / down);
}

/* atan of t >= 0, error 1e-12. */
static inline double d_atan(double t)
{
    double flipped = t > 1.0 ? 1.0 / t : t;
    bool upper = flipped > 0.41421356237309503; /* tan(pi/8) */
    double u = upper ? (flipped - 1.0) / (flipped + 1.0) : flipped;
    double z = u * u;
    double p = -0.037939195289009103;
    p = p * z + 0.069921837383868604;
    p = p * z - 0.08997083612429474;
    p = p * z + 0.11104033855848407;
    p = p * z - 0.142854254785861;
    p = p * z + 0.19999994378953445;
    p = p * z - 0.3333333329622078;
    double v = u + u * z * p + (upper ? 0x1.921fb54442d18p-1 : 0.0);
    return t > 1.0 ? 0x1.921fb54442d18p+0 - v : v;
}

static inline float m_atan(float x)
{
    float result = copysignf((float)d_atan(fabs((double)x)), x);

    return x != x ? x : result;
}

static inline float m_asin(float x)
{
    double a = fabs((double)x);
    float result = copysignf((float)d_atan(a / sqrt((1.0 - a) * (1.0 + a))), x);

    return a <= 1.0 ? result : NAN;
}

static inline float m_acos(float x)
{
    double a = fabs((double)x);
    double asin = d_atan(a / sqrt((1.0 - a) * (1.0 + a)));
    float result = (float)(0x1.921fb54442d18p+0 + (x < 0.0f ? asin : -asin));

    return a <= 1.0 ? result : NAN;
}

static inline float m_atan2(float y, float x)
{
    double ay = fabs((double)y), ax = fabs((double)x);
    bool both_infinite = ay == (double)INFINITY && ax == (double)INFINITY;
    double low = ay < ax ? ay : ax, high = ay < ax ? ax : ay;
    double ratio = high == 0.0 ? 0.0 : low / high;
    double v = d_atan(both_infinite ? 1.0 : ratio);
    v = ay > ax ? 0x1.921fb54442d18p+0 - v : v;
    /* the sign bit, not x < 0: atan2(0, -0) is pi */
    v = (f32_bits(x) >> 31) ? 0x1.921fb54442d18p+1 - v : v;
    float result = copysignf((float)v, y);

    return x != x || y != y ? NAN : result;
}

/* ---- error function ---- */

static inline float m_erf(float x)
{
    double a = fabs((double)x);
    a = a > 4.0 ? 4.0 : a; /* erf rounds to 1 before that */
    double z = a * a;
    double p = -9.6801324568099777e-06; /* [0, 1]: error 3e-11 */
    p = p * z + 0.00011270543145102635;
    p = p * z - 0.00084847112691539914;
    p = p * z + 0.0052210748662030876;
    p = p * z - 0.02686544581739413;
    p = p * z + 0.11283782747137032;
    p = p * z - 0.37612638483805311;
    p = p * z + 1.1283791670631589;
    double q = 2.1686850166817651e-05; /* -log(erfc) on [1, 4]: error 2e-11 of erf */
    q = q * a - 0.00044133637981557858;
    q = q * a + 0.0042045618885167592;
    q = q * a - 0.025208256780350394;
    q = q * a + 0.1084185774058119;
    q = q * a + 0.63321989301573189;
    q = q * a + 1.1295784243037226;
    q = q * a - 0.00018804023781271439;
    float result = (float)(a < 1.0 ? a * p : 1.0 - d_exp(-q));

    result = copysignf(result, x);
    return x != x ? x : result;
}

/* erfinv(a) / a as a function of w = -log(1 - a^2), central part and tail. */
static inline double d_erfinv(double a)
{
    double w = -d_log((1.0 - a) * (1.0 + a));
    double c = w - 3.0;
    double p = 6.2552634630118981e-10; /* w < 6: error 5e-9 */
    p = p * c - 5.4735850831411881e-09;
    p = p * c - 1.8335911078400299e-08;
    p = p * c + 4.4842213524437224e-07;
    p = p * c - 1.7758264530767718e-06;
    p = p * c - 1.2708826531802816e-05;
    p = p * c + 0.00019512761106291806;
    p = p * c - 0.00083619271725784592;
    p = p * c - 0.0057381935651046019;
    p = p * c + 0.24163040736774649;
    p = p * c + 1.6235420148433184;
    double s = sqrt(w > 6.0 ? w : 6.0) - 3.0;
    double t = -3.9862384921609227e-05; /* w <= 17: error 2e-8 */
    t = t * s - 0.00015570752583047735;
    t = t * s + 0.0013291817484551455;
    t = t * s - 0.0035064134509300428;
    t = t * s + 0.0057160953250778631;
    t = t * s - 0.0076553847006590962;
    t = t * s + 0.0094432471828126141;
    t = t * s + 1.0016758178397964;
    t = t * s + 2.8329768321930584;
    return a * (w < 6.0 ? p : t);
}

static inline float m_erfinv(float x)
{
    float a = fabsf(x);
    float result = (float)d_erfinv(x);

    result = a == 1.0f ? copysignf(INFINITY, x) : result;
    return a <= 1.0f ? result : NAN;
}

/* ---- powers and remainders ---- */

/* What pow_fast does not cover: signs, zeros, infinities, NaN. */
static inline bool pow_is_special(float x, float y)
{
    return !(x > 0.0f && x < INFINITY && fabsf(y) < INFINITY);
}

static inline float pow_fast(float x, float y)
{
    return (float)d_exp(d_clamp((double)y * d_log(x), -150.0, 150.0));
}

/* The quotient must stay exact in float64 (28 + 24 bits). */
static inline bool mod_is_special(float x, float y)
{
    return !(fabsf(x) < 0x1p28f * fabsf(y) && fabsf(y) < INFINITY);
}

static inline float mod_fast(float x, float y)
{
    double a = x, b = y;

    float r = (float)(a - floor(a / b) * b);

    return r == 0.0f ? copysignf(r, x) : r;
}

/* Remainder with the sign of the divisor; a zero has that of the dividend. */
static inline float mod_slow(float x, float y)
{
    float r = fmodf(x, y);

    return r != 0.0f && (r < 0.0f) != (y < 0.0f) ? r + y : r;
}
