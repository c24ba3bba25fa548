/* Elementwise kernels: the module for a program and a way of walking its operands. */
#pragma once

#include "base/err.h"
#include "plan/elem_program.h"

enum elem_flags {
    ELEM_WIDE = 1,           /* 64-bit indices */
    ELEM_OUT_STRIDED = 2,    /* outputs have strides in the argument block; else they are dense */
    ELEM_ARGS_IN_MEMORY = 4, /* the push constants hold the address of the argument block */
    ELEM_FLOAT_MODES = 8,    /* the device has the float controls of IEEE 754 */
    ELEM_NATIVE_HALF = 16,   /* float16 is converted by the device; needs the modes */
};

/* Everything but the program that a module depends on. Compared bytewise.
 *
 * A thread computes `unroll` groups of `lanes` consecutive elements; groups of one thread are a
 * workgroup apart, so that every access of a workgroup is one run of memory. */
struct elem_class {
    uint8_t dims;      /* 0: operands are walked flat; else dimensions: 1 to 4, 8, 16 or 32 */
    uint8_t lanes;     /* 1, 2, 4 or 8 */
    uint8_t unroll;    /* 1, 2 or 4 */
    uint8_t align;     /* of all addresses, in bytes: 1, 2, 4, 8 or 16 */
    uint16_t flags;    /* enum elem_flags */
    uint16_t once_in;  /* bit i: input i is one element */
    uint16_t splat_in; /* bit i: input i has the same element in all lanes of a group */
    uint16_t threads;  /* of a workgroup */
};

/* The argument block: 64-bit words, then index words (32 bits, 64 with ELEM_WIDE).
 *   64-bit: an address per input, an address per output; for Arange start and step
 *   index:  number of groups; per dimension but the first: its extent in groups (lanes counted
 *           once in the last one) and, 32-bit only, multiplier and shift of the division by it;
 *           per operand that is strided: a stride per dimension, in elements.
 * Strided operands: inputs not in once_in, and with ELEM_OUT_STRIDED the outputs. */
struct elem_args {
    int n_long, n_index;
};
struct elem_args elem_args_size(const struct elem_program *f, const struct elem_class *c);

/* Words of the division: how many index words a dimension takes. */
static inline int elem_dim_words(const struct elem_class *c)
{
    return c->flags & ELEM_WIDE ? 1 : 3;
}

/* Writes the module. *words (n of them) is the caller's, mem_free. ERR_UNSUPPORTED names the op and
 * the dtype for which there is no function. Needs no device. Thread-safety: safe. */
MUST_CHECK enum err elem_emit(uint32_t **words, size_t *n, const struct elem_program *f,
                              const struct elem_class *c);
