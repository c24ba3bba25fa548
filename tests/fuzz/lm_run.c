#include "fuzz/lm_run.h"

#include <stdlib.h>

#include "lm/generate.h"

/* Larger models are slow. */
#define MAX_NUMBERS ((int64_t)1 << 20)

static bool on_token(int32_t id, void *data)
{
    if (id < 0 || id >= *(const int32_t *)data)
        abort();
    return true;
}

static bool is_small(const struct lm_config *c)
{
    int64_t hidden = c->hidden, heads = (int64_t)c->heads * c->head_dim;
    int64_t experts = c->experts ? (int64_t)c->experts * c->expert_intermediate : 0;
    int64_t layer, all;

    /* Every factor is below 2^32. */
    return !MUL_OVERFLOWS(hidden, 4 * heads + 3 * ((int64_t)c->intermediate + experts), &layer) &&
           !MUL_OVERFLOWS(layer, (int64_t)c->layers, &all) && all <= MAX_NUMBERS &&
           hidden * c->vocab <= MAX_NUMBERS && c->layers <= 64;
}

static enum err write_tokens(const struct lm_model *m, const struct lm_sampling *sampling,
                             struct strm *s)
{
    static const int32_t prompt[] = { 0, 0, 0 };
    struct lm_cache cache = { 0 };
    struct lm_stats stats;
    int32_t vocab = m->config.vocab;
    enum err err;

    TRY(cache_init(&cache, m->config.layers));
    err = generate(&stats, &(struct lm_generation){ .model = m,
                                                    .cache = &cache,
                                                    .stream = s,
                                                    .prompt = prompt,
                                                    .n_prompt = ARRAY_LEN(prompt),
                                                    .sampling = sampling,
                                                    .chunk = 2,
                                                    .max_tokens = 2,
                                                    .on_token = on_token,
                                                    .data = &vocab });
out:
    cache_fini(&cache);
    return err;
}

void lm_run(struct lm_config *c, struct lm_weights *weights, struct strm *s)
{
    static const struct lm_sampling samplings[] = {
        { .repetition_penalty = 1 },
        { .temperature = 0.8F, .repetition_penalty = 1 },
        { .temperature = 1e-4F, .top_p = 0.9F, .min_p = 0.1F, .top_k = 5, .repetition_penalty = 1 },
    };
    struct lm_model *m = NULL;
    enum err err = ERR_OK;

    if (!is_small(c))
        goto out;
    TRY(model_new(&m, c, weights));
    for (size_t i = 0; i < ARRAY_LEN(samplings); i++)
        if (write_tokens(m, &samplings[i], s) == ERR_NO_MEMORY)
            break;
out:
    model_destroy(&m);
    config_fini(c);
    weights_destroy(&weights);
}
