/* Products of two quantized matrices, of the steps that backends have: pack x (and w), unpack x,
 * which then is exact in its dtype, and multiply with the packed w. */
#include "backend/common/families.h"

struct job {
    const struct exec *x;
    const struct qqmm_params *p;
    struct arr *kept[6]; /* owned: what steps hand over */
    int n_kept;
};

/* A new array that a step fills. */
static enum err give(struct arr **out, struct job *j, const struct shp *shape, enum dtype t)
{
    enum err err = arr_new_empty(out, shape, t);

    if (!err)
        j->kept[j->n_kept++] = *out;
    return err;
}

static enum err step(const struct job *j, enum op_id op, const void *params, struct exec e)
{
    struct node n = { .op = (uint16_t)op, .params = (void *)params };

    e.strm = j->x->strm;
    e.node = &n;
    for (int i = 0; i < e.n_out && !e.out[0]->size; i++) {
        enum err err = arr_alloc(e.out[i], e.strm->be);
        if (err || i == e.n_out - 1)
            return err;
    }
    return e.strm->be->families[op_table[op].family](&e);
}

/* a as words and scales; global may be NULL. */
static enum err pack(struct arr *out[2], struct job *j, struct arr *a, struct arr *global)
{
    struct quantize_params p = { .q = j->p->q };
    struct arr *in[] = { a, global };
    struct shp shape;
    int last = a->ndim - 1;
    enum err err;

    arr_shape(&shape, a);
    shape.d[last] = (int32_t)((int64_t)a->shape[last] * p.q.bits / 32);
    TRY(give(&out[0], j, &shape, DT_UINT32));
    shape.d[last] = a->shape[last] / p.q.group_size;
    TRY(give(&out[1], j, &shape, DT_UINT8));
    err = step(j, OP_QUANTIZE, &p,
               (struct exec){ .in = in, .n_in = global ? 2 : 1, .out = out, .n_out = 2 });
out:
    return err;
}

/* The numbers that x is after packing, without its global scale. */
static enum err rounded(struct arr **out, struct job *j, struct arr *global)
{
    struct quantize_params p = { .q = j->p->q, .dequantize = 1, .dtype = j->x->out[0]->dtype };
    struct arr *x = j->x->in[0], *packed[2];
    struct shp shape;
    enum err err;

    arr_shape(&shape, x);
    TRY(pack(packed, j, x, global));
    TRY(give(out, j, &shape, (enum dtype)p.dtype));
    err =
        step(j, OP_QUANTIZE, &p, (struct exec){ .in = packed, .n_in = 2, .out = out, .n_out = 1 });
out:
    return err;
}

static enum err multiply(struct job *j)
{
    const struct exec *x = j->x;
    bool is_gather = x->node->op == OP_GATHER_QQMM;
    struct quantized_matmul_params p = { .q = j->p->q, .transpose = 1 };
    struct arr *const *global = j->p->has_global ? x->in + 2 + j->p->has_scales : NULL;
    struct arr *in[5] = { NULL, x->in[1], j->p->has_scales ? x->in[2] : NULL };
    int n = 3;
    enum err err;

    TRY(rounded(&in[0], j, global ? global[0] : NULL));
    if (!j->p->has_scales)
        TRY(pack(in + 1, j, x->in[1], global ? global[1] : NULL));
    if (is_gather) {
        in[n++] = x->in[x->n_in - 2];
        in[n++] = x->in[x->n_in - 1];
    }
    err = step(j, is_gather ? OP_GATHER_QMM : OP_QUANTIZED_MATMUL, &p,
               (struct exec){ .in = in, .n_in = n, .out = x->out, .n_out = 1 });
out:
    return err;
}

enum err be_qqmm(const struct exec *x)
{
    struct job j = { .x = x, .p = x->node->params };
    enum err err;

    err = multiply(&j);
    for (int i = 0; i < j.n_kept; i++) {
        enum err held = j.kept[i]->buf ? x->strm->be->hold(x->strm, &j.kept[i]->buf, 1) : ERR_OK;
        err = err ? err : held;
        arr_unref(&j.kept[i]);
    }
    return err;
}
