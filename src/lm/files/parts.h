/* What a model is made of, wherever it lies: a folder in MLX's format, a GGUF file, or such a
 * folder that Hugging Face's tools have downloaded, by its name on the hub. */
#pragma once

#include "lm/model/config.h"
#include "lm/model/weights.h"
#include "lm/tokenizer/tokenizer.h"

enum parts_wanted { PARTS_TOKENIZER = 1, PARTS_MODEL = 2, PARTS_ALL = 3 };

struct parts {
    struct tok *tok;            /* PARTS_TOKENIZER */
    struct lm_config config;    /* PARTS_MODEL */
    struct lm_weights *weights; /* PARTS_MODEL; to be read on the stream */
};

/* Opens the wanted parts of a model; of a folder that has no others these are enough. p is to be
 * finished in any case. */
MUST_CHECK enum err parts_open(struct parts *p, const char *path, enum parts_wanted wanted,
                               struct strm *s);
void parts_fini(struct parts *p);
