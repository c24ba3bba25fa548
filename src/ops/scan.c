/* Running sums, products, extremes along an axis. */
#include "ops/build.h"
#include "ops/rules.h"

enum err op_infer_scan(struct infer_call *c)
{
    const struct scan_params *p = c->params;

    FITS(infer_has_axis(c->in[0], p->axis) && c->in[0]->dtype != DT_BOOL);
    FITS(p->kind != SCAN_LOGADDEXP || dt_is_inexact(dtype_of(c->in[0])));
    infer_like(c, c->in[0]);
    return ERR_OK;
}

static enum dtype result_dtype(enum dtype t, enum scan_kind kind)
{
    if (kind == SCAN_SUM && t == DT_BOOL)
        return DT_INT32;
    if (kind == SCAN_LOGADDEXP && !dt_is_inexact(t))
        return DT_FLOAT32;
    return t;
}

enum err ops_scan(struct arr **out, struct arr *a, const struct ops_scan *v, struct strm *s)
{
    struct scan_params p = { .kind = v->kind, .reverse = v->reverse, .inclusive = v->inclusive };
    enum dtype t = result_dtype(dtype_of(a), v->kind);
    struct arr *x = NULL;
    int axis;
    enum err err;

    TRY(shp_axis(&axis, v->axis, a->ndim, scan_kind_words.word[v->kind]));
    p.axis = axis;
    /* Bools are scanned as numbers, whose identities are true or false again. */
    enum dtype work = t == DT_BOOL ? DT_UINT8 : t;
    TRY(ops_astype(&x, a, work, s));
    STEP(x, ops_make_one(&next, OP_SCAN, &p, x, s));
    err = ops_astype(out, x, t, s);
out:
    arr_unref(&x);
    return err;
}
