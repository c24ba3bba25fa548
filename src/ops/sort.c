/* Sorting along an axis, and what is made of it. */
#include "ops/build.h"
#include "ops/rules.h"

static enum err infer_sorted(struct infer_call *c, int32_t axis, bool is_arg)
{
    FITS(infer_has_axis(c->in[0], axis));
    infer_like(c, c->in[0]);
    if (is_arg)
        c->out[0].dtype = DT_UINT32;
    return ERR_OK;
}

enum err op_infer_sort(struct infer_call *c)
{
    const struct axis_params *p = c->params;

    return infer_sorted(c, p->axis, c->op == OP_ARG_SORT);
}

enum err op_infer_partition(struct infer_call *c)
{
    const struct partition_params *p = c->params;

    FITS(infer_has_axis(c->in[0], p->axis));
    FITS(p->kth >= 0 && p->kth < c->in[0]->shape[p->axis]);
    return infer_sorted(c, p->axis, c->op == OP_ARG_PARTITION);
}

static enum err sort_axis(int *axis, const struct arr *a, const char *op)
{
    if (a->ndim == 0 || *axis < -a->ndim || *axis >= a->ndim)
        return err_set(ERR_ARG, "[%s] Received invalid axis %d for array with %d dimensions.", op,
                       *axis, a->ndim);
    *axis = *axis < 0 ? *axis + a->ndim : *axis;
    return ERR_OK;
}

static enum err sorted(struct arr **out, enum op_id op, struct arr *a, int axis, struct strm *s)
{
    enum err err = sort_axis(&axis, a, op == OP_ARG_SORT ? "argsort" : "sort");

    return err ? err : ops_make_one(out, op, &(struct axis_params){ axis }, a, s);
}

enum err ops_sort(struct arr **out, struct arr *a, int axis, struct strm *s)
{
    return sorted(out, OP_SORT, a, axis, s);
}

enum err ops_argsort(struct arr **out, struct arr *a, int axis, struct strm *s)
{
    return sorted(out, OP_ARG_SORT, a, axis, s);
}

static enum err partitioned(struct arr **out, enum op_id op, struct arr *a,
                            struct partition_params p, struct strm *s)
{
    const char *name = op == OP_ARG_PARTITION ? "argpartition" : "partition";
    struct shp shape;
    enum err err;

    TRY(sort_axis(&p.axis, a, name));
    int32_t size = a->shape[p.axis], kth = p.kth;
    p.kth = kth < 0 ? kth + size : kth;
    arr_shape(&shape, a);
    if (p.kth < 0 || p.kth >= size)
        return err_set(ERR_ARG,
                       "[%s] Received invalid kth %d along axis %d for array with shape: %s", name,
                       kth, p.axis, shp_text(&shape));
    err = ops_make_one(out, op, &p, a, s);
out:
    return err;
}

enum err ops_partition(struct arr **out, struct arr *a, int kth, int axis, struct strm *s)
{
    return partitioned(out, OP_PARTITION, a, (struct partition_params){ kth, axis }, s);
}

enum err ops_argpartition(struct arr **out, struct arr *a, int kth, int axis, struct strm *s)
{
    return partitioned(out, OP_ARG_PARTITION, a, (struct partition_params){ kth, axis }, s);
}

enum err ops_topk(struct arr **out, struct arr *a, int k, int axis, struct strm *s)
{
    int32_t start[SHP_MAX] = { 0 }, stop[SHP_MAX], step[SHP_MAX];
    struct arr *parted = NULL;
    struct shp shape;
    enum err err;

    TRY(sort_axis(&axis, a, "topk"));
    arr_shape(&shape, a);
    if (k < 0 || k > shape.d[axis])
        return err_set(ERR_ARG,
                       "[topk] Received invalid k=%d along axis %d for array with shape: %s", k,
                       axis, shp_text(&shape));
    if (k == shape.d[axis])
        return ops_same(out, a);
    if (k > 0)
        TRY(ops_partition(&parted, a, -k, axis, s));
    for (int i = 0; i < shape.ndim; i++) {
        stop[i] = shape.d[i];
        step[i] = 1;
    }
    start[axis] = shape.d[axis] - k;
    size_t n = (size_t)shape.ndim;
    err = ops_slice(out, parted ? parted : a,
                    &(struct ops_slice){ { start, n }, { stop, n }, { step, n } }, s);
out:
    arr_unref(&parted);
    return err;
}
