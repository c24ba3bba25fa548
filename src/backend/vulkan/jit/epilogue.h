/* Elementwise programs as the end of a kernel: kernels/epilogue.glsl has the places for them.
 *
 * The program's first inputs are products, rounded to the kernel's dtype; the others are its side
 * inputs. Its result is of the kernel's dtype. */
#pragma once

#include "backend/vulkan/jit/spirv_link.h"
#include "base/err.h"
#include "plan/elem_program.h"

#define EPILOGUE_SIDES 8

enum epilogue_side {
    EPILOGUE_ONCE,   /* one element for all */
    EPILOGUE_COLUMN, /* neighbours for neighbouring columns, the same for every row */
    EPILOGUE_STRIDED
};

/* Everything but the program that the code depends on. Compared bytewise. */
struct epilogue_class {
    uint8_t n_products;           /* 1 or 2 */
    uint8_t is_direct;            /* one side input, not strided: its address is the argument */
    uint8_t float_modes;          /* the device has the float controls of IEEE 754 */
    uint8_t side[EPILOGUE_SIDES]; /* enum epilogue_side; 0 beyond those there are */
};

/* The argument in memory: addresses of the side inputs, then for each the strides of row and column
 * in elements. */
struct epilogue_args {
    uint64_t addr[EPILOGUE_SIDES];
    int64_t stride[EPILOGUE_SIDES][2];
};

/* ERR_UNSUPPORTED says that the program cannot be the end of a kernel. */
MUST_CHECK enum err epilogue_check(const struct elem_program *f, int n_products);

/* Writes the kernel's module with the program in it. *words (n of them) is the caller's, mem_free.
 * Needs no device. Thread-safety: safe. */
MUST_CHECK enum err epilogue_link(uint32_t **words, size_t *n, const struct spv_module *kernel,
                                  const struct elem_program *f, const struct epilogue_class *c);
