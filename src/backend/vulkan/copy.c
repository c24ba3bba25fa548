/* Strided copies with conversion: into storage that exists, and programs without instructions. */
#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/copy_dynamic.h"
#include "backend/vulkan/elementwise.h"
#include "backend/vulkan/families.h"
#include "backend/vulkan/kern.h"
#include "backend/vulkan/launch.h"
#include "backend/vulkan/variant.h"
#include "core/gate.h"

/* Below, tests see the kernel that copies what is neither dense nor small. */
#define COPY_BUFFER_FROM ((size_t)1 << 16)

/* Shorter axes leave most of a tile empty: the general kernel is as good. */
#define TRANSPOSE_FROM 8

enum { SRC = BE_COPY_SRC, DST = BE_COPY_DST };

/* Elements that keep their dtype are moved as integers: no bit of a NaN changes, and dtypes of one
 * size share a kernel. */
static uint8_t raw_dtype(enum dtype t)
{
    static const uint8_t by_size[] = {
        [1] = DT_UINT8, [2] = DT_UINT16, [4] = DT_UINT32, [8] = DT_UINT64
    };

    return by_size[dt_size(t)];
}

static struct fx conversion(enum dtype from, enum dtype to)
{
    struct fx f = { .n_in = 1, .n_out = 1, .in_dtype = { (uint8_t)from } };

    if (from == to) {
        f.in_dtype[0] = raw_dtype(from);
    } else {
        f.n_ins = 1;
        f.out[0] = 1;
        f.ins[0] = (struct fx_ins){ .op = OP_ASTYPE, .dtype = (uint8_t)to, .n_args = 1 };
    }
    return f;
}

/* ---- transposition ---- */

struct plane { /* the axis along which each side is consecutive */
    int a, b;
};

static int unit_axis(const struct nest *n, int operand)
{
    for (int d = 0; d < n->ndim; d++)
        if (n->stride[operand][d] == 1 && n->dim[d] >= TRANSPOSE_FROM)
            return d;
    return -1;
}

static bool find_plane(struct plane *p, const struct nest *n)
{
    p->a = unit_axis(n, SRC);
    p->b = unit_axis(n, DST);
    return p->a >= 0 && p->b >= 0 && p->a != p->b;
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

static void outside_plane(struct nest *rest, const struct nest *n, struct plane p)
{
    rest->ndim = 0;
    for (int d = 0; d < n->ndim; d++) {
        if (d == p.a || d == p.b)
            continue;
        rest->dim[rest->ndim] = n->dim[d];
        for (int o = SRC; o <= DST; o++)
            rest->stride[o][rest->ndim] = n->stride[o][d];
        rest->ndim++;
    }
}

static enum kern_id transpose_kern(size_t bytes)
{
    return bytes == 1   ? KERN_TRANSPOSE_1
           : bytes == 2 ? KERN_TRANSPOSE_2
           : bytes == 4 ? KERN_TRANSPOSE_4
                        : KERN_TRANSPOSE_8;
}

static enum err transpose(struct vk_enc *e, const struct vk_pipe *pipe, const struct elem_job *job,
                          struct plane p)
{
    const struct nest *n = job->nest;
    struct transpose_args a = { .src_addr = job->addr[SRC], .dst_addr = job->addr[DST] };
    struct nest rest;
    enum err err;

    a.n_a = (uint32_t)n->dim[p.a];
    a.n_b = (uint32_t)n->dim[p.b];
    a.n_batch = job->n / ((uint64_t)a.n_a * a.n_b);
    a.tiles_a = (a.n_a - 1) / TRANSPOSE_TILE + 1;
    a.tiles_b = (a.n_b - 1) / TRANSPOSE_TILE + 1;
    a.src_stride = n->stride[SRC][p.b];
    a.dst_stride = n->stride[DST][p.a];
    outside_plane(&rest, n, p);
    TRY(put_batch(e, &a.src_batch, &a.src_walk, &rest, SRC));
    TRY(put_batch(e, &a.dst_batch, &a.dst_walk, &rest, DST));
    vk_enc_variant(e, VARIANT_TRANSPOSE);
    err = vk_enc_dispatch(e, pipe, &a, sizeof a,
                          launch_grid((uint64_t)a.tiles_a * a.tiles_b * a.n_batch));
out:
    return err;
}

/* ---- the general case ---- */

static bool is_flat(const struct nest *n, int operand)
{
    return n->ndim == 1 && n->stride[operand][0] == 1;
}

/* n->ndim may be 0: one element. */
static bool is_constant(const struct nest *n, int operand)
{
    for (int d = 0; d < n->ndim; d++)
        if (n->stride[operand][d] != 0)
            return false;
    return true;
}

/* Tiles cost software devices more than the scattered accesses that they avoid. */
static enum variant_reason use_transpose(void)
{
    int64_t gate = gate_int(GATE_VK_TRANSPOSE);

    if (gate == 2 && vk_limits_get()->is_software)
        return VARIANT_DEVICE;
    return gate ? VARIANT_FITS : VARIANT_OFF;
}

/* llvmpipe copies 16 MB in 1.2 ms by a command, in 2.5 by a kernel. */
static enum variant_reason judge_buffer(const struct elem_job *job, const struct vk_enc_copy *c)
{
    if (!vk_enc_can_copy(c->src))
        return VARIANT_DEVICE;
    if (job->fx->n_ins)
        return VARIANT_DTYPE;
    bool overlap = c->src_addr < c->dst_addr + c->size && c->dst_addr < c->src_addr + c->size;
    if (!is_flat(job->nest, SRC) || !is_flat(job->nest, DST) || overlap)
        return VARIANT_LAYOUT;
    return c->size >= COPY_BUFFER_FROM ? VARIANT_FITS : VARIANT_SIZE;
}

static enum variant_reason judge_transpose(struct plane *p, const struct elem_job *job,
                                           size_t bytes)
{
    enum variant_reason why = use_transpose();

    if (why != VARIANT_FITS)
        return why;
    if (job->fx->n_ins)
        return VARIANT_DTYPE;
    if (job->n / TRANSPOSE_TILE / TRANSPOSE_TILE > UINT32_MAX)
        return VARIANT_SIZE;
    if (job->addr[SRC] % bytes || job->addr[DST] % bytes || !find_plane(p, job->nest))
        return VARIANT_LAYOUT;
    return VARIANT_FITS;
}

static void describe(char *text, size_t size, const void *data)
{
    const struct elem_job *job = data;

    snprintf(text, size, "%s, %zu elements, %d dimensions", dt_name(fx_dtype(job->fx, 0)), job->n,
             job->nest->ndim);
}

static struct variant_problem problem_of(const struct elem_job *job)
{
    return (struct variant_problem){ describe, job, "elements", { (int64_t)job->n } };
}

/* *pipe is NULL where the general kernel is to be used. */
static enum err choose_transpose(const struct vk_pipe **pipe, struct plane *p,
                                 const struct elem_job *job, size_t bytes)
{
    struct variant_problem problem = problem_of(job);
    enum err err;

    *pipe = NULL;
    if (!variant_takes(VARIANT_TRANSPOSE, judge_transpose(p, job, bytes), &problem))
        return ERR_OK;
    err = kern_pipe(pipe, transpose_kern(bytes), -1, (uint32_t[]){ TRANSPOSE_THREADS, 1, 1 }, 3);
    return err && variant_gives_way(VARIANT_TRANSPOSE, err) ? ERR_OK : err;
}

/* job has program and addresses. */
static enum err dispatch(struct vk_enc *e, struct elem_job *job, const struct nest *nest)
{
    bool is_once = is_constant(nest, SRC);
    bool flat = nest->ndim == 0 || (is_flat(nest, DST) && (is_once || is_flat(nest, SRC)));

    job->once_in = is_once ? 1u << SRC : 0;
    job->nest = flat ? NULL : nest;
    job->out_strided = !flat;
    return elem_dispatch(e, job);
}

/* False where a kernel is to do it. */
static bool copy_by_command(struct vk_enc *e, const struct be_copy *c, const struct elem_job *job)
{
    struct variant_problem problem = problem_of(job);
    struct vk_enc_copy bytes = { .src = c->src,
                                 .dst = c->dst,
                                 .src_addr = job->addr[SRC],
                                 .dst_addr = job->addr[DST],
                                 .size = job->n * dt_size((enum dtype)c->src->dtype) };

    if (!variant_takes(VARIANT_COPY_BUFFER, judge_buffer(job, &bytes), &problem))
        return false;
    vk_enc_variant(e, VARIANT_COPY_BUFFER);
    vk_enc_copy(e, &bytes);
    return true;
}

/* Shape is not empty. */
static enum err copy(struct vk_enc *e, const struct be_copy *c)
{
    enum dtype from = (enum dtype)c->src->dtype, to = (enum dtype)c->dst->dtype;
    struct fx fx = conversion(from, to);
    struct elem_job job = { .fx = &fx, .n = shp_size(c->shape) };
    const struct vk_pipe *pipe;
    struct plane p = { -1, -1 };
    struct nest nest;
    enum err err;

    be_copy_nest(&nest, c);
    TRY(vk_enc_read(e, &job.addr[SRC], c->src));
    TRY(vk_enc_write_part(e, &job.addr[DST], c->dst, c->group));
    job.addr[SRC] += (uint64_t)(c->src_offset * (int64_t)dt_size(from));
    job.addr[DST] += (uint64_t)(c->dst_offset * (int64_t)dt_size(to));
    job.nest = &nest;
    if (copy_by_command(e, c, &job))
        goto out;
    TRY(choose_transpose(&pipe, &p, &job, dt_size(from)));
    err = pipe ? transpose(e, pipe, &job, p) : dispatch(e, &job, &nest);
out:
    return err;
}

/* ---- combining: a program that reads the destination too ---- */

enum { OLD = DST, NEW, COMBINE_OPERANDS };

static struct fx combination(enum op_id op, enum dtype from, enum dtype to)
{
    struct fx f = { .n_in = 2, .n_out = 1, .in_dtype = { (uint8_t)from, (uint8_t)to } };
    uint8_t value = SRC;

    if (from != to) {
        value = (uint8_t)(f.n_in + f.n_ins);
        f.ins[f.n_ins++] =
            (struct fx_ins){ .op = OP_ASTYPE, .dtype = (uint8_t)to, .n_args = 1, .arg = { SRC } };
    }
    f.out[0] = (uint8_t)(f.n_in + f.n_ins);
    f.ins[f.n_ins++] = (struct fx_ins){
        .op = (uint16_t)op, .dtype = (uint8_t)to, .n_args = 2, .arg = { OLD, value }
    };
    return f;
}

/* Shape is not empty. */
static enum err combine(struct vk_enc *e, const struct be_copy *c)
{
    enum dtype from = (enum dtype)c->src->dtype, to = (enum dtype)c->dst->dtype;
    struct fx fx = combination(c->combine, from, to);
    struct elem_job job = { .fx = &fx, .n = shp_size(c->shape) };
    struct nest nest;
    enum err err;

    be_copy_nest(&nest, c);
    memcpy(nest.stride[NEW], nest.stride[DST], sizeof nest.stride[NEW]);
    nest.n_operands = COMBINE_OPERANDS;
    TRY(vk_enc_read(e, &job.addr[SRC], c->src));
    TRY(vk_enc_read(e, &job.addr[OLD], c->dst));
    TRY(vk_enc_write_part(e, &job.addr[NEW], c->dst, c->group));
    job.addr[SRC] += (uint64_t)(c->src_offset * (int64_t)dt_size(from));
    job.addr[OLD] += (uint64_t)(c->dst_offset * (int64_t)dt_size(to));
    job.addr[NEW] = job.addr[OLD];
    err = dispatch(e, &job, &nest);
out:
    return err;
}

enum err vk_copy(struct strm *s, const struct be_copy *c)
{
    struct vk_enc *e;
    enum err err = ERR_OK;

    if (shp_size(c->shape) == 0)
        goto out;
    TRY(vk_enc_get(&e, s));
    if (c->src_start || c->dst_start)
        err = vk_copy_dynamic(e, c);
    else
        err = c->combine ? combine(e, c) : copy(e, c);
out:
    return err;
}
