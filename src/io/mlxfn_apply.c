/* Traces of files as graphs. */
#include "io/mlxfn_node.h"

struct apply {
    const struct mlxfn_trace *t;
    struct arr **value; /* by number; owned from the first one that a node makes */
    struct strm *strm[DEV_TYPE_COUNT];
    int index[DEV_TYPE_COUNT]; /* of the device whose stream that is */
    VEC(struct arr *) in;      /* of the node at hand, borrowed */
    /* Where inputs have other sizes than in the trace: those of values there, by number, and of the
     * node at hand. */
    struct shp *recorded;
    VEC(const struct shp *) was;
};

static enum err strm_for(struct apply *a, struct strm **out, struct dev dev)
{
    enum err err = ERR_OK;

    if (!a->strm[dev.type] || a->index[dev.type] != dev.index)
        TRY(strm_default(&a->strm[dev.type], dev));
    a->index[dev.type] = dev.index;
    *out = a->strm[dev.type];
out:
    return err;
}

/* Results are what the file says; where inputs have other sizes that is true of dtypes. */
static enum err check_results(const struct mlxfn_node *n, struct arr *const *result,
                              const struct out_desc *made, bool sizes)
{
    struct shp shape;

    for (uint32_t i = 0; i < n->n_out; i++) {
        if (!result[i])
            return err_set(ERR_ARG, "[import_function] %s does not give %u results.", n->prim->name,
                           n->n_out);
        arr_shape(&shape, result[i]);
        if (result[i]->dtype != made[i].dtype || (sizes && !shp_equal(&shape, &made[i].shape)))
            return err_set(ERR_ARG,
                           "[import_function] %s gives %s of shape %s, but the file says %s of "
                           "shape %s.",
                           n->prim->name, dt_name((enum dtype)result[i]->dtype), shp_text(&shape),
                           dt_name(made[i].dtype), shp_text(&made[i].shape));
    }
    return ERR_OK;
}

static bool is_resized(const struct mlxfn_trace *t, struct arrs in)
{
    struct shp shape;

    for (size_t i = 0; i < t->in.n; i++) {
        arr_shape(&shape, in.v[i]);
        if (!shp_equal(&shape, &t->in.v[i].shape))
            return true;
    }
    return false;
}

static enum err note_sizes(struct apply *a)
{
    const struct mlxfn_trace *t = a->t;
    const struct out_desc *made = t->made.v;

    if (!(a->recorded = mem_alloc_array(t->value.n + 1, sizeof *a->recorded)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < t->value.n; i++)
        if (i < t->in.n)
            a->recorded[i] = t->in.v[i].shape;
        else if (t->value.v[i])
            arr_shape(&a->recorded[i], t->value.v[i]);
    for (size_t i = 0; i < t->node.n; i++)
        for (uint32_t k = 0; k < t->node.v[i].n_out; k++)
            a->recorded[t->node.v[i].first + k] = (made++)->shape;
    return ERR_OK;
}

/* The sizes that the node's inputs had, and what follows from those that they have. */
static enum err follow(struct apply *a, struct prim_call *c, const uint32_t *arg)
{
    enum err err;

    a->was.n = 0;
    for (size_t i = 0; i < c->n_in; i++)
        TRY(VEC_PUSH(&a->was, &a->recorded[arg[i]]));
    c->was = a->was.v;
    err = prim_follow(c);
out:
    return err;
}

static enum err apply_node(struct apply *a, const struct mlxfn_node *n, const uint32_t *arg,
                           const struct out_desc *made)
{
    union prim_params params;
    struct prim_call c = { .op = (enum op_id)n->prim->op,
                           .params = &params,
                           .state = n->state,
                           .n_in = n->n_in,
                           .made = made,
                           .n_made = n->n_out,
                           .result = &a->value[n->first] };
    enum err err;

    memcpy(&params, n->params, n->prim->params_size);
    a->in.n = 0;
    for (uint32_t i = 0; i < n->n_in; i++)
        TRY(VEC_PUSH(&a->in, a->value[arg[i]]));
    c.in = a->in.v;
    TRY(strm_for(a, &c.strm, n->dev));
    if (a->recorded)
        TRY(follow(a, &c, arg));
    TRY(n->prim->make(&c));
    err = check_results(n, c.result, made, !a->recorded);
out:
    return err;
}

enum err mlxfn_apply(struct arr **out, const struct mlxfn *f, const struct mlxfn_trace *t,
                     struct arrs in)
{
    struct apply a = { .t = t };
    const uint32_t *arg = t->arg.v;
    const struct out_desc *made = t->made.v;
    size_t n_values = t->value.n;
    enum err err = ERR_NO_MEMORY;

    if (n_values && !(a.value = mem_alloc_array(n_values, sizeof *a.value)))
        goto out;
    for (size_t i = 0; i < n_values; i++)
        if (i < in.n || t->value.v[i])
            a.value[i] = arr_ref(i < in.n ? in.v[i] : t->value.v[i]);
    err = ERR_OK;
    if (f->shapeless && is_resized(t, in))
        TRY(note_sizes(&a));
    for (size_t i = 0; i < t->node.n; i++) {
        const struct mlxfn_node *n = &t->node.v[i];
        TRY(apply_node(&a, n, arg, made));
        arg += n->n_in;
        made += n->n_out;
    }
    for (size_t i = 0; i < t->out.n; i++)
        out[i] = arr_ref(a.value[t->out.v[i]]);
out:
    for (size_t i = 0; a.value && i < n_values; i++)
        arr_unref(&a.value[i]);
    mem_free(a.value);
    mem_free(a.recorded);
    VEC_FINI(&a.in);
    VEC_FINI(&a.was);
    return err;
}
