/* Quantize in both directions. */
#include "backend/common/qmm_plan.h"
#include "backend/vulkan/ops/families.h"
#include "backend/vulkan/ops/launch.h"
#include "backend/vulkan/ops/qmm.h"

struct job {
    enum kern_id kern;
    enum dtype dtype;
    enum variant_id variant;
    const struct quant_params *q;
    struct quantize_args a;
};

static enum err dispatch(struct vk_enc *e, const struct job *j)
{
    const struct quantize_args *a = &j->a;
    const struct quant_params *q = j->q;
    uint32_t workgroup = launch_workgroup();
    uint32_t rows = !a->ids ? DEQUANTIZE_ALL : a->ids_walk ? DEQUANTIZE_WALK : DEQUANTIZE_IDS;
    uint32_t spec[] = {
        workgroup, 1, 1, (uint32_t)q->mode, (uint32_t)q->bits, (uint32_t)q->group_size, rows
    };
    struct vk_kernel kernel = { .variant = j->variant };
    enum err err;

    TRY(kern_pipe(&kernel.pipe, j->kern, (int)j->dtype, spec, ARRAY_LEN(spec)));
    TRY(vk_enc_dispatch(e, kernel, a, sizeof *a,
                        launch_grid((uint64_t)ceil_div((int64_t)a->n, workgroup))));
out:
    if (err)
        vk_enc_drop(e);
    return err;
}

static enum err set_ids(struct quantize_args *a, struct vk_enc *e, const struct vk_dequantize *d)
{
    enum err err;

    a->per_row = (uint32_t)(a->n / d->ids->size);
    a->n_rows = (uint32_t)d->w->shape[0];
    a->ids_code = launch_index_code((enum dtype)d->ids->dtype);
    TRY(launch_elements(e, &a->ids_walk, &a->ids_stride, d->ids));
    TRY(vk_enc_read(e, &a->ids, d->ids));
out:
    return err;
}

enum err vk_dequantize_encode(struct vk_enc *e, const struct vk_dequantize *d)
{
    struct job j = { KERN_DEQUANTIZE, (enum dtype)d->out->dtype, d->variant, &d->q, .a = { 0 } };
    struct quantize_args *a = &j.a;
    enum err err;

    a->n = d->out->size / 8;
    TRY(vk_enc_read(e, &a->w, d->w));
    TRY(vk_enc_read(e, &a->scales, d->scales));
    if (d->biases)
        TRY(vk_enc_read(e, &a->biases, d->biases));
    if (d->global_scale)
        TRY(vk_enc_read(e, &a->global_scale, d->global_scale));
    if (d->ids)
        TRY(set_ids(a, e, d));
    TRY(vk_enc_write(e, &a->out_addr, d->out));
    err = dispatch(e, &j);
out:
    return err;
}

static enum err encode_quantize(const struct exec *x, struct arr *const *in, struct vk_enc *e)
{
    const struct quantize_params *p = x->node->params;
    struct job j = { KERN_QUANTIZE, (enum dtype)in[0]->dtype, VARIANT_COUNT, &p->q, .a = { 0 } };
    struct quantize_args *a = &j.a;
    enum err err;

    a->n = in[0]->size / (size_t)p->q.group_size;
    TRY(vk_enc_read(e, &a->w, in[0]));
    if (x->n_in > 1)
        TRY(vk_enc_read(e, &a->global_scale, in[1]));
    TRY(vk_enc_write(e, &a->out_addr, x->out[0]));
    TRY(vk_enc_write(e, &a->scales, x->out[1]));
    if (x->n_out > 2)
        TRY(vk_enc_write(e, &a->biases, x->out[2]));
    err = dispatch(e, &j);
out:
    return err;
}

static enum err encode(const struct exec *x, struct arr *const *in)
{
    const struct quantize_params *p = x->node->params;
    bool is_affine = p->q.mode == QUANT_AFFINE;
    int global = is_affine ? 3 : 2;
    struct vk_enc *e;
    enum err err;

    TRY(vk_enc_get(&e, x->strm));
    if (!p->dequantize)
        TRY(encode_quantize(x, in, e));
    else
        TRY(vk_dequantize_encode(
            e, &(struct vk_dequantize){ .q = p->q,
                                        .w = in[0],
                                        .scales = in[1],
                                        .biases = is_affine ? in[2] : NULL,
                                        .global_scale = x->n_in > global ? in[global] : NULL,
                                        .out = x->out[0],
                                        .variant = VARIANT_COUNT }));
out:
    return err;
}

enum err vk_quantize(const struct exec *x)
{
    const struct quantize_params *p = x->node->params;
    const struct arr *numbers = p->dequantize ? x->out[0] : x->in[0];
    struct arr *in[4], *copies[4] = { NULL };
    enum err err;

    for (int i = 0; i < x->n_out; i++)
        TRY(arr_alloc(x->out[i], x->strm->be));
    if (!numbers->size)
        goto out;
    for (int i = 0; i < x->n_in; i++) {
        in[i] = x->in[i];
        if (!(in[i]->flags & LAYOUT_ROW))
            TRY(qmm_dense(&in[i], &copies[i], x->strm));
    }
    TRY(encode(x, in));
    for (int i = 0; i < x->n_in; i++)
        if (copies[i])
            TRY(x->strm->be->hold(x->strm, &copies[i]->buf, 1));
out:
    for (int i = 0; i < 4; i++)
        arr_unref(&copies[i]);
    return err;
}
