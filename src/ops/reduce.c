/* Reductions that are nodes of their own. */
#include "ops/build.h"

/* Which op has no identity, so that an empty axis is an error. */
static const struct {
    const char *name;
    bool has_identity;
    bool bool_out;
    bool widens; /* small integers accumulate in 32 bits */
} rules[] = {
    [REDUCE_AND] = { "all", true, true, false },   [REDUCE_OR] = { "any", true, true, false },
    [REDUCE_SUM] = { "sum", true, false, true },   [REDUCE_PROD] = { "prod", true, false, true },
    [REDUCE_MIN] = { "min", false, false, false }, [REDUCE_MAX] = { "max", false, false, false },
};

static enum dtype widened(enum dtype t)
{
    switch (dt_table[t].kind) {
    case DT_KIND_B:
        return DT_INT32;
    case DT_KIND_I:
        return dt_size(t) <= 4 ? DT_INT32 : DT_INT64;
    case DT_KIND_U:
        return dt_size(t) <= 4 ? DT_UINT32 : DT_UINT64;
    default:
        return t;
    }
}

/* Shape with the axes reduced to 1; *noop says that nothing changes. */
static enum err reduced_shape(struct shp *out, bool *noop, const struct arr *a,
                              const struct axis_set *set, enum reduce_kind kind)
{
    arr_shape(out, a);
    *noop = true;
    for (int i = 0; i < set->n; i++) {
        int32_t *d = &out->d[set->axis[i]];
        if (*d == 0 && !rules[kind].has_identity)
            return err_set(ERR_ARG, "[%s] Cannot %s reduce over axis %d with size 0.",
                           rules[kind].name, rules[kind].name, set->axis[i]);
        *noop &= *d == 1;
        *d = 1;
    }
    return ERR_OK;
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
    enum dtype t = rules[kind].bool_out ? DT_BOOL : dtype_of(a);
    struct axis_set set;
    struct shp shape;
    struct arr *r = NULL;
    bool noop;
    enum err err;

    TRY(ops_axis_set(&set, x->axes, a->ndim, ERR_RANGE, rules[kind].name));
    if (set.n == 0 && !rules[kind].bool_out)
        return ops_same(out, a);
    if (rules[kind].widens)
        t = widened(t);
    TRY(reduced_shape(&shape, &noop, a, &set, kind));
    if (noop) {
        TRY(ops_astype(&r, a, t, s));
    } else {
        struct reduce_params p = { .kind = kind, .n = set.n };
        memcpy(p.axis, set.axis, (size_t)set.n * sizeof p.axis[0]);
        TRY(ops_node(&r, a, &(struct ops_node){ OP_REDUCE, t, &shape, &p }, s));
    }
    err = drop_axes(out, r, &set, x, s);
out:
    arr_unref(&r);
    return err;
}

static enum err arg_reduce_axis(struct arr **out, bool is_max, struct arr *a, int axis,
                                struct strm *s)
{
    struct shp shape;

    arr_shape(&shape, a);
    if (shape.d[axis] == 1)
        return ops_fill(out, shp_ints(&shape), 0, DT_UINT32, s);
    shape.d[axis] = 1;
    return ops_node(out, a,
                    &(struct ops_node){ OP_ARG_REDUCE, DT_UINT32, &shape,
                                        &(struct arg_reduce_params){ is_max, axis } },
                    s);
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
    TRY(ops_axis_set(&set, x->axes, a->ndim, ERR_RANGE, name));
    TRY(arg_reduce_axis(&r, is_max, a, set.axis[0], s));
    err = drop_axes(out, r, &set, x, s);
out:
    arr_unref(&r);
    return err;
}
