/* Which library functions an elementwise program calls. */
#pragma once

#include "backend/vulkan/jit/spirv.h"
#include "plan/elem_program.h"

/* Types that values have inside a kernel; several dtypes share one and differ in what is stored. */
enum work_type {
    WORK_F32,
    WORK_C64,
    WORK_I32,
    WORK_U32,
    WORK_I64,
    WORK_U64,
    WORK_BOOL,
    WORK_COUNT
};

/* -1 for dtypes that the GPU does not have. */
int work_type(enum dtype t);
uint32_t work_spv_type(struct spv *m, enum work_type w);

/* One instruction, resolved. */
struct elem_call {
    int fn;          /* number in the library; -1: the argument unchanged */
    bool must_round; /* the result may not be a value of its dtype, and somebody computes with it */
};

/* Resolves the instructions of f into calls[f->n_ins]. ERR_UNSUPPORTED names op and dtype. */
MUST_CHECK enum err elem_resolve(struct elem_call *calls, const struct elem_program *f);

/* Numbers of the functions that read, write and round dtypes without arithmetic of their own
 * (float16_load and so on); -1 for dtypes that need none. */
int elem_load_fn(enum dtype t);
int elem_store_fn(enum dtype t);
int elem_round_fn(enum dtype t);

/* Estimate of the code that one evaluation of f costs when everything is inlined, in words. */
uint32_t elem_weight(const struct elem_program *f);
