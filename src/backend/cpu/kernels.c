/* Dtypes as storage classes, and the choice among the instruction sets. */
#include "backend/cpu/kernels.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* Elements that a conversion between two half types, or of a half type and an integer, takes
 * through float32 at a time. */
#define CONVERT_STEP 512

const uint8_t cpu_class_of[DT_COUNT] = {
    [DT_BOOL] = CPU_B,      [DT_UINT8] = CPU_U8,      [DT_UINT16] = CPU_U16,
    [DT_UINT32] = CPU_U32,  [DT_UINT64] = CPU_U64,    [DT_INT8] = CPU_I8,
    [DT_INT16] = CPU_I16,   [DT_INT32] = CPU_I32,     [DT_INT64] = CPU_I64,
    [DT_FLOAT16] = CPU_F32, [DT_BFLOAT16] = CPU_F32,  [DT_FLOAT32] = CPU_F32,
    [DT_FLOAT64] = CPU_F64, [DT_COMPLEX64] = CPU_C64,
};

const uint8_t cpu_class_size[CPU_CLASS_COUNT] = {
#define CLASS(id, type, work) [CPU_##id] = sizeof(type),
    CPU_CLASSES(CLASS)
#undef CLASS
};

static const struct cpu_kernels *choose_kernels(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);

    if (has_f16c && __builtin_cpu_supports("avx2"))
        return &cpu_kernels_avx2;
#elif defined(__aarch64__)
    return &cpu_kernels_neon;
#endif
    return &cpu_kernels_base;
}

const struct cpu_kernels *cpu_kernels(void)
{
    static _Atomic(const struct cpu_kernels *) chosen;
    const struct cpu_kernels *k = atomic_load_explicit(&chosen, memory_order_relaxed);

    if (!k) {
        k = choose_kernels();
        atomic_store_explicit(&chosen, k, memory_order_relaxed);
    }
    return k;
}

void cpu_widen(float *dst, const void *src, enum dtype t, size_t n)
{
    const struct cpu_kernels *k = cpu_kernels();

    (t == DT_FLOAT16 ? k->load_f16 : k->load_bf16)(dst, src, n);
}

void cpu_narrow(void *dst, const float *src, enum dtype t, size_t n)
{
    const struct cpu_kernels *k = cpu_kernels();

    (t == DT_FLOAT16 ? k->store_f16 : k->store_bf16)(dst, src, n);
}

/* At most CONVERT_STEP elements, of which at least one side is a half type. */
static void convert_half(struct cpu_vec dst, struct cpu_vec src, size_t n)
{
    float wide[CONVERT_STEP];
    struct cpu_vec mid = { wide, DT_FLOAT32 };

    if (cpu_is_half(src.dtype))
        cpu_widen(dst.dtype == DT_FLOAT32 ? dst.data : wide, src.data, src.dtype, n);
    else if (src.dtype == DT_FLOAT32)
        mid.data = src.data;
    else
        cpu_convert(mid, src, n);
    if (cpu_is_half(dst.dtype))
        cpu_narrow(dst.data, mid.data, dst.dtype, n);
    else if (dst.dtype != DT_FLOAT32)
        cpu_convert(dst, mid, n);
}

void cpu_convert(struct cpu_vec dst, struct cpu_vec src, size_t n)
{
    if (dst.dtype == src.dtype) {
        memmove(dst.data, src.data, n * dt_size(src.dtype));
        return;
    }
    if (!cpu_is_half(dst.dtype) && !cpu_is_half(src.dtype)) {
        cpu_kernels()->convert[cpu_class_of[src.dtype]][cpu_class_of[dst.dtype]](dst.data, src.data,
                                                                                 NULL, NULL, n);
        return;
    }
    for (size_t i = 0; i < n; i += CONVERT_STEP)
        convert_half((struct cpu_vec){ (char *)dst.data + i * dt_size(dst.dtype), dst.dtype },
                     (struct cpu_vec){ (char *)src.data + i * dt_size(src.dtype), src.dtype },
                     MIN(CONVERT_STEP, n - i));
}
