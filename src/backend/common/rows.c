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

/* A new array of a's shape and dtype with these strides. */
static enum err new_like(struct arr **out, const struct arr *a, const int64_t *strides,
                         const struct be *home)
{
    struct shp shape;
    enum err err;

    arr_shape(&shape, a);
    TRY(arr_new_empty(out, &shape, (enum dtype)a->dtype));
    TRY(arr_alloc(*out, home));
    memcpy((*out)->strides, strides, a->ndim * sizeof strides[0]);
    (*out)->flags = (uint8_t)shp_layout_flags(&shape, strides, (*out)->data_size);
out:
    return err;
}

static enum err copy_between(struct arr *dst, struct arr *src, struct strm *s)
{
    struct shp shape;

    arr_shape(&shape, src);
    return s->be->copy(s, &(struct be_copy){ .src = src,
                                             .dst = dst,
                                             .shape = &shape,
                                             .src_strides = src->strides,
                                             .dst_strides = dst->strides });
}

static void drop(struct be_rows *r)
{
    arr_unref(&r->in_own);
    arr_unref(&r->out_own);
}

enum err be_rows_begin(struct be_rows *r, const struct exec *x, int axis)
{
    struct arr *in = x->in[0], *out = x->out[0];
    const struct be *be = x->strm->be;
    int64_t strides[SHP_MAX];
    struct shp shape;
    enum err err;

    *r = (struct be_rows){ .in = in,
                           .out = out,
                           .target = out,
                           .n = in->size / (size_t)in->shape[axis],
                           .length = (uint32_t)in->shape[axis] };
    arr_shape(&shape, in);
    axis_last_strides(strides, &shape, axis);
    TRY(arr_alloc(out, be));
    if (!has_strides(out, strides)) {
        TRY(new_like(&r->out_own, out, strides, be));
        r->out = r->out_own;
    }
    if (!has_strides(in, strides)) {
        TRY(new_like(&r->in_own, in, strides, be));
        TRY(copy_between(r->in_own, in, x->strm));
        r->in = r->in_own;
    }
out:
    if (err)
        drop(r);
    return err;
}

/* Work that is encoded already may use the scratch of an op that failed later. */
static enum err hold(struct strm *s, const struct arr *a, enum err err)
{
    enum err held = a && a->buf ? s->be->hold(s, &a->buf, 1) : ERR_OK;

    return err ? err : held;
}

enum err be_rows_end(struct be_rows *r, struct strm *s, enum err err)
{
    if (!err && r->out_own)
        err = copy_between(r->target, r->out_own, s);
    err = hold(s, r->in_own, err);
    err = hold(s, r->out_own, err);
    drop(r);
    return err;
}
