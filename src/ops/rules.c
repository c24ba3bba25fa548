/* Rules of more than one family, and what rules share. */
#include "ops/rules.h"
#include "ops/build.h"

#define PARAMS_TEXT_MAX 256

enum err infer_unfit(const struct infer_call *c)
{
    char text[PARAMS_TEXT_MAX];

    op_params_print((enum op_params_id)op_table[c->op].params, c->params, text, sizeof text);
    return err_set(ERR_ARG, "[%s] %zu inputs and parameters (%s) that do not fit each other.",
                   op_name(c->op), c->n_in, text);
}

bool infer_is_set(const int32_t *v, int n, int end)
{
    for (int i = 0; i < n; i++)
        if (v[i] < 0 || v[i] >= end || (i && v[i] <= v[i - 1]))
            return false;
    return true;
}

bool infer_is_shape(const int32_t *v, int n)
{
    for (int i = 0; i < n; i++)
        if (v[i] < 0)
            return false;
    return true;
}

enum err op_infer_same(struct infer_call *c)
{
    infer_like(c, c->in[0]);
    return ERR_OK;
}

enum err op_infer_astype(struct infer_call *c)
{
    const struct dtype_params *p = c->params;

    infer_like(c, c->in[0]);
    c->out[0].dtype = (enum dtype)p->dtype;
    return ERR_OK;
}

/* ---- transforms ---- */

enum err op_no_rule(enum op_id op, const char *rule)
{
    return err_set(ERR_UNSUPPORTED, "[%s] No %s for these parameters or inputs.", op_name(op),
                   rule);
}

enum err op_vjp_zero(struct vjp_call *c)
{
    (void)c;
    return ERR_OK;
}

enum err op_jvp_zero(struct jvp_call *c)
{
    (void)c;
    return ERR_OK;
}

enum err op_jvp_linear(struct jvp_call *c)
{
    struct arr **t = mem_alloc_array(c->f.n_in, sizeof *t);
    enum err err = ERR_NO_MEMORY;

    if (!t)
        return err;
    for (size_t i = 0; i < c->f.n_in; i++)
        TRY(op_or_zeros(&t[i], c->tan[i], c->f.in[i], c->f.strm));
    err = ops_make_of(c->result, c->f.op, c->f.params, (struct given){ t, c->f.n_in }, c->f.strm);
out:
    arr_unref_all(t, c->f.n_in);
    mem_free(t);
    return err;
}

enum err op_sum_of_two(struct arr **out, struct arr *const part[2], struct strm *s)
{
    if (part[0] && part[1])
        return ops_binary(out, OP_ADD, part[0], part[1], s);
    if (part[0] || part[1])
        return ops_same(out, part[0] ? part[0] : part[1]);
    return ERR_OK;
}

enum err op_or_zeros(struct arr **out, struct arr *t, struct arr *like, struct strm *s)
{
    return t ? ops_same(out, t) : ops_fill_like(out, like, 0, dtype_of(like), s);
}

enum err op_where_equal(struct arr **out, struct arr *a, struct arr *y, struct arr *t,
                        struct strm *s)
{
    struct arr *is = NULL, *zero = NULL;
    enum err err;

    TRY(ops_binary(&is, OP_EQUAL, a, y, s));
    TRY(arr_new_number(&zero, 0, dtype_of(t)));
    err = ops_where(out, is, t, zero, s);
out:
    arr_unref(&is);
    arr_unref(&zero);
    return err;
}

/* ---- of what an op is made of ---- */

enum err op_vjp_parts(struct vjp_call *c)
{
    return c->f.by_parts->vjp(c);
}

enum err op_jvp_parts(struct jvp_call *c)
{
    return c->f.by_parts->jvp(c);
}

enum err op_vmap_parts(struct vmap_call *c)
{
    return c->f.by_parts->vmap(c);
}
