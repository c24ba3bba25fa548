/* The same loops for x86-64 processors with AVX2 and F16C. */
#if defined(__x86_64__)

#include <complex.h>
#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "backend/cpu/kernels.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,f16c")
#endif

#define KERNELS cpu_kernels_avx2
#define KERNELS_F16C
#include "backend/cpu/kernels_body.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#else
typedef int kernels_avx2_is_for_x86_64; /* a translation unit must not be empty */
#endif
