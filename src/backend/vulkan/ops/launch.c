#include "backend/vulkan/ops/launch.h"

#include "base/gate.h"

/* 256 threads fill a compute unit in whole subgroups on every device and leave enough registers. */
#define WORKGROUP 256

/* Measured on an H200 (sum of 512 MB, column sum of 256 MB, in TB/s): 2 gives 3.54 and 3.10, 4
 * gives 4.15 and 3.80, 6 gives 4.19 and 3.85, 32 gives 3.88 and 3.54. */
#define GROUPS_PER_UNIT 6

/* The setting as a power of two between one subgroup and the device's limit; 0 if unset. */
static uint32_t forced_workgroup(void)
{
    const struct vk_limits *l = vk_limits_get();
    uint32_t n = (uint32_t)gate_int(GATE_VK_WORKGROUP);

    if (!n)
        return 0;
    while (n & (n - 1))
        n &= n - 1;
    return MIN(MAX(n, l->max_subgroup), l->max_workgroup_size);
}

/* A software device runs the subgroups of a workgroup as coroutines and switches between them at
 * every barrier: with one subgroup, llvmpipe sums rows 20 times faster than with 32. */
uint32_t launch_workgroup(void)
{
    const struct vk_limits *l = vk_limits_get();
    uint32_t forced = forced_workgroup();

    if (forced)
        return forced;
    return l->is_software ? l->subgroup_size : MIN(WORKGROUP, l->max_workgroup_size);
}

/* On a software device beginning a workgroup costs some 150 ns, beginning a subgroup 20. */
uint32_t launch_loose_workgroup(uint64_t n)
{
    const struct vk_limits *l = vk_limits_get();
    uint32_t size = MIN(WORKGROUP, l->max_workgroup_size);

    if (!l->is_software || forced_workgroup())
        return launch_workgroup();
    while (size > l->subgroup_size && size / 2 >= n)
        size /= 2;
    return size;
}

uint32_t launch_max_workgroup(void)
{
    const struct vk_limits *l = vk_limits_get();

    return launch_is_lean() ? l->subgroup_size : l->max_workgroup_size;
}

bool launch_is_lean(void)
{
    return vk_limits_get()->is_software && !forced_workgroup();
}

struct vk_grid launch_grid(uint64_t n)
{
    const uint32_t *max = vk_limits_get()->max_groups;
    struct vk_grid g = { 0, 1, 1 };

    if (n <= max[0]) {
        g.x = (uint32_t)n;
        return g;
    }
    /* Square-like, so that rounding up wastes little. */
    uint64_t planes = (uint64_t)ceil_div((int64_t)n, (int64_t)max[0] * max[1]);
    uint64_t plane = (uint64_t)ceil_div((int64_t)n, (int64_t)planes);
    g.z = (uint32_t)planes;
    g.y = (uint32_t)ceil_div((int64_t)plane, max[0]);
    g.x = (uint32_t)ceil_div((int64_t)plane, g.y);
    return g;
}

uint64_t launch_busy_groups(void)
{
    return (uint64_t)MAX(vk_limits_get()->compute_units, 1u) * GROUPS_PER_UNIT;
}

uint32_t launch_log2(uint64_t n)
{
    uint32_t log2 = 0;

    while (log2 < 63 && (1ull << log2) < n)
        log2++;
    return log2;
}

enum err launch_counters(struct vk_enc *e, uint64_t *addr, size_t n)
{
    static const char few[16 * COUNTER_BYTES];
    void *many = n > 16 ? mem_alloc_array(n, COUNTER_BYTES) : NULL;
    enum err err = n > 16 && !many ? ERR_NO_MEMORY
                                   : vk_enc_args(e, addr, many ? many : few, n * COUNTER_BYTES,
                                                 .is_written = true);

    mem_free(many);
    return err;
}

void launch_walk(struct walk_args *w, const int64_t *dim, const int64_t *stride, int n)
{
    w->ndim = (uint32_t)n;
    w->reserved = 0;
    for (int i = 0; i < n; i++) {
        w->dim[i] = (uint32_t)dim[i];
        w->stride[i] = stride[i];
    }
}

/* Over the first ndim axes. */
static enum err walk_axes(struct vk_enc *e, uint64_t *walk, int64_t *stride, const struct arr *a,
                          int ndim)
{
    const int64_t *strides = a->strides;
    struct walk_args w;
    struct nest nest;
    struct shp shape;

    arr_shape(&shape, a);
    shape.ndim = ndim;
    shp_collapse(&nest, &shape, &strides, 1);
    *walk = 0;
    *stride = nest.ndim ? nest.stride[0][0] : 0;
    if (nest.ndim <= 1)
        return ERR_OK;
    launch_walk(&w, nest.dim, nest.stride[0], nest.ndim);
    return vk_enc_args(e, walk, &w, sizeof w);
}

enum err launch_rows(struct vk_enc *e, uint64_t *walk, int64_t *stride, const struct arr *a)
{
    return walk_axes(e, walk, stride, a, a->ndim - 1);
}

enum err launch_elements(struct vk_enc *e, uint64_t *walk, int64_t *stride, const struct arr *a)
{
    return walk_axes(e, walk, stride, a, a->ndim);
}

uint32_t launch_index_code(enum dtype t)
{
    static_assert(GATHER_I64 - GATHER_U8 == DT_INT64 - DT_UINT8,
                  "codes are in the order of dtypes");
    return (uint32_t)(t - DT_UINT8 + GATHER_U8);
}

bool launch_rows_are_aligned(const struct arr *a)
{
    int64_t item = (int64_t)dt_size((enum dtype)a->dtype);
    int last = a->ndim - 1;
    bool aligned = a->offset % 16 == 0 && a->shape[last] * item % 16 == 0 &&
                   (a->strides[last] == 1 || a->shape[last] == 1);

    for (int i = 0; i < last; i++)
        aligned &= a->shape[i] == 1 || a->strides[i] * item % 16 == 0;
    return aligned;
}
