/* Half-precision C types, on compilers and targets that have them.
 *
 * HAS_FLOAT16 and HAS_BFLOAT16 say whether float16_t and bfloat16_t exist; only then are the
 * accessors of array.h for these types declared. Arrays of both dtypes work everywhere. */
#ifndef MLX_HALF_H
#define MLX_HALF_H

#if defined(__ARM_FEATURE_FP16_SCALAR_ARITHMETIC) || defined(__aarch64__)
#define HAS_FLOAT16
#include <arm_fp16.h>
typedef __fp16 float16_t;
#endif

#if defined(__ARM_FEATURE_BF16) || defined(__aarch64__)
#define HAS_BFLOAT16
#include <arm_bf16.h>
typedef __bf16 bfloat16_t;
#endif

#endif
