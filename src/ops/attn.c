/* Scaled dot-product attention: one node where the kernels reach, else products and a softmax. */
#include <float.h>

#include "base/gate.h"
#include "eval/stream.h"
#include "ops/build.h"
#include "ops/parts.h"
#include "ops/rules.h"

#define NAME "scaled_dot_product_attention"

/* The widest heads that the kernels hold. */
#define FUSED_HEAD_MAX 256

enum { B, HEADS, LENGTH, SIZE }; /* axes of q, k and v */

struct attention {
    const struct ops_sdpa *a; /* NULL: of a node */
    float scale;
    bool causal;
    enum dtype dtype;
    int32_t n_heads, n_kv;
    struct arr *q, *k, *v, *mask, *sinks; /* owned: in the common dtype; the last two may be NULL */
};

/* ---- checks ---- */

static enum err check_mask_mode(struct attention *t)
{
    const char *mode = t->a->mask_mode;

    t->causal = strcmp(mode, "causal") == 0;
    if (!t->causal && strcmp(mode, "") != 0 && strcmp(mode, "array") != 0)
        return err_set(
            ERR_ARG, "[" NAME "] Invalid mask_mode %s. mask_mode must be 'causal', 'array' or ''.",
            mode);
    if (t->causal && t->a->mask)
        return err_set(ERR_ARG, "[" NAME "] Invalid mask_arr for mask_mode 'causal'. No array mask "
                                "should be passed.");
    if (t->a->mask && t->a->mask->ndim > 4) {
        struct shp shape;
        arr_shape(&shape, t->a->mask);
        return err_set(ERR_ARG,
                       "[" NAME "] the mask with shape %s expected to have at most rank 4.",
                       shp_text(&shape));
    }
    return ERR_OK;
}

static enum err check_rank(const struct arr *x)
{
    struct shp shape;

    if (x->ndim == 4)
        return ERR_OK;
    arr_shape(&shape, x);
    return err_set(ERR_ARG, "[" NAME "] input with shape %s expected to be rank 4",
                   shp_text(&shape));
}

static enum err check_batch(const struct arr *q, const struct arr *x)
{
    struct shp shape;

    if (q->shape[B] == x->shape[B])
        return ERR_OK;
    arr_shape(&shape, x);
    return err_set(ERR_ARG, "[" NAME "] mismatching batch dimension for input with shape %s.",
                   shp_text(&shape));
}

static enum err check_heads(const struct attention *t)
{
    const struct arr *k = t->a->k, *v = t->a->v;
    struct shp q_shape, k_shape;

    arr_shape(&q_shape, t->a->q);
    arr_shape(&k_shape, k);
    if (q_shape.d[SIZE] != k_shape.d[SIZE])
        return err_set(ERR_ARG,
                       "[" NAME "] query, keys expected to have matching last dimension; found "
                       "query shape %s for keys shape %s.",
                       shp_text(&q_shape), shp_text(&k_shape));
    if (k->shape[HEADS] != v->shape[HEADS])
        return err_set(ERR_ARG,
                       "[" NAME "] keys, values expected to have matching n_kv_heads; found keys "
                       "with n_heads %d for values with n_heads %d.",
                       k->shape[HEADS], v->shape[HEADS]);
    if (k->shape[LENGTH] != v->shape[LENGTH])
        return err_set(ERR_ARG,
                       "[" NAME "] keys, values expected to have matching length; found %d keys "
                       "for %d values.",
                       k->shape[LENGTH], v->shape[LENGTH]);
    if (t->n_kv == 0 ? t->n_heads != 0 : t->n_heads % t->n_kv != 0)
        return err_set(ERR_ARG,
                       "[" NAME "] n_heads must be a multiple of n_kv_heads, found n_heads %d for "
                       "n_kv_heads %d.",
                       t->n_heads, t->n_kv);
    return ERR_OK;
}

static enum err check_extras(const struct attention *t)
{
    const struct arr *mask = t->a->mask, *sinks = t->a->sinks;
    struct shp shape;

    if (mask && dt_promote(dtype_of(mask), t->dtype) != t->dtype)
        return err_set(ERR_ARG, "[" NAME "] Mask type must promote to output type %s.",
                       dt_name(t->dtype));
    if (!sinks)
        return ERR_OK;
    if (dt_promote(dtype_of(sinks), t->dtype) != t->dtype)
        return err_set(ERR_ARG, "[" NAME "] Type of sinks must promote to output type %s.",
                       dt_name(t->dtype));
    arr_shape(&shape, sinks);
    if (sinks->ndim != 1 || sinks->shape[0] != t->n_heads)
        return err_set(ERR_ARG, "[" NAME "] Received invalid shape for sinks %s.",
                       shp_text(&shape));
    return ERR_OK;
}

static enum err check(struct attention *t)
{
    const struct ops_sdpa *a = t->a;
    enum err err;

    TRY(check_rank(a->q));
    TRY(check_rank(a->k));
    TRY(check_rank(a->v));
    TRY(check_mask_mode(t));
    TRY(check_batch(a->q, a->k));
    TRY(check_batch(a->q, a->v));
    t->n_heads = a->q->shape[HEADS];
    t->n_kv = a->k->shape[HEADS];
    TRY(check_heads(t));
    t->dtype = dt_promote(dt_promote(dtype_of(a->q), dtype_of(a->k)), dtype_of(a->v));
    if (!dt_is_float(t->dtype))
        TRY(err_set(ERR_ARG, "[" NAME "] Received unsupported type %s.", dt_name(t->dtype)));
    TRY(check_extras(t));
out:
    return err;
}

/* Casts everything to the common dtype and broadcasts the mask to [B, heads, queries, keys]. */
static enum err prepare(struct attention *t, struct strm *s)
{
    const struct ops_sdpa *a = t->a;
    enum err err;

    TRY(ops_astype(&t->q, a->q, t->dtype, s));
    TRY(ops_astype(&t->k, a->k, t->dtype, s));
    TRY(ops_astype(&t->v, a->v, t->dtype, s));
    if (a->mask) {
        enum dtype type = a->mask->dtype == DT_BOOL ? DT_BOOL : t->dtype;
        struct shp shape;
        arr_shape(&shape, a->q);
        shape.d[SIZE] = a->k->shape[LENGTH];
        TRY(ops_astype(&t->mask, a->mask, type, s));
        STEP(t->mask, ops_broadcast_to(&next, t->mask, shp_ints(&shape), s));
    }
    if (a->sinks)
        TRY(ops_astype(&t->sinks, a->sinks, t->dtype, s));
out:
    return err;
}

/* ---- by parts ---- */

static double lowest_finite(enum dtype t)
{
    switch (t) {
    case DT_FLOAT16:
        return -65504;
    case DT_BFLOAT16:
        return -0x1.fep127;
    case DT_FLOAT64:
        return -DBL_MAX;
    default:
        return -(double)FLT_MAX;
    }
}

/* Heads as (kv heads, heads of each) from an axis of both: where keys are shared. */
static enum err group_heads(struct arr **x, int axis, const struct attention *t, struct strm *s)
{
    int32_t parts[2] = { t->n_kv, t->n_heads / t->n_kv };
    enum err err;

    STEP(*x, ops_unflatten(&next, *x, axis, (struct ints){ parts, 2 }, s));
out:
    return err;
}

static enum err add_axis(struct arr **x, int32_t axis, struct strm *s)
{
    enum err err;

    STEP(*x, ops_expand_dims(&next, *x, (struct ints){ &axis, 1 }, s));
out:
    return err;
}

/* True where query i sees key j: j <= i + (keys - queries). */
static enum err causal_mask(struct arr **out, int32_t n_q, int32_t n_k, struct strm *s)
{
    struct arr *i = NULL, *j = NULL;
    int32_t offset = n_k - n_q;
    enum err err;

    TRY(ops_arange(&i, &(struct arange_params){ offset, n_k, 1 }, DT_INT32, s));
    TRY(add_axis(&i, 1, s));
    TRY(ops_arange(&j, &(struct arange_params){ 0, n_k, 1 }, DT_INT32, s));
    TRY(add_axis(&j, 0, s));
    TRY(ops_binary(out, OP_GREATER_EQUAL, i, j, s));
out:
    arr_unref(&i);
    arr_unref(&j);
    return err;
}

static enum err mask_scores(struct arr **scores, const struct attention *t, bool grouped,
                            struct strm *s)
{
    struct arr *mask = NULL, *low = NULL;
    enum err err = ERR_OK;

    if (t->mask) {
        mask = arr_ref(t->mask);
        if (grouped)
            TRY(group_heads(&mask, HEADS, t, s));
    } else {
        TRY(causal_mask(&mask, t->q->shape[LENGTH], t->k->shape[LENGTH], s));
    }
    if (mask->dtype == DT_BOOL) {
        TRY(arr_new_number(&low, lowest_finite(t->dtype), t->dtype));
        STEP(*scores, ops_where(&next, mask, *scores, low, s));
    } else {
        STEP(*scores, ops_binary(&next, OP_ADD, *scores, mask, s));
    }
out:
    arr_unref(&mask);
    arr_unref(&low);
    return err;
}

/* The softmax of scores, or of scores with a sink before each row, which is dropped again. */
static enum err weigh(struct arr **scores, const struct attention *t, bool grouped, struct strm *s)
{
    static const int32_t sink_axes[] = { 0, 2, 3 }, last = -1;
    struct ints axis = { &last, 1 };
    struct arr *sinks = NULL, *joined = NULL;
    struct arr *parts[2];
    struct shp shape;
    enum err err;

    if (!t->sinks) {
        STEP(*scores, ops_softmax(&next, *scores, axis, true, s));
        goto out;
    }
    TRY(ops_expand_dims(&sinks, t->sinks, (struct ints){ sink_axes, 3 }, s));
    if (grouped)
        TRY(group_heads(&sinks, HEADS, t, s));
    arr_shape(&shape, *scores);
    shape.d[shape.ndim - 1] = 1;
    STEP(sinks, ops_broadcast_to(&next, sinks, shp_ints(&shape), s));
    parts[0] = sinks;
    parts[1] = *scores;
    TRY(ops_concatenate(&joined, (struct arrs){ parts, 2 }, -1, s));
    STEP(joined, ops_softmax(&next, joined, axis, true, s));
    int32_t start[SHP_MAX] = { 0 }, step[SHP_MAX];
    start[shape.ndim - 1] = 1;
    for (int i = 0; i < shape.ndim; i++)
        step[i] = 1;
    size_t n = (size_t)shape.ndim;
    STEP(*scores, ops_slice(&next, joined,
                            &(struct ops_slice){ { start, n }, shape_of(joined), { step, n } }, s));
out:
    arr_unref(&sinks);
    arr_unref(&joined);
    return err;
}

static enum err by_parts(struct arr **out, const struct attention *t, struct strm *s)
{
    bool grouped = t->n_kv && t->n_heads != t->n_kv;
    struct arr *scale = NULL, *q = NULL, *k = NULL, *v = NULL, *r = NULL;
    enum err err;

    TRY(arr_new_number(&scale, (double)t->scale, t->dtype));
    TRY(ops_binary(&q, OP_MULTIPLY, scale, t->q, s));
    k = arr_ref(t->k);
    v = arr_ref(t->v);
    if (grouped) {
        TRY(group_heads(&q, HEADS, t, s));
        TRY(add_axis(&k, 2, s));
        TRY(add_axis(&v, 2, s));
    }
    STEP(k, ops_swapaxes(&next, k, -1, -2, s));
    TRY(ops_matmul(&r, q, k, s));
    if (t->mask || t->causal)
        TRY(mask_scores(&r, t, grouped, s));
    TRY(weigh(&r, t, grouped, s));
    STEP(r, ops_matmul(&next, r, v, s));
    if (grouped)
        STEP(r, ops_flatten(&next, r, 1, 2, s));
    arr_move(out, &r);
out:
    arr_unref(&scale);
    arr_unref(&q);
    arr_unref(&k);
    arr_unref(&v);
    arr_unref(&r);
    return err;
}

enum err sdpa_parts(struct arr **out, const struct op_apply *f)
{
    const struct sdpa_params *p = f->params;

    return by_parts(out,
                    &(struct attention){ .scale = p->scale,
                                         .causal = p->causal,
                                         .dtype = dtype_of(f->in[0]),
                                         .n_heads = f->in[0]->shape[HEADS],
                                         .n_kv = f->in[1]->shape[HEADS],
                                         .q = f->in[0],
                                         .k = f->in[1],
                                         .v = f->in[2],
                                         .mask = p->has_mask ? f->in[3] : NULL,
                                         .sinks = p->has_sinks ? f->in[3 + p->has_mask] : NULL },
                    f->strm);
}

/* ---- the node ---- */

/* With more queries than keys the first causal rows see nothing: their result is a mean of all
 * values, which only the parts give. */
static bool is_fused(const struct attention *t, const struct strm *s)
{
    if (t->dtype == DT_FLOAT64 || (s->dev.type == DEV_GPU && !gate_on(GATE_VK_SDPA_NATIVE)))
        return false;
    if (t->causal && t->q->shape[LENGTH] > t->k->shape[LENGTH])
        return false;
    return t->q->shape[SIZE] <= FUSED_HEAD_MAX && t->v->shape[SIZE] <= FUSED_HEAD_MAX;
}

/* Heads of q are a multiple of those of k and v, which are alike but for their sizes. */
static bool has_heads(const struct arr *q, const struct arr *k, const struct arr *v)
{
    const int32_t *n = q->shape, *m = k->shape;

    return q->ndim == 4 && k->ndim == 4 && v->ndim == 4 && shp_same_dims(m, v->shape, SIZE) &&
           n[B] == m[B] && n[SIZE] == m[SIZE] && (m[HEADS] ? n[HEADS] % m[HEADS] == 0 : !n[HEADS]);
}

static bool is_mask(const struct arr *mask, const struct arr *q, const struct arr *k)
{
    return (mask->dtype == DT_BOOL || mask->dtype == q->dtype) && mask->ndim == 4 &&
           shp_same_dims(mask->shape, q->shape, SIZE) && mask->shape[SIZE] == k->shape[LENGTH];
}

enum err op_infer_sdpa(struct infer_call *c)
{
    const struct sdpa_params *p = c->params;
    const struct arr *q = c->in[0], *k = c->in[1], *v = c->in[2];
    const struct arr *sinks = c->in[c->n_in - 1];

    FITS(c->n_in == 3 + (size_t)p->has_mask + (size_t)p->has_sinks && !(p->causal && p->has_mask));
    FITS(dt_is_float(dtype_of(q)) && k->dtype == q->dtype && v->dtype == q->dtype);
    FITS(has_heads(q, k, v));
    FITS(!p->causal || q->shape[LENGTH] <= k->shape[LENGTH]);
    FITS(q->shape[SIZE] <= FUSED_HEAD_MAX && v->shape[SIZE] <= FUSED_HEAD_MAX);
    FITS(!p->has_mask || is_mask(c->in[3], q, k));
    FITS(!p->has_sinks ||
         (sinks->dtype == q->dtype && sinks->ndim == 1 && sinks->shape[0] == q->shape[HEADS]));
    infer_like(c, q);
    c->out[0].shape.d[SIZE] = v->shape[SIZE];
    return ERR_OK;
}

enum err op_infer_sdpa_vjp(struct infer_call *c)
{
    const struct sdpa_params *p = c->params;
    struct out_desc one = { 0 };
    struct infer_call of = { OP_SDPA, p, c->in, c->n_in - 2, NULL, 1, &one };

    FITS(op_infer_sdpa(&of) == ERR_OK && one.dtype != DT_FLOAT64);
    for (size_t i = c->n_in - 2; i < c->n_in; i++)
        FITS(dtype_of(c->in[i]) == one.dtype && c->in[i]->ndim == 4 &&
             shp_same_dims(c->in[i]->shape, one.shape.d, 4));
    c->n_out = 3 + (size_t)p->has_sinks;
    for (size_t i = 0; i < c->n_out; i++) {
        const struct arr *a = c->in[i < 3 ? i : c->n_in - 3];
        FITS(a->size);
        c->out[i].dtype = dtype_of(a);
        arr_shape(&c->out[i].shape, a);
    }
    return ERR_OK;
}

static enum err make_node(struct arr **out, const struct attention *t, struct strm *s)
{
    struct sdpa_params p = { t->scale, t->causal, t->mask != NULL, t->sinks != NULL };
    struct arr *in[5] = { t->q, t->k, t->v };
    size_t n = 3;

    if (t->mask)
        in[n++] = t->mask;
    if (t->sinks)
        in[n++] = t->sinks;
    return ops_make(out, OP_SDPA, &p, (struct arrs){ in, n }, s);
}

enum err ops_sdpa(struct arr **out, const struct ops_sdpa *a, struct strm *s)
{
    struct attention t = { .a = a, .scale = a->scale };
    enum err err;

    TRY(check(&t));
    TRY(prepare(&t, s));
    err = is_fused(&t, s) ? make_node(out, &t, s) : by_parts(out, &t, s);
out:
    arr_unref(&t.q);
    arr_unref(&t.k);
    arr_unref(&t.v);
    arr_unref(&t.mask);
    arr_unref(&t.sinks);
    return err;
}
