/* The command encoder of one stream: bind, track hazards, dispatch.
 *
 * A dispatch is declared in three steps: every array it reads (vk_enc_read) and writes
 * (vk_enc_write) gives back a device address for the argument block, then vk_enc_dispatch emits at
 * most one barrier and the dispatch. Reads and writes declared since the last dispatch belong to
 * the next one. Thread-safety: the stream's owner thread only. */
#pragma once

#include "backend/backend.h"
#include "backend/vulkan/ops/variant.h"
#include "backend/vulkan/rt/pipeline.h"

struct vk_enc;

/* The stream's encoder; opens a command buffer if none is open. Raises a stored stream error. */
MUST_CHECK enum err vk_enc_get(struct vk_enc **out, struct strm *s);

/* Address of element [0, ..., 0] of a. The byte range a spans is what the hazard check sees.
 * An array whose bytes live on the host is uploaded first. */
MUST_CHECK enum err vk_enc_read(struct vk_enc *e, uint64_t *addr, const struct arr *a);
MUST_CHECK enum err vk_enc_write(struct vk_enc *e, uint64_t *addr, const struct arr *a);
/* As vk_enc_write for one of several dispatches that write disjoint parts of a (non-zero group):
 * no order among writes of the same group. */
MUST_CHECK enum err vk_enc_write_part(struct vk_enc *e, uint64_t *addr, const struct arr *a,
                                      uint32_t group);
/* vk_enc_read of all inputs of a step, then vk_enc_write of all outputs. */
MUST_CHECK enum err vk_enc_step(struct vk_enc *e, uint64_t *addr, const struct exec *x);
/* Scratch memory that lives until the command retires; declares a write of the next dispatch. */
MUST_CHECK enum err vk_enc_scratch(struct vk_enc *e, uint64_t *addr, size_t size);
/* Declares that the next dispatch reads scratch memory. */
void vk_enc_scratch_read(struct vk_enc *e, uint64_t addr, size_t size);
/* Declares that the next dispatch writes memory that the caller keeps alive; never in a step. */
void vk_enc_write_range(struct vk_enc *e, uint64_t addr, size_t size);

/* Arguments: at most 128 bytes travel as push constants. */
#define VK_PUSH_MAX 128
/* A larger argument block: copied to memory the GPU reads fast; its address goes into the push
 * constants. Lives until the command retires. Needs no hazard tracking. */
struct vk_args {
    const void *data;
    size_t size;
    uint32_t n_addr;  /* device addresses that the block begins with; some may be 0 */
    uint32_t records; /* 0, or of how many equal parts each begins with so many addresses */
    bool is_written;  /* by the kernel: nobody else may be given the same copy */
};
/* The rest are the fields of a vk_args. */
#define vk_enc_args(e, addr, ...) vk_enc_args_as(e, addr, &(struct vk_args){ __VA_ARGS__ })
MUST_CHECK enum err vk_enc_args_as(struct vk_enc *e, uint64_t *addr, const struct vk_args *a);

/* Addresses that are 0 among the first n of a block become the address of zeros, marked as absent
 * (is_given of common.glsl): a driver may load from an address before it knows whether the kernel
 * wants it, as llvmpipe of Mesa 26 does. vk_enc_args and vk_enc_dispatch do it. */
void vk_enc_absent(void *block, uint32_t n);

struct vk_grid {
    uint32_t x, y, z; /* workgroups */
};
/* What a dispatch runs, and as what the statistics know it. VARIANT_COUNT: no variant. */
struct vk_kernel {
    const struct vk_pipe *pipe;
    enum variant_id variant;
};
MUST_CHECK enum err vk_enc_dispatch(struct vk_enc *e, struct vk_kernel k, const void *push,
                                    size_t push_size, struct vk_grid grid);

/* All of a dispatch but its accesses. */
struct vk_dispatch {
    struct vk_kernel kernel;
    struct vk_grid grid;
    uint32_t push_size;
    _Alignas(uint64_t) char push[VK_PUSH_MAX]; /* addresses first */
};

/* An array as a storage buffer of set 0, whose offset has to be a multiple of
 * VkPhysicalDeviceLimits.minStorageBufferOffsetAlignment. It is read and written as declared. */
struct vk_bound {
    uint32_t binding;
    const struct arr *a;
};
#define VK_MAX_BOUND 32
/* vk_enc_dispatch with storage buffers; d->kernel.pipe has a layout with these bindings. */
MUST_CHECK enum err vk_enc_dispatch_bound(struct vk_enc *e, const struct vk_dispatch *d,
                                          const struct vk_bound *b, uint32_t n);

/* Forgets the reads and writes declared since the last dispatch: there will be none for them. */
void vk_enc_drop(struct vk_enc *e);

/* Limits and capabilities that kernels choose by. */
struct vk_limits {
    uint32_t subgroup_size;              /* default size of the device */
    uint32_t min_subgroup, max_subgroup; /* equal when the size cannot be required */
    uint32_t max_workgroup_size;         /* invocations */
    uint32_t max_groups[3];
    uint32_t shared_memory; /* bytes per workgroup */
    uint32_t compute_units; /* estimate, for choosing how far to split work */
    uint32_t coopmat_edge;  /* m = n = k of cooperative matrices: 16, else 8; 0: none */
    uint32_t caps;          /* enum vk_cap mask */
    bool is_software;
};
const struct vk_limits *vk_limits_get(void);

/* Beyond the floor, used where present; a bit for every row of caps.def. */
enum vk_cap_row_number {
#define FLOOR(...)
#define NICE(...)
#define CAP(id, ...) VK_CAP_ROW_##id,
#define CAP_PLAIN(id, ...) VK_CAP_ROW_##id,
#include "backend/vulkan/rt/caps.def"
#undef CAP
#undef CAP_PLAIN
    VK_CAP_ROWS
};
enum vk_cap {
#define CAP(id, ...) VK_CAP_##id = 1 << VK_CAP_ROW_##id,
#define CAP_PLAIN(id, ...) VK_CAP_##id = 1 << VK_CAP_ROW_##id,
#include "backend/vulkan/rt/caps.def"
#undef FLOOR
#undef NICE
#undef CAP
#undef CAP_PLAIN
};
