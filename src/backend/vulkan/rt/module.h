/* Modules of callers on the device: whether it can run them, their layouts and pipelines.
 *
 * A module is known by its words and kept for the life of the device, as pipelines are. It knows of
 * no array and no op: who has one dispatches its pipelines with buffers and push constants. */
#pragma once

#include "backend/vulkan/rt/encoder.h"
#include "spirv/module.h"

struct vk_module;

/* Finds it or makes it. ERR_UNSUPPORTED names what the device lacks. Thread-safety: safe. */
MUST_CHECK enum err vk_module_get(const struct vk_module **out, struct spirv_module *m);

/* The pipeline with these values of the module's specialization constants. As vk_pipe_get. */
struct vk_module_pipe {
    const char *name; /* for labels, statistics and traces */
    const uint32_t *spec;
    uint32_t n_addr; /* device addresses that the push constants begin with */
};
MUST_CHECK enum err vk_module_pipe(const struct vk_pipe **out, const struct vk_module *m,
                                   const struct vk_module_pipe *p);

/* Whether the device runs workgroups of that size in such a number; ERR_ARG says what is too much.
 */
MUST_CHECK enum err vk_check_groups(const uint32_t local[3], const uint32_t groups[3]);
/* Whether so many bytes at that offset of their memory can be a storage buffer: ERR_ARG, or
 * *is_aligned says that they only need another place. */
MUST_CHECK enum err vk_check_range(bool *is_aligned, uint64_t offset, uint64_t size);
