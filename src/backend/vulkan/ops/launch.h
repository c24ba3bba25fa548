/* What the kernel families share on the host side: grids, team sizes, walks. */
#pragma once

#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/rt/encoder.h"

/* Threads of a workgroup in kernels that have no reason for another size; a power of two. */
uint32_t launch_workgroup(void);
/* The same for kernels without barriers, of whose subgroups none waits for another, with n threads
 * of work. */
uint32_t launch_loose_workgroup(uint64_t n);
/* The most threads that a kernel may ask for when its team does not fit in fewer. */
uint32_t launch_max_workgroup(void);

/* True on a software device, which spends more time building what is unrolled than it gains; not if
 * a setting asks for workgroups as hardware has them. */
bool launch_is_lean(void);

/* A grid of at least n workgroups, which the kernel numbers x first; x, y and z are each limited,
 * so the last workgroups may have nothing to do. */
struct vk_grid launch_grid(uint64_t n);

/* Workgroups that keep the device busy; what is below is worth cutting into smaller pieces. */
uint64_t launch_busy_groups(void);

/* Exponent of the smallest power of two that is not below n; 0 for n <= 1. */
uint32_t launch_log2(uint64_t n);

/* n counters of finished workgroups: kernels/last.glsl. */
MUST_CHECK enum err launch_counters(struct vk_enc *e, uint64_t *addr, size_t n);

/* The nest dim[0..n), innermost last, without regard to contents beyond n. */
void launch_walk(struct walk_args *w, const int64_t *dim, const int64_t *stride, int n);

/* For kernels over rows of consecutive elements: the walk over the rows of a, or 0 and a stride
 * where that is enough. */
MUST_CHECK enum err launch_rows(struct vk_enc *e, uint64_t *walk, int64_t *stride,
                                const struct arr *a);
/* The same over all elements of a. */
MUST_CHECK enum err launch_elements(struct vk_enc *e, uint64_t *walk, int64_t *stride,
                                    const struct arr *a);
/* GATHER_<dtype> of an integer dtype. */
uint32_t launch_index_code(enum dtype t);
/* True if every row of a is consecutive, starts at a multiple of 16 bytes and has a whole number of
 * them. */
bool launch_rows_are_aligned(const struct arr *a);
