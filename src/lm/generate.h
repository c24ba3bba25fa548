/* From a prompt to tokens. */
#pragma once

#include "lm/model/decoder.h"
#include "lm/sample.h"

/* Prompt tokens that go through the model at a time. */
#define LM_CHUNK 512

struct lm_generation {
    const struct lm_model *model;
    struct lm_cache *cache; /* its positions are the history before the prompt */
    struct strm *stream;
    struct lm_decoder *decoder; /* of these three; NULL: every step is built */
    const int32_t *prompt;
    size_t n_prompt;
    const struct lm_sampling *sampling;
    int32_t chunk, max_tokens;
    const int32_t *eos; /* tokens that end the text; they are not given to on_token */
    size_t n_eos;
    /* Called with each token; false ends the generation. */
    bool (*on_token)(int32_t token, void *data);
    /* Called before on_token with the logarithms of the probabilities that the token was chosen
     * from, before temperature and filters: one for each of the n tokens of the vocabulary. May be
     * NULL. */
    void (*on_logprobs)(int32_t token, const float *logprobs, size_t n, void *data);
    /* Called before the first and after every chunk of the prompt; false ends. May be NULL. */
    bool (*on_prompt)(size_t done, size_t total, void *data);
    void *data;
};

enum lm_finish { LM_FINISH_LENGTH, LM_FINISH_STOP, LM_FINISH_CALLER };

struct lm_stats {
    size_t prompt_tokens, tokens;
    double prompt_seconds, seconds; /* until the first token was there; after it */
    int64_t first_ns;               /* when it was there, by clock_ns */
    enum lm_finish finish;
};

/* Runs the prompt, then token by token; the next one is on its way before the last one is given to
 * on_token. The cache then holds the prompt and the tokens that were given out, but for the last
 * one where the length ended it. After a failure it is empty, and nothing is in flight. Logits that
 * are no numbers are one: the first and the last step's are looked at, and those of every so many,
 * because a NaN stays in the cache. */
MUST_CHECK enum err generate(struct lm_stats *stats, const struct lm_generation *g);

/* Hands the first n tokens of the prompt to the device in chunks; only the cache is wanted. */
MUST_CHECK enum err generate_prefill(const struct lm_generation *g, size_t n);

/* What a step gives, as new references: the token [1], the model's logits [1, vocab], and logprobs
 * [1, vocab] only if on_logprobs is there. */
struct lm_step {
    struct arr *token, *logits, *logprobs;
};

/* One step from tokens, [1, T] or the last one's result [1], to the next token [1], for an eval;
 * recent: the last tokens [n], for a penalty, or NULL. */
MUST_CHECK enum err generate_step(struct lm_step *out, const struct lm_generation *g,
                                  struct arr *tokens, struct arr *recent);
