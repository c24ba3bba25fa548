/* Softmax and logsumexp over the last axis. */
#include <stdio.h>

#include "backend/common/families.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/reduce.h"
#include "backend/vulkan/ops/variant.h"

static enum err logsumexp(struct vk_enc *e, const struct arr *in, const struct arr *out,
                          uint64_t *parts)
{
    int32_t axis = in->ndim - 1;
    struct reduce_plan plan;

    reduce_plan_make(&plan, in, &axis, 1, REDUCE_ANY_ORDER);
    return vk_reduction_encode(e,
                               &(struct vk_reduction){ .row = KERN_LOGSUMEXP_ROW,
                                                       .col = KERN_LOGSUMEXP_COL,
                                                       .part_bytes = 8,
                                                       .plan = &plan,
                                                       .in = in,
                                                       .out = out },
                               parts);
}

static enum err check_dtype(const struct exec *x, enum kern_id kern, const char *name)
{
    enum dtype t = (enum dtype)x->in[0]->dtype;

    if (x->out[0]->dtype == t && x->in[0]->ndim > 0 && kern_is_usable(kern, t))
        return ERR_OK;
    return err_set(ERR_UNSUPPORTED, "[%s] no Vulkan kernel for %s", name, dt_name(t));
}

enum err vk_logsumexp(const struct exec *x)
{
    struct vk_enc *e;
    enum err err;

    TRY(check_dtype(x, KERN_LOGSUMEXP_ROW, "logsumexp"));
    TRY(arr_alloc(x->out[0], x->strm->be));
    if (!x->out[0]->size)
        goto out;
    TRY(vk_enc_get(&e, x->strm));
    TRY(logsumexp(e, x->in[0], x->out[0], NULL));
out:
    return err;
}

/* ---- softmax ---- */

/* Gives out storage and says what to read: the input where its rows are consecutive, else a copy of
 * it that becomes the output. A row is read before it is written by the same lanes, so an input
 * that nobody else needs is reused. */
static enum err prepare(const struct exec *x, struct arr **in)
{
    struct arr *out = x->out[0];
    const struct be *be = x->strm->be;
    enum err err = ERR_OK;

    *in = x->in[0];
    if ((*in)->strides[(*in)->ndim - 1] != 1 && (*in)->shape[(*in)->ndim - 1] != 1) {
        TRY(be_copy_dense(x->strm, out, *in));
        *in = out;
    } else if ((*in)->flags & LAYOUT_ROW && arr_can_donate_to(*in, out, x->strm)) {
        arr_share_all(out, *in);
    } else {
        TRY(arr_alloc(out, be));
    }
out:
    return err;
}

/* How the rows are shared out. */
struct team {
    const struct arr *in;
    uint64_t row_walk;  /* of the input's rows; 0: row_stride */
    int64_t row_stride; /* in elements */
    bool is_aligned;
    uint64_t blocks;            /* of a row, 16 bytes each */
    uint32_t per_lane;          /* blocks */
    uint32_t log2_lanes;        /* of a row */
    uint32_t workgroup, pieces; /* of a row, one per workgroup */
};

static uint64_t rows_of(const struct team *t)
{
    return t->in->size / (uint64_t)t->in->shape[t->in->ndim - 1];
}

/* Lanes for a row: as few as hold it, because loads in flight count more than lanes (1048576 rows
 * of 64 on an H200: 3.95 TB/s, with a block per lane 2.72). */
static enum variant_reason fit_row(struct team *t)
{
    t->log2_lanes = launch_log2((t->blocks + t->per_lane - 1) / t->per_lane);
    t->workgroup = MAX(launch_workgroup(), 1u << MIN(t->log2_lanes, 16));
    t->pieces = 1;
    return t->workgroup <= launch_max_workgroup() ? VARIANT_FITS : VARIANT_SIZE;
}

/* Whole workgroups for a row, after another kernel has found its maximum and sum. */
static enum variant_reason cut_row(struct team *t)
{
    t->workgroup = launch_workgroup();
    t->log2_lanes = launch_log2(t->workgroup);
    t->pieces = (uint32_t)ceil_div((int64_t)t->blocks, t->workgroup * t->per_lane);
    return VARIANT_FITS;
}

static enum variant_reason fit(void *job, enum variant_id id)
{
    return id == VARIANT_SOFTMAX_ROW ? fit_row(job) : cut_row(job);
}

static enum err build(const struct vk_pipe **pipe, void *job, enum variant_id id)
{
    const struct team *t = job;
    uint32_t has_parts = id == VARIANT_SOFTMAX_PARTS;
    uint32_t spec[] = { t->workgroup, 1, 1, has_parts, t->workgroup, !t->is_aligned };

    return kern_pipe(pipe, KERN_SOFTMAX, t->in->dtype, spec, ARRAY_LEN(spec));
}

static void describe(char *text, size_t size, const void *data)
{
    const struct team *t = data;

    snprintf(text, size, "%s, rows of %d", dt_name((enum dtype)t->in->dtype),
             t->in->shape[t->in->ndim - 1]);
}

static const struct variant_table variants = {
    VARIANT_SOFTMAX_ROW, VARIANT_SOFTMAX_PARTS, fit, build, describe, "rows x row length"
};

/* Addresses of a dispatch; the parts of all rows were left there by another one. */
struct operands {
    uint64_t in, out, parts;
};

static enum err dispatch(struct vk_enc *e, struct vk_kernel kernel, const struct team *t,
                         const struct operands *o)
{
    struct softmax_args a = { .in_addr = o->in,
                              .out_addr = o->out,
                              .parts_addr = o->parts,
                              .row_walk = t->row_walk,
                              .row_stride = t->row_stride,
                              .n_rows = rows_of(t),
                              .row_len = (uint32_t)t->in->shape[t->in->ndim - 1],
                              .log2_team = t->log2_lanes,
                              .pieces = t->pieces };
    uint64_t groups = (uint64_t)ceil_div((int64_t)a.n_rows, t->workgroup >> a.log2_team) * a.pieces;

    return vk_enc_dispatch(e, kernel, &a, sizeof a, launch_grid(groups));
}

static enum err encode(struct vk_enc *e, const struct arr *in, const struct arr *out)
{
    uint64_t row_bytes = (uint64_t)in->shape[in->ndim - 1] * dt_size((enum dtype)in->dtype);
    bool aligned = launch_rows_are_aligned(in);
    struct team t = { .in = in, .is_aligned = aligned, .per_lane = SOFTMAX_BLOCKS + !aligned };
    struct operands o = { 0 };
    struct vk_kernel kernel;
    enum err err;

    t.blocks = (row_bytes + (aligned ? 0 : 30)) / 16; /* one more if it starts inside of one */
    TRY(launch_rows(e, &t.row_walk, &t.row_stride, in));
    TRY(variant_pick(&kernel, &variants, &t,
                     (int64_t[VARIANT_SIZES]){ (int64_t)rows_of(&t), in->shape[in->ndim - 1] }));
    if (kernel.variant == VARIANT_SOFTMAX_PARTS) {
        TRY(logsumexp(e, in, NULL, &o.parts));
        vk_enc_scratch_read(e, o.parts, rows_of(&t) * 8);
    }
    TRY(vk_enc_read(e, &o.in, in));
    TRY(vk_enc_write(e, &o.out, out));
    err = dispatch(e, kernel, &t, &o);
out:
    return err;
}

enum err vk_softmax(const struct exec *x)
{
    struct arr *in;
    struct vk_enc *e;
    enum err err;

    TRY(check_dtype(x, KERN_SOFTMAX, "softmax"));
    if (!x->out[0]->size) {
        TRY(arr_alloc(x->out[0], x->strm->be));
        goto out;
    }
    TRY(prepare(x, &in));
    TRY(vk_enc_get(&e, x->strm));
    TRY(encode(e, in, x->out[0]));
out:
    return err;
}
