/* Decoder-only language models: from token ids to logits, as a lazy graph. */
#pragma once

#include "lm/model/cache.h"
#include "lm/model/config.h"
#include "lm/model/graph.h"
#include "lm/model/weights.h"

/* y = x W^T + b; W packed if quant.bits is not 0. */
struct lm_linear {
    struct arr *weight, *scales, *biases; /* biases: of the packing */
    struct arr *bias;
    struct lm_quant quant;
};

struct lm_attention {
    struct lm_linear q, k, v, o;
    struct arr *q_norm, *k_norm; /* NULL in families without */
};

struct lm_mlp { /* of a dense layer, or of all experts stacked along the first axis */
    struct lm_linear gate, up, down;
};

struct lm_layer {
    struct arr *input_norm, *post_norm;
    struct lm_attention attention;
    struct lm_mlp mlp;
    struct lm_linear router; /* of a sparse layer */
    bool is_sparse;
};

struct lm_model {
    struct lm_config config;
    struct lm_linear embed, head; /* head: unused when tied */
    struct arr *norm;
    struct lm_layer *layer;
    struct arr *rope_freqs; /* NULL: plain */
    float rope_scale, rope_mscale;
};

/* Asks src for all weights. Takes over config. Nothing is evaluated. */
MUST_CHECK enum err model_new(struct lm_model **out, struct lm_config *config,
                              struct lm_weights *src);
void model_destroy(struct lm_model **m);

/* All weights, for one evaluation before the first token. Calls fn until it fails. */
MUST_CHECK enum err model_each_weight(struct lm_model *m,
                                      enum err (*fn)(struct arr *weight, void *data), void *data);

/* Hidden states [1, T, hidden] of tokens [1, T] after all layers and the last norm; appends T
 * positions to the cache. */
struct arr *model_hidden(struct lm_graph *g, const struct lm_model *m, struct arr *tokens,
                         struct lm_cache *cache);
/* Logits [1, T, vocab] of hidden states. */
struct arr *model_logits(struct lm_graph *g, const struct lm_model *m, struct arr *hidden);
