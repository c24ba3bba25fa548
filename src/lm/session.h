/* A model that is ready to talk: weights on a device, tokenizer, chat template, cache. */
#pragma once

#include "lm/chat/chat.h"
#include "lm/generate.h"
#include "lm/tokenizer/tokenizer.h"

struct lm_session {
    struct lm_model *model;
    struct tok *tok;
    struct chat *chat; /* plain text where the model has no template */
    struct lm_cache cache;
    struct lm_decoder decoder;
    struct ids held; /* tokens that the cache holds */
    struct strm *stream;
    size_t weight_bytes;
};

/* Opens a model folder or a GGUF file and brings the weights to the stream's device. on_load may be
 * NULL; it is told how many of all weights are there. ERR_ARG for a chat template that
 * is wrong. */
struct session_params {
    const char *path;
    bool raw; /* without the model's chat template: texts are passed as they are */
    struct strm *stream;
    void (*on_load)(size_t done, size_t total, void *data);
    void *data;
};
MUST_CHECK enum err session_open(struct lm_session *s, const struct session_params *p);
/* Waits for work in flight. */
void session_close(struct lm_session *s);

/* What was said, as the tokens of a prompt: written as the chat template does, or plain text with
 * the tokens that begin a text. */
MUST_CHECK enum err session_encode(struct ids *out, struct lm_session *s,
                                   const struct chat_msg *msgs, size_t n,
                                   const struct chat_params *params);

/* One answer. */
struct session_request {
    const struct ids *prompt;
    const struct lm_sampling *sampling;
    int32_t max_tokens;
    const char *const *stop; /* texts that end the answer and are not part of it */
    size_t n_stop;
    /* Called with text that is complete UTF-8; false ends the answer. */
    bool (*on_text)(const char *text, size_t n, void *data);
    bool (*on_prompt)(size_t done, size_t total, void *data); /* may be NULL; false ends */
    /* Called with every token before its text; may be NULL. logprobs: one for each of the n tokens
     * of the vocabulary if with_logprobs, otherwise NULL. */
    enum err (*on_token)(int32_t id, const float *logprobs, size_t n, void *data);
    bool with_logprobs;
    void *data;
};

/* Runs a request. What the prompt has in common with the tokens of the last request is not computed
 * again. Work in flight is bounded so that memory stays below 1.15 x weights + cache + 200 MB,
 * unless a single op needs more; no other evaluations should run meanwhile. */
MUST_CHECK enum err session_run(struct lm_session *s, struct lm_stats *stats,
                                const struct session_request *r);
