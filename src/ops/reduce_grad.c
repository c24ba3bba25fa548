/* Gradients of reductions. */
#include "ops/build.h"
#include "ops/rules.h"

static enum reduce_kind kind_of(const struct op_apply *f)
{
    return (enum reduce_kind)((const struct reduce_params *)f->params)->kind;
}

/* ---- the reduced axes as one ---- */

struct line {
    struct axes_params order; /* the reduced axes side by side, ... */
    int axis, n;              /* ... n of them from here on */
};

static void line_of(struct line *l, const struct op_apply *f)
{
    const struct reduce_params *p = f->params;
    int ndim = f->in[0]->ndim, at = 0;

    *l = (struct line){ { .n = ndim }, 0, p->n };
    for (int i = 0, next = 0; i < ndim; i++)
        if (p->n > 1 && next < p->n && p->axis[next] == i)
            next++;
        else
            l->order.axis[at++] = i;
    l->axis = p->n > 1 ? at : p->axis[0];
    for (int i = 0; at < ndim; i++)
        l->order.axis[at++] = p->axis[i];
}

/* An array of the input's shape, or of the result's. */
static enum err to_line(struct arr **out, struct arr *a, const struct line *l, struct strm *s)
{
    struct arr *x = NULL;
    enum err err;

    TRY(ops_transpose(&x, a, (struct ints){ l->order.axis, (size_t)l->order.n }, s));
    err = ops_flatten(out, x, l->axis, l->axis + l->n - 1, s);
out:
    arr_unref(&x);
    return err;
}

/* Back to the shape of `like`. */
static enum err from_line(struct arr **out, struct arr *a, const struct line *l,
                          const struct arr *like, struct strm *s)
{
    int32_t shape[SHP_MAX], back[SHP_MAX];
    struct arr *x = NULL;
    enum err err;

    for (int i = 0; i < l->order.n; i++) {
        shape[i] = like->shape[l->order.axis[i]];
        back[l->order.axis[i]] = i;
    }
    TRY(ops_reshape(&x, a, (struct ints){ shape, (size_t)l->order.n }, s));
    err = ops_transpose(out, x, (struct ints){ back, (size_t)l->order.n }, s);
out:
    arr_unref(&x);
    return err;
}

/* ---- products ---- */

/* For each element the product of all others of its line: of what is before it and of what is
 * behind, so that zeros need no care. */
static enum err product_of_others(struct arr **out, const struct op_apply *f, const struct line *l,
                                  enum dtype t)
{
    struct ops_scan scan = { .kind = SCAN_PROD, .axis = l->axis };
    struct arr *x = NULL, *before = NULL, *behind = NULL;
    enum err err;

    TRY(ops_astype(&x, f->in[0], t, f->strm));
    STEP(x, to_line(&next, x, l, f->strm));
    TRY(ops_scan(&before, x, &scan, f->strm));
    scan.reverse = true;
    TRY(ops_scan(&behind, x, &scan, f->strm));
    err = ops_binary(out, OP_MULTIPLY, before, behind, f->strm);
out:
    arr_unref(&x);
    arr_unref(&before);
    arr_unref(&behind);
    return err;
}

static enum err vjp_prod(struct arr **out, const struct vjp_call *c)
{
    struct arr *x = NULL, *t = NULL;
    struct line l;
    enum err err;

    line_of(&l, &c->f);
    TRY(product_of_others(&x, &c->f, &l, dtype_of(c->out[0])));
    STEP(x, ops_unary(&next, OP_CONJUGATE, x, c->f.strm));
    TRY(to_line(&t, c->cotan[0], &l, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, t, c->f.strm));
    err = from_line(out, x, &l, c->f.in[0], c->f.strm);
out:
    arr_unref(&x);
    arr_unref(&t);
    return err;
}

static enum err jvp_prod(struct arr **out, const struct jvp_call *c)
{
    struct arr *x = NULL, *t = NULL;
    struct line l;
    enum err err;

    line_of(&l, &c->f);
    TRY(product_of_others(&x, &c->f, &l, dtype_of(c->out[0])));
    TRY(to_line(&t, c->tan[0], &l, c->f.strm));
    STEP(x, ops_binary(&next, OP_MULTIPLY, x, t, c->f.strm));
    STEP(x,
         ops_reduce(&next, REDUCE_SUM, x, &(struct ops_axes){ { &l.axis, 1 }, true }, c->f.strm));
    err = from_line(out, x, &l, c->out[0], c->f.strm);
out:
    arr_unref(&x);
    arr_unref(&t);
    return err;
}

/* ---- extremes ---- */

/* All elements that are the extreme share the cotangent evenly. */
static enum err vjp_extreme(struct arr **out, const struct vjp_call *c)
{
    const struct reduce_params *p = c->f.params;
    struct ops_axes axes = { { p->axis, (size_t)p->n }, true };
    struct arr *is_it = NULL, *x = NULL;
    enum err err;

    TRY(ops_binary(&is_it, OP_EQUAL, c->f.in[0], c->out[0], c->f.strm));
    TRY(ops_reduce(&x, REDUCE_SUM, is_it, &axes, c->f.strm));
    STEP(x, ops_binary(&next, OP_DIVIDE, c->cotan[0], x, c->f.strm));
    err = ops_binary(out, OP_MULTIPLY, x, is_it, c->f.strm);
out:
    arr_unref(&is_it);
    arr_unref(&x);
    return err;
}

/* The first of these elements gives its tangent, as in MLX. Where it is does not change. */
static enum err jvp_extreme(struct arr **out, const struct jvp_call *c)
{
    struct arr *x = NULL, *at = NULL;
    struct line l;
    enum err err;

    line_of(&l, &c->f);
    TRY(to_line(&x, c->f.in[0], &l, c->f.strm));
    TRY(ops_arg_reduce(&at, kind_of(&c->f) == REDUCE_MAX, x,
                       &(struct ops_axes){ { &l.axis, 1 }, true }, c->f.strm));
    STEP(at, ops_stop_gradient(&next, at, c->f.strm));
    STEP(x, to_line(&next, c->tan[0], &l, c->f.strm));
    STEP(x, ops_take_along_axis(&next, x, at, l.axis, c->f.strm));
    err = from_line(out, x, &l, c->out[0], c->f.strm);
out:
    arr_unref(&x);
    arr_unref(&at);
    return err;
}

/* ---- rules ---- */

static enum err vjp_of_kind(struct arr **out, const struct vjp_call *c)
{
    struct ops_stretch to = { .with = { c->f.in, 1 } };

    switch (kind_of(&c->f)) {
    case REDUCE_SUM: /* the reduced axes are there, with size 1 */
        arr_shape(&to.shape, c->f.in[0]);
        return ops_stretch_with(out, c->cotan[0], &to, c->f.strm);
    case REDUCE_PROD:
        return vjp_prod(out, c);
    case REDUCE_MIN:
    case REDUCE_MAX:
        return vjp_extreme(out, c);
    default: /* truth is not continuous */
        return ERR_OK;
    }
}

enum err op_vjp_reduce(struct vjp_call *c)
{
    struct arr *x = NULL;
    enum err err;

    TRY(vjp_of_kind(&x, c));
    if (x) /* small integers are added up in large ones */
        TRY(ops_astype(&c->result[0], x, dtype_of(c->f.in[0]), c->f.strm));
out:
    arr_unref(&x);
    return err;
}

enum err op_jvp_reduce(struct jvp_call *c)
{
    if (!c->f.in[0]->size)
        return ERR_OK;
    switch (kind_of(&c->f)) {
    case REDUCE_SUM:
        return ops_make_one(&c->result[0], c->f.op, c->f.params, c->tan[0], c->f.strm);
    case REDUCE_PROD:
        return jvp_prod(&c->result[0], c);
    case REDUCE_MIN:
    case REDUCE_MAX:
        return jvp_extreme(&c->result[0], c);
    default:
        return ERR_OK;
    }
}
