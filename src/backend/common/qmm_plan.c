#include "backend/common/qmm_plan.h"

#include "backend/common/families.h"

static int64_t dim_from_end(const struct arr *a, int i)
{
    return a->ndim >= i ? a->shape[a->ndim - i] : 1;
}

static int64_t stride_from_end(const struct arr *a, int i)
{
    return a->ndim >= i && a->shape[a->ndim - i] != 1 ? a->strides[a->ndim - i] : 0;
}

/* ---- copies ---- */

enum err qmm_dense(struct arr **in, struct arr **copy, struct strm *s)
{
    struct shp shape;
    enum err err;

    arr_shape(&shape, *in);
    TRY(arr_new_empty(copy, &shape, (enum dtype)(*in)->dtype));
    TRY(be_copy_dense(s, *copy, *in));
    *in = *copy;
    if ((*in)->buf)
        TRY(s->be->hold(s, &(*in)->buf, 1));
out:
    return err;
}

static enum err make_dense(struct qmm_plan *p, enum qmm_operand i)
{
    return p->copies[i] ? ERR_OK : qmm_dense(&p->in[i], &p->copies[i], p->strm);
}

/* Rows lie one after the other, their elements side by side; any batch strides. */
static bool has_dense_rows(const struct arr *a)
{
    int64_t cols = dim_from_end(a, 1), rows = dim_from_end(a, 2);

    return (cols == 1 || a->strides[a->ndim - 1] == 1) &&
           (rows == 1 || a->strides[a->ndim - 2] == cols);
}

/* ---- x as one tall matrix ---- */

/* All rows of x at one distance. */
static bool has_even_rows(int64_t *ld, const struct arr *x)
{
    const int64_t *strides = x->strides;
    struct nest nest;
    struct shp rows;

    if (dim_from_end(x, 1) != 1 && x->strides[x->ndim - 1] != 1)
        return false;
    arr_shape(&rows, x);
    rows.ndim--;
    shp_collapse(&nest, &rows, &strides, 1);
    *ld = nest.ndim == 1 ? nest.stride[0][0] : dim_from_end(x, 1);
    return nest.ndim <= 1;
}

static enum err init_single(struct qmm_plan *p)
{
    enum err err = ERR_OK;

    if (!has_even_rows(&p->ld, p->in[QMM_X])) {
        TRY(make_dense(p, QMM_X));
        p->ld = p->k;
    }
    p->m = (int64_t)p->in[QMM_X]->size / p->k;
    p->n_batch = 1;
out:
    return err;
}

/* ---- batches ---- */

/* Makes inner batch dimensions over which the matrix does not change part of m. */
static void fold(struct qmm_plan *p)
{
    while (p->n_dims > 0) {
        int d = p->n_dims - 1;
        int64_t step = p->stride[QMM_X][d];
        for (int i = QMM_W; i < QMM_STRIDED; i++)
            if (p->stride[i][d] != 0)
                return;
        if (p->m == 1)
            p->ld = step;
        if (step != p->m * p->ld || p->m * p->dim[d] > INT32_MAX)
            return;
        p->m *= p->dim[d];
        p->n_batch /= p->dim[d];
        p->n_dims = d;
    }
}

static void init_strides(struct qmm_plan *p)
{
    const struct arr *x = p->in[QMM_X];
    struct shp batch = { .ndim = x->ndim - 2 };
    int64_t strides[QMM_STRIDED][SHP_MAX];
    const int64_t *views[QMM_STRIDED];
    struct nest nest;

    for (int i = 0; i < QMM_STRIDED; i++) {
        views[i] = strides[i];
        for (int d = 0; d < batch.ndim; d++)
            strides[i][d] = p->in[i] ? stride_from_end(p->in[i], x->ndim - d) : 0;
    }
    memcpy(batch.d, x->shape, (size_t)batch.ndim * sizeof batch.d[0]);
    shp_collapse(&nest, &batch, views, QMM_STRIDED);
    p->n_batch = (int64_t)shp_size(&batch);
    p->n_dims = nest.ndim;
    memcpy(p->dim, nest.dim, sizeof p->dim);
    for (int i = 0; i < QMM_STRIDED; i++)
        memcpy(p->stride[i], nest.stride[i], sizeof p->stride[i]);
}

static enum err init_batched(struct qmm_plan *p)
{
    enum err err = ERR_OK;

    if (p->k != 1 && p->in[QMM_X]->strides[p->in[QMM_X]->ndim - 1] != 1)
        TRY(make_dense(p, QMM_X));
    p->m = dim_from_end(p->in[QMM_X], 2);
    p->ld = p->m == 1 ? p->k : stride_from_end(p->in[QMM_X], 2);
    init_strides(p);
    fold(p);
out:
    return err;
}

/* ---- gathers ---- */

/* Matrices at one distance; 0 where there is one. */
static bool has_even_matrices(int64_t *stride, const struct arr *a)
{
    const int64_t *strides = a->strides;
    struct nest nest;
    struct shp batch;

    arr_shape(&batch, a);
    batch.ndim -= 2;
    shp_collapse(&nest, &batch, &strides, 1);
    *stride = nest.ndim == 1 ? nest.stride[0][0] : 0;
    return nest.ndim <= 1;
}

static enum err init_gather(struct qmm_plan *p)
{
    const struct arr *x;
    enum err err = ERR_OK;

    for (int i = 0; i < QMM_STRIDED; i++) {
        if (!p->in[i])
            continue;
        if (!has_even_matrices(&p->stride[i][0], p->in[i]) ||
            (i == QMM_X && p->k != 1 && p->in[i]->strides[p->in[i]->ndim - 1] != 1)) {
            TRY(make_dense(p, (enum qmm_operand)i));
            (void)has_even_matrices(&p->stride[i][0], p->in[i]);
        }
    }
    for (int i = QMM_LHS; i <= QMM_RHS; i++)
        if (!(p->in[i]->flags & LAYOUT_ROW))
            TRY(make_dense(p, (enum qmm_operand)i));
    x = p->in[QMM_X];
    p->m = dim_from_end(x, 2);
    p->ld = p->m == 1 ? p->k : stride_from_end(x, 2);
    p->n_x = (int64_t)x->size / (p->m * p->k);
    p->n_w = (int64_t)p->in[QMM_W]->size /
             (dim_from_end(p->in[QMM_W], 1) * dim_from_end(p->in[QMM_W], 2));
    p->n_batch = (int64_t)p->in[QMM_LHS]->size;
    p->n_dims = 1;
    p->dim[0] = p->n_batch;
out:
    return err;
}

/* ---- all of them ---- */

enum err qmm_plan_init(struct qmm_plan *p, const struct exec *x)
{
    const struct quantized_matmul_params *params = x->node->params;
    const struct arr *out = x->out[0];
    int n = 0;
    enum err err = ERR_OK;

    *p = (struct qmm_plan){ .strm = x->strm,
                            .q = params->q,
                            .transpose = params->transpose,
                            .is_gather = x->node->op == OP_GATHER_QMM };
    for (int i = QMM_X; i <= QMM_SCALES + (params->q.mode == QUANT_AFFINE); i++)
        p->in[i] = x->in[n++];
    for (int i = QMM_LHS; p->is_gather && i <= QMM_RHS; i++)
        p->in[i] = x->in[n++];
    p->n = dim_from_end(out, 1);
    p->k = dim_from_end(p->in[QMM_X], 1);
    for (int i = QMM_W; i < QMM_STRIDED; i++)
        if (p->in[i] && !has_dense_rows(p->in[i]))
            TRY(make_dense(p, (enum qmm_operand)i));
    if (p->k == 0) { /* an empty sum: nothing is read */
        p->m = (int64_t)out->size / p->n;
        p->n_batch = 1;
    } else if (p->is_gather) {
        err = init_gather(p);
    } else if (p->in[QMM_X]->ndim > 2 && p->in[QMM_W]->ndim > 2) {
        err = init_batched(p);
    } else {
        err = init_single(p);
    }
out:
    return err;
}

enum err qmm_plan_hold(const struct qmm_plan *p)
{
    enum err err = ERR_OK;

    for (int i = 0; i < QMM_OPERANDS; i++)
        if (p->copies[i] && p->copies[i]->buf)
            TRY(p->strm->be->hold(p->strm, &p->copies[i]->buf, 1));
out:
    return err;
}

void qmm_plan_fini(struct qmm_plan *p)
{
    for (int i = 0; i < QMM_OPERANDS; i++)
        arr_unref(&p->copies[i]);
}

int64_t qmm_batch_offset(const struct qmm_plan *p, enum qmm_operand operand, int64_t i)
{
    int64_t offset = 0;

    for (int d = p->n_dims - 1; d >= 0; d--) {
        offset += i % p->dim[d] * p->stride[operand][d];
        i /= p->dim[d];
    }
    return offset;
}
