/* Programs behind products: what a step of several ops asks of the kernel of the product. */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/jit/epilogue.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/rt/encoder.h"

struct vk_epilogue {
    const struct elem_program *program;
    struct arr *const *side;
    int n_sides;
    struct epilogue_class c;
    int64_t stride[EPILOGUE_SIDES][2]; /* of the rows and columns of the product */
};

/* The program over n_products products of out's shape and dtype, and side inputs that broadcast to
 * it. Borrows all. Says why where the kernels cannot. */
MUST_CHECK enum group_reason vk_epilogue_init(struct vk_epilogue *e,
                                              const struct elem_program *program, int n_products,
                                              struct arr *const *side, const struct arr *out);

/* The kernel's argument for the program (NULL: 0). Declares its side inputs as read by the next
 * dispatch. */
MUST_CHECK enum err vk_epilogue_encode(struct vk_enc *e, uint64_t *addr,
                                       const struct vk_epilogue *p);

/* As kern_pipe for a kernel with the program in it; NULL: without. */
MUST_CHECK enum err vk_epilogue_pipe(const struct vk_pipe **out, const struct vk_epilogue *p,
                                     const struct kern_want *want);
