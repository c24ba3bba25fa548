#include "lm/sample.h"

#include <float.h>
#include <math.h>

/* Logits that are multiplied by as much are still far from the greatest number. */
#define PENALTY_MAX 1e6F
/* Below this, logits divided by the temperature might be infinite. */
#define COLD 1e-3F

enum err sampling_check(const struct lm_sampling *s)
{
    if (!(s->temperature >= 0) || isinf(s->temperature))
        return err_set(ERR_ARG, "the temperature must be 0 or more, not %g",
                       (double)s->temperature);
    if (!(s->top_p >= 0 && s->top_p <= 1))
        return err_set(ERR_ARG, "top-p must be between 0 and 1, not %g", (double)s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return err_set(ERR_ARG, "min-p must be between 0 and 1, not %g", (double)s->min_p);
    if (s->top_k < 0)
        return err_set(ERR_ARG, "top-k must be 0 or more, not %d", s->top_k);
    if (!(s->repetition_penalty >= 1 / PENALTY_MAX && s->repetition_penalty <= PENALTY_MAX))
        return err_set(ERR_ARG, "the repetition penalty must be between %g and %g, not %g",
                       1 / (double)PENALTY_MAX, (double)PENALTY_MAX, (double)s->repetition_penalty);
    return ERR_OK;
}

/* ---- what the filters are made of ---- */

static struct arr *number(struct lm_graph *g, double value, enum dtype t)
{
    struct arr *a = NULL;

    if (g->err)
        return NULL;
    enum err err = arr_new_number(&a, value, t);
    return graph_own(g, a, err);
}

static struct arr *where(struct lm_graph *g, struct arr *cond, struct arr *a, struct arr *b)
{
    struct arr *out = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_where(&out, cond, a, b, g->s);
    return graph_own(g, out, err);
}

/* Logits where value >= least, -inf elsewhere. */
static struct arr *keep_at_least(struct lm_graph *g, struct arr *logits, struct arr *value,
                                 struct arr *least)
{
    return where(g, g_binary(g, OP_GREATER_EQUAL, value, least), logits,
                 number(g, -INFINITY, DT_FLOAT32));
}

static struct arr *last_axis(struct lm_graph *g, enum reduce_kind kind, struct arr *a)
{
    struct arr *out = NULL;

    if (g->err)
        return NULL;
    enum err err =
        ops_reduce(&out, kind, a, &(struct ops_axes){ { &(int32_t){ -1 }, 1 }, true }, g->s);
    return graph_own(g, out, err);
}

static struct arr *sorted(struct lm_graph *g, struct arr *a)
{
    struct arr *out = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_sort(&out, a, -1, g->s);
    return graph_own(g, out, err);
}

static struct arr *cumulative(struct lm_graph *g, struct arr *a)
{
    struct arr *out = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_scan(
        &out, a, &(struct ops_scan){ .kind = SCAN_SUM, .axis = -1, .inclusive = true }, g->s);
    return graph_own(g, out, err);
}

/* ---- filters: each gives logits with the refused ones at -inf ---- */

/* Tokens that came up lately count less, whatever their sign. */
static struct arr *penalise(struct lm_graph *g, struct arr *logits, struct arr *recent, float by)
{
    struct arr *ids = NULL;

    if (g->err)
        return NULL;
    enum err err = ops_arange(&ids, &(struct arange_params){ 0, logits->shape[1], 1 },
                              (enum dtype)recent->dtype, g->s);
    ids = graph_own(g, ids, err);
    struct arr *same = g_binary(g, OP_EQUAL, g_expand_dims(g, recent, 1), ids);
    struct arr *seen = NULL;
    if (g->err)
        return NULL;
    err = ops_reduce(&seen, REDUCE_OR, same, &(struct ops_axes){ { &(int32_t){ 0 }, 1 }, true },
                     g->s);
    seen = graph_own(g, seen, err);
    struct arr *is_positive = g_binary(g, OP_GREATER, logits, number(g, 0, DT_FLOAT32));
    struct arr *less =
        where(g, is_positive, g_scale(g, logits, 1 / (double)by), g_scale(g, logits, (double)by));
    return where(g, seen, less, logits);
}

static struct arr *keep_top_k(struct lm_graph *g, struct arr *logits, int32_t k)
{
    if (g->err || k >= logits->shape[1])
        return logits;
    struct arr *best = NULL;
    enum err err = ops_topk(&best, logits, k, -1, g->s);
    return keep_at_least(g, logits, logits, last_axis(g, REDUCE_MIN, graph_own(g, best, err)));
}

/* The likeliest tokens whose probabilities add up to p: of the sorted ones those before which less
 * than 1 - p lies. */
static struct arr *keep_top_p(struct lm_graph *g, struct arr *logits, float p)
{
    struct arr *probs = g_softmax(g, logits, true);
    struct arr *ascending = sorted(g, probs);
    struct arr *kept =
        g_binary(g, OP_GREATER, cumulative(g, ascending), number(g, 1 - (double)p, DT_FLOAT32));
    struct arr *least =
        last_axis(g, REDUCE_MIN, where(g, kept, ascending, number(g, INFINITY, DT_FLOAT32)));

    /* Rounding may leave none: the likeliest one always stays. */
    least = g_binary(g, OP_MINIMUM, least, last_axis(g, REDUCE_MAX, probs));
    return keep_at_least(g, logits, probs, least);
}

static struct arr *keep_min_p(struct lm_graph *g, struct arr *logits, float p)
{
    struct arr *least = g_binary(g, OP_ADD, last_axis(g, REDUCE_MAX, logits),
                                 number(g, log((double)p), DT_FLOAT32));

    return keep_at_least(g, logits, logits, least);
}

/* Divided by the temperature. Where that might overflow, the greatest logit becomes 0 first: the
 * differences are what counts. */
static struct arr *heat(struct lm_graph *g, struct arr *logits, float temperature)
{
    if (temperature < COLD)
        logits = g_binary(g, OP_SUBTRACT, logits, last_axis(g, REDUCE_MAX, logits));
    return g_scale(g, logits, 1 / (double)temperature);
}

struct arr *sample_penalised(struct lm_graph *g, const struct lm_sampling *s, struct arr *logits,
                             struct arr *recent)
{
    if (!recent || s->repetition_penalty == 1)
        return logits;
    return penalise(g, g_astype(g, logits, DT_FLOAT32), recent, s->repetition_penalty);
}

struct arr *sample(struct lm_graph *g, const struct lm_sampling *s, struct arr *logits)
{
    struct arr *token = NULL;

    if (s->temperature == 0 || 1 / (double)s->temperature > (double)FLT_MAX)
        return g_argmax(g, logits);
    logits = g_astype(g, logits, DT_FLOAT32);
    if (s->top_k > 0)
        logits = keep_top_k(g, logits, s->top_k);
    if (s->top_p > 0 && s->top_p < 1)
        logits = keep_top_p(g, logits, s->top_p);
    if (s->min_p > 0)
        logits = keep_min_p(g, logits, s->min_p);
    logits = heat(g, logits, s->temperature);
    if (g->err)
        return NULL;
    enum err err = ops_random_categorical(&token, logits, -1, NULL, g->s);
    return graph_own(g, token, err);
}

/* Float16 or bfloat16, whose +inf has these bits. */
static bool halves_have_numbers(const uint16_t *v, size_t n, unsigned infinity)
{
    unsigned has_number = 0, has_other = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned size = v[i] & 0x7fffU;
        has_other |= (unsigned)(size > infinity) | (unsigned)(v[i] == infinity);
        has_number |= size < infinity;
    }
    return has_number && !has_other;
}

bool sample_has_numbers(const void *logits, size_t n, enum dtype t)
{
    unsigned has_number = 0, has_other = 0;
    const float *v = logits;

    if (t != DT_FLOAT32)
        return halves_have_numbers(logits, n, t == DT_FLOAT16 ? 0x7c00 : 0x7f80);
    for (size_t i = 0; i < n; i++) {
        has_other |= !(v[i] <= FLT_MAX);
        has_number |= v[i] >= -FLT_MAX;
    }
    return has_number && !has_other;
}

struct arr *sample_logprobs(struct lm_graph *g, struct arr *logits)
{
    struct arr *total = NULL;

    logits = g_astype(g, logits, DT_FLOAT32);
    if (g->err)
        return NULL;
    enum err err =
        ops_logsumexp(&total, logits, &(struct ops_axes){ { &(int32_t){ -1 }, 1 }, true }, g->s);
    return g_binary(g, OP_SUBTRACT, logits, graph_own(g, total, err));
}
