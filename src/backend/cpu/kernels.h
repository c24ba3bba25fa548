/* Vector loops of the CPU backend, compiled once per instruction set (kernels_<isa>.c) and chosen
 * when the process starts. All sets give the same bits: nothing is contracted or reassociated.
 *
 * Inside a program float16 and bfloat16 values are kept as float32 that were rounded to the type,
 * so arithmetic exists for the storage classes below only. */
#pragma once

#include "plan/elem_program.h"

/* Storage classes: what a loop over values of a dtype sees. CLASS(id, type, type to compute in) */
#define CPU_CLASSES(CLASS)                                                                         \
    CLASS(B, uint8_t, uint8_t)                                                                     \
    CLASS(U8, uint8_t, uint32_t)                                                                   \
    CLASS(U16, uint16_t, uint32_t)                                                                 \
    CLASS(U32, uint32_t, uint32_t)                                                                 \
    CLASS(U64, uint64_t, uint64_t)                                                                 \
    CLASS(I8, int8_t, uint32_t)                                                                    \
    CLASS(I16, int16_t, uint32_t)                                                                  \
    CLASS(I32, int32_t, uint32_t)                                                                  \
    CLASS(I64, int64_t, uint64_t)                                                                  \
    CLASS(F32, float, float)                                                                       \
    CLASS(F64, double, double)                                                                     \
    CLASS(C64, float _Complex, float _Complex)

enum cpu_class {
#define CLASS(id, ...) CPU_##id,
    CPU_CLASSES(CLASS)
#undef CLASS
        CPU_CLASS_COUNT
};

/* By dtype: the class of its values, and the class's size in bytes. */
extern const uint8_t cpu_class_of[DT_COUNT];
extern const uint8_t cpu_class_size[CPU_CLASS_COUNT];

/* dst[i] = op(a[i], b[i], c[i]); unused operands are NULL. dst may be the same as an operand. */
typedef void (*cpu_kernel)(void *dst, const void *a, const void *b, const void *c, size_t n);

/* *dst = op over x[0..n), n > 0. In a fixed order that does not depend on the instruction set. */
typedef void (*cpu_fold)(void *dst, const void *x, size_t n);

/* Where x[i] is before best[i] in the order: best[i] = x[i], index[i] = position. */
typedef void (*cpu_arg)(void *best, uint32_t *index, const void *x, uint32_t position, size_t n);

/* Words of random bits: counters (first + i, first + i + apart) under a key (its third word
 * included) give low[i] and high[i], which need not be aligned. */
struct cpu_threefry {
    uint32_t key[3];
    uint32_t first, apart;
    void *low, *high;
};

/* Rows of float32, pitch elements apart. */
struct cpu_rows {
    const float *v;
    size_t n, width, pitch;
};

/* A loop and the class that it writes. */
struct cpu_kernel_row {
    cpu_kernel fn;
    uint8_t result; /* enum cpu_class */
};

/* One step of a Fourier transform of n numbers, s of them alike (docs/runtime.md): number u + j s
 * m, for j below the radix, where u = p s + q, goes with the others of its u to q + s (p radix +
 * k), for k below the radix, times the root p k of radix m. Real and imaginary parts lie apart. */
#define CPU_FFT_RADIX 61
struct cpu_fft_step {
    const float *re, *im;
    float *to_re, *to_im;
    const float *roots; /* pairs of cosine and sine, radix - 1 of them for each p */
    const float *turn;  /* the powers of the root of `radix`, for those above 5 */
    size_t s, m;
    uint32_t radix; /* 2 to 5, or odd and no larger than CPU_FFT_RADIX */
};

struct cpu_kernels {
    /* By op and class of the operands (Select: of the second operand). */
    struct cpu_kernel_row op[OP_COUNT][CPU_CLASS_COUNT];
    /* By op and class: Add, Multiply, Minimum, Maximum; LogicalAnd and LogicalOr of bools. */
    cpu_fold fold[OP_COUNT][CPU_CLASS_COUNT];
    /* By source and destination class. */
    cpu_kernel convert[CPU_CLASS_COUNT][CPU_CLASS_COUNT];
    /* By class: the smaller element comes first, the larger one does. */
    cpu_arg arg_min[CPU_CLASS_COUNT], arg_max[CPU_CLASS_COUNT];
    void (*threefry)(const struct cpu_threefry *t, size_t n);
    /* Half types: load widens, store rounds to nearest even, round is both. */
    void (*load_f16)(float *dst, const uint16_t *src, size_t n);
    void (*load_bf16)(float *dst, const uint16_t *src, size_t n);
    void (*store_f16)(uint16_t *dst, const float *src, size_t n);
    void (*store_bf16)(uint16_t *dst, const float *src, size_t n);
    void (*round_f16)(float *x, size_t n);
    void (*round_bf16)(float *x, size_t n);
    /* dst[i] = sum over j of x[j] * row i [j]; dst[j] += sum over i of x[i] * row i [j]. */
    void (*dot_rows)(float *dst, const float *x, const struct cpu_rows *r);
    void (*add_rows)(float *dst, const float *x, const struct cpu_rows *r);
    /* (a, b) = (a cos - b sin, a sin + b cos) */
    void (*rotate)(float *a, float *b, const float *cos, const float *sin, size_t n);
    /* For u from begin up to end. */
    void (*fft_step)(const struct cpu_fft_step *t, size_t begin, size_t end);
};

extern const struct cpu_kernels cpu_kernels_base;
#if defined(__x86_64__)
extern const struct cpu_kernels cpu_kernels_avx2;
#elif defined(__aarch64__)
extern const struct cpu_kernels cpu_kernels_neon;
#endif

/* The best set for this processor. Thread-safety: safe. */
const struct cpu_kernels *cpu_kernels(void);

static inline bool cpu_is_half(enum dtype t)
{
    return t == DT_FLOAT16 || t == DT_BFLOAT16;
}

/* Half values of type t to and from their float32 form. */
void cpu_widen(float *dst, const void *src, enum dtype t, size_t n);
void cpu_narrow(void *dst, const float *src, enum dtype t, size_t n);

/* A dense run of one dtype. */
struct cpu_vec {
    void *data;
    enum dtype dtype;
};
/* dst[i] = src[i] converted. The two may be equal if the dtypes are, else they do not overlap. */
void cpu_convert(struct cpu_vec dst, struct cpu_vec src, size_t n);
