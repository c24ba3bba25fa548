/* Where weights come from: files of a model, or a generator of random ones.
 *
 * A model asks for tensors by name and says what shape it expects, so that a wrong file is told
 * from a right one in one place. Thread-safety: caller's own. */
#pragma once

#include "graph/array.h"
#include "lm/model/config.h"

struct lm_weights {
    /* True if there is a tensor of that name. */
    bool (*has)(struct lm_weights *src, const char *name);
    /* A new reference. ERR_ARG if there is none. */
    enum err (*get)(struct lm_weights *src, struct arr **out, const char *name,
                    const struct shp *shape);
    /* How a module that has scales is packed; NULL: as the config says. */
    enum err (*quant)(struct lm_weights *src, struct lm_quant *out, const char *module);
    /* Fails with the names of tensors that were never asked for; NULL: there are none. */
    enum err (*check_read)(struct lm_weights *src, const struct lm_config *c);
    void (*destroy)(struct lm_weights *src);
};

/* What a tensor must be. */
enum lm_element {
    LM_ELEMENT_REAL,  /* float32, float16 or bfloat16 */
    LM_ELEMENT_WORD,  /* uint32: packed numbers */
    LM_ELEMENT_SCALE, /* uint8: scales of the modes that have an exponent for them */
};
struct lm_tensor {
    struct shp shape;
    enum lm_element element;
};

/* The tensor, of exactly this shape and kind. Errors name the tensor, and what it is and should be.
 */
MUST_CHECK enum err weights_get(struct arr **out, struct lm_weights *src, const char *name,
                                const struct lm_tensor *want);
void weights_destroy(struct lm_weights **src);

/* All model*.safetensors of a folder, none of whose tensors may be there twice. Tensors are read
 * lazily, on the stream s. */
MUST_CHECK enum err weights_open_folder(struct lm_weights **out, const char *folder,
                                        struct strm *s);

/* Random weights that keep activations finite: what config_quant says is packed is packed random
 * words with small scales. The same seed gives the same model. c must stay or be moved, not end,
 * while the source is used. */
MUST_CHECK enum err weights_random(struct lm_weights **out, const struct lm_config *c,
                                   uint64_t seed, struct strm *s);
