/* Updates of slices in place, and slices that start where an array on the device says. */
#include "backend/common/families.h"

enum err be_take_over(struct strm *s, struct arr *out, struct arr *src)
{
    const struct be *be = s->be;
    bool is_dense = (src->flags & LAYOUT_CONTIGUOUS) && src->data_size == src->size;
    struct shp shape;
    enum err err;

    if (!is_dense)
        return be_copy_dense(s, out, src);
    if (arr_can_donate_to(src, out, s)) {
        arr_share_all(out, src);
        return ERR_OK;
    }
    arr_shape(&shape, src);
    TRY(arr_alloc_like(out, src, be));
    err = be->copy(s, &(struct be_copy){ .src = src,
                                         .dst = out,
                                         .shape = &shape,
                                         .src_strides = src->strides,
                                         .dst_strides = out->strides });
out:
    return err;
}

enum err be_slice_update(const struct exec *x)
{
    const struct slice_update_params *p = x->node->params;
    struct arr *update = x->in[1], *out = x->out[0];
    int64_t strides[SHP_MAX], offset;
    struct shp shape;
    enum err err;

    TRY(be_take_over(x->strm, out, x->in[0]));
    arr_shape(&shape, update);
    offset = be_slice_strides(strides, out, &p->region);
    err = x->strm->be->copy(
        x->strm, &(struct be_copy){ .src = update,
                                    .dst = out,
                                    .shape = &shape,
                                    .src_strides = update->strides,
                                    .dst_strides = strides,
                                    .dst_offset = offset,
                                    .combine = op_of_update((enum update_kind)p->kind) });
out:
    return err;
}

/* Where in `whole` a part of the given shape lies. NULL if that is its beginning. */
static const struct be_start *make_start(struct be_start *s, const struct exec *x,
                                         struct arr *position, const struct arr *whole,
                                         const struct shp *part)
{
    const struct dynamic_slice_params *p = x->node->params;

    s->position = position;
    s->n = p->n_axes;
    for (int i = 0; i < p->n_axes; i++) {
        int axis = p->d[i].axis;
        s->stride[i] = whole->strides[axis];
        s->size[i] = whole->shape[axis];
        s->last[i] = whole->shape[axis] - part->d[axis];
    }
    return s->n ? s : NULL;
}

enum err be_dynamic_slice(const struct exec *x)
{
    struct arr *in = x->in[0], *out = x->out[0];
    struct be_start start;
    struct shp shape;
    enum err err;

    TRY(arr_alloc(out, x->strm->be));
    arr_shape(&shape, out);
    err = x->strm->be->copy(
        x->strm, &(struct be_copy){ .src = in,
                                    .dst = out,
                                    .shape = &shape,
                                    .src_strides = in->strides,
                                    .dst_strides = out->strides,
                                    .src_start = make_start(&start, x, x->in[1], in, &shape) });
out:
    return err;
}

enum err be_dynamic_slice_update(const struct exec *x)
{
    struct arr *update = x->in[1], *out = x->out[0];
    struct be_start start;
    struct shp shape;
    enum err err;

    TRY(be_take_over(x->strm, out, x->in[0]));
    arr_shape(&shape, update);
    err = x->strm->be->copy(
        x->strm, &(struct be_copy){ .src = update,
                                    .dst = out,
                                    .shape = &shape,
                                    .src_strides = update->strides,
                                    .dst_strides = out->strides,
                                    .dst_start = make_start(&start, x, x->in[2], out, &shape) });
out:
    return err;
}
