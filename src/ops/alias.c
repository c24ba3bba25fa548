/* Ops that hand inputs over as they are, and mean something to transformations or to the order of
 * evaluation. */
#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_alias(struct infer_call *c)
{
    const struct alias_params *p = c->params;

    FITS(p->first >= 0 && p->n >= 1 && (size_t)p->first + (size_t)p->n <= c->n_in);
    c->n_out = (size_t)p->n;
    for (int i = 0; i < p->n; i++) {
        const struct arr *a = c->in[p->first + i];
        c->out[i].dtype = dtype_of(a);
        arr_shape(&c->out[i].shape, a);
    }
    return ERR_OK;
}

/* Both lists in one, borrowed; NULL without memory, or with more than a node can have. */
static enum err joined(struct arr ***out, struct arrs a, struct arrs b, const char *op)
{
    if (a.n + b.n > UINT16_MAX)
        return err_set(ERR_ARG, "[%s] At most %d arrays at once, got %zu.", op, UINT16_MAX,
                       a.n + b.n);
    if (!(*out = mem_alloc_array(a.n + b.n, sizeof **out)))
        return ERR_NO_MEMORY;
    if (a.n)
        memcpy(*out, a.v, a.n * sizeof **out);
    if (b.n)
        memcpy(*out + a.n, b.v, b.n * sizeof **out);
    return ERR_OK;
}

/* ---- Depends ---- */

enum err ops_depends(struct arr **outs, struct arrs inputs, struct arrs dependencies,
                     struct strm *s)
{
    struct alias_params p = { .first = 0, .n = (int32_t)inputs.n };
    struct arr **in = NULL;
    enum err err;

    if (!inputs.n)
        return ERR_OK;
    TRY(joined(&in, inputs, dependencies, "depends"));
    err = ops_make(outs, OP_DEPENDS, &p, (struct arrs){ in, inputs.n + dependencies.n }, s);
out:
    mem_free(in);
    return err;
}

/* The dependencies have no gradient. */
enum err op_vjp_depends(struct vjp_call *c)
{
    const struct alias_params *p = c->f.params;

    for (size_t i = 0; i < c->n_wanted; i++)
        if (c->wanted[i] < p->n && c->cotan[c->wanted[i]])
            c->result[i] = arr_ref(c->cotan[c->wanted[i]]);
    return ERR_OK;
}

/* ---- CustomTransforms ---- */

enum err ops_custom(struct arr **results, struct arrs args, struct arrs outputs,
                    struct ops_custom *rules, struct strm *s)
{
    struct alias_params p = { .first = (int32_t)args.n, .n = (int32_t)outputs.n };
    struct arr **in = NULL;
    enum err err;

    TRY(joined(&in, args, outputs, "custom_function"));
    err = ops_make_with(results, OP_CUSTOM_TRANSFORMS, &p,
                        &(struct ops_inputs){ { in, args.n + outputs.n }, &rules->base }, s);
out:
    mem_free(in);
    return err;
}

static const struct ops_custom *rules_of(const struct op_apply *f)
{
    return (const struct ops_custom *)f->state;
}

enum err op_vjp_custom(struct vjp_call *c)
{
    return rules_of(&c->f)->vjp(c);
}

enum err op_jvp_custom(struct jvp_call *c)
{
    return rules_of(&c->f)->jvp(c);
}

enum err op_vmap_custom(struct vmap_call *c)
{
    return rules_of(&c->f)->vmap(c);
}
