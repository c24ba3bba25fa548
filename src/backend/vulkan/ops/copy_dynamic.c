#include "backend/vulkan/ops/copy_dynamic.h"

#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

enum { SRC = BE_COPY_SRC, DST = BE_COPY_DST, OPERANDS = BE_COPY_OPERANDS };

struct job {
    const struct be_start *start[OPERANDS];
    uint64_t addr[OPERANDS];
    size_t item;
    int64_t n;        /* elements */
    struct nest nest; /* in elements, then in units */
    uint32_t workgroup;
    int64_t per_unit; /* elements */
};

/* ---- variants ---- */

static const enum kern_id kern_by_log2[] = { KERN_COPY_DYNAMIC_1, KERN_COPY_DYNAMIC_2,
                                             KERN_COPY_DYNAMIC_4, KERN_COPY_DYNAMIC_8,
                                             KERN_COPY_DYNAMIC_16 };

static size_t unit_size(const struct job *j, enum variant_id id)
{
    return id == VARIANT_COPY_DYNAMIC_ELEMENT ? j->item
                                              : (size_t)16 >> (id - VARIANT_COPY_DYNAMIC_16);
}

/* True if the operand is made of whole units, consecutive and aligned wherever it starts. */
static bool has_units(const struct job *j, int o, size_t bytes, int64_t per_unit)
{
    const struct nest *n = &j->nest;
    const struct be_start *s = j->start[o];
    int last = n->ndim - 1;

    if (n->stride[o][last] != 1 || j->addr[o] % bytes)
        return false;
    for (int i = 0; i < last; i++)
        if (n->stride[o][i] % per_unit)
            return false;
    for (int i = 0; s && i < s->n; i++)
        if (s->stride[i] % per_unit)
            return false;
    return true;
}

static enum variant_reason judge(void *job, enum variant_id id)
{
    const struct job *j = job;
    size_t bytes = unit_size(j, id);
    int64_t per_unit = (int64_t)(bytes / j->item);
    int last = j->nest.ndim - 1;

    if (id == VARIANT_COPY_DYNAMIC_ELEMENT)
        return VARIANT_FITS;
    if (!gate_on(GATE_VK_COPY_DYNAMIC_WIDE))
        return VARIANT_OFF;
    if (per_unit <= 1)
        return VARIANT_DTYPE;
    if (last < 0 || j->nest.dim[last] % per_unit)
        return VARIANT_SIZE;
    return has_units(j, SRC, bytes, per_unit) && has_units(j, DST, bytes, per_unit)
               ? VARIANT_FITS
               : VARIANT_LAYOUT;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct job *j = data;
    int last = j->nest.ndim - 1;

    snprintf(text, size, "%zu bytes per element, %d dimensions, the last %lld", j->item,
             j->nest.ndim, last < 0 ? 1 : (long long)j->nest.dim[last]);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    struct job *j = job;
    size_t bytes = unit_size(j, id);

    j->per_unit = (int64_t)(bytes / j->item);
    return kern_pipe(pipe, kern_by_log2[launch_log2(bytes)], -1, (uint32_t[]){ j->workgroup, 1, 1 },
                     3);
}

static const struct variant_table variants = {
    VARIANT_COPY_DYNAMIC_16, VARIANT_COPY_DYNAMIC_ELEMENT, judge, build, describe, "elements"
};

/* ---- arguments ---- */

static void count_in_units(struct job *j)
{
    struct nest *n = &j->nest;
    int last = n->ndim - 1;

    if (j->per_unit == 1)
        return;
    n->dim[last] /= j->per_unit;
    for (int o = SRC; o < OPERANDS; o++)
        for (int i = 0; i < last; i++)
            n->stride[o][i] /= j->per_unit;
}

static enum err put_walk(uint64_t *addr, const struct job *j, int o, struct vk_enc *e)
{
    const struct nest *n = &j->nest;
    struct walk_args walk;

    if (n->ndim == 0 || (n->ndim == 1 && n->stride[o][0] == 1))
        return ERR_OK;
    launch_walk(&walk, n->dim, n->stride[o], n->ndim);
    return vk_enc_args(e, addr, &walk, sizeof walk);
}

static enum err put_start(uint64_t *addr, const struct job *j, int o, struct vk_enc *e)
{
    const struct be_start *s = j->start[o];
    struct copy_start a = { 0 };
    enum err err;

    if (!s)
        return ERR_OK;
    TRY(vk_enc_read(e, &a.addr, s->position));
    a.apart = s->position->ndim ? s->position->strides[0] : 0;
    a.n = (uint32_t)s->n;
    a.code = launch_index_code((enum dtype)s->position->dtype);
    for (int i = 0; i < s->n; i++) {
        a.stride[i] = s->stride[i] / j->per_unit;
        a.dim[i] = s->size[i];
        a.last[i] = s->last[i];
    }
    err = vk_enc_args(e, addr, &a, sizeof a, .n_addr = 1);
out:
    return err;
}

enum err vk_copy_dynamic(struct vk_enc *e, const struct be_copy *c)
{
    struct job j = { .start = { c->src_start, c->dst_start },
                     .item = dt_size((enum dtype)c->dst->dtype),
                     .n = (int64_t)shp_size(c->shape),
                     .workgroup =
                         launch_loose_workgroup(shp_size(c->shape) / COPY_DYNAMIC_PER_LANE) };
    struct copy_dynamic_args a = { 0 };
    struct vk_kernel kernel;
    enum err err;

    be_copy_nest(&j.nest, c);
    TRY(vk_enc_read(e, &j.addr[SRC], c->src));
    TRY(vk_enc_write_part(e, &j.addr[DST], c->dst, c->group));
    j.addr[SRC] += (uint64_t)(c->src_offset * (int64_t)j.item);
    j.addr[DST] += (uint64_t)(c->dst_offset * (int64_t)j.item);
    TRY(variant_pick(&kernel, &variants, &j, (int64_t[VARIANT_SIZES]){ j.n }));
    count_in_units(&j);
    a.src_addr = j.addr[SRC];
    a.dst_addr = j.addr[DST];
    a.n = (uint64_t)(j.n / j.per_unit);
    TRY(put_walk(&a.src_walk, &j, SRC, e));
    TRY(put_walk(&a.dst_walk, &j, DST, e));
    TRY(put_start(&a.src_start, &j, SRC, e));
    TRY(put_start(&a.dst_start, &j, DST, e));
    err = vk_enc_dispatch(
        e, kernel, &a, sizeof a,
        launch_grid((uint64_t)ceil_div((int64_t)a.n, j.workgroup * COPY_DYNAMIC_PER_LANE)));
out:
    return err;
}
