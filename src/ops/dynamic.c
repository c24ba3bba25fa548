/* Nodes whose results have the sizes that inputs have: in graphs that are recorded for inputs of
 * other sizes, too (graph/tracing.h). */
#include "graph/tracing.h"
#include "ops/build.h"
#include "ops/rules.h"
#include "ops/vmap.h"

/* ---- broadcasts ---- */

/* The shape without some axes, which are counted from the end and ascend. */
static bool without(struct shp *out, const struct arr *a, const struct axes_params *p)
{
    int next = 0;

    out->ndim = 0;
    for (int i = 0; i < a->ndim; i++)
        if (next < p->n && p->axis[next] == i - a->ndim)
            next++;
        else
            out->d[out->ndim++] = a->shape[i];
    return next == p->n;
}

enum err op_infer_broadcast_axes(struct infer_call *c)
{
    const struct axes_params *p = c->params;
    struct shp *shape = &c->out[0].shape, other;
    enum err err = ERR_OK;

    shape->ndim = 0;
    for (size_t i = 0; i < c->n_in; i++) {
        FITS(without(&other, c->in[i], p));
        TRY(shp_broadcast(shape, shape, &other, "broadcast_shapes"));
    }
    int ndim = shape->ndim + p->n;
    FITS(ndim <= SHP_MAX);
    for (int i = 0; i < p->n; i++) {
        int at = p->axis[i] + ndim;
        memmove(&shape->d[at + 1], &shape->d[at], (size_t)(shape->ndim - at) * sizeof shape->d[0]);
        shape->d[at] = c->in[0]->shape[p->axis[i] + c->in[0]->ndim];
        shape->ndim++;
    }
    c->out[0].dtype = dtype_of(c->in[0]);
out:
    return err;
}

static bool is_tracer(const struct arr *a, struct arrs with)
{
    bool is = a->tracer;

    for (size_t i = 0; i < with.n; i++)
        is |= with.v[i]->tracer;
    return is;
}

/* Behind a those of `with` that may say more than a does, without their gradients. */
static enum err add_partners(struct arr **in, size_t *n, const struct ops_stretch *to,
                             struct strm *s)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < to->with.n; i++) {
        struct arr *other = to->with.v[i];
        if (other == in[0] || other->ndim <= to->own)
            continue;
        TRY(ops_stop_gradient(&in[*n], other, s));
        (*n)++;
    }
out:
    return err;
}

enum err ops_stretch_with(struct arr **out, struct arr *a, const struct ops_stretch *to,
                          struct strm *s)
{
    struct axes_params p = { .n = to->own };
    struct arr **in = NULL;
    size_t n = 0;
    enum err err;

    if (!tracing_is_dynamic() || !is_tracer(a, to->with))
        return ops_stretch(out, a, &to->shape, s);
    if (!(in = mem_alloc_array(to->with.n + 1, sizeof *in)))
        return ERR_NO_MEMORY;
    for (int i = 0; i < p.n; i++)
        p.axis[i] = i - p.n;
    in[n++] = arr_ref(a);
    TRY(add_partners(in, &n, to, s));
    err = n == 1 ? ops_stretch(out, a, &to->shape, s)
                 : ops_make(out, OP_BROADCAST_AXES, &p, (struct arrs){ in, n }, s);
out:
    arr_unref_all(in, n);
    mem_free(in);
    return err;
}

/* Of the others only sizes are read. */
enum err op_vjp_broadcast_axes(struct vjp_call *c)
{
    struct vjp_call first = *c;
    enum err err = ERR_OK;

    for (size_t i = 0; i < c->n_wanted && !err; i++) {
        first.result = c->result + i;
        if (c->wanted[i] == 0)
            err = op_vjp_broadcast(&first);
    }
    return err;
}

enum err op_jvp_broadcast_axes(struct jvp_call *c)
{
    struct arr **in;
    enum err err;

    if (!c->tan[0])
        return ERR_OK;
    if (!(in = mem_alloc_array(c->f.n_in, sizeof *in)))
        return ERR_NO_MEMORY;
    memcpy(in, c->f.in, c->f.n_in * sizeof *in);
    in[0] = c->tan[0];
    err = ops_make(c->result, c->f.op, c->f.params, (struct arrs){ in, c->f.n_in }, c->f.strm);
    mem_free(in);
    return err;
}

/* An input with the batch in front of as many dimensions as the result has; without a batch, as it
 * is. */
static enum err batch_first(struct arr **out, const struct vmap_call *c, size_t i, int ndim)
{
    struct arr *x = NULL;
    int32_t axes[SHP_MAX];
    size_t n = 0;
    enum err err;

    if (c->axis[i] == VMAP_NONE)
        return ops_same(out, c->f.in[i]);
    TRY(ops_moveaxis(&x, c->f.in[i], c->axis[i], 0, c->f.strm));
    for (int missing = ndim + 1 - x->ndim; missing > 0; missing--, n++)
        axes[n] = (int32_t)n + 1;
    TRY(ops_expand_dims(out, x, (struct ints){ axes, n }, c->f.strm));
out:
    arr_unref(&x);
    return err;
}

enum err op_vmap_broadcast_axes(struct vmap_call *c)
{
    struct arr **in = mem_alloc_array(c->f.n_in, sizeof *in);
    size_t n = 0;
    int ndim = 0;
    enum err err = ERR_NO_MEMORY;

    if (!in)
        return err;
    for (size_t i = 0; i < c->f.n_in; i++)
        ndim = MAX(ndim, c->f.in[i]->ndim - (c->axis[i] != VMAP_NONE));
    if (ndim == SHP_MAX)
        TRY(vmap_no_room());
    for (; n < c->f.n_in; n++)
        TRY(batch_first(&in[n], c, n, ndim));
    TRY(ops_make(c->result, c->f.op, c->f.params, (struct arrs){ in, n }, c->f.strm));
    c->out_axis[0] = 0;
out:
    arr_unref_all(in, n);
    mem_free(in);
    return err;
}

/* ---- numbers of elements ---- */

enum err op_infer_elements(struct infer_call *c)
{
    const struct elements_params *p = c->params;

    FITS(c->in[0]->ndim == 0 && (int32_t)c->in[0]->dtype == p->dtype);
    for (int i = 0; i < p->n; i++)
        FITS(infer_has_axis(c->in[1], p->axis[i]));
    infer_like(c, c->in[0]);
    return ERR_OK;
}

/* The number has no batch: there is none but that of the sizes. */
enum err op_vmap_elements(struct vmap_call *c)
{
    struct arr *in[2] = { c->f.in[0], NULL };
    struct elements_params p;
    enum err err;

    op_own_params(&p, &c->f);
    for (int i = 0; i < p.n; i++)
        p.axis[i]++;
    TRY(vmap_front(&in[1], c, 1));
    TRY(ops_make(c->result, c->f.op, &p, (struct arrs){ in, 2 }, c->f.strm));
    c->out_axis[0] = VMAP_NONE;
out:
    arr_unref(&in[1]);
    return err;
}

enum err ops_number_of_elements(struct arr **out, struct arr *a, const struct ops_elements *e,
                                struct strm *s)
{
    struct elements_params p = { .inverted = e->inverted, .dtype = (int32_t)e->dtype };
    size_t n = e->axes.n == SIZE_MAX ? a->ndim : e->axes.n;
    struct arr *number = NULL;
    double count;
    enum err err = ERR_OK;

    if (n > SHP_MAX)
        return err_set(ERR_ARG, "[number_of_elements] At most %d axes, got %zu.", SHP_MAX, n);
    for (p.n = 0; p.n < (int)n; p.n++) {
        int axis = p.n;
        if (e->axes.n != SIZE_MAX)
            TRY(shp_axis(&axis, e->axes.v[p.n], a->ndim, "number_of_elements"));
        p.axis[p.n] = axis;
    }
    count = 1;
    for (int i = 0; i < p.n; i++)
        count *= a->shape[p.axis[i]];
    TRY(arr_new_number(&number, p.inverted ? 1 / count : count, e->dtype));
    if (tracing_is_dynamic() && a->tracer)
        err = ops_make(out, OP_NUMBER_OF_ELEMENTS, &p,
                       (struct arrs){ (struct arr *[]){ number, a }, 2 }, s);
    else
        arr_move(out, &number);
out:
    arr_unref(&number);
    return err;
}
