/* Running sums, products, extremes along an axis. */
#include "ops/build.h"

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

    if (a->ndim == 0 || v->axis < -a->ndim || v->axis >= a->ndim)
        return err_set(ERR_ARG, "[%s] Axis %d is out of bounds for array with %d dimensions.",
                       scan_kind_words.word[v->kind], v->axis, a->ndim);
    TRY(shp_axis(&axis, v->axis, a->ndim, scan_kind_words.word[v->kind]));
    p.axis = axis;
    /* Bools are scanned as numbers, whose identities are true or false again. */
    enum dtype work = t == DT_BOOL ? DT_UINT8 : t;
    TRY(ops_astype(&x, a, work, s));
    STEP(x, ops_node(&next, x, &(struct ops_node){ OP_SCAN, work, NULL, &p }, s));
    err = ops_astype(out, x, t, s);
out:
    arr_unref(&x);
    return err;
}
