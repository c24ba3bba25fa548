/* What the commands that talk with models share: options, progress, Ctrl-C, statistics. */
#pragma once

#include <stdio.h>

#include "eval/stream.h"
#include "lm/session.h"

struct llm_options {
    const char *model, *prompt, *system;
    struct lm_sampling sampling;
    int32_t max_tokens;
    uint64_t seed;
    int32_t logprobs; /* likeliest tokens that go with each; -1: no log-probabilities */
    bool has_seed, raw, json, help;
    enum chat_thinking thinking;
    const char *template_config; /* JSON; NULL: none */
    bool has_device;
    enum dev_type device;
    const char *stop[8];
    size_t n_stop;
};

/* The options in a table; those of `mlx chat` are marked. Prints what is wrong and returns false.
 */
bool llm_parse(struct llm_options *o, int argc, char **argv, bool is_chat);
void llm_print_options(FILE *out, bool is_chat);

/* What the chat template is told. */
struct chat_params llm_chat_params(const struct llm_options *o);

/* TEXT of a command line with its bytes as they are; "-" is all of standard input. */
MUST_CHECK enum err llm_read_text(struct str *out, const char *text);

/* Opens the model with a progress bar on a terminal. */
MUST_CHECK enum err llm_open(struct lm_session *s, const struct llm_options *o);

/* A bar on stderr if that is a terminal; done == total removes it. */
void llm_progress(const char *what, size_t done, size_t total);

/* Tokens and speed of prompt and answer, and peak memory, as mlx-lm prints them. */
void llm_print_stats(const struct lm_stats *stats);
