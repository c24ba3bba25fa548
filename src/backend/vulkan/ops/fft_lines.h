/* Complex Fourier transforms along one axis, in passes over memory: each transforms lines that fit
 * into a workgroup's shared memory, and between two of them lies an exchange with scratch memory.
 */
#pragma once

#include "backend/common/fft_plan.h"
#include "backend/vulkan/kernels/args.h"
#include "backend/vulkan/rt/encoder.h"

/* Where numbers are: an array, or scratch memory, which has an address once it is written. */
struct fft_place {
    const struct arr *a;
    uint64_t addr;
    size_t bytes; /* of scratch memory */
    int64_t strides[SHP_MAX];
};
/* Declare what the next dispatch does. Scratch memory is written once. */
MUST_CHECK enum err fft_place_read(uint64_t *addr, struct vk_enc *e, const struct fft_place *p);
MUST_CHECK enum err fft_place_write(uint64_t *addr, struct vk_enc *e, struct fft_place *p);

/* n complex numbers along an axis, forward. */
struct fft_lines {
    struct vk_enc *e;
    struct shp rest; /* of all axes, where the transformed one has size 1 */
    int axis;
    bool batch_first; /* lines that lie side by side are neighbours along another axis */
    uint32_t n;
    uint32_t load, store, flags; /* as in args.h; flags for both ends */
    uint32_t count, limit;
    float scale;
    const struct fft_place *from;
    struct fft_place *to;
    const struct fft_place *table, *spectrum; /* where flags ask for them */
};
/* Scratch memory for n complex numbers along the axis of every line. */
struct fft_place fft_lines_scratch(const struct fft_lines *t, uint32_t n);
MUST_CHECK enum err fft_lines_run(const struct fft_lines *t);
/* Whether n has such factors. */
bool fft_lines_fit(uint32_t n);
/* Whether a transform takes a single pass. */
bool fft_lines_is_single(uint32_t n);
