/* Padding and updates of slices over a batch. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

enum err op_vmap_slice_update(struct vmap_call *c)
{
    const struct slice_update_params *from = c->f.params;
    struct slice_update_params p = { .kind = from->kind };

    vmap_region(&p.region, &from->region, c);
    return vmap_over_fronts(c, &p);
}

/* ---- padding ---- */

/* Values of a batch, one for each element's padding, in the shape of the result. */
static enum err padding(struct arr **out, const struct vmap_call *c, const struct arr *x,
                        const struct pad_params *p)
{
    int32_t shape[SHP_MAX];
    struct shp to;
    struct arr *v = NULL;
    enum err err;

    arr_shape(&to, x);
    for (int i = 0; i < p->n; i++)
        TRY(ops_dim(&to.d[p->d[i].axis], (int64_t)to.d[p->d[i].axis] + p->d[i].low + p->d[i].high,
                    "pad"));
    for (int i = 0; i < to.ndim; i++)
        shape[i] = i ? 1 : to.d[0];
    TRY(ops_reshape(&v, c->f.in[1], (struct ints){ shape, (size_t)to.ndim }, c->f.strm));
    err = ops_broadcast_to(out, v, shp_ints(&to), c->f.strm);
out:
    arr_unref(&v);
    return err;
}

/* Each value of a batch is put in place, then what it surrounds. */
static enum err pad_by_batch(struct vmap_call *c, struct arr *x, const struct pad_params *p)
{
    struct slice_update_params update = { .kind = UPDATE_NONE };
    struct arr *in[2] = { NULL, x };
    enum err err;

    ops_pad_region(&update.region, x, p);
    TRY(padding(&in[0], c, x, p));
    err = ops_make(&c->result[0], OP_SLICE_UPDATE, &update, (struct arrs){ in, 2 }, c->f.strm);
out:
    arr_unref(&in[0]);
    return err;
}

enum err op_vmap_pad(struct vmap_call *c)
{
    struct pad_params p;
    struct arr *x = NULL;
    enum err err;

    op_own_params(&p, &c->f);
    for (int i = 0; i < p.n; i++)
        p.d[i].axis++;
    c->out_axis[0] = 0;
    TRY(vmap_front(&x, c, 0));
    if (c->axis[1] != VMAP_NONE)
        err = pad_by_batch(c, x, &p);
    else
        err = ops_make(&c->result[0], c->f.op, &p,
                       (struct arrs){ (struct arr *[]){ x, c->f.in[1] }, 2 }, c->f.strm);
out:
    arr_unref(&x);
    return err;
}

/* ---- regions that start where an array says ---- */

/* All elements of the batch start at the same place: an error of this code unless they do. */
static enum err at_one_start(struct vmap_call *c, enum err code)
{
    const struct dynamic_slice_params *from = c->f.params;
    struct dynamic_slice_params p = { .n_axes = from->n_axes, .n = from->n + 1 };
    size_t start = c->f.n_in - 1;
    struct arr *in[3] = { NULL };
    enum err err = ERR_OK;

    if (c->axis[start] != VMAP_NONE)
        return err_set(code, "[%s::vmap] Not supported over start indices.", op_name(c->f.op));
    for (int i = 0; i < p.n_axes; i++)
        p.d[i].axis = from->d[i].axis + 1;
    p.d[0].size = vmap_batch(c);
    for (int i = 1; i < p.n; i++)
        p.d[i].size = from->d[i - 1].size;
    c->out_axis[0] = 0;
    for (size_t i = 0; i < start; i++)
        TRY(vmap_front(&in[i], c, i));
    in[start] = arr_ref(c->f.in[start]);
    err = ops_make_of(&c->result[0], c->f.op, &p, (struct given){ in, c->f.n_in }, c->f.strm);
out:
    arr_unref_all(in, 3);
    return err;
}

enum err op_vmap_dynamic_slice(struct vmap_call *c)
{
    return at_one_start(c, ERR_ARG);
}

enum err op_vmap_dynamic_slice_update(struct vmap_call *c)
{
    return at_one_start(c, ERR_RUNTIME);
}
