/* Data movement made of strided copies. */
#include "backend/common/families.h"

#include <stdatomic.h>

/* Never 0. Copies of one op write disjoint parts; those of different ops may depend on each other.
 */
static uint32_t new_group(void)
{
    static _Atomic uint32_t last;

    uint32_t group = atomic_fetch_add(&last, 1) + 1;
    return group ? group : new_group();
}

/* Element offset of position `at` along `axis`. */
static int64_t offset_along(const struct arr *a, int axis, int64_t at)
{
    return a->strides[axis] * at;
}

enum err be_concatenate(const struct exec *x)
{
    const struct axis_params *p = x->node->params;
    struct arr *out = x->out[0];
    uint32_t group = new_group();
    int64_t at = 0;
    enum err err;

    TRY(arr_alloc(out, x->strm->be));
    for (int i = 0; i < x->n_in; i++) {
        struct arr *in = x->in[i];
        struct shp shape;

        arr_shape(&shape, in);
        if (in->size)
            TRY(x->strm->be->copy(x->strm,
                                  &(struct be_copy){ .src = in,
                                                     .dst = out,
                                                     .shape = &shape,
                                                     .src_strides = in->strides,
                                                     .dst_strides = out->strides,
                                                     .dst_offset = offset_along(out, p->axis, at),
                                                     .group = group }));
        at += in->shape[p->axis];
    }
out:
    return err;
}

/* Every element of out becomes the matching element of value, broadcast. out has storage. */
static enum err fill(const struct exec *x, struct arr *value)
{
    struct arr *out = x->out[0];
    int64_t strides[SHP_MAX] = { 0 };
    int lead = out->ndim - value->ndim;
    struct shp shape;

    arr_shape(&shape, out);
    for (int i = 0; i < value->ndim; i++)
        strides[lead + i] = value->shape[i] == shape.d[lead + i] ? value->strides[i] : 0;
    return x->strm->be->copy(x->strm, &(struct be_copy){ .src = value,
                                                         .dst = out,
                                                         .shape = &shape,
                                                         .src_strides = strides,
                                                         .dst_strides = out->strides });
}

enum err be_full(const struct exec *x)
{
    enum err err = arr_alloc(x->out[0], x->strm->be);

    return err ? err : fill(x, x->in[0]);
}

enum err be_pad(const struct exec *x)
{
    const struct pad_params *p = x->node->params;
    struct arr *in = x->in[0], *out = x->out[0];
    struct shp shape;
    int64_t offset = 0;
    enum err err;

    TRY(arr_alloc(out, x->strm->be));
    TRY(fill(x, x->in[1]));
    if (!in->size)
        goto out;
    arr_shape(&shape, in);
    for (int i = 0; i < p->n; i++)
        offset += offset_along(out, p->d[i].axis, p->d[i].low);
    err = x->strm->be->copy(x->strm, &(struct be_copy){ .src = in,
                                                        .dst = out,
                                                        .shape = &shape,
                                                        .src_strides = in->strides,
                                                        .dst_strides = out->strides,
                                                        .dst_offset = offset });
out:
    return err;
}
