#include "lm/model/model.h"

#include <math.h>

#include "lm/model/load.h"
#include "lm/model/rope.h"

/* ---- formulas ---- */

/* The packed weight as the ops want it; refers to l. */
static struct ops_packed packed(const struct lm_linear *l)
{
    return (struct ops_packed){
        .w = l->weight,
        .scales = l->scales,
        .biases = l->biases,
        .q = { .group_size = &l->quant.group_size, .bits = &l->quant.bits, .mode = l->quant.mode }
    };
}

static struct arr *quantized_matmul(struct lm_graph *g, struct arr *x, const struct lm_linear *l)
{
    struct ops_packed w = packed(l);
    struct arr *y = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_quantized_matmul(&y, x, &w, true, g->s);
    return graph_own(g, y, err);
}

static struct arr *linear(struct lm_graph *g, struct arr *x, const struct lm_linear *l)
{
    struct arr *y = l->quant.bits ? quantized_matmul(g, x, l)
                                  : g_matmul(g, x, g_transpose(g, l->weight, SHAPE(1, 0)));

    return l->bias ? g_binary(g, OP_ADD, y, l->bias) : y;
}

/* Rows of a table that may be packed. */
static struct arr *embed(struct lm_graph *g, struct arr *tokens, const struct lm_linear *l)
{
    if (!l->quant.bits)
        return g_take(g, l->weight, tokens, 0);
    struct arr *rows = NULL;
    struct ops_packed w = packed(l);
    w.w = g_take(g, l->weight, tokens, 0);
    w.scales = g_take(g, l->scales, tokens, 0);
    if (l->biases)
        w.biases = g_take(g, l->biases, tokens, 0);
    if (g->err)
        return NULL;
    enum err err = ops_dequantize(&rows, &w, &(struct ops_dequantize){ 0 }, g->s);
    return graph_own(g, rows, err);
}

/* [1, T, heads * dim] -> [1, heads, T, dim], with a norm over dim in between. A single position is
 * in its place already. */
static struct arr *split_heads(struct lm_graph *g, const struct lm_model *m, struct arr *x,
                               int heads, struct arr *norm)
{
    if (g->err)
        return NULL;
    int32_t batch = x->shape[0], length = x->shape[1], dim = m->config.head_dim;
    bool is_single = length == 1;
    struct arr *h = is_single ? g_reshape(g, x, SHAPE(batch, heads, 1, dim))
                              : g_reshape(g, x, SHAPE(batch, length, heads, dim));
    if (norm)
        h = g_rms_norm(g, h, norm, m->config.norm_eps);
    return is_single ? h : g_transpose(g, h, SHAPE(0, 2, 1, 3));
}

static struct arr *join_heads(struct lm_graph *g, struct arr *x)
{
    if (g->err)
        return NULL;
    int32_t batch = x->shape[0], length = x->shape[2];
    if (length > 1)
        x = g_transpose(g, x, SHAPE(0, 2, 1, 3));
    return g_reshape(g, x, SHAPE(batch, length, -1));
}

static struct arr *rotate(struct lm_graph *g, const struct lm_model *m, struct arr *x, int offset)
{
    const struct lm_rope *r = &m->config.rope;

    if (m->rope_mscale != 1)
        x = g_scale(g, x, (double)m->rope_mscale);
    x = g_rope(g, x,
               &(struct ops_rope){ .dims = m->config.head_dim,
                                   .traditional = r->traditional,
                                   .base = m->rope_freqs ? NULL : &r->base,
                                   .freqs = m->rope_freqs,
                                   .scale = m->rope_scale,
                                   .offset = offset });
    return graph_moves(g, x, LM_CACHE_AXIS);
}

/* ---- windows ---- */

/* The tokens of a step: what they follow, and what layers with a window see. */
struct step {
    struct lm_cache *cache;
    int32_t n;
    bool is_windowed; /* there is more than the window holds */
    int32_t first;    /* position that the oldest token's window begins with */
    struct arr
        *mask; /* [n, positions from there on]; NULL: a single token, which sees all of them */
    /* Of a mixture, by token and chosen expert: the number of the token, and of the pair. */
    struct arr *token_numbers, *pair_numbers;
};

static enum err make_mask(struct arr **out, const struct step *t, int32_t window)
{
    int32_t used = t->cache->used, n_keys = used + t->n - t->first;
    bool *mask = mem_alloc_array((size_t)t->n * (size_t)n_keys, sizeof *mask);

    if (!mask)
        return ERR_NO_MEMORY;
    for (int32_t i = 0; i < t->n; i++)
        for (int32_t k = 0; k < n_keys; k++) {
            int32_t back = used + i - (t->first + k); /* how far before token i */
            mask[(size_t)i * (size_t)n_keys + (size_t)k] = back >= 0 && back < window;
        }
    enum err err = arr_new_data(out, mask, &(struct shp){ 2, { t->n, n_keys } }, DT_BOOL);
    mem_free(mask);
    return err;
}

/* i / divisor for all tokens and their experts. All layers take matrices by the same arrays, so
 * that none has to make its own. */
static struct arr *make_numbers(struct lm_graph *g, const struct shp *s, int32_t divisor)
{
    size_t n = shp_size(s);
    uint32_t *v = g->err ? NULL : mem_alloc_array(n, sizeof *v);
    struct arr *a = NULL;

    if (!v)
        return graph_own(g, NULL, g->err ? g->err : ERR_NO_MEMORY);
    for (size_t i = 0; i < n; i++)
        v[i] = (uint32_t)i / (uint32_t)divisor;
    enum err err = arr_new_data(&a, v, s, DT_UINT32);
    mem_free(v);
    return graph_own(g, a, err);
}

static void begin_mixtures(struct lm_graph *g, struct step *t, const struct lm_config *c,
                           int32_t batch)
{
    struct shp s = { 3, { batch, t->n, c->experts_per_token } };

    if (g->err || !c->experts || !shp_size(&s))
        return;
    t->token_numbers = make_numbers(g, &s, c->experts_per_token);
    t->pair_numbers = make_numbers(g, &s, 1);
}

static void begin_step(struct lm_graph *g, struct step *t, const struct lm_config *c)
{
    int32_t used = t->cache->used;
    struct arr *mask = NULL;

    t->is_windowed = c->window && used + t->n > c->window;
    t->first = MAX(used + 1 - c->window, 0);
    if (g->err || !t->is_windowed || t->n == 1)
        return;
    enum err err = make_mask(&mask, t, c->window);
    t->mask = graph_own(g, mask, err);
}

static struct arr *attention(struct lm_graph *g, const struct lm_model *m, struct arr *x, int layer,
                             const struct step *t)
{
    const struct lm_config *c = &m->config;
    const struct lm_attention *a = &m->layer[layer].attention;
    struct lm_cache *cache = t->cache;
    bool is_windowed = t->is_windowed && config_has_window(c, layer);
    struct arr *q = linear(g, x, &a->q), *k = linear(g, x, &a->k), *v = linear(g, x, &a->v);

    q = rotate(g, m, split_heads(g, m, q, c->heads, a->q_norm), cache->used);
    k = rotate(g, m, split_heads(g, m, k, c->kv_heads, a->k_norm), cache->used);
    v = split_heads(g, m, v, c->kv_heads, NULL);
    struct lm_cache_view all = cache_append(g, cache, layer, k, v);
    if (is_windowed) {
        all.keys = g_slice(g, all.keys, LM_CACHE_AXIS, t->first, cache->used + t->n);
        all.values = g_slice(g, all.values, LM_CACHE_AXIS, t->first, cache->used + t->n);
    }
    if (g->err)
        return NULL;
    struct arr *mask = is_windowed ? t->mask : NULL;
    struct arr *y = g_sdpa(g, &(struct ops_sdpa){ .q = q,
                                                  .k = all.keys,
                                                  .v = all.values,
                                                  .scale = 1 / sqrtf((float)c->head_dim),
                                                  .mask_mode = t->n > 1 && !mask ? "causal" : "",
                                                  .mask = mask });
    return linear(g, join_heads(g, y), &a->o);
}

static struct arr *mlp(struct lm_graph *g, struct arr *x, const struct lm_mlp *w)
{
    struct arr *gate = linear(g, x, &w->gate), *up = linear(g, x, &w->up);

    return linear(g, g_binary(g, OP_MULTIPLY, g_silu(g, gate), up), &w->down);
}

/* ---- mixture of experts ---- */

/* For each token the product with the matrices of its experts: rows of x by their numbers [..., k],
 * experts [..., k] -> [..., k, 1, out]. */
static struct arr *expert_linear(struct lm_graph *g, struct arr *x, const struct lm_linear *l,
                                 struct arr *const numbers[2])
{
    struct arr *y = NULL;
    enum err err;

    if (g->err)
        return NULL;
    if (l->quant.bits) {
        struct ops_packed w = packed(l);
        err = ops_gather_qmm(&y, x, &w,
                             &(struct ops_gather_qmm){ .lhs_indices = numbers[0],
                                                       .rhs_indices = numbers[1],
                                                       .transpose = true },
                             g->s);
    } else {
        struct arr *w = g_transpose(g, l->weight, SHAPE(0, 2, 1));
        err = g->err ? g->err
                     : ops_gather_mm(&y, x, w,
                                     &(struct ops_gather_mm){ .lhs_indices = numbers[0],
                                                              .rhs_indices = numbers[1] },
                                     g->s);
    }
    return graph_own(g, y, err);
}

static struct arr *expert_mlp(struct lm_graph *g, struct arr *x, const struct lm_mlp *w,
                              struct arr *experts, const struct step *t)
{
    struct arr *by_token[2] = { t->token_numbers, experts };
    struct arr *by_pair[2] = { t->pair_numbers, experts };

    x = g_expand_dims(g, g_expand_dims(g, x, -2), -3);
    struct arr *gate = expert_linear(g, x, &w->gate, by_token);
    struct arr *up = expert_linear(g, x, &w->up, by_token);
    struct arr *h = g_binary(g, OP_MULTIPLY, g_silu(g, gate), up);
    return g_squeeze(g, expert_linear(g, h, &w->down, by_pair), -2);
}

/* The k best of the last axis, in no order. */
static struct arr *best_experts(struct lm_graph *g, struct arr *scores, int32_t k)
{
    struct arr *order = NULL;

    if (g->err)
        return NULL;
    int32_t n = scores->shape[scores->ndim - 1];
    enum err err = ops_argpartition(&order, scores, n - k, -1, g->s);
    return g_slice(g, graph_own(g, order, err), -1, n - k, n);
}

static struct arr *mixture(struct lm_graph *g, const struct lm_model *m, struct arr *x,
                           const struct lm_layer *l, const struct step *t)
{
    const struct lm_config *c = &m->config;
    struct arr *scores = g_softmax(g, linear(g, x, &l->router), true);
    struct arr *experts = best_experts(g, scores, c->experts_per_token);
    struct arr *weights = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_take_along_axis(&weights, scores, experts, -1, g->s);
    weights = graph_own(g, weights, err);
    if (c->normalise_scores)
        weights = g_binary(g, OP_DIVIDE, weights, g_sum(g, weights, -1, true));
    struct arr *y = expert_mlp(g, x, &l->mlp, experts, t);
    return g_sum(g, g_binary(g, OP_MULTIPLY, y, g_expand_dims(g, weights, -1)), -2, false);
}

/* ---- */

static struct arr *run_layer(struct lm_graph *g, const struct lm_model *m, struct arr *x, int layer,
                             const struct step *t)
{
    const struct lm_layer *l = &m->layer[layer];
    float eps = m->config.norm_eps;

    x = g_binary(g, OP_ADD, x, attention(g, m, g_rms_norm(g, x, l->input_norm, eps), layer, t));
    struct arr *h = g_rms_norm(g, x, l->post_norm, eps);
    h = l->is_sparse ? mixture(g, m, h, l, t) : mlp(g, h, &l->mlp);
    return g_binary(g, OP_ADD, x, h);
}

struct arr *model_hidden(struct lm_graph *g, const struct lm_model *m, struct arr *tokens,
                         struct lm_cache *cache)
{
    struct step t = { .cache = cache, .n = g->err ? 0 : tokens->shape[1] };
    struct arr *x = embed(g, tokens, &m->embed);

    begin_step(g, &t, &m->config);
    if (!g->err)
        begin_mixtures(g, &t, &m->config, tokens->shape[0]);
    for (int i = 0; i < m->config.layers; i++)
        x = run_layer(g, m, x, i, &t);
    if (!g->err)
        cache_advance(cache, t.n);
    return g_rms_norm(g, x, m->norm, m->config.norm_eps);
}

struct arr *model_logits(struct lm_graph *g, const struct lm_model *m, struct arr *hidden)
{
    return linear(g, hidden, m->config.tied ? &m->embed : &m->head);
}
