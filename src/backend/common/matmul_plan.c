#include "backend/common/matmul_plan.h"

#include "backend/common/qmm_plan.h"

/* Stride of a's dimension d, counted from the last one; 0 where a is broadcast. */
static int64_t stride_from_end(const struct arr *a, int d)
{
    return d < a->ndim && a->shape[a->ndim - 1 - d] != 1 ? a->strides[a->ndim - 1 - d] : 0;
}

static void init_side(struct mm_side *s, const struct arr *a, int64_t rows, int64_t cols)
{
    s->rows = rows;
    s->cols = cols;
    s->row_stride = stride_from_end(a, 1);
    s->col_stride = stride_from_end(a, 0);
}

/* Appends the dimensions of an operand's matrices, which the other operand does not have. */
static void add_own_dims(struct mm_plan *p, enum mm_operand i, const struct arr *a)
{
    const int64_t *strides = a->strides;
    struct nest nest;
    struct shp batch;

    arr_shape(&batch, a);
    batch.ndim -= 2;
    shp_collapse(&nest, &batch, &strides, 1);
    for (int d = 0; d < nest.ndim; d++, p->n_dims++) {
        p->dim[p->n_dims] = nest.dim[d];
        p->side[i].batch[p->n_dims] = nest.stride[0][d];
        p->side[MM_B - i].batch[p->n_dims] = 0;
    }
}

static void init_gather(struct mm_plan *p, const struct exec *x)
{
    const struct arr *out = x->out[0];

    p->n_dims = 0;
    p->n_batch = 1;
    for (int d = 0; d < out->ndim - 2; d++)
        p->n_batch *= out->shape[d];
    add_own_dims(p, MM_A, x->in[MM_A]);
    p->n_dims_b = p->n_dims;
    add_own_dims(p, MM_B, x->in[MM_B]);
    p->n_dims_b = p->n_dims - p->n_dims_b;
    p->n_a = p->n_b = 1;
    for (int d = 0; d < p->n_dims; d++)
        *(d < p->n_dims - p->n_dims_b ? &p->n_a : &p->n_b) *= p->dim[d];
}

static void init_batch(struct mm_plan *p, const struct exec *x)
{
    const struct arr *out = x->out[0];
    struct shp batch = { .ndim = out->ndim - 2 };
    int64_t strides[MM_OPERANDS][SHP_MAX];
    const int64_t *views[MM_OPERANDS] = { strides[0], strides[1], strides[2] };
    struct nest nest;

    for (int d = 0; d < batch.ndim; d++) {
        batch.d[d] = out->shape[d];
        for (int i = 0; i < p->n_sides; i++)
            strides[i][d] = stride_from_end(x->in[i], out->ndim - 1 - d);
    }
    shp_collapse(&nest, &batch, views, p->n_sides);
    p->n_dims = nest.ndim;
    p->n_batch = 1;
    for (int d = 0; d < nest.ndim; d++) {
        p->dim[d] = nest.dim[d];
        p->n_batch *= nest.dim[d];
        for (int i = 0; i < p->n_sides; i++)
            p->side[i].batch[d] = nest.stride[i][d];
    }
}

/* A product that counts for nothing is not read, as in BLAS: not even a NaN in it shows. */
static bool ignores_product(const struct node *n)
{
    return n->op == OP_ADDMM && ((const struct addmm_params *)n->params)->alpha == 0.0f;
}

static int32_t block_of(const struct node *n)
{
    if (n->op != OP_BLOCK_MASKED_MM)
        return 0;
    return ((const struct block_masked_mm_params *)n->params)->block;
}

static bool is_sparse(const struct mm_plan *p)
{
    return p->is_segmented || p->block;
}

void mm_plan_init(struct mm_plan *p, const struct exec *x)
{
    const struct arr *a = x->in[MM_A], *out = x->out[0];

    p->m = out->shape[out->ndim - 2];
    p->n = out->shape[out->ndim - 1];
    p->k = ignores_product(x->node) ? 0 : a->shape[a->ndim - 1];
    p->is_gather = x->node->op == OP_GATHER_MM;
    p->is_segmented = x->node->op == OP_SEGMENTED_MM;
    p->block = block_of(x->node);
    p->n_sides = p->is_gather || is_sparse(p) ? MM_C : x->n_in;
    init_side(&p->side[MM_A], x->in[MM_A], p->m, p->k);
    init_side(&p->side[MM_B], x->in[MM_B], p->k, p->n);
    if (p->n_sides > MM_C)
        init_side(&p->side[MM_C], x->in[MM_C], p->m, p->n);
    if (p->is_gather)
        init_gather(p, x);
    else
        init_batch(p, x);
}

static bool fits_i32(int64_t v)
{
    return v >= -INT32_MAX && v <= INT32_MAX;
}

bool mm_side_layout(struct mm_layout *out, const struct mm_side *s)
{
    bool unit_cols = s->cols == 1 || s->col_stride == 1;
    bool unit_rows = s->rows == 1 || s->row_stride == 1;

    /* A vector along the rows is read along them, although its single column makes both true. */
    bool by_col = unit_rows && (!unit_cols || (s->cols == 1 && s->rows > 1));
    *out = (struct mm_layout){ .by_col = by_col, .ld = by_col ? s->col_stride : s->row_stride };
    return (unit_cols || unit_rows) && fits_i32(out->ld);
}

void mm_plan_pack(struct mm_pack *out, struct mm_plan *p, enum mm_operand i, int64_t ld)
{
    struct mm_side *s = &p->side[i];
    int64_t step = s->rows * ld;
    int n = 0;

    for (int d = 0; d < p->n_dims; d++) {
        if (s->batch[d] == 0)
            continue;
        out->shape.d[n] = (int32_t)p->dim[d];
        out->src_strides[n++] = s->batch[d];
    }
    for (int d = p->n_dims - 1, at = n - 1; d >= 0; d--) {
        if (s->batch[d] == 0)
            continue;
        out->dst_strides[at--] = s->batch[d] = step;
        step *= p->dim[d];
    }
    out->shape.d[n] = (int32_t)s->rows;
    out->shape.d[n + 1] = (int32_t)s->cols;
    out->src_strides[n] = s->row_stride;
    out->src_strides[n + 1] = s->col_stride;
    out->dst_strides[n] = s->row_stride = ld;
    out->dst_strides[n + 1] = s->col_stride = 1;
    out->shape.ndim = n + 2;
    out->dst_shape = out->shape;
    out->dst_shape.d[n + 1] = (int32_t)ld;
}

/* The stride of rows once a batch dimension is outside them, if there is one. */
static bool rows_continue(struct mm_side *s, int64_t batch_stride)
{
    if (s->rows == 1)
        s->row_stride = batch_stride;
    return batch_stride == s->rows * s->row_stride;
}

void mm_plan_fold(struct mm_plan *p)
{
    while (p->n_dims > 0 && !p->is_gather && !is_sparse(p)) {
        int d = p->n_dims - 1;
        int64_t dim = p->dim[d];
        if (p->side[MM_B].batch[d] != 0 || p->m * dim > INT32_MAX)
            return;
        struct mm_side sides[MM_OPERANDS];
        for (int i = 0; i < p->n_sides; i += MM_C) { /* a and c have rows */
            sides[i] = p->side[i];
            if (!rows_continue(&sides[i], sides[i].batch[d]))
                return;
            sides[i].rows *= dim;
        }
        for (int i = 0; i < p->n_sides; i += MM_C)
            p->side[i] = sides[i];
        p->m *= dim;
        p->n_batch /= dim;
        p->n_dims = d;
    }
}

int64_t mm_batch_offset(const struct mm_plan *p, enum mm_operand operand, int64_t i)
{
    int64_t offset = 0;

    for (int d = p->n_dims - 1; d >= 0; d--) {
        offset += i % p->dim[d] * p->side[operand].batch[d];
        i /= p->dim[d];
    }
    return offset;
}

int64_t mm_pair(const struct mm_plan *p, uint32_t left, uint32_t right)
{
    return MIN((int64_t)left, p->n_a - 1) * p->n_b + MIN((int64_t)right, p->n_b - 1);
}

/* Masks: that of the result comes first, then both of the operands. */
static void place_extras(struct mm_extras *e, const struct mm_plan *p, const struct exec *x)
{
    int n = x->n_in - MM_C, first = p->block && n == 2 ? MM_MASK_A : 0;

    for (int i = 0; i < n; i++)
        e->in[first + i] = x->in[MM_C + i];
}

enum err mm_extras_init(struct mm_extras *e, const struct mm_plan *p, const struct exec *x)
{
    enum err err = ERR_OK;

    *e = (struct mm_extras){ 0 };
    if (p->is_gather || is_sparse(p))
        place_extras(e, p, x);
    for (int i = 0; i < MM_EXTRAS; i++)
        if (e->in[i] && !(e->in[i]->flags & LAYOUT_ROW))
            TRY(qmm_dense(&e->in[i], &e->copies[i], x->strm));
out:
    return err;
}

enum err mm_extras_hold(const struct mm_extras *e, struct strm *s)
{
    enum err err = ERR_OK;

    for (int i = 0; i < MM_EXTRAS; i++)
        if (e->copies[i] && e->copies[i]->buf)
            TRY(s->be->hold(s, &e->copies[i]->buf, 1));
out:
    return err;
}

void mm_extras_fini(struct mm_extras *e)
{
    for (int i = 0; i < MM_EXTRAS; i++)
        arr_unref(&e->copies[i]);
}
