/* Gradients of scatters. */
#include "ops/index.h"

static enum err zeros_like(struct arr **out, struct arr *like, struct strm *s)
{
    return op_or_zeros(out, NULL, like, s);
}

/* a with the same places updated, whichever of the two ops it is. */
static enum err updated(struct arr **out, const struct op_apply *f, struct arr *a,
                        struct arr *update)
{
    struct arr *in[SHP_MAX + 2];

    memcpy(in, f->in, f->n_in * sizeof in[0]);
    in[0] = a;
    in[f->n_in - 1] = update;
    return ops_make(out, f->op, f->params, (struct arrs){ in, f->n_in }, f->strm);
}

/* What a has at these places, as large as the updates. */
static enum err taken(struct arr **out, const struct op_apply *f, struct arr *a)
{
    const struct arr *update = f->in[f->n_in - 1];
    const struct scatter_params *p = f->params;
    struct gather_params g = { .n_axes = p->n, .n = a->ndim };
    struct arr *in[SHP_MAX + 1];

    memcpy(in, f->in, (f->n_in - 1) * sizeof in[0]);
    in[0] = a;
    if (f->op == OP_SCATTER_AXIS) {
        struct axis_params along = { ((const struct scatter_axis_params *)f->params)->axis };
        return ops_make(out, OP_GATHER_AXIS, &along, (struct arrs){ in, 2 }, f->strm);
    }
    for (int i = 0; i < g.n_axes; i++)
        g.d[i].axis = p->axis[i];
    for (int i = 0; i < g.n; i++)
        g.d[i].size = update->shape[update->ndim - a->ndim + i];
    return ops_make(out, OP_GATHER, &g, (struct arrs){ in, f->n_in - 1 }, f->strm);
}

static enum err source_cotangent(struct arr **out, const struct vjp_call *c, enum update_kind kind)
{
    struct arr *zeros = NULL, *t = c->cotan[0];
    enum err err;

    if (kind == UPDATE_SUM)
        return ops_same(out, t);
    if (kind != UPDATE_NONE)
        return op_where_equal(out, c->f.in[0], c->out[0], t, c->f.strm);
    TRY(zeros_like(&zeros, c->f.in[c->f.n_in - 1], c->f.strm));
    err = updated(out, &c->f, t, zeros);
out:
    arr_unref(&zeros);
    return err;
}

static enum err update_cotangent(struct arr **out, const struct vjp_call *c, enum update_kind kind)
{
    struct arr *t = NULL, *y = NULL;
    enum err err;

    if (kind == UPDATE_SUM || kind == UPDATE_NONE)
        return taken(out, &c->f, c->cotan[0]);
    TRY(taken(&t, &c->f, c->cotan[0]));
    TRY(taken(&y, &c->f, c->out[0]));
    err = op_where_equal(out, c->f.in[c->f.n_in - 1], y, t, c->f.strm);
out:
    arr_unref(&t);
    arr_unref(&y);
    return err;
}

static enum err scatter_vjp(struct vjp_call *c, enum update_kind kind)
{
    int last = (int)c->f.n_in - 1;
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        if (i == 0)
            TRY(source_cotangent(&c->result[done], c, kind));
        else if (i == last)
            TRY(update_cotangent(&c->result[done], c, kind));
        else
            TRY(index_no_rule(&c->f, "vjp", "indices"));
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

/* Sums and replacements are linear in source and updates together. */
static enum err scatter_jvp(struct jvp_call *c)
{
    struct arr *t[2] = { NULL };
    size_t last = c->f.n_in - 1;
    enum err err = ERR_OK;

    for (size_t i = 1; i < last; i++)
        if (c->tan[i])
            return index_no_rule(&c->f, "jvp", "indices");
    TRY(op_or_zeros(&t[0], c->tan[0], c->f.in[0], c->f.strm));
    TRY(op_or_zeros(&t[1], c->tan[last], c->f.in[last], c->f.strm));
    err = updated(&c->result[0], &c->f, t[0], t[1]);
out:
    arr_unref_all(t, 2);
    return err;
}

static enum err no_rule_for_kind(const struct op_apply *f, const char *rule, enum update_kind kind)
{
    return err_set(ERR_RUNTIME, "[%s::%s] Not implemented for updates by %s.", op_name(f->op), rule,
                   update_kind_words.word[kind]);
}

enum err op_vjp_scatter(struct vjp_call *c)
{
    enum update_kind kind = (enum update_kind)((const struct scatter_params *)c->f.params)->kind;

    return kind == UPDATE_PROD ? no_rule_for_kind(&c->f, "vjp", kind) : scatter_vjp(c, kind);
}

enum err op_jvp_scatter(struct jvp_call *c)
{
    enum update_kind kind = (enum update_kind)((const struct scatter_params *)c->f.params)->kind;
    bool is_linear = kind == UPDATE_SUM || kind == UPDATE_NONE;

    return is_linear ? scatter_jvp(c) : no_rule_for_kind(&c->f, "jvp", kind);
}

enum err op_vjp_scatter_axis(struct vjp_call *c)
{
    const struct scatter_axis_params *p = c->f.params;

    return scatter_vjp(c, (enum update_kind)p->kind);
}

enum err op_jvp_scatter_axis(struct jvp_call *c)
{
    return scatter_jvp(c);
}

/* ---- where a mask is true ---- */

/* t where the mask is false. */
static enum err unmasked(struct arr **out, const struct op_apply *f, struct arr *t)
{
    struct arr *zero = NULL;
    enum err err;

    TRY(arr_new_number(&zero, 0, dtype_of(t)));
    err = ops_where(out, f->in[1], zero, t, f->strm);
out:
    arr_unref(&zero);
    return err;
}

/* Row by row the number of each element of the mask among those that are true. */
static enum err places_of(struct arr **out, const struct op_apply *f)
{
    struct arr *mask = f->in[1], *x = NULL;
    int32_t rows = mask->shape[0];
    enum err err;

    TRY(ops_astype(&x, mask, DT_INT32, f->strm));
    STEP(x, ops_reshape(&next, x, (struct ints){ (int32_t[]){ rows, -1 }, 2 }, f->strm));
    err = ops_scan(out, x, &(struct ops_scan){ .kind = SCAN_SUM, .axis = 1 }, f->strm);
out:
    arr_unref(&x);
    return err;
}

/* What the mask takes of t goes back to the values. Behind the last true element numbers may be out
 * of range, where scatters leave out what is zero anyway. */
static enum err value_cotangent(struct arr **out, const struct op_apply *f, struct arr *t)
{
    struct arr *values = f->in[2], *at = NULL, *x = NULL, *none = NULL, *zeros = NULL;
    int32_t rows = values->shape[0], n = (int32_t)(values->size / (size_t)rows);
    enum err err;

    TRY(places_of(&at, f));
    TRY(arr_new_number(&none, 0, dtype_of(t)));
    TRY(ops_where(&x, f->in[1], t, none, f->strm));
    STEP(x, ops_reshape(&next, x, (struct ints){ (int32_t[]){ rows, at->shape[1] }, 2 }, f->strm));
    TRY(ops_fill(&zeros, (struct ints){ (int32_t[]){ rows, n }, 2 }, 0, dtype_of(t), f->strm));
    STEP(x, ops_scatter_axis(&next, zeros, &(struct ops_scatter_axis){ at, x, 1, UPDATE_SUM },
                             f->strm));
    err = ops_reshape(out, x, shape_of(values), f->strm);
out:
    arr_unref(&at);
    arr_unref(&x);
    arr_unref(&none);
    arr_unref(&zeros);
    return err;
}

enum err op_vjp_masked_scatter(struct vjp_call *c)
{
    size_t done = 0;
    enum err err = ERR_OK;

    for (; done < c->n_wanted; done++) {
        int i = c->wanted[done];
        if (i == 0)
            TRY(unmasked(&c->result[done], &c->f, c->cotan[0]));
        else if (i == 1)
            TRY(index_no_rule(&c->f, "vjp", "the mask"));
        else if (c->f.in[2]->size && c->cotan[0]->size)
            TRY(value_cotangent(&c->result[done], &c->f, c->cotan[0]));
    }
out:
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_masked_scatter(struct jvp_call *c)
{
    struct arr *in[3] = { NULL, c->f.in[1], NULL };
    enum err err;

    if (c->tan[1])
        return index_no_rule(&c->f, "jvp", "the mask");
    TRY(op_or_zeros(&in[0], c->tan[0], c->f.in[0], c->f.strm));
    TRY(op_or_zeros(&in[2], c->tan[2], c->f.in[2], c->f.strm));
    err = ops_make(&c->result[0], c->f.op, NULL, (struct arrs){ in, 3 }, c->f.strm);
out:
    arr_unref(&in[0]);
    arr_unref(&in[2]);
    return err;
}
