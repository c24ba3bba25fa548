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

/* ---- gather ---- */

/* The number of each element of the batch, as an index array like those of c. */
static enum err batch_numbers(struct arr **out, const struct vmap_call *c, struct arr *like)
{
    int32_t n = vmap_batch(c), shape[SHP_MAX];
    struct arr *x = NULL;
    enum err err;

    TRY(ops_arange(&x, &(struct arange_params){ 0, n, 1 }, DT_INT32, c->f.strm));
    for (int i = 0; i < like->ndim; i++)
        shape[i] = i ? 1 : n;
    STEP(x, ops_reshape(&next, x, (struct ints){ shape, like->ndim }, c->f.strm));
    err = ops_broadcast_to(out, x, shape_of(like), c->f.strm);
out:
    arr_unref(&x);
    return err;
}

/* Parameters for a source with one axis more in front, of which slices take size elements; the
 * first `extra` index arrays are along it. */
static struct gather_params gather_behind(const struct gather_params *from, int32_t size, int extra)
{
    struct gather_params p = { .n_axes = from->n_axes + extra, .n = from->n + 1 };

    for (int i = 0; i < from->n_axes; i++)
        p.d[i + extra].axis = from->d[i].axis + 1;
    p.d[0].size = size;
    for (int i = 0; i < from->n; i++)
        p.d[i + 1].size = from->d[i].size;
    return p;
}

/* Every slice takes all of the batch, which ends up behind the dimensions of the indices. */
static enum err gather_of_batch(struct vmap_call *c)
{
    struct gather_params p = gather_behind(c->f.params, vmap_batch(c), 0);
    struct arr *in[SHP_MAX + 1];
    struct arr *src = NULL;
    enum err err;

    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    TRY(vmap_front(&src, c, 0));
    in[0] = src;
    c->out_axis[0] = c->f.n_in > 1 ? in[1]->ndim : 0;
    err = ops_make(&c->result[0], c->f.op, &p, (struct arrs){ in, c->f.n_in }, c->f.strm);
out:
    arr_unref(&src);
    return err;
}

/* Indices of a batch into a source that may have one, too: each into its own. */
static enum err gather_by_batch(struct vmap_call *c)
{
    struct gather_params p = gather_behind(c->f.params, 1, 1);
    bool has_batch = c->axis[0] != VMAP_NONE;
    struct arr *in[SHP_MAX + 2] = { NULL }, *r = NULL;
    enum err err;

    c->out_axis[0] = 0;
    TRY(vmap_fronts(in + 1, c, 1));
    if (!has_batch) {
        in[1] = arr_ref(c->f.in[0]);
        TRY(ops_make_of(&r, c->f.op, c->f.params, (struct given){ in + 1, c->f.n_in }, c->f.strm));
    } else {
        TRY(vmap_front(&in[0], c, 0));
        TRY(batch_numbers(&in[1], c, in[2]));
        int32_t single = in[1]->ndim;
        TRY(ops_make_of(&r, c->f.op, &p, (struct given){ in, c->f.n_in + 1 }, c->f.strm));
        STEP(r, ops_squeeze(&next, r, (struct ints){ &single, 1 }, c->f.strm));
    }
    arr_move(&c->result[0], &r);
out:
    arr_unref_all(in, ARRAY_LEN(in));
    arr_unref(&r);
    return err;
}

enum err op_vmap_gather(struct vmap_call *c)
{
    const struct gather_params *p = c->f.params;
    bool has_indices = false;

    for (size_t i = 1; i < c->f.n_in; i++)
        has_indices |= c->axis[i] != VMAP_NONE;
    if (p->n == SHP_MAX)
        return vmap_no_room();
    return has_indices ? gather_by_batch(c) : gather_of_batch(c);
}
