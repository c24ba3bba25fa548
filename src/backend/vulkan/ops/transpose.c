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

/* ---- tiles through shared memory ---- */

/* They cost software devices more than the scattered accesses that they avoid. */
static enum variant_reason judge_tiles(const struct transposition *t)
{
    const struct elem_job *job = t->job;

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

static enum err get_tiles(const struct vk_pipe **pipe, const struct transposition *t)
{
    enum kern_id kern = t->bytes == 1   ? KERN_TRANSPOSE_1
                        : t->bytes == 2 ? KERN_TRANSPOSE_2
                        : t->bytes == 4 ? KERN_TRANSPOSE_4
                                        : KERN_TRANSPOSE_8;

    return kern_pipe(pipe, kern, -1, (uint32_t[]){ TRANSPOSE_THREADS, 1, 1 }, 3);
}

static enum err run_tiles(struct vk_enc *e, const struct vk_pipe *pipe,
                          const struct transposition *t)
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
    err = vk_enc_dispatch(e, pipe, &a, sizeof a,
                          launch_grid((uint64_t)a.tiles_a * a.tiles_b * a.n_batch));
out:
    return err;
}

/* ---- words in blocks ---- */

static uint64_t block_tasks(const struct transposition *t)
{
    const struct nest *n = t->job->nest;
    uint64_t a = (uint64_t)ceil_div(n->dim[t->a], TRANSPOSE_BLOCK_TILE);
    uint64_t b = (uint64_t)ceil_div(n->dim[t->b], TRANSPOSE_BLOCK_TILE);

    return a * b * batch_of(t);
}

static bool fits_int32(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

/* Pairs of words are written at once. */
static bool has_pairs(const struct transposition *t)
{
    const struct nest *n = t->job->nest;
    bool batch = t->rest.ndim == 0 || t->rest.stride[DST][0] % 2 == 0;

    return t->job->addr[SRC] % 4 == 0 && t->job->addr[DST] % 8 == 0 && n->dim[t->b] % 2 == 0 &&
           n->stride[DST][t->a] % 2 == 0 && batch;
}

static enum variant_reason judge_blocks(const struct transposition *t)
{
    const struct nest *n = t->job->nest;

    if (launch_block_lanes() != BLOCK_LANES)
        return VARIANT_DEVICE;
    if (gate_int(GATE_VK_TRANSPOSE) != 2)
        return VARIANT_OFF;
    if (t->bytes != 4)
        return VARIANT_DTYPE;
    if (!has_plane(t) || t->rest.ndim > 1 || !has_pairs(t))
        return VARIANT_LAYOUT;
    bool fits = n->dim[t->a] >= TRANSPOSE_BLOCK_TILE && n->dim[t->b] >= TRANSPOSE_BLOCK_TILE &&
                fits_int32(n->stride[SRC][t->b]) && fits_int32(n->stride[DST][t->a]) &&
                block_tasks(t) <= 1u << BLOCK_TASK_BITS && launch_block_pays(t->job->n * 4);
    return fits ? VARIANT_FITS : VARIANT_SIZE;
}

static enum err get_blocks(const struct vk_pipe **pipe, const struct transposition *t)
{
    (void)t;
    return kern_pipe(pipe, KERN_TRANSPOSE_BLOCK, -1,
                     (uint32_t[]){ BLOCK_SUBGROUPS * BLOCK_LANES, 1, 1 }, 3);
}

static enum err run_blocks(struct vk_enc *e, const struct vk_pipe *pipe,
                           const struct transposition *t)
{
    const struct nest *n = t->job->nest;
    struct transpose_block_args a = { .src_addr = t->job->addr[SRC],
                                      .dst_addr = t->job->addr[DST],
                                      .src_stride = (int32_t)n->stride[SRC][t->b],
                                      .dst_stride = (int32_t)n->stride[DST][t->a],
                                      .n_a = (uint32_t)n->dim[t->a],
                                      .n_b = (uint32_t)n->dim[t->b],
                                      .n_tasks = (uint32_t)block_tasks(t) };

    if (t->rest.ndim) {
        a.src_batch = t->rest.stride[SRC][0];
        a.dst_batch = t->rest.stride[DST][0];
    }
    launch_block_digits(a.digit);
    return vk_enc_dispatch(e, pipe, &a, sizeof a,
                           launch_grid((uint64_t)ceil_div(a.n_tasks, BLOCK_SUBGROUPS)));
}

/* ---- the choice ---- */

static const struct variant {
    enum variant_id id;
    enum variant_reason (*judge)(const struct transposition *t);
    enum err (*get)(const struct vk_pipe **pipe, const struct transposition *t);
    enum err (*run)(struct vk_enc *e, const struct vk_pipe *pipe, const struct transposition *t);
} variants[] = {
    { VARIANT_TRANSPOSE_BLOCKS, judge_blocks, get_blocks, run_blocks },
    { VARIANT_TRANSPOSE, judge_tiles, get_tiles, run_tiles },
};

static enum variant_reason judge(const struct variant *v, const struct transposition *t)
{
    if (!gate_int(GATE_VK_TRANSPOSE))
        return VARIANT_OFF;
    return t->job->fx->n_ins ? VARIANT_DTYPE : v->judge(t);
}

static void describe(char *text, size_t size, const void *data)
{
    const struct transposition *t = data;

    snprintf(text, size, "%zu elements of %zu bytes, %d dimensions", t->job->n, t->bytes,
             t->job->nest->ndim);
}

enum err vk_transpose(bool *done, struct vk_enc *e, const struct elem_job *job)
{
    struct transposition t = { .job = job, .bytes = dt_size(fx_dtype(job->fx, SRC)) };
    struct variant_problem problem = { describe, &t, "elements", { (int64_t)job->n } };
    enum err err = ERR_OK;

    *done = false;
    find_axes(&t);
    for (size_t i = 0; i < ARRAY_LEN(variants) && !*done; i++) {
        const struct variant *v = &variants[i];
        const struct vk_pipe *pipe;
        if (!variant_takes(v->id, judge(v, &t), &problem))
            continue;
        err = v->get(&pipe, &t);
        if (err && variant_gives_way(v->id, err)) {
            err = ERR_OK;
            continue;
        }
        TRY(err);
        TRY(v->run(e, pipe, &t));
        *done = true;
    }
out:
    return err;
}
