#include "backend/vulkan/ops/transpose.h"

#include <stdio.h>

#include "backend/vulkan/ops/kern.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/variant.h"
#include "base/gate.h"

/* Shorter axes leave most of a tile empty: the general kernel is as good. */
#define TRANSPOSE_FROM 8

enum { SRC, DST };

struct transposition {
    const struct elem_job *job;
    size_t bytes;     /* of an element */
    int a, b;         /* axes along which source and destination are consecutive */
    struct nest rest; /* the others */
};

static int unit_axis(const struct nest *n, int operand)
{
    for (int d = 0; d < n->ndim; d++)
        if (n->stride[operand][d] == 1 && n->dim[d] >= TRANSPOSE_FROM)
            return d;
    return -1;
}

static bool has_plane(const struct transposition *t)
{
    return t->a >= 0 && t->b >= 0 && t->a != t->b;
}

static void find_axes(struct transposition *t)
{
    const struct nest *n = t->job->nest;

    t->a = unit_axis(n, SRC);
    t->b = unit_axis(n, DST);
    t->rest.ndim = 0;
    for (int d = 0; d < n->ndim && has_plane(t); d++) {
        if (d == t->a || d == t->b)
            continue;
        t->rest.dim[t->rest.ndim] = n->dim[d];
        for (int o = SRC; o <= DST; o++)
            t->rest.stride[o][t->rest.ndim] = n->stride[o][d];
        t->rest.ndim++;
    }
}

static uint64_t batch_of(const struct transposition *t)
{
    const struct nest *n = t->job->nest;

    return t->job->n / ((uint64_t)n->dim[t->a] * (uint64_t)n->dim[t->b]);
}

/* Tiles through shared memory cost software devices more than the scattered accesses that they
 * avoid. */
static enum variant_reason judge(const struct transposition *t)
{
    const struct elem_job *job = t->job;

    if (!gate_int(GATE_VK_TRANSPOSE))
        return VARIANT_OFF;
    if (job->program->n_ins)
        return VARIANT_DTYPE;
    if (gate_int(GATE_VK_TRANSPOSE) == 2 && vk_limits_get()->is_software)
        return VARIANT_DEVICE;
    if (job->n / TRANSPOSE_TILE / TRANSPOSE_TILE > UINT32_MAX)
        return VARIANT_SIZE;
    bool fits = job->addr[SRC] % t->bytes == 0 && job->addr[DST] % t->bytes == 0 && has_plane(t);
    return fits ? VARIANT_FITS : VARIANT_LAYOUT;
}

/* The axes outside the plane, for one side: a stride, or a walk in memory. */
static enum err put_batch(struct vk_enc *e, int64_t *stride, uint64_t *walk,
                          const struct nest *rest, int operand)
{
    struct walk_args w;

    *stride = rest->ndim ? rest->stride[operand][0] : 0;
    if (rest->ndim <= 1)
        return ERR_OK;
    launch_walk(&w, rest->dim, rest->stride[operand], rest->ndim);
    return vk_enc_args(e, walk, &w, sizeof w);
}

static enum err get(const struct vk_pipe **pipe, const struct transposition *t)
{
    enum kern_id kern = t->bytes == 1   ? KERN_TRANSPOSE_1
                        : t->bytes == 2 ? KERN_TRANSPOSE_2
                        : t->bytes == 4 ? KERN_TRANSPOSE_4
                                        : KERN_TRANSPOSE_8;

    return kern_pipe(pipe, kern, -1, (uint32_t[]){ TRANSPOSE_THREADS, 1, 1 }, 3);
}

static enum err run(struct vk_enc *e, const struct vk_pipe *pipe, const struct transposition *t)
{
    const struct nest *n = t->job->nest;
    struct transpose_args a = { .src_addr = t->job->addr[SRC], .dst_addr = t->job->addr[DST] };
    enum err err;

    a.n_a = (uint32_t)n->dim[t->a];
    a.n_b = (uint32_t)n->dim[t->b];
    a.n_batch = batch_of(t);
    a.tiles_a = (a.n_a - 1) / TRANSPOSE_TILE + 1;
    a.tiles_b = (a.n_b - 1) / TRANSPOSE_TILE + 1;
    a.src_stride = n->stride[SRC][t->b];
    a.dst_stride = n->stride[DST][t->a];
    TRY(put_batch(e, &a.src_batch, &a.src_walk, &t->rest, SRC));
    TRY(put_batch(e, &a.dst_batch, &a.dst_walk, &t->rest, DST));
    err = vk_enc_dispatch(e, (struct vk_kernel){ pipe, VARIANT_TRANSPOSE }, &a, sizeof a,
                          launch_grid((uint64_t)a.tiles_a * a.tiles_b * a.n_batch));
out:
    return err;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct transposition *t = data;

    snprintf(text, size, "%zu elements of %zu bytes, %d dimensions", t->job->n, t->bytes,
             t->job->nest->ndim);
}

enum err vk_transpose(bool *done, struct vk_enc *e, const struct elem_job *job)
{
    struct transposition t = { .job = job,
                               .bytes = dt_size(elem_program_dtype(job->program, SRC)) };
    struct variant_problem problem = { describe, &t, "elements", { (int64_t)job->n } };
    const struct vk_pipe *pipe;

    find_axes(&t);
    *done = variant_takes(VARIANT_TRANSPOSE, judge(&t), &problem);
    if (!*done)
        return ERR_OK;
    enum err err = get(&pipe, &t);
    if (err && variant_gives_way(VARIANT_TRANSPOSE, err)) {
        *done = false;
        return ERR_OK;
    }
    return err ? err : run(e, pipe, &t);
}
