/* The parts of SPIR-V that reading a module needs, and what is noted on the way. Private to this
 * folder. Numbers are those of the SPIR-V registry; its headers are not needed. */
#pragma once

#include "spirv/module.h"

enum spirv_op {
    SPIRV_OP_EXTENSION = 10,
    SPIRV_OP_MEMORY_MODEL = 14,
    SPIRV_OP_ENTRY_POINT = 15,
    SPIRV_OP_EXECUTION_MODE = 16,
    SPIRV_OP_CAPABILITY = 17,
    SPIRV_OP_TYPE_BOOL = 20,
    SPIRV_OP_TYPE_INT = 21,
    SPIRV_OP_TYPE_FLOAT = 22,
    SPIRV_OP_TYPE_VECTOR = 23,
    SPIRV_OP_TYPE_MATRIX = 24,
    SPIRV_OP_TYPE_ARRAY = 28,
    SPIRV_OP_TYPE_RUNTIME_ARRAY = 29,
    SPIRV_OP_TYPE_STRUCT = 30,
    SPIRV_OP_TYPE_POINTER = 32,
    SPIRV_OP_TYPE_FORWARD_POINTER = 39,
    SPIRV_OP_CONSTANT = 43,
    SPIRV_OP_CONSTANT_COMPOSITE = 44,
    SPIRV_OP_SPEC_CONSTANT_TRUE = 48,
    SPIRV_OP_SPEC_CONSTANT_FALSE = 49,
    SPIRV_OP_SPEC_CONSTANT = 50,
    SPIRV_OP_SPEC_CONSTANT_COMPOSITE = 51,
    SPIRV_OP_FUNCTION = 54,
    SPIRV_OP_FUNCTION_END = 56,
    SPIRV_OP_VARIABLE = 59,
    SPIRV_OP_DECORATE = 71,
    SPIRV_OP_MEMBER_DECORATE = 72,
    SPIRV_OP_EXECUTION_MODE_ID = 331,
};

enum {
    DECORATION_SPEC_ID = 1,
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_ARRAY_STRIDE = 6,
    DECORATION_MATRIX_STRIDE = 7,
    DECORATION_BUILT_IN = 11,
    DECORATION_BINDING = 33,
    DECORATION_SET = 34,
    DECORATION_OFFSET = 35,
    BUILT_IN_WORKGROUP_SIZE = 25,
    STORAGE_UNIFORM_CONSTANT = 0,
    STORAGE_UNIFORM = 2,
    STORAGE_WORKGROUP = 4,
    STORAGE_PUSH_CONSTANT = 9,
    STORAGE_BUFFER = 12,
    STORAGE_PHYSICAL = 5349,
    MODEL_COMPUTE = 5,
    MODE_LOCAL_SIZE = 17,
    MODE_LOCAL_SIZE_ID = 38,
};

#define NO_MEMBER UINT32_MAX
struct deco {
    uint32_t member, kind, value;
    uint32_t next; /* number of another one of the same id, plus 1 */
};

struct reading {
    const uint32_t *words;
    size_t n;
    uint32_t bound;
    uint32_t *def;        /* by id: the word where its instruction begins, 0 if unknown */
    uint32_t *first_deco; /* by id */
    uint64_t *size;       /* by id, of types: bytes */
    VEC(struct deco) deco;
    VEC(uint32_t) variable, spec, built_in; /* where those instructions begin */
    uint32_t entry;                         /* id of the function */
    int n_entries;
    bool is_main; /* the entry is called so */
    bool has_model, has_function, in_function;
    uint32_t mode, mode_id; /* where the local size of the entry is said, or 0 */
    struct spirv_info *info;
};

static inline enum spirv_op spirv_op(const uint32_t *at)
{
    return (enum spirv_op)(at[0] & 0xffff);
}

static inline uint32_t spirv_length(const uint32_t *at)
{
    return at[0] >> 16;
}
