/* Gradients of updates of slices. */
#include "ops/build.h"
#include "ops/rules.h"

/* Updates that replace, and those that add, are linear. */
static bool is_linear(const struct slice_update_params *p)
{
    return p->kind == UPDATE_NONE || p->kind == UPDATE_SUM;
}

/* What reaches src is what lies outside of a region that was replaced. */
static enum err src_cotangent(struct arr **out, const struct vjp_call *c)
{
    const struct slice_update_params *p = c->f.params;
    struct arr *zeros = NULL;
    enum err err;

    if (p->kind == UPDATE_SUM)
        return ops_same(out, c->cotan[0]);
    TRY(ops_fill_like(&zeros, c->f.in[1], 0, dtype_of(c->f.in[1]), c->f.strm));
    err = ops_make(out, c->f.op, p, (struct arrs){ (struct arr *[]){ c->cotan[0], zeros }, 2 },
                   c->f.strm);
out:
    arr_unref(&zeros);
    return err;
}

enum err op_vjp_slice_update(struct vjp_call *c)
{
    const struct slice_update_params *p = c->f.params;
    size_t done = 0;
    enum err err = ERR_OK;

    if (!is_linear(p))
        return op_no_rule(c->f.op, "vjp");
    for (; done < c->n_wanted; done++)
        if (c->wanted[done] == 0)
            TRY(src_cotangent(&c->result[done], c));
        else
            TRY(ops_make_one(&c->result[done], OP_SLICE, &p->region, c->cotan[0], c->f.strm));
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_slice_update(struct jvp_call *c)
{
    struct arr *t[2] = { NULL, NULL };
    enum err err = ERR_OK;

    if (!is_linear(c->f.params))
        return op_no_rule(c->f.op, "jvp");
    for (int i = 0; i < 2; i++)
        if (c->tan[i])
            t[i] = arr_ref(c->tan[i]);
        else
            TRY(ops_fill_like(&t[i], c->f.in[i], 0, dtype_of(c->f.in[i]), c->f.strm));
    err = ops_make(&c->result[0], c->f.op, c->f.params, (struct arrs){ t, 2 }, c->f.strm);
out:
    arr_unref_all(t, 2);
    return err;
}
