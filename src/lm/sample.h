/* Choosing the next token, on the device. */
#pragma once

#include "lm/model/graph.h"

struct lm_sampling {
    float temperature;          /* 0: always the most likely one; however small, no overflow */
    float top_p;                /* likeliest tokens that make up this much; 0 or 1: all */
    float min_p;                /* at least this share of the likeliest one's probability; 0: all */
    int32_t top_k;              /* so many likeliest tokens; 0: all */
    float repetition_penalty;   /* 1: none */
    int32_t repetition_context; /* tokens it looks back */
};

/* ERR_ARG if a value is out of its range. */
MUST_CHECK enum err sampling_check(const struct lm_sampling *s);

/* Logits [1, vocab] with the penalty for recent tokens [n], which may be NULL. */
struct arr *sample_penalised(struct lm_graph *g, const struct lm_sampling *s, struct arr *logits,
                             struct arr *recent);
/* A token [1] for such logits. Draws from the thread's random sequence. */
struct arr *sample(struct lm_graph *g, const struct lm_sampling *s, struct arr *logits);
/* Whether a token can be chosen from n logits, float32, float16 or bfloat16: there is a number
 * among them, and none is NaN or +inf. */
bool sample_has_numbers(const void *logits, size_t n, enum dtype t);
/* The logarithms of the probabilities [1, vocab] of such logits, in float32. */
struct arr *sample_logprobs(struct lm_graph *g, struct arr *logits);
