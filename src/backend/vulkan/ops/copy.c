/* Strided copies with conversion: into storage that exists, and programs without instructions. */
#include "backend/common/families.h"
#include "backend/vulkan/ops/copy_dynamic.h"
#include "backend/vulkan/ops/elementwise.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/transpose.h"

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

static struct elem_program conversion(enum dtype from, enum dtype to)
{
    struct elem_program f = { .n_in = 1, .n_out = 1, .in_dtype = { (uint8_t)from } };

    if (from == to) {
        f.in_dtype[0] = raw_dtype(from);
    } else {
        f.n_ins = 1;
        f.out[0] = 1;
        f.ins[0] = (struct elem_program_ins){ .op = OP_ASTYPE, .dtype = (uint8_t)to, .n_args = 1 };
    }
    return f;
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

/* Shape is not empty. */
static enum err copy(struct vk_enc *e, const struct be_copy *c)
{
    enum dtype from = (enum dtype)c->src->dtype, to = (enum dtype)c->dst->dtype;
    struct elem_program program = conversion(from, to);
    struct elem_job job = { .program = &program, .n = shp_size(c->shape) };
    struct nest nest;
    bool done;
    enum err err;

    be_copy_nest(&nest, c);
    TRY(vk_enc_read(e, &job.addr[SRC], c->src));
    TRY(vk_enc_write_part(e, &job.addr[DST], c->dst, c->group));
    job.addr[SRC] += (uint64_t)(c->src_offset * (int64_t)dt_size(from));
    job.addr[DST] += (uint64_t)(c->dst_offset * (int64_t)dt_size(to));
    job.nest = &nest;
    TRY(vk_transpose(&done, e, &job));
    if (!done)
        err = dispatch(e, &job, &nest);
out:
    return err;
}

/* ---- combining: a program that reads the destination too ---- */

enum { OLD = DST, NEW, COMBINE_OPERANDS };

static struct elem_program combination(enum op_id op, enum dtype from, enum dtype to)
{
    struct elem_program f = { .n_in = 2, .n_out = 1, .in_dtype = { (uint8_t)from, (uint8_t)to } };
    uint8_t value = SRC;

    if (from != to) {
        value = (uint8_t)(f.n_in + f.n_ins);
        f.ins[f.n_ins++] = (struct elem_program_ins){
            .op = OP_ASTYPE, .dtype = (uint8_t)to, .n_args = 1, .arg = { SRC }
        };
    }
    f.out[0] = (uint8_t)(f.n_in + f.n_ins);
    f.ins[f.n_ins++] = (struct elem_program_ins){
        .op = (uint16_t)op, .dtype = (uint8_t)to, .n_args = 2, .arg = { OLD, value }
    };
    return f;
}

/* Shape is not empty. */
static enum err combine(struct vk_enc *e, const struct be_copy *c)
{
    enum dtype from = (enum dtype)c->src->dtype, to = (enum dtype)c->dst->dtype;
    struct elem_program program = combination(c->combine, from, to);
    struct elem_job job = { .program = &program, .n = shp_size(c->shape) };
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
