/* The kernel registry: GLSL modules compiled at build time, listed in kernels/kernels.def. */
#pragma once

#include "backend/vulkan/rt/pipeline.h"
#include "graph/dtype.h"

enum kern_id {
#define KERN(id, ...) KERN_##id,
#include "backend/vulkan/kernels/kernels.def"
#undef KERN
    KERN_COUNT
};

/* One compiled module; dtype is an enum dtype, or -1 for kernels without one. Generated. */
struct kern_blob {
    enum kern_id id;
    int dtype;
    const uint32_t *words;
    size_t n_words;
    uint32_t n_addr; /* device addresses that the argument block begins with */
};
extern const struct kern_blob kern_blobs[];
extern const size_t kern_blob_count;

/* True if the module was built and the device has what its row needs. */
bool kern_is_usable(enum kern_id id, int dtype);

/* The pipeline of (kernel, dtype, specialization), built on first use. spec[i] is the value of
 * specialization constant i; 0-2 are the workgroup size. Borrowed for the life of the device.
 * Thread-safety: safe. */
MUST_CHECK enum err kern_pipe(const struct vk_pipe **out, enum kern_id id, int dtype,
                              const uint32_t *spec, int n_spec);

/* What kern_pipe is asked for. */
struct kern_want {
    enum kern_id kern;
    int dtype;
    const uint32_t *spec;
    int n_spec;
};

/* A module made of a kernel's. */
struct kern_module {
    const char *name;
    uint64_t key; /* of the words */
    const uint32_t *words;
    size_t n_words;
};

/* The kernel's module and its name; ERR_UNSUPPORTED where it is not usable. */
MUST_CHECK enum err kern_module_get(struct kern_module *out, enum kern_id id, int dtype);
/* As kern_pipe, with another module that takes the kernel's arguments. */
MUST_CHECK enum err kern_pipe_of(const struct vk_pipe **out, const struct kern_want *want,
                                 const struct kern_module *module);
