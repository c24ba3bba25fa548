#include "ops/build.h"
#include "graph/op_call.h"
#include "graph/tracing.h"

static enum err make(struct arr **outs, struct node_params *p)
{
    struct out_desc small[OP_MAX_OUT];
    struct infer_call c;
    enum err err;

    c.op = (enum op_id)p->op;
    c.params = p->params;
    c.in = p->given ? p->given : p->in;
    c.n_in = p->n_in;
    c.state = p->state;
    c.n_out = 1;
    c.out = small;
    if (c.n_in > OP_MAX_OUT && !(c.out = mem_alloc_array(c.n_in, sizeof *c.out)))
        return ERR_NO_MEMORY;
    err = op_table[p->op].infer(&c);
    p->out = c.out;
    p->n_out = c.n_out;
    if (!err)
        err = node_new(outs, p);
    if (c.out != small)
        mem_free(c.out);
    return err;
}

enum err ops_make(struct arr **outs, enum op_id op, const void *params, struct arrs in,
                  struct strm *s)
{
    return make(outs,
                &(struct node_params){
                    .op = (uint16_t)op, .strm = s, .in = in.v, .n_in = in.n, .params = params });
}

enum err ops_make_with(struct arr **outs, enum op_id op, const void *params,
                       const struct ops_inputs *in, struct strm *s)
{
    return make(outs, &(struct node_params){ .op = (uint16_t)op,
                                             .strm = s,
                                             .in = in->arrs.v,
                                             .n_in = in->arrs.n,
                                             .params = params,
                                             .state = in->state });
}

enum err ops_make_of(struct arr **outs, enum op_id op, const void *params, struct given in,
                     struct strm *s)
{
    return make(outs,
                &(struct node_params){
                    .op = (uint16_t)op, .strm = s, .given = in.v, .n_in = in.n, .params = params });
}

static bool has_shape(const struct arr *a, const struct shp *shape)
{
    return a->ndim == shape->ndim && shp_same_dims(a->shape, shape->d, a->ndim);
}

enum err ops_stretch(struct arr **out, struct arr *a, const struct shp *shape, struct strm *s)
{
    if (has_shape(a, shape))
        return ops_same(out, a);
    struct shape_params p = shape_params(shape);
    return ops_make_one(out, OP_BROADCAST, &p, a, s);
}

enum err ops_common_shape(struct shp *out, struct arrs in)
{
    struct shp b;
    enum err err = ERR_OK;

    arr_shape(out, in.v[0]);
    for (size_t i = 1; i < in.n; i++) {
        if (has_shape(in.v[i], out))
            continue;
        arr_shape(&b, in.v[i]);
        TRY(shp_broadcast(out, out, &b, "broadcast_shapes"));
    }
out:
    return err;
}

enum err ops_align(struct arr *in[2], struct arr *const src[2], enum dtype t, struct strm *s)
{
    struct ops_stretch to = { .own = 0 };
    bool is_dynamic = tracing_is_dynamic();
    enum err err;

    in[0] = in[1] = NULL;
    TRY(ops_common_shape(&to.shape, (struct arrs){ src, 2 }));
    for (int i = 0; i < 2; i++) {
        TRY(ops_astype(&in[i], src[i], t, s));
        to.with = (struct arrs){ &src[1 - i], 1 };
        if (is_dynamic || !has_shape(in[i], &to.shape))
            STEP(in[i], ops_stretch_with(&next, in[i], &to, s));
    }
out:
    if (err)
        arr_unref_all(in, 2);
    return err;
}

/* Axes come in any order; insertion keeps the set sorted. */
static enum err axis_insert(struct axis_set *set, int32_t axis, const char *op)
{
    int i = set->n;

    for (; i > 0 && set->axis[i - 1] >= axis; i--) {
        if (set->axis[i - 1] == axis)
            return err_set(ERR_ARG, "[%s] Received duplicate axes.", op);
        set->axis[i] = set->axis[i - 1];
    }
    set->axis[i] = axis;
    set->n++;
    return ERR_OK;
}

enum err ops_axis_set(struct axis_set *out, struct ints axes, int ndim, const char *op)
{
    enum err err = ERR_OK;

    memset(out, 0, sizeof *out);
    if (axes.n == SIZE_MAX) {
        for (out->n = 0; out->n < ndim; out->n++)
            out->axis[out->n] = out->n;
        return ERR_OK;
    }
    for (size_t i = 0; i < axes.n; i++) {
        int axis;
        TRY(shp_axis(&axis, axes.v[i], ndim, op));
        TRY(axis_insert(out, axis, op));
    }
out:
    return err;
}

enum err ops_axis_list(struct axes_params *out, struct ints axes, int ndim, const char *op)
{
    bool seen[SHP_MAX] = { false };
    enum err err = ERR_OK;

    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < axes.n; i++) {
        int axis;
        TRY(shp_axis(&axis, axes.v[i], ndim, op));
        if (seen[axis])
            return err_set(ERR_ARG, "[%s] Repeat axes not allowed.", op);
        seen[axis] = true;
        out->axis[out->n++] = axis;
    }
out:
    return err;
}

enum err ops_dim(int32_t *out, int64_t size, const char *op)
{
    if (size > INT32_MAX)
        return err_set(ERR_OVERFLOW, "[%s] Size %lld does not fit a dimension.", op,
                       (long long)size);
    *out = (int32_t)size;
    return ERR_OK;
}

enum err ops_merged_dim(int32_t *out, const int32_t *d, int n, const char *op)
{
    struct shp part = { .ndim = n };
    int64_t size;

    memcpy(part.d, d, (size_t)n * sizeof *d);
    if (!shp_size_checked(&part, &size))
        size = INT64_MAX;
    return ops_dim(out, size, op);
}
