/* vmap: a function is traced on placeholders without the batch, then each node behind them is
 * replaced by what its op's rule makes of a batch. */
#include "eval/stream.h"
#include "graph/op.h"
#include "graph/op_call.h"
#include "transforms/parts.h"
#include "transforms/trace.h"
#include "transforms/transforms.h"
#include "transforms/walk.h"

/* ---- tracing ---- */

static enum err check_axes(struct arrs inputs, struct ints axes)
{
    int64_t batch = -1;

    if (axes.n != inputs.n)
        return err_set(ERR_ARG,
                       "[vmap] The number of in axes (%zu) must match the number of inputs (%zu).",
                       axes.n, inputs.n);
    for (size_t i = 0; i < inputs.n; i++) {
        const struct arr *a = inputs.v[i];
        if (axes.v[i] == VMAP_NONE)
            continue;
        if (a->ndim == 0)
            return err_set(ERR_ARG, "[vmap] Cannot vmap an input with zero dimensions.");
        if (axes.v[i] < 0 || axes.v[i] >= a->ndim)
            return err_set(ERR_ARG, "[vmap] Axis %d invalid for input with %d dimensions.",
                           axes.v[i], a->ndim);
        if (batch >= 0 && batch != a->shape[axes.v[i]])
            return err_set(ERR_ARG, "[vmap] Inconsistent axis sizes: %d and %lld.",
                           a->shape[axes.v[i]], (long long)batch);
        batch = a->shape[axes.v[i]];
    }
    return ERR_OK;
}

/* What one element of the batch is like. */
static enum err placeholder(struct arr **out, const struct arr *a, int axis)
{
    struct shp one;

    arr_shape(&one, a);
    one.ndim--;
    memmove(&one.d[axis], &one.d[axis + 1], (size_t)(one.ndim - axis) * sizeof one.d[0]);
    return trace_placeholder(out, &one, (enum dtype)a->dtype);
}

enum err transform_vmap_trace(struct fun *fun, struct arrs inputs, struct ints axes,
                              struct outs *in, struct outs *out)
{
    enum err err;

    TRY(check_axes(inputs, axes));
    TRY(outs_init(in, inputs.n));
    for (size_t i = 0; i < inputs.n; i++)
        if (axes.v[i] == VMAP_NONE)
            in->v[i] = arr_ref(inputs.v[i]);
        else
            TRY(placeholder(&in->v[i], inputs.v[i], axes.v[i]));
    err = trace_call(out, fun, outs_arrs(in), TRACE_PLAIN);
out:
    if (err)
        outs_fini(in);
    return err;
}

/* ---- replacing ---- */

/* What stands for an array of the traced graph. */
struct batch {
    struct arr *a; /* owned; NULL: the array itself, which does not depend on a placeholder */
    int axis;
};

struct pass {
    struct outs stops; /* the placeholders */
    struct walk walk;
    struct batch *batch; /* by number */
};

static struct batch batch_of(const struct pass *p, struct arr *a)
{
    size_t at = walk_number(&p->walk, a);

    return at != WALK_NONE && p->batch[at].a ? p->batch[at] : (struct batch){ a, VMAP_NONE };
}

/* The node's inputs, where placeholders are behind them as batches; false if there is no such. */
static bool gather_inputs(const struct pass *p, const struct node *n, struct arr **in, int *axis)
{
    bool any = false;

    for (int i = 0; i < n->n_in; i++) {
        struct batch b = batch_of(p, n->in[i]);
        in[i] = b.a;
        axis[i] = b.axis;
        any |= b.a != n->in[i];
    }
    return any;
}

/* Without a batch among the inputs, which a rule may give up, the node is made of them as it was.
 */
static enum err apply(const struct node *n, struct vmap_call *c)
{
    op_vmap_fn rule = op_table[n->op].vmap;

    for (int i = 0; i < n->n_in; i++)
        if (c->axis[i] != VMAP_NONE)
            return rule ? rule(c)
                        : err_set(ERR_ARG, "[Primitive::vmap] Not implemented for %s.",
                                  op_name((enum op_id)n->op));
    for (int o = 0; o < n->n_out; o++)
        c->out_axis[o] = VMAP_NONE;
    return node_copy(c->result, n, c->f.in);
}

static enum err vmap_step(struct pass *p, const struct walk_step *s)
{
    const struct node *n = s->node;
    struct arena scratch = { 0 };
    struct arr **in = arena_alloc(&scratch, (size_t)n->n_in * sizeof *in);
    struct arr **result = arena_alloc(&scratch, (size_t)n->n_out * sizeof *result);
    int *axis = arena_alloc(&scratch, (size_t)n->n_in * sizeof *axis);
    int *out_axis = arena_alloc(&scratch, (size_t)n->n_out * sizeof *out_axis);
    enum err err = in && result && axis && out_axis ? ERR_OK : ERR_NO_MEMORY;

    if (err || !gather_inputs(p, n, in, axis))
        goto out;
    TRY(apply(n, &(struct vmap_call){ .f = { .op = (enum op_id)n->op,
                                             .params = n->params,
                                             .state = n->state,
                                             .in = in,
                                             .n_in = (size_t)n->n_in,
                                             .n_out = (size_t)n->n_out,
                                             .strm = n->strm,
                                             .by_parts = &transform_by_parts },
                                      .axis = axis,
                                      .result = result,
                                      .out_axis = out_axis }));
    for (int o = 0; o < n->n_out; o++)
        p->batch[s->first + (size_t)o] = (struct batch){ result[o], out_axis[o] };
out:
    arena_fini(&scratch);
    return err;
}

/* The placeholders and what stands for them; *size: of the batch. */
static enum err start(struct pass *p, const struct vmap_params *q, int32_t *size)
{
    size_t n = 0;
    enum err err;

    *size = -1;
    TRY(outs_init(&p->stops, q->inputs.n));
    for (size_t i = 0; i < q->inputs.n; i++)
        if (q->in_axes.v[i] != VMAP_NONE) {
            p->stops.v[n++] = arr_ref(q->traced_in.v[i]);
            *size = q->inputs.v[i]->shape[q->in_axes.v[i]];
        }
    p->stops.n = n;
    if (!n)
        return err_set(ERR_ARG, "At least one of in_axes must be non-None.");
    TRY(walk_graph(&p->walk, q->traced_out, outs_arrs(&p->stops)));
    if (!(p->batch = mem_alloc_array(p->walk.n_arrs, sizeof *p->batch)))
        return ERR_NO_MEMORY;
    n = 0;
    for (size_t i = 0; i < q->inputs.n; i++)
        if (q->in_axes.v[i] != VMAP_NONE)
            p->batch[n++] = (struct batch){ arr_ref(q->inputs.v[i]), q->in_axes.v[i] };
out:
    return err;
}

/* A result without a batch is the same for every element. */
static enum err repeated(struct arr **out, struct arr *a, int axis, int32_t size)
{
    struct arr *x = NULL;
    struct strm *s;
    enum err err;

    TRY(strm_of(&s, a));
    TRY(ops_expand_dims(&x, a, (struct ints){ &axis, 1 }, s));
    TRY(ops_repeat(out, x, size, axis, s));
out:
    arr_unref(&x);
    return err;
}

static enum err take(const struct pass *p, struct arr **out, struct arr *traced, int axis,
                     int32_t size)
{
    struct batch b = batch_of(p, traced);
    struct strm *s;
    enum err err;

    if (b.axis == VMAP_NONE)
        return repeated(out, b.a, axis, size);
    if (axis >= b.a->ndim || axis < -b.a->ndim)
        return err_set(ERR_ARG, "[vmap] Axis %d invalid for output with %d dimensions.", axis,
                       b.a->ndim);
    if (b.axis == axis) {
        *out = arr_ref(b.a);
        return ERR_OK;
    }
    TRY(strm_of(&s, b.a));
    err = ops_moveaxis(out, b.a, b.axis, axis, s);
out:
    return err;
}

static void pass_fini(struct pass *p)
{
    for (size_t i = 0; p->batch && i < p->walk.n_arrs; i++)
        arr_unref(&p->batch[i].a);
    mem_free(p->batch);
    walk_fini(&p->walk);
    outs_fini(&p->stops);
}

static enum err check_lists(const struct vmap_params *q)
{
    if (q->in_axes.n != q->inputs.n || q->traced_in.n != q->inputs.n)
        return err_set(ERR_ARG,
                       "[vmap] The number of in axes (%zu) must match the number of inputs (%zu).",
                       q->in_axes.n, q->inputs.n);
    if (q->out_axes.n != q->traced_out.n)
        return err_set(
            ERR_ARG, "[vmap] The number of out axes (%zu) must match the number of outputs (%zu).",
            q->out_axes.n, q->traced_out.n);
    return check_axes(q->inputs, q->in_axes);
}

enum err transform_vmap_replace(const struct vmap_params *q, struct outs *out)
{
    struct pass p = { 0 };
    int32_t size;
    enum err err;

    tracing_begin(TRACE_PLAIN); /* the walk goes into tracers */
    TRY(check_lists(q));
    TRY(start(&p, q, &size));
    for (size_t i = 0; i < p.walk.step.n; i++)
        TRY(vmap_step(&p, &p.walk.step.v[i]));
    TRY(outs_init(out, q->traced_out.n));
    for (size_t i = 0; i < out->n; i++)
        TRY(take(&p, &out->v[i], q->traced_out.v[i], q->out_axes.v[i], size));
out:
    if (err)
        outs_fini(out);
    pass_fini(&p);
    tracing_end(TRACE_PLAIN);
    return err;
}
