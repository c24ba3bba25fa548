/* Arguments of `mlx kernel`: what is written as TYPE:... */
#pragma once

#include "mlx/c/mlx.h"

#define KERNEL_WORDS "bool u8 u16 u32 u64 i8 i16 i32 i64 f16 f32 f64 bf16 c64"

/* The dtype with that short or long name, of n characters; false if there is none. */
bool kernel_dtype(mlx_dtype *out, const char *word, size_t n);

/* "f32:32x32" or "f32:32x32=FILE". */
#define KERNEL_MAX_DIMS 8
struct kernel_out {
    mlx_dtype dtype;
    int shape[KERNEL_MAX_DIMS];
    size_t ndim;
    const char *file; /* NULL: none was given */
};
bool kernel_parse_out(struct kernel_out *out, const char *text);

/* "16", "16,2" or "16,2,1": those that are missing are 1. */
bool kernel_parse_three(int out[3], const char *text);

/* Numbers with commas between them: u32:7, i32:-1, u64:7, f32:0.5, f64:0.5; without a type an
 * integer is an i32, what has a point or an exponent an f32. Their bytes, one behind the other, are
 * appended.
 */
struct kernel_bytes {
    char v[256];
    size_t n;
};
bool kernel_parse_numbers(struct kernel_bytes *out, const char *text);

/* "ID=NUMBER", of 32 bits. */
bool kernel_parse_spec(uint32_t *id, uint32_t *bits, const char *text);
