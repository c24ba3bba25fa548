/* What a model is made of, wherever it lies: a folder in MLX's format, a GGUF file, or such a
 * folder that Hugging Face's tools have downloaded, by its name on the hub. */
#pragma once

#include "lm/model/config.h"
#include "lm/model/weights.h"
#include "lm/tokenizer/tokenizer.h"

enum model_files_wanted { MODEL_FILES_TOKENIZER = 1, MODEL_FILES_MODEL = 2, MODEL_FILES_ALL = 3 };

struct model_files {
    struct tok *tok;            /* MODEL_FILES_TOKENIZER */
    struct lm_config config;    /* MODEL_FILES_MODEL */
    struct lm_weights *weights; /* MODEL_FILES_MODEL; to be read on the stream */
};

/* Opens the wanted parts of a model; of a folder that has no others these are enough. p is to be
 * finished in any case. */
MUST_CHECK enum err model_files_open(struct model_files *p, const char *path,
                                     enum model_files_wanted wanted, struct strm *s);
void model_files_fini(struct model_files *p);
