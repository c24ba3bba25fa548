#include "backend/common/attn.h"

void attn_of(struct attn *a, const struct exec *x)
{
    const struct sdpa_params *p = x->node->params;

    *a = (struct attn){ .p = p, .q = x->in[0], .k = x->in[1], .v = x->in[2] };
    a->mask = p->has_mask ? x->in[3] : NULL;
    a->sinks = p->has_sinks ? x->in[3 + p->has_mask] : NULL;
    a->batch = a->q->shape[0];
    a->heads = a->q->shape[1];
    a->n_kv = a->k->shape[1];
    a->group = a->n_kv ? a->heads / a->n_kv : 1;
    a->n_q = a->q->shape[2];
    a->n_k = a->k->shape[2];
    a->dim = a->q->shape[3];
    a->v_dim = a->v->shape[3];
}

enum err attn_alloc(struct arr *out, const struct be *be)
{
    int64_t size = out->shape[3], heads = out->shape[1];
    int64_t strides[] = { out->shape[2] * heads * size, size, heads * size, 1 };
    struct arr layout = { .strides = strides, .data_size = out->size };
    struct shp shape;

    arr_shape(&shape, out);
    layout.flags = (uint8_t)shp_layout_flags(&shape, strides, out->size);
    return arr_alloc_like(out, &layout, be);
}
