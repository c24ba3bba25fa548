/* Goes on writing a module where a compiler stopped: a kernel in which marked instructions become
 * calls of functions that are still to be written. */
#pragma once

#include "backend/vulkan/jit/spirv.h"

/* Every ExtInst of GLSL.std.450 with this number becomes a call with the same operands. */
struct spv_mark {
    uint32_t inst; /* enum GLSLstd450 */
    uint32_t fn;   /* id of the function, made by spv_open */
    uint32_t n;    /* how many there were */
};

struct spv_module {
    const uint32_t *words;
    size_t n;
};

/* m holds the kernel's words but names, m->own_code is where new functions begin. To be finished
 * with spv_finish_linked; *main is the id of its entry point. Functions of marks that were met have
 * to be written until then. m is to be released with spv_fini if this succeeds. */
MUST_CHECK enum err spv_open(struct spv *m, uint32_t *main, const struct spv_module *kernel,
                             struct spv_mark *marks, int n_marks);
