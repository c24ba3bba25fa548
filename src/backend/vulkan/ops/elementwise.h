/* Runs elementwise programs with emitted kernels; what the op families that use them share. */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/rt/encoder.h"

#define ELEM_OPERANDS (ELEM_PROGRAM_MAX_IN + ELEM_PROGRAM_MAX_OUT)

/* One dispatch. Operands are the inputs, then the outputs; their addresses were declared to the
 * encoder before. */
struct elem_job {
    const struct elem_program *program;
    size_t n;                /* elements to compute, more than 0 */
    const struct nest *nest; /* NULL: all operands are dense and walked flat */
    bool out_strided;        /* the nest has the outputs too; else they are row-major */
    bool owns_outputs;       /* up to 16 bytes behind the last element may be overwritten */
    bool is_wide;            /* 64-bit indices even where 32 bits would do */
    uint32_t once_in;        /* bit i: input i is one element */
    uint64_t addr[ELEM_OPERANDS];
    uint64_t range[2]; /* Arange: bits of start and step in the working type */
};

/* Which float controls kernels that are emitted ask for: bits of enum elem_flags. */
uint16_t elem_float_flags(void);

MUST_CHECK enum err elem_dispatch(struct vk_enc *e, const struct elem_job *job);
