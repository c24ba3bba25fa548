/* Convolutions over a batch: more of them, more output channels, or more groups. */
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

static enum err node(struct arr **out, const struct vmap_call *c, struct arr *x, struct arr *w,
                     int batch)
{
    struct conv_params p;

    op_own_params(&p, &c->f);
    if (batch != 1 && MUL_OVERFLOWS(p.groups, batch, &p.groups))
        return err_set(ERR_OVERFLOW, "[conv] A batch of %d does not fit.", batch);
    return ops_make(out, c->f.op, &p, (struct arrs){ (struct arr *[]){ x, w }, 2 }, c->f.strm);
}

/* The batch and what it is a batch of become one. */
static enum err over_inputs(struct vmap_call *c)
{
    struct arr *x = NULL, *y = NULL;
    struct strm *s = c->f.strm;
    enum err err;

    TRY(vmap_front(&x, c, 0));
    int32_t split[] = { x->shape[0], x->shape[1] };
    STEP(x, ops_flatten(&next, x, 0, 1, s));
    TRY(node(&y, c, x, c->f.in[1], 1));
    c->out_axis[0] = 0;
    err = ops_unflatten(&c->result[0], y, 0, (struct ints){ split, 2 }, s);
out:
    arr_unref(&x);
    arr_unref(&y);
    return err;
}

/* Each group has the output channels of all weights. */
static enum err over_weights(struct vmap_call *c)
{
    const struct conv_params *p = c->f.params;
    struct arr *w = NULL, *y = NULL;
    struct strm *s = c->f.strm;
    int last = c->f.in[0]->ndim - 1;
    enum err err;

    TRY(vmap_front(&w, c, 1));
    int32_t in_groups[] = { p->groups, w->shape[1] / p->groups };
    int32_t split[] = { p->groups, w->shape[0], in_groups[1] };
    STEP(w, ops_unflatten(&next, w, 1, (struct ints){ in_groups, 2 }, s));
    STEP(w, ops_swapaxes(&next, w, 0, 1, s));
    STEP(w, ops_flatten(&next, w, 0, 2, s));
    TRY(node(&y, c, c->f.in[0], w, 1));
    STEP(y, ops_unflatten(&next, y, last, (struct ints){ split, 3 }, s));
    STEP(y, ops_swapaxes(&next, y, last, last + 1, s));
    c->out_axis[0] = last;
    err = ops_flatten(&c->result[0], y, last + 1, last + 2, s);
out:
    arr_unref(&w);
    arr_unref(&y);
    return err;
}

/* Groups of a group of their own for each element of the batch. */
static enum err over_both(struct vmap_call *c)
{
    struct arr *x = NULL, *w = NULL, *y = NULL;
    struct strm *s = c->f.strm;
    int last = c->f.in[0]->ndim - 2;
    enum err err;

    TRY(vmap_front(&w, c, 1));
    int32_t split[] = { w->shape[0], w->shape[1] };
    STEP(w, ops_flatten(&next, w, 0, 1, s));
    TRY(ops_moveaxis(&x, c->f.in[0], c->axis[0], last, s));
    STEP(x, ops_flatten(&next, x, last, last + 1, s));
    TRY(node(&y, c, x, w, split[0]));
    c->out_axis[0] = last;
    err = ops_unflatten(&c->result[0], y, last, (struct ints){ split, 2 }, s);
out:
    arr_unref(&x);
    arr_unref(&w);
    arr_unref(&y);
    return err;
}

enum err op_vmap_conv(struct vmap_call *c)
{
    if (c->axis[1] == VMAP_NONE)
        return over_inputs(c);
    return c->axis[0] == VMAP_NONE ? over_weights(c) : over_both(c);
}
