/* Attributes, small helpers and checked arithmetic; every internal header includes this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))

/* Converts floats to integers whatever their value: out of range the result is what the machine
 * gives, as in MLX. */
#define FLOAT_TO_ANY_INT __attribute__((no_sanitize("float-cast-overflow")))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* True when the result does not fit; *out is then unspecified. */
#define MUL_OVERFLOWS(a, b, out) __builtin_mul_overflow(a, b, out)
#define ADD_OVERFLOWS(a, b, out) __builtin_add_overflow(a, b, out)

static inline size_t align_up(size_t n, size_t pow2)
{
    return (n + pow2 - 1) & ~(pow2 - 1);
}

static inline int64_t ceil_div(int64_t n, int64_t d)
{
    return (n + d - 1) / d;
}
