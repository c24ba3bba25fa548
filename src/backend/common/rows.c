#include "backend/common/rows.h"

/* Strides of a shape whose fastest axis is the given one, the others in order. */
static void axis_last_strides(int64_t *strides, const struct shp *shape, int axis)
{
    int64_t step = shape->d[axis];

    strides[axis] = 1;
    for (int i = shape->ndim - 1; i >= 0; i--) {
        if (i == axis)
            continue;
        strides[i] = step;
        step *= shape->d[i];
    }
}

static bool has_strides(const struct arr *a, const int64_t *strides)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != 1 && a->strides[i] != strides[i])
            return false;
    return true;
}

static enum err alloc_with(struct arr *a, const int64_t *strides, const struct be *home)
{
    struct shp shape;
    enum err err = arr_alloc(a, home);

    arr_shape(&shape, a);
    memcpy(a->strides, strides, a->ndim * sizeof a->strides[0]);
    a->flags = (uint8_t)shp_layout_flags(&shape, strides, a->data_size);
    return err;
}

enum err be_rows_begin(struct be_rows *r, const struct exec *x, int axis)
{
    struct arr *in = x->in[0], *out = x->out[0];
    const struct be *be = x->strm->be;
    int64_t strides[SHP_MAX];
    struct shp shape;
    enum err err;

    *r = (struct be_rows){ .in = in,
                           .n = in->size / (size_t)in->shape[axis],
                           .length = (uint32_t)in->shape[axis] };
    arr_shape(&shape, in);
    axis_last_strides(strides, &shape, axis);
    TRY(alloc_with(out, strides, be));
    if (has_strides(in, strides))
        return ERR_OK;
    TRY(arr_new_empty(&r->copy, &shape, (enum dtype)in->dtype));
    r->in = r->copy;
    TRY(alloc_with(r->copy, strides, be));
    err = be->copy(x->strm, &(struct be_copy){ .src = in,
                                               .dst = r->copy,
                                               .shape = &shape,
                                               .src_strides = in->strides,
                                               .dst_strides = strides });
out:
    if (err)
        arr_unref(&r->copy);
    return err;
}

enum err be_rows_end(struct be_rows *r, struct strm *s)
{
    enum err err = r->copy ? s->be->hold(s, &r->copy->buf, 1) : ERR_OK;

    arr_unref(&r->copy);
    return err;
}
