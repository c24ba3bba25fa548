/* GGUF's quantized blocks. Numbers are little-endian; scales are float16 unless noted.
 *
 * Blocks of 4 and 8 bits with one scale become MLX's affine quantization of groups of 32: value =
 * scale * q + bias, q packed in order from the low bits. The others are written out as float16. */
#include "graph/codec_gguf.h"

#include <math.h>
#include <string.h>

#include "graph/dtype.h"

static uint16_t load_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t load_u32(const uint8_t *p)
{
    return load_u16(p) | (uint32_t)load_u16(p + 2) << 16;
}

static float load_f16(const uint8_t *p)
{
    return dt_f16_to_f32(load_u16(p));
}

static void store_u16(void *dst, size_t i, uint16_t v)
{
    memcpy((char *)dst + i * sizeof v, &v, sizeof v);
}

/* ---- to MLX's quantized layout ---- */

/* 16 bytes that hold element j in the low and element j + 16 in the high half of byte j, to
 * elements in order. */
static void order_nibbles(uint8_t *out, const uint8_t *q)
{
    for (int j = 0; j < 8; j++) {
        out[j] = (uint8_t)((q[2 * j] & 15) | (q[2 * j + 1] & 15) << 4);
        out[j + 8] = (uint8_t)(q[2 * j] >> 4 | (q[2 * j + 1] & 0xf0));
    }
}

static void weights_4(uint8_t *out, const uint8_t *in, size_t n, size_t block)
{
    for (size_t i = 0; i < n; i++)
        order_nibbles(out + i * 16, in + (i + 1) * block - 16);
}

/* The float16 at `at` of every block, times factor. */
static void halves(void *out, const uint8_t *in, size_t n, size_t block, float factor)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t v = load_u16(in + i * block);
        store_u16(out, i, factor == 1 ? v : dt_f32_to_f16(factor * dt_f16_to_f32(v)));
    }
}

/* scale, 32 x 4 bits: scale * (q - 8) */
void decode_q4_0_w(void *dst, const void *src, size_t n)
{
    weights_4(dst, src, n, 18);
}

void decode_q4_0_s(void *dst, const void *src, size_t n)
{
    halves(dst, src, n, 18, 1);
}

void decode_q4_0_b(void *dst, const void *src, size_t n)
{
    halves(dst, src, n, 18, -8);
}

/* scale, bias, 32 x 4 bits */
void decode_q4_1_w(void *dst, const void *src, size_t n)
{
    weights_4(dst, src, n, 20);
}

void decode_q4_1_s(void *dst, const void *src, size_t n)
{
    halves(dst, src, n, 20, 1);
}

void decode_q4_1_b(void *dst, const void *src, size_t n)
{
    halves(dst, (const uint8_t *)src + 2, n, 20, 1);
}

/* scale, 32 signed bytes; unsigned ones with a bias here */
void decode_q8_0_w(void *dst, const void *src, size_t n)
{
    const uint8_t *in = src;
    uint8_t *out = dst;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < 32; j++)
            out[i * 32 + j] = in[i * 34 + 2 + j] ^ 0x80;
}

void decode_q8_0_s(void *dst, const void *src, size_t n)
{
    halves(dst, src, n, 34, 1);
}

void decode_q8_0_b(void *dst, const void *src, size_t n)
{
    halves(dst, src, n, 34, -128);
}

/* ---- to float16 ---- */

#define MAX_ELEMENTS 256

/* One block to its elements. Inner loops run over 16 or 32 elements with one scale, so that the
 * compiler turns them into vector code. */
typedef void (*block_fn)(float *y, const uint8_t *p);

/* dt_f32_to_f16 without branches. */
static uint16_t narrow(float f)
{
    uint32_t bits, rounded, tiny;
    float magnitude;

    memcpy(&bits, &f, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    memcpy(&magnitude, &bits, sizeof magnitude);
    magnitude += 0.5f; /* rounds to units of 2^-24 */
    memcpy(&tiny, &magnitude, sizeof tiny);
    rounded = (bits - 0x38000000u + 0xfffu + (bits >> 13 & 1u)) >> 13;
    rounded = bits < 0x38800000u ? tiny - 0x3f000000u : rounded;
    rounded = bits >= 0x477ff000u ? 0x7c00u : rounded;
    rounded = bits > 0x7f800000u ? 0x7e00u | (bits >> 13 & 0x3ffu) : rounded;
    return (uint16_t)(sign | rounded);
}

static void to_half(void *dst, const uint8_t *src, size_t n, const size_t sizes[2], block_fn fn)
{
    float y[MAX_ELEMENTS];
    uint16_t h[MAX_ELEMENTS];

    for (size_t i = 0; i < n; i++) {
        fn(y, src + i * sizes[0]);
        for (size_t j = 0; j < sizes[1]; j++)
            h[j] = narrow(y[j]);
        memcpy((char *)dst + i * sizes[1] * sizeof h[0], h, sizes[1] * sizeof h[0]);
    }
}

#define TO_HALF(name, bytes, elements)                                                             \
    void decode_##name(void *dst, const void *src, size_t n)                                       \
    {                                                                                              \
        to_half(dst, src, n, (const size_t[]){ bytes, elements }, name);                           \
    }

/* Bit j of the fifth bits belongs to element j. */
static void five_bits(int *q, const uint8_t *high, const uint8_t *low)
{
    uint32_t h = load_u32(high);

    for (int j = 0; j < 16; j++) {
        q[j] = (low[j] & 15) | (int)(h >> j & 1) << 4;
        q[j + 16] = low[j] >> 4 | (int)(h >> (j + 16) & 1) << 4;
    }
}

/* scale, fifth bits, 32 x 4 bits: scale * (q - 16) */
static void q5_0(float *y, const uint8_t *p)
{
    float d = load_f16(p);
    int q[32];

    five_bits(q, p + 2, p + 6);
    for (int j = 0; j < 32; j++)
        y[j] = d * (float)(q[j] - 16);
}
TO_HALF(q5_0, 22, 32)

/* scale, bias, fifth bits, 32 x 4 bits */
static void q5_1(float *y, const uint8_t *p)
{
    float d = load_f16(p), m = load_f16(p + 2);
    int q[32];

    five_bits(q, p + 4, p + 8);
    for (int j = 0; j < 32; j++)
        y[j] = d * (float)q[j] + m;
}
TO_HALF(q5_1, 24, 32)

/* 32 elements from a table of 16 values. */
static void from_table(float *y, const uint8_t *q, const int8_t *table, float d)
{
    for (int j = 0; j < 16; j++) {
        y[j] = d * (float)table[q[j] & 15];
        y[j + 16] = d * (float)table[q[j] >> 4];
    }
}

static const int8_t nonlinear[16] = { -127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113 };

/* scale, 32 x 4 bits */
static void iq4_nl(float *y, const uint8_t *p)
{
    from_table(y, p + 2, nonlinear, load_f16(p));
}
TO_HALF(iq4_nl, 18, 32)

/* A power of two as its exponent, 32 x 4-bit floats; the table holds twice their values. */
static void mxfp4(float *y, const uint8_t *p)
{
    static const int8_t twice[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

    from_table(y, p + 1, twice, ldexpf(1, p[0] - 128));
}
TO_HALF(mxfp4, 17, 32)

/* y = scale * q - min over n elements; q: `width` bits of each byte at p, from `shift` on. */
struct plane {
    float scale, min;
    int shift, mask, n;
};

static void put_plane(float *y, const uint8_t *p, const struct plane *v)
{
    float scale = v->scale, min = v->min;
    int shift = v->shift, mask = v->mask;

    for (int l = 0; l < v->n; l++)
        y[l] = scale * (float)(p[l] >> shift & mask) - min;
}

/* 16 x (4-bit scale, 4-bit minimum), 256 x 2 bits, scale and minimum of those */
static void q2_k(float *y, const uint8_t *p)
{
    float d = load_f16(p + 80), m = load_f16(p + 82);

    for (int s = 0; s < 16; s++)
        put_plane(y + 16 * s, p + 16 + s / 8 * 32 + s % 2 * 16,
                  &(struct plane){ .scale = d * (float)(p[s] & 15),
                                   .min = m * (float)(p[s] >> 4),
                                   .shift = s % 8 / 2 * 2,
                                   .mask = 3,
                                   .n = 16 });
}
TO_HALF(q2_k, 84, 256)

/* third bits (inverted), 256 x 2 bits, 16 6-bit scales, scale of those */
static void q3_k(float *y, const uint8_t *p)
{
    const uint8_t *sc = p + 96;
    float d = load_f16(p + 108);

    for (int s = 0; s < 16; s++) {
        int six = (sc[s % 8] >> (s / 8 * 4) & 15) | (sc[8 + s % 4] >> (s / 4 * 2) & 3) << 4;
        const uint8_t *high = p + s % 2 * 16, *low = p + 32 + s / 8 * 32 + s % 2 * 16;
        float scale = d * (float)(six - 32);
        int shift = s % 8 / 2 * 2, plane = s / 2;
        for (int l = 0; l < 16; l++) {
            int q = (low[l] >> shift & 3) + 4 * (high[l] >> plane & 1) - 4;
            y[16 * s + l] = scale * (float)q;
        }
    }
}
TO_HALF(q3_k, 110, 256)

/* The 6-bit scale and minimum of the j-th 32 elements, from 12 bytes. */
static void scale_min(int *scale, int *min, const uint8_t *q, int j)
{
    if (j < 4) {
        *scale = q[j] & 63;
        *min = q[j + 4] & 63;
    } else {
        *scale = (q[j + 4] & 15) | q[j - 4] >> 6 << 4;
        *min = q[j + 4] >> 4 | q[j] >> 6 << 4;
    }
}

/* p: scale and minimum of the scales, 8 x (scale, minimum); q: 256 x 4 bits */
static void q4_k(float *y, const uint8_t *p)
{
    float d = load_f16(p), m = load_f16(p + 2);

    for (int j = 0; j < 8; j++) {
        int scale, min;
        scale_min(&scale, &min, p + 4, j);
        put_plane(y + 32 * j, p + 16 + j / 2 * 32,
                  &(struct plane){ .scale = d * (float)scale,
                                   .min = m * (float)min,
                                   .shift = j % 2 * 4,
                                   .mask = 15,
                                   .n = 32 });
    }
}
TO_HALF(q4_k, 144, 256)

/* The same with fifth bits in between. */
static void q5_k(float *y, const uint8_t *p)
{
    const uint8_t *fifth = p + 16;
    float d = load_f16(p), m = load_f16(p + 2);

    for (int j = 0; j < 8; j++) {
        const uint8_t *q = p + 48 + j / 2 * 32;
        int scale, min;
        scale_min(&scale, &min, p + 4, j);
        float dj = d * (float)scale, mj = m * (float)min;
        for (int l = 0; l < 32; l++)
            y[32 * j + l] =
                dj * (float)((q[l] >> (j % 2 * 4) & 15) + 16 * (fifth[l] >> j & 1)) - mj;
    }
}
TO_HALF(q5_k, 176, 256)

/* 256 x 4 bits, 256 x 2 high bits, 16 signed scales, scale of those */
static void q6_k(float *y, const uint8_t *p)
{
    const int8_t *sc = (const int8_t *)p + 192;
    float d = load_f16(p + 208);

    for (int s = 0; s < 16; s++) {
        int half = s / 8, plane = s % 8 / 2, at = s % 2 * 16;
        const uint8_t *low = p + half * 64 + plane % 2 * 32 + at, *high = p + 128 + half * 32 + at;
        float scale = d * (float)sc[s];
        for (int l = 0; l < 16; l++) {
            int q = (low[l] >> (plane / 2 * 4) & 15) + 16 * (high[l] >> (plane * 2) & 3) - 32;
            y[16 * s + l] = scale * (float)q;
        }
    }
}
TO_HALF(q6_k, 210, 256)

/* float32 scale, 256 signed bytes, sums of theirs */
static void q8_k(float *y, const uint8_t *p)
{
    uint32_t bits = load_u32(p);
    float d;

    memcpy(&d, &bits, sizeof d);
    for (int i = 0; i < 256; i++)
        y[i] = d * (float)(int8_t)p[4 + i];
}
TO_HALF(q8_k, 292, 256)

/* scale, high bits of 8 scales, their low bits, 256 x 4 bits */
static void iq4_xs(float *y, const uint8_t *p)
{
    float d = load_f16(p);
    unsigned high = load_u16(p + 2);

    for (int j = 0; j < 8; j++) {
        int scale = (p[4 + j / 2] >> (j % 2 * 4) & 15) | (int)(high >> (2 * j) & 3) << 4;
        from_table(y + 32 * j, p + 8 + 16 * j, nonlinear, d * (float)(scale - 32));
    }
}
TO_HALF(iq4_xs, 136, 256)
