#include <float.h>

#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_select(struct infer_call *c)
{
    struct arr *const *in = c->in;

    FITS(in[0]->dtype == DT_BOOL && in[1]->dtype == in[2]->dtype);
    FITS(arr_same_shape(in[0], in[1]) && arr_same_shape(in[1], in[2]));
    infer_like(c, in[1]);
    return ERR_OK;
}

enum err ops_where(struct arr **out, struct arr *cond, struct arr *a, struct arr *b, struct strm *s)
{
    struct arr *src[3] = { NULL, NULL, NULL }, *in[3] = { NULL, NULL, NULL };
    enum dtype t = dt_promote(dtype_of(a), dtype_of(b));
    enum err err;

    TRY(ops_astype(&src[0], cond, DT_BOOL, s));
    TRY(ops_astype(&src[1], a, t, s));
    TRY(ops_astype(&src[2], b, t, s));
    TRY(ops_broadcast_arrays(in, (struct arrs){ src, 3 }, s));
    TRY(ops_make_of(out, OP_SELECT, NULL, (struct given){ in, 3 }, s));
out:
    arr_unref_all(src, 3);
    arr_unref_all(in, 3);
    return err;
}

enum err ops_clip(struct arr **out, struct arr *a, struct arr *low, struct arr *high,
                  struct strm *s)
{
    struct arr *x = arr_ref(a);
    enum err err = ERR_OK;

    if (!low && !high)
        TRY(err_set(ERR_ARG, "[clip] At most one of a_min and a_max may be absent."));
    if (low)
        STEP(x, ops_binary(&next, OP_MAXIMUM, x, low, s));
    if (high)
        STEP(x, ops_binary(&next, OP_MINIMUM, x, high, s));
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}

static enum err largest_finite(double *out, enum dtype t)
{
    switch (t) {
    case DT_FLOAT16:
        *out = 65504;
        return ERR_OK;
    case DT_BFLOAT16:
        *out = 0x1.fep127;
        return ERR_OK;
    case DT_FLOAT32:
        *out = FLT_MAX;
        return ERR_OK;
    default:
        return err_set(ERR_ARG, "[nan_to_num] Does not yet support given type: %s.", dt_name(t));
    }
}

/* *x where test(a) is false, else value. */
static enum err replace(struct arr **x,
                        enum err (*test)(struct arr **, struct arr *, struct strm *), struct arr *a,
                        double value, struct strm *s)
{
    struct arr *is = NULL, *v = NULL;
    enum err err;

    TRY(test(&is, a, s));
    TRY(arr_new_number(&v, value, dtype_of(a)));
    STEP(*x, ops_where(&next, is, v, *x, s));
out:
    arr_unref(&is);
    arr_unref(&v);
    return err;
}

enum err ops_nan_to_num(struct arr **out, struct arr *a, const struct ops_nan_to_num *v,
                        struct strm *s)
{
    struct arr *x = arr_ref(a);
    double largest = 0;
    enum err err = ERR_OK;

    if (!dt_is_inexact(dtype_of(a)))
        goto done;
    if (!v->posinf || !v->neginf)
        TRY(largest_finite(&largest, dtype_of(a)));
    TRY(replace(&x, ops_isnan, a, v->nan, s));
    TRY(replace(&x, ops_isposinf, a, v->posinf ? *v->posinf : largest, s));
    TRY(replace(&x, ops_isneginf, a, v->neginf ? *v->neginf : -largest, s));
done:
    arr_move(out, &x);
out:
    arr_unref(&x);
    return err;
}
