/* Models in GGUF files: config, weights and tokenizer from one file.
 *
 * Files name things in their own way; here they get the names and terms of a model folder, so that
 * everything else does not know where a model came from. */
#pragma once

#include "io/gguf.h"
#include "lm/model/config.h"
#include "lm/model/weights.h"
#include "lm/tokenizer/tokenizer.h"

/* The config that the metadata and the tensors of g describe. ERR_ARG names a key that is missing
 * or wrong, or the architectures that are known. */
MUST_CHECK enum err gguf_config(struct lm_config *c, const struct gguf *g);

/* The tensors of g under the names of model folders; takes over g's tensors on success. Packed ones
 * remain packed. All others get the dtype of the embedding, because files keep small tensors in
 * float32, which would make the activations float32. file is what errors call it. */
MUST_CHECK enum err weights_from_gguf(struct lm_weights **out, struct gguf *g, const char *file,
                                      struct strm *s);

/* The tokenizer, with its chat template. ERR_ARG names the key of a part that is missing. */
MUST_CHECK enum err gguf_tokenizer(struct tok **out, const struct gguf *g);
