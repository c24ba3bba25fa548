/* Gathers and scatters over a batch. */
#include "ops/index.h"
#include "ops/vmap.h"

/* Whether an input behind the source and before `end` has a batch. */
static bool has_indices(const struct vmap_call *c, size_t end)
{
    for (size_t i = 1; i < end; i++)
        if (c->axis[i] != VMAP_NONE)
            return true;
    return false;
}

/* ---- gathers ---- */

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

    if (p->n == SHP_MAX)
        return vmap_no_room();
    return has_indices(c, c->f.n_in) ? gather_by_batch(c) : gather_of_batch(c);
}

/* ---- scatters ---- */

/* Parameters for a source with one axis more in front; `extra` index arrays are along it. */
static struct scatter_params scatter_behind(const struct scatter_params *from, int extra)
{
    struct scatter_params p = { .kind = from->kind, .n = from->n + extra };

    for (int i = 0; i < from->n; i++)
        p.axis[i + extra] = from->axis[i] + 1;
    return p;
}

/* Every update is of all of the batch, which lies behind the dimensions of the indices. */
static enum err scatter_to_batch(struct vmap_call *c)
{
    struct scatter_params p = scatter_behind(c->f.params, 0);
    int lead = p.n ? c->f.in[1]->ndim : 0;
    struct arr *in[SHP_MAX + 2];
    struct arr *src = NULL, *update = NULL;
    size_t last = c->f.n_in - 1;
    enum err err;

    memcpy(in, c->f.in, c->f.n_in * sizeof in[0]);
    TRY(vmap_front(&src, c, 0));
    TRY(vmap_front(&update, c, last));
    STEP(update, ops_moveaxis(&next, update, 0, lead, c->f.strm));
    in[0] = src;
    in[last] = update;
    c->out_axis[0] = 0;
    err = ops_make(&c->result[0], c->f.op, &p, (struct arrs){ in, c->f.n_in }, c->f.strm);
out:
    arr_unref(&src);
    arr_unref(&update);
    return err;
}

/* Indices of a batch: each into its own source, whose number is one more of them. */
static enum err scatter_by_batch(struct vmap_call *c)
{
    struct scatter_params p = scatter_behind(c->f.params, 1);
    struct arr *in[SHP_MAX + 3] = { NULL };
    size_t last = c->f.n_in;
    int32_t single;
    enum err err;

    if (c->f.in[c->f.n_in - 1]->ndim + 2 > SHP_MAX)
        return vmap_no_room();
    c->out_axis[0] = 0;
    TRY(vmap_fronts(in + 1, c, 1));
    TRY(vmap_front(&in[0], c, 0));
    TRY(batch_numbers(&in[1], c, in[2]));
    single = in[1]->ndim;
    STEP(in[last], ops_expand_dims(&next, in[last], (struct ints){ &single, 1 }, c->f.strm));
    err = ops_make_of(&c->result[0], c->f.op, &p, (struct given){ in, last + 1 }, c->f.strm);
out:
    arr_unref_all(in, ARRAY_LEN(in));
    return err;
}

enum err op_vmap_scatter(struct vmap_call *c)
{
    const struct arr *src = c->f.in[0];

    if (src->ndim - (c->axis[0] != VMAP_NONE) == SHP_MAX)
        return vmap_no_room();
    return has_indices(c, c->f.n_in - 1) ? scatter_by_batch(c) : scatter_to_batch(c);
}

enum err op_vmap_scatter_axis(struct vmap_call *c)
{
    struct scatter_axis_params p;

    op_own_params(&p, &c->f);
    p.axis++;
    return vmap_over_fronts(c, &p);
}

/* The op has a batch of its own in front: of both one is made meanwhile. */
enum err op_vmap_masked_scatter(struct vmap_call *c)
{
    struct arr *in[3] = { NULL }, *r = NULL;
    int32_t n = vmap_batch(c), own;
    enum err err;

    c->out_axis[0] = 0;
    TRY(vmap_fronts(in, c, 0));
    own = in[0]->shape[1];
    for (int i = 0; i < 3; i++)
        STEP(in[i], ops_flatten(&next, in[i], 0, 1, c->f.strm));
    TRY(ops_make_of(&r, c->f.op, NULL, (struct given){ in, 3 }, c->f.strm));
    err = ops_unflatten(&c->result[0], r, 0, (struct ints){ (int32_t[]){ n, own }, 2 }, c->f.strm);
out:
    arr_unref_all(in, 3);
    arr_unref(&r);
    return err;
}
