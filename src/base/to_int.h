/* Floats as integers. C leaves a conversion out of range open, and processors differ: these give
 * what MLX's give on x86, which is the lowest number of the type that is converted through for
 * whatever is too large, too small or no number. Narrower integers are the low bits of to_int32, or
 * for uint32 of to_int64. */
#pragma once

#include "base/common.h"

/* As a double -2^31 - 1 is exact, and whatever is above it is cut to a number that fits. As a float
 * it is rounded to -2^31, which the test leaves out; the result for it is that number all the same.
 */
#define TO_INT_FUNCTIONS(from, type)                                                               \
    static inline int32_t from##_to_int32(type v)                                                  \
    {                                                                                              \
        return v > (type)(-0x1p31 - 1) && v < (type)0x1p31 ? (int32_t)v : INT32_MIN;               \
    }                                                                                              \
    static inline int64_t from##_to_int64(type v)                                                  \
    {                                                                                              \
        return v >= (type)-0x1p63 && v < (type)0x1p63 ? (int64_t)v : INT64_MIN;                    \
    }
TO_INT_FUNCTIONS(f32, float)
TO_INT_FUNCTIONS(f64, double)
#undef TO_INT_FUNCTIONS

#define to_int32(v) _Generic((v), float : f32_to_int32, double : f64_to_int32)(v)
#define to_int64(v) _Generic((v), float : f32_to_int64, double : f64_to_int64)(v)

/* The numbers from 2^63 on by themselves, negative ones as in two's complement. */
static inline uint64_t to_uint64(double v)
{
    if (v >= 0x1p63)
        return v < 0x1p64 ? (uint64_t)v : 0;
    return (uint64_t)f64_to_int64(v);
}
