/* The same loops for arm64. What the compiler makes of them uses the vectors that all of its
 * processors have; half precision has instructions of its own. */
#if defined(__aarch64__)

#include <arm_neon.h>

#include "backend/cpu/kernels.h"

#define F16_STEP 8

static inline void f16_load(float *dst, const uint16_t *src)
{
    float16x8_t h = vreinterpretq_f16_u16(vld1q_u16(src));

    vst1q_f32(dst, vcvt_f32_f16(vget_low_f16(h)));
    vst1q_f32(dst + 4, vcvt_high_f32_f16(h));
}

static inline void f16_store(uint16_t *dst, const float *src)
{
    float16x4_t low = vcvt_f16_f32(vld1q_f32(src));

    vst1q_u16(dst, vreinterpretq_u16_f16(vcvt_high_f16_f32(low, vld1q_f32(src + 4))));
}

#define KERNELS cpu_kernels_neon
#include "backend/cpu/kernels_body.h"

#else
typedef int kernels_neon_is_for_arm64; /* a translation unit must not be empty */
#endif
