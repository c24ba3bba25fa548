/* What a shapeless function does where it is called with other sizes than it was recorded with, and
 * parameters of an op hold sizes of the recording. Some follow from the new sizes; where the file
 * does not say whether they do (3 of 3 columns may be all of them or the first three) nothing is
 * computed. */
#include "io/mlxfn_prim.h"

/* Names of MLX: updates are called after their kind. */
static enum err cannot_infer(const struct prim_call *c)
{
    static const char *const suffix[] = { [UPDATE_MAX] = " Max",
                                          [UPDATE_MIN] = " Min",
                                          [UPDATE_SUM] = " Sum",
                                          [UPDATE_PROD] = " Prod",
                                          [UPDATE_NONE] = "" };
    const char *kind = "";

    if (c->op == OP_SCATTER)
        kind = suffix[c->params->scatter.kind];
    else if (c->op == OP_SLICE_UPDATE)
        kind = suffix[c->params->slice_update.kind];
    return err_set(ERR_ARG, "[Primitive::output_shapes] %s%s cannot infer output shapes.",
                   op_name(c->op), kind);
}

static bool has_axis(const struct prim_call *c, size_t i, int32_t axis)
{
    return i < c->n_in && axis >= 0 && axis < c->in[i]->ndim && axis < c->was[i]->ndim;
}

/* True for axes that are not there, too: the op's infer rule refuses them. */
static bool is_same(const struct prim_call *c, size_t i, int32_t axis)
{
    return !has_axis(c, i, axis) || c->in[i]->shape[axis] == c->was[i]->d[axis];
}

static bool are_same(const struct prim_call *c, size_t i)
{
    struct shp now;

    if (i >= c->n_in)
        return true;
    arr_shape(&now, c->in[i]);
    return shp_equal(&now, c->was[i]);
}

static bool never(struct prim_call *c)
{
    (void)c;
    return false;
}

static bool if_all_axes_stay(struct prim_call *c)
{
    return are_same(c, 0);
}

static bool if_last_axis_stays(struct prim_call *c)
{
    return c->n_in == 0 || is_same(c, 0, c->in[0]->ndim - 1);
}

static bool if_split_axis_stays(struct prim_call *c)
{
    return is_same(c, 0, c->params->split.axis);
}

static bool if_transformed_axes_stay(struct prim_call *c)
{
    const struct fft_params *p = &c->params->fft;
    bool stay = true;

    for (int i = 0; i < p->n; i++)
        stay &= is_same(c, 0, p->axis[i]);
    return stay;
}

/* All of an axis stays all of it. What is taken along axes with indices is the caller's choice. */
static bool gather_follows(struct prim_call *c)
{
    struct gather_params *p = &c->params->gather;
    uint32_t indexed = 0;

    for (int i = 0; i < p->n_axes && i < p->n; i++)
        indexed |= 1u << (p->d[i].axis & 31);
    for (int i = 0; i < p->n; i++) {
        if (is_same(c, 0, i) || indexed >> i & 1)
            continue;
        if (p->d[i].size != c->was[0]->d[i])
            return false;
        p->d[i].size = c->in[0]->shape[i];
    }
    return true;
}

/* An update of the axis from its beginning, or up to its end, then and now. */
static bool region_follows(struct prim_call *c, int axis)
{
    struct slice_params *p = &c->params->slice_update.region;
    int32_t start = p->d[axis].start, size = c->in[0]->shape[axis];
    int32_t n = c->in[1]->shape[axis], n_was = c->was[1]->d[axis];

    if (is_same(c, 0, axis) && is_same(c, 1, axis))
        return true;
    if (p->d[axis].step != 1 || start < 0 || start > size || n > size - start)
        return false;
    p->d[axis].stop = start + n;
    return (start == 0 && n != n_was) || (n == size - start && n_was == c->was[0]->d[axis] - start);
}

static bool slice_update_follows(struct prim_call *c)
{
    const struct slice_params *p = &c->params->slice_update.region;
    bool follows = true;

    for (int i = 0; i < p->n && has_axis(c, 0, i) && has_axis(c, 1, i); i++)
        follows &= region_follows(c, i);
    return follows;
}

/* Updates of all of an axis stay that, and those of single elements are where their indices say. */
static bool scatter_follows(struct prim_call *c)
{
    const struct scatter_params *p = &c->params->scatter;
    size_t last = c->n_in - 1;
    uint32_t indexed = 0;

    if (c->n_in < 2)
        return true;
    for (int i = 0; i < p->n; i++)
        indexed |= 1u << (p->axis[i] & 31);
    for (int i = 0, lead = p->n ? c->in[1]->ndim : 0; i < c->in[0]->ndim; i++) {
        if (!has_axis(c, last, lead + i) || (is_same(c, 0, i) && is_same(c, last, lead + i)))
            continue;
        int32_t n = c->in[last]->shape[lead + i], n_was = c->was[last]->d[lead + i];
        if (indexed >> i & 1 && n == 1 && n_was == 1)
            continue;
        if (n != c->in[0]->shape[i] || n_was != c->was[0]->d[i])
            return false;
    }
    return true;
}

enum err prim_follow(struct prim_call *c)
{
    static bool (*const follows[OP_COUNT])(struct prim_call *) = {
        [OP_AS_STRIDED] = if_all_axes_stay,
        [OP_FFT] = if_transformed_axes_stay,
        [OP_GATHER] = gather_follows,
        [OP_HADAMARD] = if_last_axis_stays, /* of whose size the scale is made */
        [OP_RANDOM_BITS] = never,           /* the keys do not say it */
        [OP_SCATTER] = scatter_follows,
        [OP_SLICE] = if_all_axes_stay,
        [OP_SLICE_UPDATE] = slice_update_follows,
        [OP_SPLIT] = if_split_axis_stays,
    };

    return !follows[c->op] || follows[c->op](c) ? ERR_OK : cannot_infer(c);
}
