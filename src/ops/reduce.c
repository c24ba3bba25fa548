/* Reductions that are nodes of their own. */
#include "ops/build.h"
#include "ops/rules.h"

#define NONE (-1)

static const struct {
    const char *name;
    int8_t identity;
} rules[] = {
#define REDUCTION(id, public, identity, ...) [REDUCE_##id] = { #public, identity },
#include "ops/reduce.def"
};

enum err op_infer_reduce(struct infer_call *c)
{
    const struct reduce_params *p = c->params;
    const struct arr *a = c->in[0];

    FITS(infer_is_set(p->axis, p->n, a->ndim));
    infer_like(c, a);
    c->out[0].dtype = op_reduce_dtype((enum reduce_kind)p->kind, dtype_of(a));
    for (int i = 0; i < p->n; i++) {
        int32_t *d = &c->out[0].shape.d[p->axis[i]];
        if (*d == 0 && rules[p->kind].identity == NONE)
            return err_set(ERR_ARG, "[%s] Cannot %s reduce over axis %d with size 0.",
                           rules[p->kind].name, rules[p->kind].name, p->axis[i]);
        *d = 1;
    }
    return ERR_OK;
}

enum err op_infer_arg_reduce(struct infer_call *c)
{
    const struct arg_reduce_params *p = c->params;

    FITS(infer_has_axis(c->in[0], p->axis) && c->in[0]->size);
    infer_like(c, c->in[0]);
    c->out[0].dtype = DT_UINT32;
    c->out[0].shape.d[p->axis] = 1;
    return ERR_OK;
}

/* Whether the axes have one element each. */
static bool is_noop(const struct arr *a, const struct axis_set *set)
{
    for (int i = 0; i < set->n; i++)
        if (a->shape[set->axis[i]] != 1)
            return false;
    return true;
}

static struct ints set_ints(const struct axis_set *set)
{
    return (struct ints){ set->axis, (size_t)set->n };
}

/* The reduced axes of r stay with size 1, or go. */
static enum err drop_axes(struct arr **out, struct arr *r, const struct axis_set *set,
                          const struct ops_axes *x, struct strm *s)
{
    return x->keepdims ? ops_same(out, r) : ops_squeeze(out, r, set_ints(set), s);
}

enum err ops_reduce(struct arr **out, enum reduce_kind kind, struct arr *a,
                    const struct ops_axes *x, struct strm *s)
{
    struct reduce_params p = { .kind = kind };
    struct axis_set set;
    struct arr *r = NULL;
    enum err err;

    TRY(ops_axis_set(&set, x->axes, a->ndim, rules[kind].name));
    if (set.n == 0 && op_reduce_dtype(kind, DT_FLOAT32) != DT_BOOL)
        return ops_same(out, a);
    if (is_noop(a, &set)) {
        TRY(ops_astype(&r, a, op_reduce_dtype(kind, dtype_of(a)), s));
    } else {
        p.n = set.n;
        memcpy(p.axis, set.axis, (size_t)set.n * sizeof p.axis[0]);
        TRY(ops_make_one(&r, OP_REDUCE, &p, a, s));
    }
    err = drop_axes(out, r, &set, x, s);
out:
    arr_unref(&r);
    return err;
}

static enum err arg_reduce_axis(struct arr **out, bool is_max, struct arr *a, int axis,
                                struct strm *s)
{
    if (a->shape[axis] == 1)
        return ops_fill_like(out, a, 0, DT_UINT32, s);
    return ops_make_one(out, OP_ARG_REDUCE, &(struct arg_reduce_params){ is_max, axis }, a, s);
}

/* Position in the flattened array, as ndim dimensions of size 1 or none. */
static enum err arg_reduce_flat(struct arr **out, bool is_max, struct arr *a, bool keepdims,
                                struct strm *s)
{
    int32_t ones[SHP_MAX];
    struct arr *x = NULL;
    enum err err;

    for (int i = 0; i < a->ndim; i++)
        ones[i] = 1;
    TRY(ops_flatten(&x, a, 0, -1, s));
    STEP(x, arg_reduce_axis(&next, is_max, x, 0, s));
    TRY(ops_reshape(out, x, (struct ints){ ones, keepdims ? a->ndim : 0 }, s));
out:
    arr_unref(&x);
    return err;
}

enum err ops_arg_reduce(struct arr **out, bool is_max, struct arr *a, const struct ops_axes *x,
                        struct strm *s)
{
    const char *name = is_max ? "argmax" : "argmin";
    struct axis_set set;
    struct arr *r = NULL;
    enum err err;

    if (a->size == 0)
        return err_set(ERR_ARG, "[%s] Cannot %s reduce zero size array.", name, name);
    if (x->axes.n == SIZE_MAX)
        return arg_reduce_flat(out, is_max, a, x->keepdims, s);
    TRY(ops_axis_set(&set, x->axes, a->ndim, name));
    TRY(arg_reduce_axis(&r, is_max, a, set.axis[0], s));
    err = drop_axes(out, r, &set, x, s);
out:
    arr_unref(&r);
    return err;
}
