/* Dtypes as storage classes, and the choice among the instruction sets. */
#include "backend/cpu/kernels.h"

const uint8_t cpu_class_of[DT_COUNT] = {
    [DT_BOOL] = CPU_B,       [DT_UINT8] = CPU_U8,     [DT_UINT16] = CPU_U16,
    [DT_UINT32] = CPU_U32,   [DT_UINT64] = CPU_U64,   [DT_INT8] = CPU_I8,
    [DT_INT16] = CPU_I16,    [DT_INT32] = CPU_I32,    [DT_INT64] = CPU_I64,
    [DT_FLOAT16] = CPU_F32,  [DT_BFLOAT16] = CPU_F32, [DT_FLOAT32] = CPU_F32,
    [DT_FLOAT64] = CPU_F64,  [DT_COMPLEX64] = CPU_C64,
};

const uint8_t cpu_class_size[CPU_CLASS_COUNT] = {
#define CLASS(id, type, work) [CPU_##id] = sizeof(type),
    CPU_CLASSES(CLASS)
#undef CLASS
};

const struct cpu_kernels *cpu_kernels(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return &cpu_kernels_avx2;
#endif
    return &cpu_kernels_base;
}
