/* The same loops for arm64, all of whose processors have vectors of 128 bits and fused products,
 * and with integer products. As with AVX2, no other result has to have the same bits. */
#if defined(__aarch64__)

#include <arm_neon.h>
#include <string.h>

#include "backend/cpu/qmv.h"

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

static void rows_int(float *out, const struct cpu_qmv *v, int64_t rows);

#define KERNELS cpu_qmv_neon
#define ROWS_INT rows_int
#include "backend/cpu/qmv_body.h"

/* ---- integers: the two halves of a block by themselves ---- */

/* With 4 bits, 16-bit lanes hold four codes: the first three are left where they lie, so that their
 * products are 1, 16 and 256 times as large. */
struct products {
    int32x4_t by_1[2], by_16[2], by_256[2];
};

struct totals {
    float32x4_t of[2];
};

/* Eight products. */
INLINE int32x4_t add_products(int32x4_t sum, uint16x8_t w, const int16_t *x)
{
    int16x8_t a = vreinterpretq_s16_u16(w), b = vld1q_s16(x);

    sum = vmlal_s16(sum, vget_low_s16(a), vget_low_s16(b));
    return vmlal_high_s16(sum, a, b);
}

INLINE void add_block4(struct products *p, const unsigned char *at, const int16_t *x)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++, x += 8) {
        uint16x8_t w = vreinterpretq_u16_u8(vld1q_u8(at + 16 * h));
        p->by_1[h] = add_products(p->by_1[h], vandq_u16(w, vdupq_n_u16(0x000f)), x);
        p->by_16[h] = add_products(p->by_16[h], vandq_u16(w, vdupq_n_u16(0x00f0)), x + 16);
        p->by_256[h] = add_products(p->by_256[h], vandq_u16(w, vdupq_n_u16(0x0f00)), x + 32);
        p->by_1[h] = add_products(p->by_1[h], vshrq_n_u16(w, 12), x + 48);
    }
}

INLINE void add_block8(struct products *p, const unsigned char *w, const int16_t *x)
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        uint8x16_t c = vld1q_u8(w + 16 * h);
        p->by_1[h] = add_products(p->by_1[h], vmovl_u8(vget_low_u8(c)), x + 16 * h);
        p->by_1[h] = add_products(p->by_1[h], vmovl_high_u8(c), x + 16 * h + 8);
    }
}

INLINE void add_scaled(struct totals *t, const struct products *p, int bits, const float s[2])
{
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        int32x4_t sum = p->by_1[h];
        if (bits == 4)
            sum = vsraq_n_s32(vsraq_n_s32(sum, p->by_16[h], 4), p->by_256[h], 8);
        t->of[h] = vfmaq_n_f32(t->of[h], vcvtq_f32_s32(sum), s[h]);
    }
}

INLINE float total_of(const struct totals *t)
{
    return vaddvq_f32(vaddq_f32(t->of[0], t->of[1]));
}

#include "backend/cpu/qmv_int.h"

#else
typedef int qmv_neon_is_for_arm64; /* a translation unit must not be empty */
#endif
