/* Index arrays as kernels/index_array.glsl finds them. */
#pragma once

#include "backend/vulkan/ops/launch.h"

/* One of them, walked over a shape with these strides. */
struct vk_index {
    const struct arr *a;
    const struct shp *shape;
    const int64_t *strides;
    int64_t stride; /* what one step of an index is, in units of what is indexed */
    int64_t dim;    /* of the axis */
    int64_t last;   /* the largest index that fits */
};
#define VK_MAX_INDEX SHP_MAX

/* n of them, as a block of arguments; *addr stays as it is where there is none. */
MUST_CHECK enum err vk_indices(struct vk_enc *e, uint64_t *addr, const struct vk_index *x,
                               uint32_t n);
