/* Ops over a batch: most of them have the batch as their first axis, wherever it came from. */
#include "ops/vmap.h"
#include "ops/build.h"
#include "ops/rules.h"

/* ---- batches in front ---- */

int32_t vmap_batch(const struct vmap_call *c)
{
    size_t i = 0;

    while (c->axis[i] == VMAP_NONE)
        i++;
    return c->f.in[i]->shape[c->axis[i]];
}

enum err vmap_front(struct arr **out, const struct vmap_call *c, size_t i)
{
    struct arr *a = c->f.in[i];
    struct shp to = { .ndim = a->ndim + 1, .d = { vmap_batch(c) } };

    if (c->axis[i] != VMAP_NONE)
        return ops_moveaxis(out, a, c->axis[i], 0, c->f.strm);
    if (to.ndim > SHP_MAX)
        return vmap_no_room();
    for (int k = 0; k < a->ndim; k++)
        to.d[k + 1] = a->shape[k];
    return ops_broadcast_to(out, a, shp_ints(&to), c->f.strm);
}

enum err vmap_fronts(struct arr **in, const struct vmap_call *c, size_t first)
{
    enum err err = ERR_OK;

    for (size_t i = first; i < c->f.n_in; i++)
        TRY(vmap_front(&in[i], c, i));
out:
    if (err)
        arr_unref_all(in + first, c->f.n_in - first);
    return err;
}

enum err vmap_over_fronts(struct vmap_call *c, const void *params)
{
    struct arr **in = mem_alloc_array(c->f.n_in, sizeof *in);
    enum err err = ERR_NO_MEMORY;

    if (!in)
        return err;
    for (size_t i = 0; i < c->f.n_out; i++)
        c->out_axis[i] = 0;
    TRY(vmap_fronts(in, c, 0));
    err = ops_make_of(c->result, c->f.op, params, (struct given){ in, c->f.n_in }, c->f.strm);
    if (err)
        arr_unref_all(in, c->f.n_in);
out:
    mem_free(in);
    return err;
}

enum err vmap_no_room(void)
{
    return err_set(ERR_ARG, "[vmap] Arrays have at most %d dimensions.", SHP_MAX);
}

void vmap_region(struct slice_params *out, const struct slice_params *from,
                 const struct vmap_call *c)
{
    out->n = from->n + 1;
    out->d[0].start = 0;
    out->d[0].stop = vmap_batch(c);
    out->d[0].step = 1;
    for (int i = 1; i < out->n; i++)
        out->d[i] = from->d[i - 1];
}

/* ---- rules ---- */

enum err op_vmap_elementwise(struct vmap_call *c)
{
    bool is_aligned = true;

    for (size_t i = 1; i < c->f.n_in; i++)
        is_aligned &= c->axis[i] == c->axis[0];
    if (!is_aligned)
        return vmap_over_fronts(c, c->f.params);
    for (size_t i = 0; i < c->f.n_out; i++)
        c->out_axis[i] = c->axis[0];
    return ops_make(c->result, c->f.op, c->f.params, (struct arrs){ c->f.in, c->f.n_in },
                    c->f.strm);
}

/* What works on the last axes, or draws for each key. */
enum err op_vmap_last_axes(struct vmap_call *c)
{
    return vmap_over_fronts(c, c->f.params);
}

/* What works along one axis. */
enum err op_vmap_axis(struct vmap_call *c)
{
    const struct axis_params *p = c->f.params;

    return vmap_over_fronts(c, &(struct axis_params){ p->axis + 1 });
}

enum err op_vmap_partition(struct vmap_call *c)
{
    const struct partition_params *p = c->f.params;

    return vmap_over_fronts(c, &(struct partition_params){ p->kth, p->axis + 1 });
}

enum err op_vmap_scan(struct vmap_call *c)
{
    struct scan_params p = *(const struct scan_params *)c->f.params;

    p.axis++;
    return vmap_over_fronts(c, &p);
}

enum err op_vmap_arg_reduce(struct vmap_call *c)
{
    const struct arg_reduce_params *p = c->f.params;

    return vmap_over_fronts(c, &(struct arg_reduce_params){ p->is_max, p->axis + 1 });
}

enum err op_vmap_reduce(struct vmap_call *c)
{
    const struct reduce_params *from = c->f.params;
    struct reduce_params p = { .kind = from->kind, .n = from->n };

    for (int i = 0; i < p.n; i++)
        p.axis[i] = from->axis[i] + 1;
    return vmap_over_fronts(c, &p);
}
