/* Gathering by index arrays. */
#include "ops/build.h"

/* Slices of one axis: the result has the shape of indices, then that of a with size 1 at axis. */
static enum err gather_axis(struct arr **out, struct arr *a, struct arr *indices, int axis,
                            struct strm *s)
{
    struct gather_params p = { .n_axes = 1, .n = a->ndim, .d[0].axis = axis };
    struct out_desc d = { .dtype = dtype_of(a) };

    if (!dt_is_integer(dtype_of(indices)))
        return err_set(ERR_ARG, "[gather] Got indices with dtype %s. Indices must be integral.",
                       dt_name(dtype_of(indices)));
    if (indices->ndim + a->ndim > SHP_MAX)
        return err_set(ERR_ARG, "[gather] Arrays have at most %d dimensions.", SHP_MAX);
    arr_shape(&d.shape, indices);
    for (int i = 0; i < a->ndim; i++) {
        p.d[i].size = i == axis ? 1 : a->shape[i];
        d.shape.d[d.shape.ndim++] = p.d[i].size;
    }
    return arr_new_op(out, .op = OP_GATHER, .strm = s, .in = (struct arr *[]){ a, indices },
                      .n_in = 2, .params = &p, .out = &d);
}

enum err ops_take(struct arr **out, struct arr *a, struct arr *indices, int axis, struct strm *s)
{
    int32_t order[SHP_MAX];
    struct arr *x = NULL;
    enum err err;

    TRY(shp_axis(&axis, axis, a->ndim, "take"));
    if (a->shape[axis] == 0 && indices->size != 0)
        return err_set(ERR_ARG, "[take] Cannot do a non-empty take from an empty axis.");
    TRY(gather_axis(&x, a, indices, axis, s));
    /* The dimensions of indices take the place of the axis. */
    int n = indices->ndim;
    for (int i = 0; i < x->ndim; i++)
        order[i] = i < axis ? n + i : i < axis + n ? i - axis : i;
    STEP(x, ops_transpose(&next, x, (struct ints){ order, x->ndim }, s));
    TRY(ops_squeeze(out, x, (struct ints){ (int32_t[]){ axis + n }, 1 }, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_take_flat(struct arr **out, struct arr *a, struct arr *indices, struct strm *s)
{
    struct arr *flat = NULL;
    enum err err;

    TRY(ops_flatten(&flat, a, 0, -1, s));
    TRY(ops_take(out, flat, indices, 0, s));
out:
    arr_unref(&flat);
    return err;
}

enum err ops_take_along_axis(struct arr **out, struct arr *a, struct arr *indices, int axis,
                             struct strm *s)
{
    struct shp from, at, common;
    struct arr *in[2] = { NULL, NULL };
    enum err err;

    if (a->ndim != indices->ndim)
        return err_set(ERR_ARG,
                       "[take_along_axis] Indices of dimension %d does not match array of "
                       "dimension %d.",
                       indices->ndim, a->ndim);
    if (!dt_is_integer(dtype_of(indices)))
        return err_set(ERR_ARG,
                       "[take_along_axis] Got indices with dtype %s. Indices must be "
                       "integral.",
                       dt_name(dtype_of(indices)));
    TRY(shp_axis(&axis, axis, a->ndim, "take_along_axis"));
    arr_shape(&from, a);
    arr_shape(&at, indices);
    int32_t from_size = from.d[axis], at_size = at.d[axis];
    from.d[axis] = at.d[axis] = 1;
    TRY(shp_broadcast(&common, &from, &at, "take_along_axis"));
    from = at = common;
    from.d[axis] = from_size;
    at.d[axis] = at_size;
    if (from_size == 0 && shp_size(&at) != 0) {
        err = err_set(ERR_ARG, "[take_along_axis] Cannot take from an empty axis.");
        goto out;
    }
    TRY(ops_broadcast_to(&in[0], a, shp_ints(&from), s));
    TRY(ops_broadcast_to(&in[1], indices, shp_ints(&at), s));
    err = arr_new_op(out, .op = OP_GATHER_AXIS, .strm = s, .in = in, .n_in = 2,
                     .params = &(struct axis_params){ axis },
                     .out = &(struct out_desc){ at, dtype_of(a) });
out:
    arr_unref_all(in, 2);
    return err;
}
