/* The loops of kernels.h over the rows of elementwise_ops.def. A kernels_<isa>.c defines KERNELS
 * (the name of its table) and its instruction set, then includes this. */
#include "backend/cpu/kernels.h"
#include "backend/cpu/kernels_scalar.h"
#include "base/to_int.h"

#if defined(__clang__)
#define VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
/* Loops over functions of the C library do not vectorise, and need not. */
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define VECTOR_LOOP _Pragma("GCC ivdep")
#endif

#define CLASS(id, type, work)                                                                      \
    typedef type type_##id;                                                                        \
    typedef work work_##id;
CPU_CLASSES(CLASS)
#undef CLASS

/* ---- lists of classes ---- */

#define LIST_B(M, ...) M(B, __VA_ARGS__)
#define LIST_F32(M, ...) M(F32, __VA_ARGS__)
#define LIST_F64(M, ...) M(F64, __VA_ARGS__)
#define LIST_C64(M, ...) M(C64, __VA_ARGS__)
#define LIST_UNSIGNED(M, ...)                                                                      \
    M(U8, __VA_ARGS__) M(U16, __VA_ARGS__) M(U32, __VA_ARGS__) M(U64, __VA_ARGS__)
#define LIST_SIGNED(M, ...)                                                                        \
    M(I8, __VA_ARGS__) M(I16, __VA_ARGS__) M(I32, __VA_ARGS__) M(I64, __VA_ARGS__)
#define LIST_UNSIGNED_B(M, ...) LIST_B(M, __VA_ARGS__) LIST_UNSIGNED(M, __VA_ARGS__)
#define LIST_INTS(M, ...) LIST_UNSIGNED(M, __VA_ARGS__) LIST_SIGNED(M, __VA_ARGS__)
#define LIST_INTS_B(M, ...) LIST_B(M, __VA_ARGS__) LIST_INTS(M, __VA_ARGS__)
#define LIST_FLOATS(M, ...) LIST_F32(M, __VA_ARGS__) LIST_F64(M, __VA_ARGS__)
#define LIST_INEXACT(M, ...) LIST_FLOATS(M, __VA_ARGS__) LIST_C64(M, __VA_ARGS__)
#define LIST_REAL(M, ...) LIST_INTS_B(M, __VA_ARGS__) LIST_FLOATS(M, __VA_ARGS__)
#define LIST_ALL(M, ...) LIST_REAL(M, __VA_ARGS__) LIST_C64(M, __VA_ARGS__)

#define RESULT_SAME(id) id
#define RESULT_B(id) B
#define RESULT_F32(id) F32
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)

/* ---- first reading of the rows: the loops ---- */

#define KERNEL(name)                                                                               \
    static void name(void *dst, const void *a, const void *b, const void *c, size_t n)
#define OPERANDS(id)                                                                               \
    typedef type_##id T __attribute__((unused));                                                   \
    typedef work_##id W __attribute__((unused));                                                   \
    const T *ax = a, *ay = b;                                                                      \
    (void)ax, (void)ay, (void)c;

#define LOAD_X const T x = ax[i]
#define LOAD_XY const T x = ax[i], y = ay[i]
#define MAP_LOOP(load, id, op, result, ...)                                                        \
    KERNEL(k_##op##_##id)                                                                          \
    {                                                                                              \
        OPERANDS(id)                                                                               \
        PASTE(type_, RESULT_##result(id)) *out = dst;                                              \
        VECTOR_LOOP for (size_t i = 0; i < n; i++)                                                 \
        {                                                                                          \
            load;                                                                                  \
            out[i] = __VA_ARGS__;                                                                  \
        }                                                                                          \
    }
#define UNARY_LOOP(...) MAP_LOOP(LOAD_X, __VA_ARGS__)
#define BINARY_LOOP(...) MAP_LOOP(LOAD_XY, __VA_ARGS__)
/* An element's result depends on the element alone: both loops below agree on the fast ones. */
#define GUARDED_LOOPS(op, id, load, condition, slow, fast)                                         \
    KERNEL(k_##op##_##id)                                                                          \
    {                                                                                              \
        OPERANDS(id)                                                                               \
        T *out = dst;                                                                              \
        uint32_t any = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            load;                                                                                  \
            any |= (condition) ? 1u : 0u;                                                          \
        }                                                                                          \
        if (any) {                                                                                 \
            for (size_t i = 0; i < n; i++) {                                                       \
                load;                                                                              \
                out[i] = (condition) ? (slow) : (fast);                                            \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        VECTOR_LOOP for (size_t i = 0; i < n; i++)                                                 \
        {                                                                                          \
            load;                                                                                  \
            out[i] = fast;                                                                         \
        }                                                                                          \
    }
/* Independent lanes let the loop vectorise; a tree combines them at the end. */
#define FOLD_LANES(T) (128 / sizeof(T))
#define FOLD_LOOP(id, op, ...)                                                                     \
    static inline type_##id f_##op##_##id(type_##id x, type_##id y)                                \
    {                                                                                              \
        typedef type_##id T __attribute__((unused));                                               \
        typedef work_##id W __attribute__((unused));                                               \
        return __VA_ARGS__;                                                                        \
    }                                                                                              \
    static void fold_##op##_##id(void *dst, const void *x, size_t n)                               \
    {                                                                                              \
        enum { LANES = FOLD_LANES(type_##id) };                                                    \
        const type_##id *in = x;                                                                   \
        type_##id lane[LANES];                                                                     \
        size_t width = n < LANES ? n : LANES, i = LANES;                                           \
        memcpy(lane, in, width * sizeof lane[0]);                                                  \
        for (; i + LANES <= n; i += LANES)                                                         \
            for (size_t l = 0; l < LANES; l++)                                                     \
                lane[l] = f_##op##_##id(lane[l], in[i + l]);                                       \
        for (size_t l = 0; i + l < n; l++)                                                         \
            lane[l] = f_##op##_##id(lane[l], in[i + l]);                                           \
        while (width > 1) {                                                                        \
            size_t half = (width + 1) / 2;                                                         \
            for (size_t l = 0; l < width - half; l++)                                              \
                lane[l] = f_##op##_##id(lane[l], lane[half + l]);                                  \
            width = half;                                                                          \
        }                                                                                          \
        memcpy(dst, lane, sizeof lane[0]);                                                         \
    }

#define UNARY(op, list, result, ...) LIST_##list(UNARY_LOOP, op, result, __VA_ARGS__)
#define BINARY(op, list, result, ...) LIST_##list(BINARY_LOOP, op, result, __VA_ARGS__)
#define FOLD(op, list, ...)                                                                        \
    LIST_##list(BINARY_LOOP, op, SAME, __VA_ARGS__) LIST_##list(FOLD_LOOP, op, __VA_ARGS__)
#define GUARDED1(op, id, condition, slow, fast) GUARDED_LOOPS(op, id, LOAD_X, condition, slow, fast)
#define GUARDED2(op, id, condition, slow, fast)                                                    \
    GUARDED_LOOPS(op, id, LOAD_XY, condition, slow, fast)
#include "backend/cpu/elementwise_ops.def"
#undef UNARY
#undef BINARY
#undef FOLD
#undef GUARDED1
#undef GUARDED2

#define SELECT_LOOP(id, ...)                                                                       \
    KERNEL(k_SELECT_##id)                                                                          \
    {                                                                                              \
        type_##id *out = dst;                                                                      \
        const uint8_t *condition = a;                                                              \
        const type_##id *x = b, *y = c;                                                            \
        VECTOR_LOOP for (size_t i = 0; i < n; i++) out[i] = condition[i] ? x[i] : y[i];            \
    }
LIST_ALL(SELECT_LOOP, )

/* ---- conversions ---- */

#define CONVERT_LOOP(from, to, ...)                                                                \
    FLOAT_TO_ANY_INT KERNEL(k_CONVERT_##from##_##to)                                               \
    {                                                                                              \
        typedef type_##to T __attribute__((unused));                                               \
        T *out = dst;                                                                              \
        const type_##from *ax = a;                                                                 \
        (void)b, (void)c;                                                                          \
        VECTOR_LOOP for (size_t i = 0; i < n; i++)                                                 \
        {                                                                                          \
            const type_##from x = ax[i];                                                           \
            out[i] = __VA_ARGS__;                                                                  \
        }                                                                                          \
    }
/* Narrow integers come from floats by way of a wider integer, so that values out of range wrap as
 * they do in MLX on x86, where the instructions themselves do what to_int.h says. */
#if defined(__x86_64__)
#define TO_INT32(v) ((int32_t)(v))
#define TO_INT64(v) ((int64_t)(v))
#else
#define TO_INT32(v) to_int32(v)
#define TO_INT64(v) to_int64(v)
#endif
/* M(from, to, expression of x) */
#define CONVERT_INT(M, from)                                                                       \
    M(from, B, x != 0)                                                                             \
    M(from, U8, (T)x)                                                                              \
    M(from, U16, (T)x)                                                                             \
    M(from, U32, (T)x)                                                                             \
    M(from, U64, (T)x)                                                                             \
    M(from, I8, (T)x)                                                                              \
    M(from, I16, (T)x)                                                                             \
    M(from, I32, (T)x)                                                                             \
    M(from, I64, (T)x)                                                                             \
    M(from, F32, (T)x)                                                                             \
    M(from, F64, (T)x)                                                                             \
    M(from, C64, CMPLXF(x, 0.0f))
#define CONVERT_INEXACT(M, from, value, as_complex)                                                \
    M(from, B, x != 0.0f)                                                                          \
    M(from, U8, (T)TO_INT32(value))                                                                \
    M(from, U16, (T)TO_INT32(value))                                                               \
    M(from, U32, (T)TO_INT64(value))                                                               \
    M(from, U64, to_uint64((double)(value)))                                                       \
    M(from, I8, (T)TO_INT32(value))                                                                \
    M(from, I16, (T)TO_INT32(value))                                                               \
    M(from, I32, TO_INT32(value))                                                                  \
    M(from, I64, TO_INT64(value))                                                                  \
    M(from, F32, (T)(value))                                                                       \
    M(from, F64, (T)(value))                                                                       \
    M(from, C64, as_complex)
#define CONVERT_ALL(M)                                                                             \
    CONVERT_INT(M, B)                                                                              \
    CONVERT_INT(M, U8)                                                                             \
    CONVERT_INT(M, U16)                                                                            \
    CONVERT_INT(M, U32)                                                                            \
    CONVERT_INT(M, U64)                                                                            \
    CONVERT_INT(M, I8)                                                                             \
    CONVERT_INT(M, I16)                                                                            \
    CONVERT_INT(M, I32)                                                                            \
    CONVERT_INT(M, I64)                                                                            \
    CONVERT_INEXACT(M, F32, x, CMPLXF(x, 0.0f))                                                    \
    CONVERT_INEXACT(M, F64, x, CMPLXF(x, 0.0f))                                                    \
    CONVERT_INEXACT(M, C64, crealf(x), x)
CONVERT_ALL(CONVERT_LOOP)

/* ---- half precision ---- */

#define HALF_LOOPS(type)                                                                           \
    static void load_##type(float *dst, const uint16_t *src, size_t n)                             \
    {                                                                                              \
        VECTOR_LOOP for (size_t i = 0; i < n; i++) dst[i] = widen_##type(src[i]);                  \
    }                                                                                              \
    static void store_##type(uint16_t *dst, const float *src, size_t n)                            \
    {                                                                                              \
        VECTOR_LOOP for (size_t i = 0; i < n; i++) dst[i] = narrow_##type(src[i]);                 \
    }                                                                                              \
    static void round_##type(float *x, size_t n)                                                   \
    {                                                                                              \
        VECTOR_LOOP for (size_t i = 0; i < n; i++) x[i] = widen_##type(narrow_##type(x[i]));       \
    }
HALF_LOOPS(bf16)
#ifndef F16_STEP
HALF_LOOPS(f16)
#else
/* The set has instructions for F16_STEP elements, f16_load and f16_store, which round as the
 * functions above do. Those finish the runs. */
static void load_f16(float *dst, const uint16_t *src, size_t n)
{
    size_t i = 0;

    for (; i + F16_STEP <= n; i += F16_STEP)
        f16_load(dst + i, src + i);
    for (; i < n; i++)
        dst[i] = widen_f16(src[i]);
}

static void store_f16(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;

    for (; i + F16_STEP <= n; i += F16_STEP)
        f16_store(dst + i, src + i);
    for (; i < n; i++)
        dst[i] = narrow_f16(src[i]);
}

static void round_f16(float *x, size_t n)
{
    uint16_t h[F16_STEP];
    size_t i = 0;

    for (; i + F16_STEP <= n; i += F16_STEP) {
        f16_store(h, x + i);
        f16_load(x + i, h);
    }
    for (; i < n; i++)
        x[i] = widen_f16(narrow_f16(x[i]));
}
#endif

/* ---- argmin and argmax ---- */

#define ARG_LOOP(id, name, before)                                                                 \
    static void name##_##id(void *best, uint32_t *index, const void *x, uint32_t position,         \
                            size_t n)                                                              \
    {                                                                                              \
        const type_##id *v = x;                                                                    \
        type_##id *top = best;                                                                     \
        VECTOR_LOOP for (size_t i = 0; i < n; i++)                                                 \
        {                                                                                          \
            bool wins = before;                                                                    \
            top[i] = wins ? v[i] : top[i];                                                         \
            index[i] = wins ? position : index[i];                                                 \
        }                                                                                          \
    }
LIST_REAL(ARG_LOOP, arg_min, v[i] < top[i] || (v[i] != v[i] && top[i] == top[i]))
LIST_REAL(ARG_LOOP, arg_max, v[i] > top[i] || (v[i] != v[i] && top[i] == top[i]))
LIST_C64(ARG_LOOP, arg_min, !c_isnan(top[i]) && (c_isnan(v[i]) || c_greater(top[i], v[i])))
LIST_C64(ARG_LOOP, arg_max, !c_isnan(top[i]) && (c_isnan(v[i]) || c_greater(v[i], top[i])))

/* ---- random bits: Threefry-2x32, 20 rounds ---- */

#define MIX(by)                                                                                    \
    x += y;                                                                                        \
    y = (y << (by) | y >> (32 - (by))) ^ x;
#define FOUR_MIXES(a, b, c, d) MIX(a) MIX(b) MIX(c) MIX(d)
#define INJECT(i)                                                                                  \
    x += key[((i) + 1) % 3];                                                                       \
    y += key[((i) + 2) % 3] + (i) + 1;

static void threefry(const struct cpu_threefry *t, size_t n)
{
    const uint32_t key[3] = { t->key[0], t->key[1], t->key[2] };
    const uint32_t first = t->first, apart = t->apart;
    char *low = t->low, *high = t->high;

    VECTOR_LOOP for (size_t i = 0; i < n; i++)
    {
        uint32_t x = first + (uint32_t)i, y = x + apart;
        x += key[0];
        y += key[1];
        FOUR_MIXES(13, 15, 26, 6)
        INJECT(0)
        FOUR_MIXES(17, 29, 16, 24)
        INJECT(1)
        FOUR_MIXES(13, 15, 26, 6)
        INJECT(2)
        FOUR_MIXES(17, 29, 16, 24)
        INJECT(3)
        FOUR_MIXES(13, 15, 26, 6)
        INJECT(4)
        memcpy(low + i * sizeof x, &x, sizeof x);
        memcpy(high + i * sizeof y, &y, sizeof y);
    }
}

/* ---- attention: products of vectors with rows ---- */

#define ROW_LANES 32

static void dot_rows(float *dst, const float *x, const struct cpu_rows *r)
{
    for (size_t i = 0; i < r->n; i++) {
        const float *row = r->v + i * r->pitch;
        float lane[ROW_LANES] = { 0 };
        size_t j = 0;

        for (; j + ROW_LANES <= r->width; j += ROW_LANES)
            for (size_t l = 0; l < ROW_LANES; l++)
                lane[l] += x[j + l] * row[j + l];
        for (size_t l = 0; j + l < r->width; l++)
            lane[l] += x[j + l] * row[j + l];
        for (size_t half = ROW_LANES / 2; half; half /= 2)
            for (size_t l = 0; l < half; l++)
                lane[l] += lane[half + l];
        dst[i] = lane[0];
    }
}

static void add_rows(float *dst, const float *x, const struct cpu_rows *r)
{
    size_t j = 0;

    for (; j + ROW_LANES <= r->width; j += ROW_LANES) {
        float lane[ROW_LANES];

        memcpy(lane, dst + j, sizeof lane);
        for (size_t i = 0; i < r->n; i++) {
            const float *row = r->v + i * r->pitch + j;
            for (size_t l = 0; l < ROW_LANES; l++)
                lane[l] += x[i] * row[l];
        }
        memcpy(dst + j, lane, sizeof lane);
    }
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = j; k < r->width; k++)
            dst[k] += x[i] * r->v[i * r->pitch + k];
}

static void rotate(float *a, float *b, const float *cos, const float *sin, size_t n)
{
    VECTOR_LOOP for (size_t i = 0; i < n; i++)
    {
        float x = a[i], y = b[i];
        a[i] = x * cos[i] - y * sin[i];
        b[i] = x * sin[i] + y * cos[i];
    }
}

/* ---- Fourier transforms ---- */

#include "backend/cpu/fft_pass.h"

#include "backend/cpu/kernels_table.def"
