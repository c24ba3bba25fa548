#include "backend/vulkan/ops/group.h"

#include "backend/common/families.h"
#include "backend/vulkan/ops/attn.h"
#include "backend/vulkan/ops/norm.h"
#include "backend/vulkan/ops/qmm.h"
#include "backend/vulkan/ops/rope.h"
#include "backend/vulkan/rt/stream.h"
#include "plan/rewrite.h"

static bool is_dense(const struct arr *a)
{
    return a->flags & LAYOUT_ROW;
}

/* ---- nodes as steps of their own ---- */

struct exec vk_group_exec(const struct exec *x, const struct node *n, struct arr **out)
{
    *out = &n->out[0];
    return (struct exec){
        .strm = x->strm, .node = n, .in = n->in, .n_in = n->n_in, .out = out, .n_out = 1
    };
}

enum err vk_group_run(const struct exec *x, int slot)
{
    const struct node *n = x->group->node[slot];
    struct arr *out;

    if (!n)
        return ERR_OK;
    struct exec own = vk_group_exec(x, n, &out);
    return x->strm->be->families[op_table[n->op].family](&own);
}

/* ---- heads ---- */

/* Heads and positions change places. */
static bool swaps_heads(const struct node *view)
{
    static const int32_t swapped[] = { 0, 2, 1, 3 };
    const struct axes_params *p = view->params;

    return view->op == OP_TRANSPOSE && p->n == 4 && memcmp(p->axis, swapped, sizeof swapped) == 0;
}

static bool is_unit_region(const struct slice_update_params *p)
{
    for (int i = 0; i < p->region.n; i++)
        if (p->region.d[i].step != 1)
            return false;
    return p->kind == UPDATE_NONE;
}

/* The nodes of a part. */
struct heads {
    struct node *norm, *view, *rope, *update;
    const struct arr *src; /* [batch, heads, positions, size], or the two in the middle swapped */
    bool is_swapped;
};

static bool heads_of(struct heads *h, const struct group *g, int part)
{
    struct node *const *n = g->node + part * HEADS_SLOTS;

    *h = (struct heads){ n[HEADS_NORM], n[HEADS_VIEW], n[HEADS_ROPE], n[HEADS_UPDATE] };
    if (!h->rope && !h->update)
        return false;
    const struct node *first = h->norm   ? h->norm
                               : h->view ? h->view
                               : h->rope ? h->rope
                                         : h->update;
    h->src = first->in[first == h->update];
    h->is_swapped = h->view != NULL;
    return true;
}

static const struct arr *heads_out(const struct heads *h)
{
    return h->update ? h->update->in[1] : &h->rope->out[0];
}

static enum group_reason takes_part(const struct heads *h, const struct node *view2)
{
    if (h->src->ndim != 4 || view2 || (h->view && !swaps_heads(h->view)))
        return GROUP_LAYOUT;
    if (h->update && !is_unit_region(h->update->params))
        return GROUP_LAYOUT;
    if (h->src->strides[3] != 1 && h->src->shape[3] != 1)
        return GROUP_LAYOUT;
    if (h->src->dtype != heads_out(h)->dtype ||
        (h->norm && ((const struct norm_params *)h->norm->params)->has_weight &&
         h->norm->in[1]->dtype != h->src->dtype))
        return GROUP_DTYPE;
    return GROUP_TAKEN;
}

/* One dispatch turns all its parts alike. */
static bool are_rotated_alike(const struct node *a, const struct node *b)
{
    return node_same_params(a, b);
}

/* One dispatch has one dtype, batch, number of positions and row size. */
static enum group_reason fit_together(const struct arr *a, const struct arr *b)
{
    if (a->dtype != b->dtype)
        return GROUP_DTYPE;
    return a->ndim == b->ndim && a->shape[0] == b->shape[0] && a->shape[2] == b->shape[2] &&
                   a->shape[3] == b->shape[3]
               ? GROUP_TAKEN
               : GROUP_SIZE;
}

static enum group_reason judge_heads(const struct group *g)
{
    const struct node *rope = g->node[HEADS_ROPE];
    enum group_reason why = GROUP_TAKEN;
    uint64_t elements = 0;
    struct heads h;

    for (int i = 0; i < GROUP_MAX_HEADS && why == GROUP_TAKEN; i++) {
        if (!heads_of(&h, g, i))
            continue;
        elements += heads_out(&h)->size;
        why = takes_part(&h, g->node[i * HEADS_SLOTS + HEADS_VIEW2]);
        if (why == GROUP_TAKEN)
            why = fit_together(heads_out(&h), &rope->out[0]);
        if (why == GROUP_TAKEN && h.rope && !are_rotated_alike(h.rope, rope))
            why = GROUP_PARAMS;
    }
    /* Rows are numbered in 32 bits; once the caches are copied there is no way back. */
    return why == GROUP_TAKEN && elements > UINT32_MAX ? GROUP_SIZE : why;
}

/* Where the rows go: into the cache, or into an array of their own. */
static enum err place_heads(struct vk_rope_part *part, const struct exec *x, const struct heads *h)
{
    struct arr *out = h->update ? &h->update->out[0] : &h->rope->out[0];
    int64_t strides[SHP_MAX];
    enum err err;

    part->dst = out;
    if (h->update) {
        const struct slice_update_params *p = h->update->params;
        TRY(be_take_over(x->strm, out, h->update->in[0]));
        part->dst_offset = be_slice_strides(strides, out, &p->region);
    } else {
        TRY(arr_alloc(out, x->strm->be));
        memcpy(strides, out->strides, sizeof strides[0] * 4);
    }
    part->to = (struct vk_head_strides){ strides[0], strides[1], strides[2], strides[3] };
out:
    return err;
}

static void fill_part(struct vk_rope_part *part, const struct heads *h)
{
    int head = h->is_swapped ? 2 : 1, position = h->is_swapped ? 1 : 2;
    const int64_t *s = h->src->strides;

    *part = (struct vk_rope_part){ .src = h->src,
                                   .from = { s[0], s[head], s[position], s[3] },
                                   .heads = (uint32_t)h->src->shape[head],
                                   .is_normed = h->norm != NULL,
                                   .is_rotated = h->rope != NULL };
    if (h->norm) {
        const struct norm_params *np = h->norm->params;
        part->weight = np->has_weight ? h->norm->in[1] : NULL;
        part->eps = np->eps;
    }
}

/* The parts as they are there, without a place to go to. */
static void make_heads(struct vk_rope *r, struct heads *h, const struct group *g)
{
    const struct node *rope = g->node[HEADS_ROPE];
    const struct rope_params *p = rope->params;
    const struct arr *out = &rope->out[0];

    *r = (struct vk_rope){ .p = p,
                           .offset = p->has_offset ? rope->in[1] : NULL,
                           .freqs = p->has_freqs ? rope->in[1 + p->has_offset] : NULL,
                           .batch = (uint32_t)out->shape[0],
                           .positions = (uint32_t)out->shape[2],
                           .size = (uint32_t)out->shape[3] };
    for (int i = 0; i < GROUP_MAX_HEADS; i++)
        if (heads_of(&h[r->n_parts], g, i)) {
            fill_part(&r->part[r->n_parts], &h[r->n_parts]);
            r->n_parts++;
        }
}

static enum err run_heads(const struct exec *x, enum group_reason *why)
{
    struct heads h[GROUP_MAX_HEADS];
    struct vk_rope r;
    struct vk_enc *e;
    enum err err = ERR_OK;

    if ((*why = judge_heads(x->group)) != GROUP_TAKEN)
        return ERR_OK;
    make_heads(&r, h, x->group);
    for (int i = 0; i < r.n_parts; i++)
        TRY(place_heads(&r.part[i], x, &h[i]));
    TRY(vk_enc_get(&e, x->strm));
    err = vk_rope_encode(e, &r);
out:
    return err;
}

/* ---- heads and their attention ---- */

enum { QUERIES, KEYS, VALUES };

/* The slice, or without one the whole cache, ends with the position that the update adds, and that
 * is all of the update. */
static bool ends_with_update(const struct node *slice, const struct node *update)
{
    const struct slice_params *all = slice ? slice->params : NULL;
    const struct slice_update_params *u = update->params;
    const int32_t *cache = update->out[0].shape, *part = update->in[1]->shape;
    const int32_t *used = slice ? slice->out[0].shape : cache;
    bool ends = u->region.d[2].start + 1 == used[2] && part[2] == 1;

    for (int i = 0; i < 4; i++) {
        ends &= !all || (all->d[i].start == 0 && all->d[i].step == 1);
        ends &= i == 2 || (part[i] == cache[i] && used[i] == cache[i]);
    }
    return ends;
}

static enum group_reason judge_attn(const struct group *g, const struct vk_rope *r)
{
    const struct sdpa_params *p = g->node[ATTN_SDPA]->params;
    const struct vk_rope_part *q = &r->part[QUERIES], *k = &r->part[KEYS];

    if (r->positions != 1 || !g->node[ATTN_SDPA]->out[0].size)
        return GROUP_SIZE;
    if (p->has_mask || (q->is_normed && k->is_normed && q->eps != k->eps))
        return GROUP_PARAMS;
    return ends_with_update(g->node[ATTN_KEYS], g->node[HEADS_SLOTS + HEADS_UPDATE]) &&
                   ends_with_update(g->node[ATTN_VALUES], g->node[2 * HEADS_SLOTS + HEADS_UPDATE])
               ? GROUP_TAKEN
               : GROUP_PARAMS;
}

/* Heads first, then the attention. Where this fails its nodes alone would, too. */
static enum err run_apart(const struct exec *x, struct vk_enc *e, struct vk_rope *r,
                          const struct heads *h)
{
    enum err err;

    TRY(place_heads(&r->part[QUERIES], x, &h[QUERIES]));
    TRY(vk_rope_encode(e, r));
    TRY(vk_group_run(x, ATTN_KEYS));
    TRY(vk_group_run(x, ATTN_VALUES));
    err = vk_group_run(x, ATTN_SDPA);
out:
    return err == ERR_UNSUPPORTED ? ERR_RUNTIME : err;
}

static enum err run_together(const struct exec *x, struct vk_enc *e, const struct vk_rope *r,
                             enum group_reason *why)
{
    struct arr *out;
    struct exec sdpa = vk_group_exec(x, x->group->node[ATTN_SDPA], &out);
    enum err err;

    TRY(vk_attn_heads(e, &(struct vk_attn_heads){ &sdpa, r }, why));
    for (int slot = ATTN_KEYS; slot <= ATTN_VALUES && *why == GROUP_TAKEN; slot++)
        if (group_wants(x->group, slot))
            TRY(vk_group_run(x, slot));
out:
    return err;
}

enum err vk_group_hold(const struct exec *x, int slot)
{
    const struct node *n = x->group->node[slot];
    struct arr *a = n ? &n->out[0] : NULL;

    if (!a || !a->buf || group_wants(x->group, slot))
        return ERR_OK;
    return x->strm->be->hold(x->strm, &a->buf, 1);
}

static enum err hold_inner(const struct exec *x)
{
    static const int slots[] = { HEADS_ROPE, HEADS_SLOTS + HEADS_UPDATE,
                                 2 * HEADS_SLOTS + HEADS_UPDATE };
    enum err err = ERR_OK;

    for (size_t i = 0; i < ARRAY_LEN(slots) && !err; i++)
        err = vk_group_hold(x, slots[i]);
    return err;
}

static void count_attn(enum group_reason why)
{
    rewrite_count(1u << REWRITE_ATTN_HEADS, why);
}

static enum err run_attn(const struct exec *x, enum group_reason *why)
{
    struct heads h[GROUP_MAX_HEADS];
    struct vk_rope r;
    struct vk_enc *e;
    enum err err = ERR_OK;

    if ((*why = judge_heads(x->group)) != GROUP_TAKEN) {
        count_attn(*why);
        return ERR_OK;
    }
    make_heads(&r, h, x->group);
    for (int i = KEYS; i <= VALUES; i++)
        TRY(place_heads(&r.part[i], x, &h[i]));
    TRY(vk_enc_get(&e, x->strm));
    enum group_reason together = judge_attn(x->group, &r);
    if (together == GROUP_TAKEN)
        TRY(run_together(x, e, &r, &together));
    count_attn(together);
    if (together != GROUP_TAKEN)
        TRY(run_apart(x, e, &r, h));
    err = hold_inner(x);
out:
    return err;
}

bool vk_group_move(struct be_recording *r, struct strm *s, size_t step, const struct group *g)
{
    struct heads h[GROUP_MAX_HEADS];
    struct vk_rope rope;

    if (g->kind != GROUP_ATTN || judge_heads(g) != GROUP_TAKEN)
        return false;
    make_heads(&rope, h, g);
    if (judge_attn(g, &rope) != GROUP_TAKEN)
        return false;
    const struct node *n = g->node[ATTN_SDPA];
    struct exec sdpa = { .strm = s, .node = n, .in = n->in, .n_in = n->n_in };
    return vk_attn_heads_move(&vk_strm_of(s)->enc, r, step,
                              &(struct vk_attn_heads){ &sdpa, &rope });
}

/* ---- sums and their norms ---- */

static bool has_rows(const struct arr *a)
{
    return a->ndim > 0 && (a->strides[a->ndim - 1] == 1 || a->shape[a->ndim - 1] == 1);
}

static enum group_reason judge_add_norm(const struct node *add, const struct node *norm)
{
    const struct norm_params *p = norm->params;

    for (int i = 0; i < 2; i++) {
        if (add->in[i]->dtype != norm->out[0].dtype)
            return GROUP_DTYPE;
        if (!arr_same_shape(add->in[i], &add->out[0]) || !has_rows(add->in[i]))
            return GROUP_LAYOUT;
    }
    return p->has_weight && norm->in[1]->dtype != norm->out[0].dtype ? GROUP_DTYPE : GROUP_TAKEN;
}

static enum err run_add_norm(const struct exec *x, enum group_reason *why)
{
    struct node *add = x->group->node[ADD_NORM_ADD], *norm = x->group->node[ADD_NORM_NORM];
    const struct norm_params *p = norm->params;
    struct arr *sum = &add->out[0], *dst = &norm->out[0];
    struct vk_enc *e;
    enum err err = ERR_OK;

    if ((*why = judge_add_norm(add, norm)) != GROUP_TAKEN)
        return ERR_OK;
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

/* ---- rows of packed tables ---- */

static bool takes_rows(const struct node *gather)
{
    const struct gather_params *p = gather->params;
    const struct arr *src = gather->in[0];
    bool whole = p->n_axes == 1 && p->d[0].axis == 0 && p->d[0].size == 1;

    for (int i = 1; i < src->ndim; i++)
        whole &= p->d[i].size == src->shape[i];
    return whole;
}

static struct arr *global_scale_of(const struct node *unpack)
{
    const struct quantize_params *p = unpack->params;

    return p->q.mode != QUANT_AFFINE && unpack->n_in > 2 ? unpack->in[2] : NULL;
}

static enum group_reason judge_embed(const struct group *g)
{
    const struct node *unpack = g->node[EMBED_UNPACK];
    const struct quantize_params *p = unpack->params;
    const struct arr *table = g->node[EMBED_GATHER]->in[0], *scale = global_scale_of(unpack);
    bool has_biases = g->node[EMBED_GATHER + 2];

    if (!p->dequantize || has_biases != (p->q.mode == QUANT_AFFINE))
        return GROUP_PARAMS;
    for (int i = 0; i < 2 + has_biases; i++) {
        const struct node *gather = g->node[EMBED_GATHER + i];
        if (!takes_rows(gather))
            return GROUP_PARAMS;
        if (!is_dense(gather->in[0]))
            return GROUP_LAYOUT;
        if (gather->in[0]->shape[0] != table->shape[0]) /* where indices end */
            return GROUP_SIZE;
    }
    if (scale && !is_dense(scale))
        return GROUP_LAYOUT;
    return dt_is_integer((enum dtype)g->node[EMBED_GATHER]->in[1]->dtype) ? GROUP_TAKEN
                                                                          : GROUP_DTYPE;
}

static enum err run_embed(const struct exec *x, enum group_reason *why)
{
    struct node *const *gather = x->group->node + EMBED_GATHER;
    const struct node *unpack = x->group->node[EMBED_UNPACK];
    const struct quantize_params *p = unpack->params;
    struct vk_enc *e;
    enum err err = ERR_OK;

    if ((*why = judge_embed(x->group)) != GROUP_TAKEN)
        return ERR_OK;
    TRY(arr_alloc(x->out[0], x->strm->be));
    TRY(vk_enc_get(&e, x->strm));
    err = vk_dequantize_encode(
        e, &(struct vk_dequantize){ .q = p->q,
                                    .w = gather[0]->in[0],
                                    .scales = gather[1]->in[0],
                                    .biases = gather[2] ? gather[2]->in[0] : NULL,
                                    .global_scale = global_scale_of(unpack),
                                    .ids = gather[0]->in[1],
                                    .out = x->out[0],
                                    .variant = VARIANT_COUNT });
out:
    return err;
}

/* ---- */

const be_group_fn vk_groups[GROUP_KIND_COUNT] = {
    [GROUP_PRODUCT] = vk_group_product, [GROUP_ATTN] = run_attn,   [GROUP_HEADS] = run_heads,
    [GROUP_ADD_NORM] = run_add_norm,    [GROUP_EMBED] = run_embed,
};
