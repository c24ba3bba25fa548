/* The packed formats: integers of 1 to 8 bits as one little-endian stream, and small floats. */
#include "backend/cpu/quant.h"

#include "backend/cpu/fp8.h"
#include "backend/cpu/kernels.h"

#include <math.h>

/* Scales that are widened at a time. */
#define SCALES_AT_ONCE 64

static const float fp4_values[16] = { 0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                      -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f };

/* ---- small floats ---- */

float cpu_scale_decode(uint8_t v, enum quant_mode mode)
{
    return mode == QUANT_NVFP4 ? fp8_decode(v) : ldexpf(1.0f, v == 255 ? 128 : v - 127);
}

/* ---- unpacking ---- */

/* Packs of whole bytes: 8 numbers, of 6 bits 4. */
static inline __attribute__((always_inline)) void unpack_stream(float *dst, int bits,
                                                                const unsigned char *w, int64_t n)
{
    int per = bits == 6 ? 4 : 8, bytes = per * bits / 8;
    uint64_t mask = (1u << bits) - 1;

    for (int64_t i = 0; i < n; i += per, w += bytes) {
        uint64_t pack = 0;
        memcpy(&pack, w, (size_t)bytes);
        for (int j = 0; j < per; j++)
            dst[i + j] = (float)(int32_t)(pack >> (j * bits) & mask);
    }
}

/* One loop per width. */
static void unpack_integers(float *dst, int bits, const unsigned char *w, int64_t n)
{
    switch (bits) {
#define WIDTH(bits_)                                                                               \
    case bits_:                                                                                    \
        unpack_stream(dst, bits_, w, n);                                                           \
        break;
        WIDTH(1)
        WIDTH(2)
        WIDTH(3)
        WIDTH(4)
        WIDTH(5)
        WIDTH(6)
        WIDTH(8)
#undef WIDTH
    default:
        break;
    }
}

static void unpack_table(float *dst, const float *table, const unsigned char *w, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2) {
        dst[i] = table[w[i / 2] & 15];
        dst[i + 1] = table[w[i / 2] >> 4];
    }
}

void cpu_unpack(float *dst, const struct quant_params *q, const unsigned char *w, int64_t n)
{
    if (q->mode == QUANT_MXFP8)
        for (int64_t i = 0; i < n; i++)
            dst[i] = fp8_decode(w[i]);
    else if (q->mode != QUANT_AFFINE)
        unpack_table(dst, fp4_values, w, n);
    else
        unpack_integers(dst, q->bits, w, n);
}

void cpu_scales(float *scales, float *biases, const struct cpu_packed *a, int64_t first, size_t n)
{
    size_t item = dt_size(a->dtype);
    struct cpu_vec to = { scales, DT_FLOAT32 };

    if (a->q.mode != QUANT_AFFINE) {
        const uint8_t *codes = (const uint8_t *)a->scales + first;
        for (size_t i = 0; i < n; i++)
            scales[i] = cpu_scale_decode(codes[i], (enum quant_mode)a->q.mode);
        return;
    }
    cpu_convert(to, (struct cpu_vec){ (char *)a->scales + (size_t)first * item, a->dtype }, n);
    to.data = biases;
    cpu_convert(to, (struct cpu_vec){ (char *)a->biases + (size_t)first * item, a->dtype }, n);
}

void cpu_expand(float *dst, const struct cpu_packed *a, int64_t row, int64_t first, int64_t n)
{
    int64_t group = a->q.group_size, at = row * (a->cols / group) + first / group;
    const unsigned char *w = a->w + row * cpu_packed_row_bytes(a) + first * a->q.bits / 8;
    float scales[SCALES_AT_ONCE], biases[SCALES_AT_ONCE] = { 0 };

    cpu_unpack(dst, &a->q, w, n);
    for (int64_t i = 0, n_scales; i < n / group; i += n_scales) {
        n_scales = MIN(SCALES_AT_ONCE, n / group - i);
        cpu_scales(scales, biases, a, at + i, (size_t)n_scales);
        for (int64_t g = 0; g < n_scales; g++) {
            float *to = dst + (i + g) * group;
            for (int64_t j = 0; j < group; j++)
                to[j] = to[j] * scales[g] + biases[g];
        }
    }
}
