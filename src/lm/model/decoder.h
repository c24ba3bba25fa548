/* One position through the model, again and again.
 *
 * The graph of a step is built once, as a program (eval/program.h), and called for every token as
 * long as the cache has room: copying its nodes costs the processor a third of building them. */
#pragma once

#include "eval/program.h"
#include "lm/model/model.h"

struct lm_decoder {
    const struct lm_model *model;
    struct lm_cache *cache;
    struct strm *stream;
    /* The rest begins as zero. */
    struct program *program;
    int32_t room, position; /* of the cache: the graph's; where its last call stood */
    uint64_t gates;         /* gate_changes when it was built */
    bool is_refused;        /* it cannot be a program */
};

/* Logits [1, vocab] of a token [1] that was sampled, not evaluated; the cache has its position.
 * *logits NULL: the step is to be built, because the cache must grow, or for a reason that will
 * hold for the steps to come. After a failure the cache is empty. */
MUST_CHECK enum err decoder_step(struct arr **logits, struct lm_decoder *d, struct arr *token);
void decoder_fini(struct lm_decoder *d);
