/* Gradients of updates of slices, and of slices that start where an array says. */
#include "ops/build.h"
#include "ops/rules.h"

/* ---- fixed regions ---- */

/* An update splits what changes: t of the source, or t of the update, to what it makes of the
 * result, and the cotangent of the region back. Of a maximum or minimum, what is equal to the
 * result has made it. */
struct share {
    const struct op_apply *f;
    struct arr *y, *t;
    bool is_back; /* for cotangents: factors are conjugated */
};

static enum update_kind kind_of(const struct op_apply *f)
{
    return (enum update_kind)((const struct slice_update_params *)f->params)->kind;
}

static enum err region_of(struct arr **out, const struct op_apply *f, struct arr *a)
{
    const struct slice_update_params *p = f->params;

    return ops_make_one(out, OP_SLICE, &p->region, a, f->strm);
}

/* a with the region updated. */
static enum err updated(struct arr **out, enum update_kind kind, const struct op_apply *f,
                        struct arr *a, struct arr *update)
{
    struct slice_update_params p;

    op_own_params(&p, f);
    p.kind = kind;
    return ops_make(out, OP_SLICE_UPDATE, &p, (struct arrs){ (struct arr *[]){ a, update }, 2 },
                    f->strm);
}

static enum err factor(struct arr **out, const struct share *v, struct arr *x)
{
    return v->is_back ? ops_unary(out, OP_CONJUGATE, x, v->f->strm) : ops_same(out, x);
}

static enum err source_share(struct arr **out, const struct share *v)
{
    struct arr *src = v->f->in[0], *update = v->f->in[1], *x = NULL;
    enum update_kind kind = kind_of(v->f);
    enum err err;

    switch (kind) {
    case UPDATE_SUM:
        return ops_same(out, v->t);
    case UPDATE_MAX:
    case UPDATE_MIN:
        return op_where_equal(out, src, v->y, v->t, v->f->strm);
    case UPDATE_NONE:
        TRY(op_or_zeros(&x, NULL, update, v->f->strm));
        break;
    default:
        TRY(factor(&x, v, update));
        break;
    }
    err = updated(out, kind, v->f, v->t, x);
out:
    arr_unref(&x);
    return err;
}

/* t is as large as the region. */
static enum err update_share(struct arr **out, const struct share *v)
{
    enum update_kind kind = kind_of(v->f);
    bool is_choice = kind == UPDATE_MAX || kind == UPDATE_MIN;
    struct arr *x = NULL;
    enum err err;

    if (kind == UPDATE_NONE || kind == UPDATE_SUM)
        return ops_same(out, v->t);
    TRY(region_of(&x, v->f, is_choice ? v->y : v->f->in[0]));
    if (is_choice) {
        err = op_where_equal(out, v->f->in[1], x, v->t, v->f->strm);
    } else {
        STEP(x, factor(&next, v, x));
        err = ops_binary(out, OP_MULTIPLY, x, v->t, v->f->strm);
    }
out:
    arr_unref(&x);
    return err;
}

enum err op_vjp_slice_update(struct vjp_call *c)
{
    struct share v = { &c->f, c->out[0], c->cotan[0], true };
    struct arr *t = NULL;
    size_t done = 0;
    enum err err;

    TRY(region_of(&t, &c->f, c->cotan[0]));
    for (; done < c->n_wanted; done++) {
        bool is_source = c->wanted[done] == 0;
        v.t = is_source ? c->cotan[0] : t;
        TRY(is_source ? source_share(&c->result[done], &v) : update_share(&c->result[done], &v));
    }
out:
    arr_unref(&t);
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_slice_update(struct jvp_call *c)
{
    struct share v = { .f = &c->f, .y = c->out[0] };
    struct arr *part[2] = { NULL, NULL };
    enum update_kind kind = kind_of(&c->f);
    enum err err = ERR_OK;

    if (kind == UPDATE_NONE || kind == UPDATE_SUM)
        return op_jvp_linear(c);
    if ((v.t = c->tan[0]))
        TRY(source_share(&part[0], &v));
    else
        TRY(op_or_zeros(&part[0], NULL, c->f.in[0], c->f.strm));
    if ((v.t = c->tan[1])) {
        TRY(update_share(&part[1], &v));
        STEP(part[0], updated(&next, UPDATE_SUM, &c->f, part[0], part[1]));
    }
    arr_move(&c->result[0], &part[0]);
out:
    arr_unref_all(part, 2);
    return err;
}

/* ---- regions that start where an array says ---- */

static enum err no_start(const struct op_apply *f, const char *rule)
{
    return err_set(ERR_ARG, "[%s::%s] Not supported for start indices.", op_name(f->op), rule);
}

/* The op, or the one that undoes it, at the same place. */
static enum err at_start(struct arr **out, const struct op_apply *f, struct arr *a,
                         struct arr *update)
{
    struct arr *start = f->in[f->n_in - 1];

    if (update)
        return ops_make(out, OP_DYNAMIC_SLICE_UPDATE, f->params,
                        (struct arrs){ (struct arr *[]){ a, update, start }, 3 }, f->strm);
    return ops_make(out, OP_DYNAMIC_SLICE, f->params,
                    (struct arrs){ (struct arr *[]){ a, start }, 2 }, f->strm);
}

enum err op_vjp_dynamic_slice(struct vjp_call *c)
{
    struct arr *zeros = NULL;
    enum err err;

    if (c->wanted[0] == 1 || c->n_wanted > 1)
        return no_start(&c->f, "vjp");
    if (c->cotan[0]->size == 0)
        return ERR_OK;
    TRY(op_or_zeros(&zeros, NULL, c->f.in[0], c->f.strm));
    err = at_start(&c->result[0], &c->f, zeros, c->cotan[0]);
out:
    arr_unref(&zeros);
    return err;
}

enum err op_jvp_dynamic_slice(struct jvp_call *c)
{
    if (c->tan[1])
        return no_start(&c->f, "jvp");
    return at_start(&c->result[0], &c->f, c->tan[0], NULL);
}

enum err op_vjp_dynamic_slice_update(struct vjp_call *c)
{
    struct arr *zeros = NULL;
    size_t done = 0;
    enum err err;

    TRY(op_or_zeros(&zeros, NULL, c->f.in[1], c->f.strm));
    for (; done < c->n_wanted; done++)
        TRY(c->wanted[done] == 2
                ? no_start(&c->f, "vjp")
                : at_start(&c->result[done], &c->f, c->cotan[0], c->wanted[done] ? NULL : zeros));
out:
    arr_unref(&zeros);
    if (err)
        arr_unref_all(c->result, done);
    return err;
}

enum err op_jvp_dynamic_slice_update(struct jvp_call *c)
{
    struct arr *t[2] = { NULL, NULL };
    enum err err = ERR_OK;

    if (c->tan[2])
        return no_start(&c->f, "jvp");
    for (int i = 0; i < 2; i++)
        TRY(op_or_zeros(&t[i], c->tan[i], c->f.in[i], c->f.strm));
    err = at_start(&c->result[0], &c->f, t[0], t[1]);
out:
    arr_unref_all(t, 2);
    return err;
}
