/* A call of a kernel of the caller's own: what the node of it has as its state. */
#pragma once

#include "graph/array.h"
#include "graph/op_state.h"
#include "spirv/module.h"

/* Bytes of push constants that every device has. */
#define KERNEL_PUSH_MAX 128
#define KERNEL_MAX_ARRAYS SPIRV_MAX_BINDINGS

/* A module finds its arrays as storage buffers, binding i being array i, inputs first. One that
 * declares no buffers is given their addresses, of 8 bytes each, in front of its push constants. */
struct kernel_call {
    struct op_state base;
    struct spirv_module *module; /* owned */
    char name[SPIRV_NAME_MAX];
    uint32_t groups[3];            /* workgroups */
    uint32_t local[3];             /* threads of each */
    uint32_t spec[SPIRV_MAX_SPEC]; /* a value for each constant of the module */
    char push[KERNEL_PUSH_MAX];    /* without addresses */
    uint32_t push_size;
    bool by_address;
    bool copies; /* inputs that do not lie as the device wants them are copied */
    bool has_init;
    uint32_t n_in; /* of the kernel: a value that outputs are filled with is one input more */
    uint32_t n_out;
    struct out_desc out[KERNEL_MAX_ARRAYS];
};

/* A copy of all but `base`; takes a reference to the module. */
MUST_CHECK enum err kernel_call_new(struct op_state **out, const struct kernel_call *call);
static inline const struct kernel_call *kernel_call_of(const struct op_state *s)
{
    return (const struct kernel_call *)s;
}
