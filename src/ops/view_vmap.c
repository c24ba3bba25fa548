/* Views, slices and splits over a batch, which is the first axis: the others move up. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* The bytes of one element must not become the neighbours of another's. */
enum err op_vmap_view(struct vmap_call *c)
{
    const struct dtype_params *p = c->f.params;
    bool is_same_size = dt_size(dtype_of(c->f.in[0])) == dt_size((enum dtype)p->dtype);

    return is_same_size ? op_vmap_elementwise(c) : vmap_over_fronts(c, p);
}

/* Missing dimensions come first, whatever is batched: the batch stays where it is. */
enum err op_vmap_broadcast(struct vmap_call *c)
{
    const struct shape_params *from = c->f.params;
    struct shape_params p = { .n = from->n + 1 };
    int at = from->n - (c->f.in[0]->ndim - 1) + c->axis[0];

    if (p.n > SHP_MAX)
        return vmap_no_room();
    for (int i = 0; i < p.n; i++)
        p.shape[i] = i == at ? vmap_batch(c) : from->shape[i - (i > at)];
    c->out_axis[0] = at;
    return ops_make_one(&c->result[0], c->f.op, &p, c->f.in[0], c->f.strm);
}

enum err op_vmap_reshape(struct vmap_call *c)
{
    const struct shape_params *from = c->f.params;
    struct shape_params p = { .n = from->n + 1, .shape = { vmap_batch(c) } };

    if (p.n > SHP_MAX)
        return vmap_no_room();
    memcpy(p.shape + 1, from->shape, (size_t)from->n * sizeof p.shape[0]);
    return vmap_over_fronts(c, &p);
}

enum err op_vmap_flatten(struct vmap_call *c)
{
    const struct flatten_params *p = c->f.params;

    return vmap_over_fronts(c, &(struct flatten_params){ p->start + 1, p->end + 1 });
}

enum err op_vmap_unflatten(struct vmap_call *c)
{
    struct unflatten_params p;

    op_own_params(&p, &c->f);
    p.axis++;
    return vmap_over_fronts(c, &p);
}

/* ExpandDims and Squeeze. */
enum err op_vmap_axes(struct vmap_call *c)
{
    struct axes_params p;

    op_own_params(&p, &c->f);
    for (int i = 0; i < p.n; i++)
        p.axis[i]++;
    return vmap_over_fronts(c, &p);
}

enum err op_vmap_transpose(struct vmap_call *c)
{
    const struct axes_params *from = c->f.params;
    struct axes_params p = { .n = from->n + 1 };

    for (int i = 1; i < p.n; i++)
        p.axis[i] = from->axis[i - 1] + 1;
    return vmap_over_fronts(c, &p);
}

enum err op_vmap_slice(struct vmap_call *c)
{
    struct slice_params p;

    vmap_region(&p, c->f.params, c);
    return vmap_over_fronts(c, &p);
}

enum err op_vmap_split(struct vmap_call *c)
{
    struct split_params p;

    op_own_params(&p, &c->f);
    p.axis++;
    return vmap_over_fronts(c, &p);
}
