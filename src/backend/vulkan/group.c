#include "backend/vulkan/group.h"

#include "backend/common/families.h"
#include "backend/vulkan/norm.h"
#include "backend/vulkan/qmm.h"
#include "backend/vulkan/rope.h"

static bool is_dense(const struct arr *a)
{
    return a->flags & LAYOUT_ROW;
}

/* ---- quantized products ---- */

static struct arr *residual_of(const struct group *g)
{
    const struct node *last = g->node[QMM_LAST];

    return last->in[0] == &g->node[QMM_PRODUCT]->out[0] ? last->in[1] : last->in[0];
}

static void fill_set(struct vk_qmv_set *s, const struct node *n)
{
    *s = (struct vk_qmv_set){ .w = n->in[1],
                              .scales = n->in[2],
                              .biases = n->n_in > 3 ? n->in[3] : NULL,
                              .out = &n->out[0],
                              .n = n->in[1]->shape[0] };
}

/* The group as a merged product. The result of the whole goes to the last node. */
static void make_product(struct vk_qmv *v, const struct group *g)
{
    const struct node *first = g->node[QMM_PRODUCT], *norm = g->node[QMM_NORM];
    const struct quantized_matmul_params *p = first->params;
    const struct arr *x = norm ? norm->in[0] : first->in[0];

    *v = (struct vk_qmv){ .q = p->q, .x = x, .k = x->shape[x->ndim - 1] };
    v->m = v->k ? (int64_t)x->size / v->k : 0;
    v->ld = v->k;
    for (; v->n_sets < VK_QMV_SETS && g->node[QMM_PRODUCT + v->n_sets]; v->n_sets++)
        fill_set(&v->set[v->n_sets], g->node[QMM_PRODUCT + v->n_sets]);
    if (norm) {
        const struct norm_params *np = norm->params;
        v->norm = np->has_weight ? norm->in[1] : NULL;
        v->eps = np->eps;
    }
    if (!g->node[QMM_LAST])
        return;
    v->set[0].out = &g->node[QMM_LAST]->out[0];
    v->epilogue = g->node[QMM_SIGMOID] ? VK_QMV_SILU_MUL : VK_QMV_ADD;
    if (v->epilogue == VK_QMV_ADD)
        v->residual = residual_of(g);
    else
        v->set[1].out = NULL;
}

static enum group_reason takes_product(const struct exec *x)
{
    const struct group *g = x->group;
    const struct quantized_matmul_params *p = g->node[QMM_PRODUCT]->params;
    struct vk_qmv v;

    make_product(&v, g);
    if (!p->transpose || !is_dense(v.x) || (g->node[QMM_NORM] && !v.norm) ||
        (v.norm && v.norm->strides[0] != 1) || (v.residual && !is_dense(v.residual)))
        return GROUP_LAYOUT;
    for (int i = 0; i < v.n_sets; i++) {
        const struct vk_qmv_set *s = &v.set[i];
        if (s->w->ndim != 2 || !is_dense(s->w) || !is_dense(s->scales) ||
            (s->biases && !is_dense(s->biases)))
            return GROUP_LAYOUT;
        if (v.epilogue == VK_QMV_SILU_MUL && s->n != v.set[0].n)
            return GROUP_SIZE;
    }
    if (v.x->dtype != g->node[QMM_PRODUCT]->out[0].dtype || (v.norm && v.norm->dtype != v.x->dtype))
        return GROUP_DTYPE;
    return vk_qmv_fits(&v) ? GROUP_TAKEN : GROUP_SIZE;
}

static enum err run_product(const struct exec *x)
{
    struct vk_qmv v;
    struct vk_enc *e;
    bool gave_way;
    enum err err;

    make_product(&v, x->group);
    for (int i = 0; i < x->n_out; i++)
        TRY(arr_alloc(x->out[i], x->strm->be));
    TRY(vk_enc_get(&e, x->strm));
    err = vk_qmv_encode(e, &v, &gave_way);
    if (err && gave_way)
        err = ERR_UNSUPPORTED; /* nothing is encoded: the nodes run one by one */
out:
    return err;
}

/* ---- heads ---- */

/* Between norm and rope positions and heads change places. */
static bool swaps_heads(const struct node *view)
{
    static const int32_t swapped[] = { 0, 2, 1, 3 };
    const struct axes_params *p = view->params;

    return view->op == OP_TRANSPOSE && p->n == 4 && memcmp(p->axis, swapped, sizeof swapped) == 0;
}

static bool is_unit_region(const struct slice_update_params *p)
{
    for (int i = 0; i < p->region.n; i++)
        if (p->region.step[i] != 1)
            return false;
    return p->kind == UPDATE_NONE;
}

static enum group_reason takes_heads(const struct exec *x)
{
    const struct group *g = x->group;
    const struct node *norm = g->node[HEADS_NORM], *view = g->node[HEADS_VIEW];
    const struct node *rope = g->node[HEADS_ROPE], *update = g->node[HEADS_UPDATE];
    const struct arr *src = norm ? norm->in[0] : rope->in[0];

    if (src->ndim != 4 || (norm && (g->node[HEADS_VIEW2] || !view || !swaps_heads(view))))
        return GROUP_LAYOUT;
    if (update && !is_unit_region(update->params))
        return GROUP_LAYOUT;
    if (src->strides[3] != 1 && src->shape[3] != 1)
        return GROUP_LAYOUT;
    if (src->dtype != rope->out[0].dtype ||
        (norm && ((const struct norm_params *)norm->params)->has_weight &&
         norm->in[1]->dtype != src->dtype))
        return GROUP_DTYPE;
    return GROUP_TAKEN;
}

/* Where the rows go: into the cache, or into an array of their own. */
static enum err place_heads(struct vk_rope_part *part, const struct exec *x)
{
    struct node *rope = x->group->node[HEADS_ROPE], *update = x->group->node[HEADS_UPDATE];
    struct arr *out = update ? &update->out[0] : &rope->out[0];
    int64_t strides[SHP_MAX];
    enum err err;

    part->dst = out;
    if (update) {
        const struct slice_update_params *p = update->params;
        TRY(be_take_over(x->strm, out, update->in[0]));
        part->dst_offset = be_slice_strides(strides, out, &p->region);
    } else {
        TRY(arr_alloc(out, x->strm->be));
        memcpy(strides, out->strides, sizeof strides[0] * 4);
    }
    part->to = (struct vk_head_strides){ strides[0], strides[1], strides[2], strides[3] };
out:
    return err;
}

static enum err run_heads(const struct exec *x)
{
    const struct node *norm = x->group->node[HEADS_NORM], *rope = x->group->node[HEADS_ROPE];
    const struct rope_params *p = rope->params;
    const struct arr *src = norm ? norm->in[0] : rope->in[0];
    int head = norm ? 2 : 1, position = norm ? 1 : 2;
    const int64_t *s = src->strides;
    struct vk_rope r = { .p = p,
                         .offset = p->has_offset ? rope->in[1] : NULL,
                         .freqs = p->has_freqs ? rope->in[1 + p->has_offset] : NULL,
                         .batch = (uint32_t)src->shape[0],
                         .positions = (uint32_t)src->shape[position],
                         .size = (uint32_t)src->shape[3],
                         .n_parts = 1 };
    struct vk_enc *e;
    enum err err;

    r.part[0] = (struct vk_rope_part){ .src = src,
                                       .from = { s[0], s[head], s[position], s[3] },
                                       .heads = (uint32_t)src->shape[head],
                                       .is_normed = norm != NULL,
                                       .is_turned = true };
    if (norm) {
        const struct norm_params *np = norm->params;
        r.part[0].weight = np->has_weight ? norm->in[1] : NULL;
        r.part[0].eps = np->eps;
    }
    TRY(place_heads(&r.part[0], x));
    TRY(vk_enc_get(&e, x->strm));
    err = vk_rope_encode(e, &r);
out:
    return err;
}

/* ---- sums and their norms ---- */

static bool has_rows(const struct arr *a)
{
    return a->ndim > 0 && (a->strides[a->ndim - 1] == 1 || a->shape[a->ndim - 1] == 1);
}

static enum group_reason takes_add_norm(const struct exec *x)
{
    const struct node *add = x->group->node[ADD_NORM_ADD], *norm = x->group->node[ADD_NORM_NORM];
    const struct norm_params *p = norm->params;

    for (int i = 0; i < 2; i++) {
        if (add->in[i]->dtype != norm->out[0].dtype)
            return GROUP_DTYPE;
        if (!arr_same_shape(add->in[i], &add->out[0]) || !has_rows(add->in[i]))
            return GROUP_LAYOUT;
    }
    return p->has_weight && norm->in[1]->dtype != norm->out[0].dtype ? GROUP_DTYPE : GROUP_TAKEN;
}

static enum err run_add_norm(const struct exec *x)
{
    struct node *add = x->group->node[ADD_NORM_ADD], *norm = x->group->node[ADD_NORM_NORM];
    const struct norm_params *p = norm->params;
    struct arr *sum = &add->out[0], *dst = &norm->out[0];
    struct vk_enc *e;
    enum err err;

    TRY(arr_alloc(sum, x->strm->be));
    TRY(arr_alloc(dst, x->strm->be));
    TRY(vk_enc_get(&e, x->strm));
    TRY(vk_norm_encode(e, &(struct vk_norm){ .x = add->in[0],
                                             .addend = add->in[1],
                                             .weight = p->has_weight ? norm->in[1] : NULL,
                                             .eps = p->eps,
                                             .dst = dst,
                                             .sum = sum }));
    if (!group_wants(x->group, ADD_NORM_ADD))
        err = x->strm->be->hold(x->strm, &sum->buf, 1);
out:
    return err;
}

/* ---- */

const be_op_fn vk_groups[GROUP_KIND_COUNT] = {
    [GROUP_QMM] = run_product,
    [GROUP_HEADS] = run_heads,
    [GROUP_ADD_NORM] = run_add_norm,
};

enum group_reason vk_group_takes(const struct exec *x)
{
    static enum group_reason (*const takes[GROUP_KIND_COUNT])(const struct exec *) = {
        [GROUP_QMM] = takes_product,
        [GROUP_HEADS] = takes_heads,
        [GROUP_ADD_NORM] = takes_add_norm,
    };

    return takes[x->group->kind](x);
}
