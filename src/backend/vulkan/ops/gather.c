#include <stdio.h>

#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/index.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

struct job {
    const struct gather_params *p;
    const struct arr *src, *out;
    struct arr *const *indices;
    uint64_t base_walk; /* as in the arguments */
    uint64_t src_addr;
    struct nest slice; /* over the source, in elements, then in units */
    size_t n, slice_n; /* elements of the output and of a slice */
    uint32_t workgroup;
    int64_t per_unit; /* elements */
};

/* ---- variants ---- */

static const enum kern_id kern_by_log2[] = { KERN_GATHER_1, KERN_GATHER_2, KERN_GATHER_4,
                                             KERN_GATHER_8, KERN_GATHER_16 };

static int64_t item_size(const struct job *j)
{
    return (int64_t)dt_size((enum dtype)j->src->dtype);
}

static int64_t unit_size(const struct job *j, enum variant_id id)
{
    return id == VARIANT_GATHER_ELEMENT ? item_size(j) : 16 >> (id - VARIANT_GATHER_16);
}

/* A unit of several elements fits if every slice is a whole number of units, each of them
 * consecutive and aligned. */
static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct job *j = job;
    const struct nest *s = &j->slice;
    int64_t bytes = unit_size(j, id), per_unit = bytes / item_size(j);
    int last = s->ndim - 1;

    if (id == VARIANT_GATHER_ELEMENT)
        return VARIANT_FITS;
    if (!gate_on(GATE_VK_GATHER_WIDE))
        return VARIANT_OFF;
    if (per_unit <= 1)
        return VARIANT_DTYPE;
    if (last < 0 || s->dim[last] % per_unit)
        return VARIANT_SIZE;
    if (s->stride[0][last] != 1 || j->src_addr % (uint64_t)bytes)
        return VARIANT_LAYOUT;
    for (int i = 0; i < last; i++)
        if (s->stride[0][i] % per_unit)
            return VARIANT_LAYOUT;
    for (int i = 0; i < j->p->n_axes; i++)
        if (j->src->strides[j->p->d[i].axis] % per_unit)
            return VARIANT_LAYOUT;
    return VARIANT_FITS;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;
    const struct nest *s = &j->slice;
    int last = s->ndim - 1;

    snprintf(text, size, "%s, slices of %d dimensions, the last %lld with stride %lld",
             dt_name((enum dtype)j->src->dtype), s->ndim, last < 0 ? 1 : (long long)s->dim[last],
             last < 0 ? 1 : (long long)s->stride[0][last]);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct job *j = job;
    int64_t bytes = unit_size(j, id);

    j->per_unit = bytes / item_size(j);
    return kern_pipe(pipe, kern_by_log2[launch_log2((uint64_t)bytes)], -1,
                     (uint32_t[]){ j->workgroup, 1, 1 }, 3);
}

static const struct variant_table variants = {
    VARIANT_GATHER_16, VARIANT_GATHER_ELEMENT, judge, build, describe, "slices x elements of each"
};

/* ---- arguments ---- */

static void collapse_slice(struct job *j)
{
    const int64_t *strides = j->src->strides;
    struct shp shape = { .ndim = j->src->ndim };

    for (int i = 0; i < shape.ndim; i++)
        shape.d[i] = j->p->d[i].size;
    j->slice_n = shp_size(&shape);
    shp_collapse(&j->slice, &shape, &strides, 1);
}

static enum err set_slice(struct gather_args *a, struct job *j, struct vk_enc *e)
{
    struct nest *s = &j->slice;
    int last = s->ndim - 1;
    struct walk_args walk;

    a->slice = j->slice_n / (uint64_t)j->per_unit;
    if (j->per_unit > 1) {
        s->dim[last] /= j->per_unit;
        for (int i = 0; i < last; i++)
            s->stride[0][i] /= j->per_unit;
    }
    if (last < 0 || (last == 0 && s->stride[0][0] == 1))
        return ERR_OK;
    launch_walk(&walk, s->dim, s->stride[0], s->ndim);
    return vk_enc_args(e, &a->slice_walk, &walk, sizeof walk);
}

static enum err set_indices(struct gather_args *a, const struct job *j, struct vk_enc *e)
{
    struct vk_index x[VK_MAX_INDEX];
    struct shp shape;

    if (a->n_index)
        arr_shape(&shape, j->indices[0]);
    for (uint32_t k = 0; k < a->n_index; k++) {
        int axis = j->p->d[k].axis;
        x[k] = (struct vk_index){ .a = j->indices[k],
                                  .shape = &shape,
                                  .strides = j->indices[k]->strides,
                                  .stride = j->src->strides[axis] / j->per_unit,
                                  .dim = j->src->shape[axis],
                                  .last = j->src->shape[axis] - j->p->d[axis].size };
    }
    return vk_indices(e, &a->index_addr, x, a->n_index);
}

static enum err encode(struct job *j, struct vk_enc *e)
{
    struct gather_args a = { .n_index = (uint32_t)j->p->n_axes, .base_walk = j->base_walk };
    struct vk_kernel kernel;
    enum err err;

    TRY(vk_enc_read(e, &j->src_addr, j->src));
    collapse_slice(j);
    j->workgroup = launch_loose_workgroup(j->n / GATHER_PER_LANE);
    TRY(variant_pick(
        &kernel, &variants, j,
        (int64_t[VARIANT_SIZES]){ (int64_t)(j->n / j->slice_n), (int64_t)j->slice_n }));
    TRY(set_slice(&a, j, e));
    TRY(set_indices(&a, j, e));
    TRY(vk_enc_write(e, &a.out_addr, j->out));
    a.src_addr = j->src_addr;
    a.n = j->n / (uint64_t)j->per_unit;
    TRY(vk_enc_dispatch(
        e, kernel, &a, sizeof a,
        launch_grid((uint64_t)ceil_div((int64_t)a.n, j->workgroup * GATHER_PER_LANE))));
out:
    return err;
}

enum err vk_gather(const struct exec *x)
{
    const struct gather_params *p = x->node->params;
    struct vk_enc *e;
    enum err err;

    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(vk_enc_get(&e, x->strm));
    struct job j = {
        .p = p, .src = x->in[0], .out = x->out[0], .indices = x->in + 1, .n = x->out[0]->size
    };
    TRY(encode(&j, e));
out:
    return err;
}

/* Single elements, of which each has its place on the other axes. */
enum err vk_gather_axis(const struct exec *x)
{
    int axis = ((const struct axis_params *)x->node->params)->axis;
    struct gather_params p = { .n_axes = 1, .d[0].axis = axis };
    struct arr *src = x->in[0], *out = x->out[0];
    int64_t strides[SHP_MAX];
    const int64_t *base = strides;
    struct walk_args walk;
    struct nest nest;
    struct shp shape;
    struct vk_enc *e;
    enum err err;

    TRY(arr_alloc(out, x->strm->be));
    if (!out->size)
        goto out;
    for (int i = 0; i < src->ndim; i++) {
        p.d[i].size = 1;
        strides[i] = i == axis ? 0 : src->strides[i];
    }
    arr_shape(&shape, out);
    shp_collapse(&nest, &shape, &base, 1);
    launch_walk(&walk, nest.dim, nest.stride[0], nest.ndim);
    struct job j = { .p = &p, .src = src, .out = out, .indices = x->in + 1, .n = out->size };
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_enc_args(e, &j.base_walk, &walk, sizeof walk));
    TRY(encode(&j, e));
out:
    return err;
}
