/* Where weights come from: files of a model, or a generator of random ones.
 *
 * A model asks for tensors by name and says what shape it expects, so that a wrong file is told
 * from a right one in one place. Thread-safety: caller's own. */
#pragma once

#include "core/array.h"
#include "lm/config.h"

struct lm_weights {
    /* True if there is a tensor of that name. */
    bool (*has)(struct lm_weights *src, const char *name);
    /* A new reference. ERR_ARG if there is none. */
    enum err (*get)(struct lm_weights *src, struct arr **out, const char *name,
                    const struct shp *shape);
    /* How a module that has scales is packed; NULL: as the config says. */
    enum err (*quant)(struct lm_weights *src, struct lm_quant *out, const char *module);
    void (*destroy)(struct lm_weights *src);
};

/* The tensor, of exactly this shape. Errors name the tensor and both shapes. */
MUST_CHECK enum err weights_get(struct arr **out, struct lm_weights *src, const char *name,
                                const struct shp *shape);
void weights_destroy(struct lm_weights **src);

/* The safetensors files of a folder: model.safetensors, or the shards that
 * model.safetensors.index.json lists. Tensors are read lazily, on the stream s. */
MUST_CHECK enum err weights_open_folder(struct lm_weights **out, const char *folder,
                                        struct strm *s);

/* Random weights that keep activations finite: what config_quant says is packed is packed random
 * words with small scales. The same seed gives the same model. c must stay or be moved, not end,
 * while the source is used. */
MUST_CHECK enum err weights_random(struct lm_weights **out, const struct lm_config *c,
                                   uint64_t seed, struct strm *s);
