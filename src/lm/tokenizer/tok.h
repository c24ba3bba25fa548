/* The parts of a tokenizer, for the files that put one together. */
#pragma once

#include "base/json.h"
#include "lm/tokenizer/added.h"
#include "lm/tokenizer/bpe.h"
#include "lm/tokenizer/detok.h"
#include "lm/tokenizer/pretok.h"
#include "lm/tokenizer/tokenizer.h"
#include "lm/tokenizer/unorm.h"

struct tok {
    struct added added;
    struct unorm unorm;
    struct pretok pretok;
    struct bpe bpe;
    struct ids prefix, suffix; /* of a text with add_special */
    struct detok detok;
    struct {
        struct str *v; /* of each added token: what it looks like in normalized text */
        size_t n, cap;
    } forms;

    size_t n_parts; /* of tokenizer.json that were read */
    struct tok_info info;
    char *chat_template, *tool_template, *model_type; /* what info points to */

    /* for tok_encode */
    struct str raw, normal;
    struct pieces pieces, spare;
};

/* An empty tokenizer. */
MUST_CHECK enum err tok_new(struct tok **out);
/* Adds an added token by its name; does nothing where there is one already. */
MUST_CHECK enum err tok_add_special(struct tok *t, const char *content);
/* To be called when the parts are complete. */
MUST_CHECK enum err tok_ready(struct tok *t);

/* From a parsed tokenizer.json. */
MUST_CHECK enum err tok_read(struct tok *t, struct json root);
/* The files beside it, where they are: special tokens, ids that end a text, template of chats. */
MUST_CHECK enum err tok_read_settings(struct tok *t, const char *folder);
