/* From primitives in files to nodes: what is different from op to op. */
#include "graph/op_call.h"
#include "io/mlxfn_prim.h"

/* ---- nodes ---- */

/* The error for a primitive whose inputs are not what it takes. */
static enum err unfit(const struct prim_call *c)
{
    return err_set(ERR_ARG, "[import_function] %zu inputs that %s does not take.", c->n_in,
                   op_name(c->op));
}

static enum err make_with(struct prim_call *c, struct infer_call *i)
{
    enum err err;

    TRY(op_infer(i));
    if (i->n_out != c->n_made)
        return err_set(ERR_ARG, "[import_function] %s gives %zu results, not %zu.", op_name(c->op),
                       i->n_out, c->n_made);
    err = node_new(c->result,
                   &(struct node_params){ .op = (uint16_t)c->op,
                                          .strm = c->strm,
                                          .in = i->in,
                                          .n_in = i->n_in,
                                          .params = op_table[c->op].params ? c->params : NULL,
                                          .out = i->out,
                                          .n_out = i->n_out });
out:
    return err;
}

enum err make_node(struct prim_call *c)
{
    struct out_desc small[OP_MAX_OUT];
    struct infer_call i = {
        .op = c->op, .params = c->params, .in = c->in, .n_in = c->n_in, .out = small
    };

    if (c->n_in > OP_MAX_OUT && !(i.out = mem_alloc_array(c->n_in, sizeof *i.out)))
        return ERR_NO_MEMORY;
    enum err err = make_with(c, &i);
    if (i.out != small)
        mem_free(i.out);
    return err;
}

/* ---- dtypes that the results say ---- */

enum err make_arange(struct prim_call *c)
{
    c->params->arange.dtype = (int32_t)c->made[0].dtype;
    return make_node(c);
}

enum err make_quantize(struct prim_call *c)
{
    if (c->params->quantize.dequantize)
        c->params->quantize.dtype = (int32_t)c->made[0].dtype;
    return make_node(c);
}

enum err make_floor_divide(struct prim_call *c)
{
    if (c->n_in != 2)
        return unfit(c);
    return ops_floor_divide(c->result, c->in[0], c->in[1], c->strm);
}

/* MLX scans bools as they are. */
enum err make_scan(struct prim_call *c)
{
    const struct scan_params *p = &c->params->scan;
    const struct ops_scan v = {
        .kind = p->kind, .axis = p->axis, .reverse = p->reverse, .inclusive = p->inclusive
    };

    if (c->n_in != 1 || c->in[0]->dtype != DT_BOOL)
        return make_node(c);
    return ops_scan(c->result, c->in[0], &v, c->strm);
}

enum err make_search_sorted(struct prim_call *c)
{
    const char *side = c->params->search.is_right ? "right" : "left";

    return c->n_in == 2 ? ops_searchsorted(c->result, c->in[0], c->in[1], side, c->strm) : unfit(c);
}

/* ---- shapes that the inputs say ---- */

/* Of several inputs, the first broadcast to all of them. */
static enum err broadcast_to(struct prim_call *c, const struct shp *shape)
{
    return ops_broadcast_to(c->result, c->in[0], (struct ints){ shape->d, (size_t)shape->ndim },
                            c->strm);
}

enum err make_broadcast(struct prim_call *c)
{
    struct shp shape, other;
    enum err err = ERR_OK;

    if (c->n_in == 0)
        return unfit(c);
    if (c->n_in == 1 && !c->was)
        return make_node(c);
    arr_shape(&shape, c->in[0]);
    if (c->n_in == 1) {
        other = (struct shp){ .ndim = c->params->shape.n };
        memcpy(other.d, c->params->shape.shape, (size_t)other.ndim * sizeof other.d[0]);
        TRY(shp_broadcast(&shape, &shape, &other, "broadcast_shapes"));
    }
    for (size_t i = 1; i < c->n_in; i++) {
        arr_shape(&other, c->in[i]);
        TRY(shp_broadcast(&shape, &shape, &other, "broadcast_shapes"));
    }
    err = broadcast_to(c, &shape);
out:
    return err;
}

enum err make_broadcast_axes(struct prim_call *c)
{
    struct out_desc d;
    struct infer_call i = {
        .op = c->op, .params = c->params, .in = c->in, .n_in = c->n_in, .out = &d
    };
    enum err err;

    TRY(op_infer(&i));
    err = broadcast_to(c, &d.shape);
out:
    return err;
}

/* One dimension may be -1: what the others leave. */
enum err make_reshape(struct prim_call *c)
{
    const struct shape_params *p = &c->params->shape;

    if (c->n_in != 1)
        return unfit(c);
    return ops_reshape(c->result, c->in[0], (struct ints){ p->shape, (size_t)p->n }, c->strm);
}

enum err make_unflatten(struct prim_call *c)
{
    const struct unflatten_params *p = &c->params->unflatten;

    if (c->n_in != 1)
        return unfit(c);
    return ops_unflatten(c->result, c->in[0], p->axis, (struct ints){ p->shape, (size_t)p->n },
                         c->strm);
}

/* Not computed by anybody: shapes are known when nodes are made. */
enum err make_elements(struct prim_call *c)
{
    const struct elements_params *p = &c->params->elements;
    struct ops_elements e = { { p->axis, (size_t)p->n }, p->inverted, (enum dtype)p->dtype };

    return c->n_in == 1 ? ops_number_of_elements(c->result, c->in[0], &e, c->strm) : unfit(c);
}

/* The update is as large as what it replaces. */
enum err make_sized(struct prim_call *c)
{
    struct dynamic_slice_params *p = &c->params->dynamic_slice;

    if (c->n_in != 3)
        return unfit(c);
    p->n = c->in[1]->ndim;
    for (int i = 0; i < p->n; i++)
        p->d[i].size = c->in[1]->shape[i];
    return make_node(c);
}

/* Files have the ends that the caller of MLX gave, which may count from the end or lie outside, but
 * the step of a single element as 1: its end tells nothing then. sizes: those of the result in the
 * file. */
static enum err clamp_region(struct prim_call *c, struct slice_params *p, const struct shp *sizes)
{
    const struct arr *a = c->n_in ? c->in[0] : NULL;

    if (!a || p->n != a->ndim || sizes->ndim != p->n)
        return unfit(c);
    for (int i = 0; i < p->n; i++) {
        int32_t start = p->d[i].start;
        if (p->d[i].step == 0 || start == INT32_MIN)
            return unfit(c);
        bool is_one = sizes->d[i] == 1 && start >= 0 && start < a->shape[i];
        if (ops_slice_clamp(p, i, a->shape[i]) == 0 && is_one)
            p->d[i].stop = (p->d[i].start = start) + 1;
    }
    return ERR_OK;
}

enum err make_slice(struct prim_call *c)
{
    enum err err = clamp_region(c, &c->params->slice, &c->made[0].shape);

    return err ? err : make_node(c);
}

enum err make_slice_update(struct prim_call *c)
{
    struct shp sizes;

    if (c->n_in != 2)
        return unfit(c);
    arr_shape(&sizes, c->in[1]);
    enum err err = clamp_region(c, &c->params->slice_update.region, &sizes);
    return err ? err : make_node(c);
}

/* ---- inputs that may be there ---- */

enum err make_depends(struct prim_call *c)
{
    c->params->alias.n = (int32_t)MIN(c->n_made, (size_t)INT32_MAX);
    return make_node(c);
}

/* In place of a weight or bias that is not there is a number, 1 or 0. */
enum err make_norm(struct prim_call *c)
{
    struct norm_params *p = &c->params->norm;
    struct arr *in[3];
    struct prim_call with = *c;

    if (c->n_in != (c->op == OP_LAYER_NORM ? 3 : 2))
        return unfit(c);
    with.in = in;
    with.n_in = 1;
    in[0] = c->in[0];
    p->has_weight = c->in[1]->ndim > 0;
    p->has_bias = c->op == OP_LAYER_NORM && c->in[2]->ndim > 0;
    if (p->has_weight)
        in[with.n_in++] = c->in[1];
    if (p->has_bias)
        in[with.n_in++] = c->in[2];
    return make_node(&with);
}

enum err make_rope(struct prim_call *c)
{
    c->params->rope.has_offset = 1;
    c->params->rope.has_freqs = c->n_in > 2;
    return c->n_in < 2 ? unfit(c) : make_node(c);
}

enum err make_sdpa(struct prim_call *c)
{
    struct sdpa_params *p = &c->params->sdpa;

    p->has_mask = c->n_in > 3 + (size_t)p->has_sinks;
    return make_node(c);
}
