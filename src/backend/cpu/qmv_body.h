/* The loops of qmv.h. KERNELS is the name of the table. */
#include "backend/cpu/qmv.h"

#include <string.h>

/* Vectors are passed between functions of this file only, which are all inlined. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define LANES (CPU_QMV_BLOCK / 4)
typedef uint32_t words __attribute__((vector_size(4 * LANES)));
typedef int32_t codes __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));

/* Rows at a time: they share the loads of x, and their sums do not wait for each other. */
#define ROWS 4

#define INLINE static inline __attribute__((always_inline))

INLINE floats load_floats(const float *p)
{
    floats v;

    memcpy(&v, p, sizeof v);
    return v;
}

INLINE words load_words(const unsigned char *p, size_t bytes)
{
    words v = { 0 };

    memcpy(&v, p, bytes);
    return v;
}

INLINE float sum_of(floats v)
{
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

/* Sum of biases times x of a row. */
INLINE float bias_part(const struct cpu_qmv *v, int64_t row)
{
    int64_t per_row = v->k / v->group_size;
    const float *biases = v->biases + row * per_row;
    float sum = 0.0f;

    for (int64_t g = 0; g < per_row; g++)
        sum += biases[g] * v->sums[g];
    return sum;
}

/* Weights are read ahead of the processor's own guess, which ends with a row. */
#define AHEAD 2048

INLINE floats splat(float a)
{
    return (floats){ a, a, a, a, a, a, a, a };
}

/* The scale of each word of a block: of one, two or four groups. */
INLINE floats lane_scales(const struct cpu_qmv *v, const float *scales, int64_t block, int bits)
{
    int64_t numbers = LANES * 32 / bits, first = block * numbers / v->group_size;
    int64_t last = v->k / v->group_size - 1;
    const float *s = scales + first;

    if (v->group_size >= numbers)
        return splat(s[0]);
    if (v->group_size * 2 == numbers) {
        float a = s[0], b = s[MIN(last - first, 1)];
        return (floats){ a, a, a, a, b, b, b, b };
    }
    float a = s[0], b = s[MIN(last - first, 1)], c = s[MIN(last - first, 2)],
          d = s[MIN(last - first, 3)];
    return (floats){ a, a, b, b, c, c, d, d };
}

INLINE floats to_floats(words w)
{
#if defined(__aarch64__)
    /* GCC 12 would take vectors of two registers apart, down to single numbers. */
    typedef int32_t half_codes __attribute__((vector_size(2 * LANES)));
    typedef float half_floats __attribute__((vector_size(2 * LANES)));
    half_codes c[2];
    half_floats f[2];
    floats v;

    memcpy(c, &w, sizeof w);
    f[0] = __builtin_convertvector(c[0], half_floats);
    f[1] = __builtin_convertvector(c[1], half_floats);
    memcpy(&v, f, sizeof v);
    return v;
#else
    return __builtin_convertvector((codes)w, floats);
#endif
}

/* Codes i of all words, times 2^(i * bits), which the arrangement takes out of x. Only the last one
 * would become negative. */
INLINE floats codes_at(words w, int i, int bits)
{
    uint32_t mask = (1u << bits) - 1;

    if (i == 32 / bits - 1)
        return to_floats(w >> (32 - bits));
    return to_floats(w & (mask << (i * bits)));
}

/* One block of words of n rows times x. */
INLINE void dot_block(floats sums[ROWS], const words w[ROWS], const float *x, int n, int bits)
{
    floats odd[ROWS] = { { 0 } };

#pragma GCC unroll 16
    for (int i = 0; i < 32 / bits; i += 2) {
        floats xa = load_floats(x + i * LANES), xb = load_floats(x + (i + 1) * LANES);
#pragma GCC unroll 4
        for (int r = 0; r < n; r++) {
            sums[r] += codes_at(w[r], i, bits) * xa;
            odd[r] += codes_at(w[r], i + 1, bits) * xb;
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < n; r++)
        sums[r] += odd[r];
}

/* n of ROWS rows. */
INLINE void dot_rows(float *out, const struct cpu_qmv *v, int64_t first, int n, int bits)
{
    int64_t row_bytes = v->k * bits / 8, per_row = v->k / v->group_size;
    int64_t blocks = (row_bytes + 4 * LANES - 1) / (4 * LANES), whole = row_bytes / (4 * LANES);
    const unsigned char *w = v->w + first * row_bytes;
    const float *scales = v->scales + first * per_row;
    floats sums[ROWS] = { { 0 } };

    for (int64_t b = 0; b < blocks; b++) {
        size_t bytes = (size_t)(b < whole ? 4 * LANES : row_bytes - b * 4 * LANES);
        floats part[ROWS] = { { 0 } };
        words q[ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < n; r++) {
            const unsigned char *at = w + r * row_bytes + b * 4 * LANES;
            __builtin_prefetch(at + AHEAD);
            q[r] = b < whole ? load_words(at, 4 * LANES) : load_words(at, bytes);
        }
        dot_block(part, q, (const float *)v->x + b * LANES * (32 / bits), n, bits);
#pragma GCC unroll 4
        for (int r = 0; r < n; r++)
            sums[r] += part[r] * lane_scales(v, scales + r * per_row, b, bits);
    }
    for (int r = 0; r < n; r++)
        out[r] = sum_of(sums[r]) + bias_part(v, first + r);
}

INLINE void all_rows(float *out, const struct cpu_qmv *v, int64_t rows, int bits)
{
    int64_t i = 0;

    for (; i + ROWS <= rows; i += ROWS)
        dot_rows(out + i, v, i, ROWS, bits);
    for (; i < rows; i++)
        dot_rows(out + i, v, i, 1, bits);
}

static void rows_of(float *out, const struct cpu_qmv *v, int64_t rows)
{
    if (v->bits == 4)
        all_rows(out, v, rows, 4);
    else if (v->bits == 8)
        all_rows(out, v, rows, 8);
    else
        all_rows(out, v, rows, 2);
}

static float dot(const float *a, const float *b, int64_t n)
{
    floats sum[2] = { { 0 } };

    for (int64_t i = 0; i < n; i += LANES)
        sum[i / LANES % 2] += load_floats(a + i) * load_floats(b + i);
    return sum_of(sum[0] + sum[1]);
}

#ifndef ROWS_INT
#define ROWS_INT NULL
#endif
#ifndef ROWS_HALF
#define ROWS_HALF NULL
#endif

const struct cpu_qmv_kernels KERNELS = {
    .rows = rows_of, .rows_int = ROWS_INT, .rows_half = ROWS_HALF, .dot = dot
};
