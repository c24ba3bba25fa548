/* What the readers of the sections of tokenizer.json share. */
#pragma once

#include "lm/tokenizer/tok.h"

/* What no tokenizer comes near. */
#define TOK_PARTS_MAX 256               /* normalizers, pre-tokenizers, processors, decoders */
#define TOK_TEXT_MAX ((size_t)64 << 10) /* bytes of what a step puts into a text */
#define TOK_ENDS_MAX 1024               /* ids before and behind a text; parts of a template */

/* One kind of normalizer, pre-tokenizer, post-processor or decoder. */
struct tok_reader {
    const char *type;
    enum err (*read)(struct tok *t, struct json v);
};

/* Reads v as its "type" says; nothing for null. An unknown type is ERR_UNSUPPORTED. */
MUST_CHECK enum err tok_read_typed(struct tok *t, struct json v, const struct tok_reader *readers,
                                   size_t n);
/* Reads each element of the list. */
MUST_CHECK enum err tok_read_list(struct tok *t, struct json list, const struct tok_reader *readers,
                                  size_t n);
/* Puts the place of v before the text of an error. */
enum err tok_at(struct json v, enum err err);
/* "pattern": {"String": ...} or {"Regex": ...} */
MUST_CHECK enum err tok_read_pattern(struct rx **out, struct json v);
/* A string of one character. */
MUST_CHECK enum err tok_read_char(uint32_t *out, struct json v, const char *key);
MUST_CHECK enum err tok_read_text(struct str *out, struct json v, const char *key);
/* Whether Metaspace puts its character before a text. */
MUST_CHECK enum err tok_read_prepend(enum pretok_prepend *out, struct json v);

MUST_CHECK enum err tok_read_normalizer(struct tok *t, struct json v);
MUST_CHECK enum err tok_read_pre_tokenizer(struct tok *t, struct json v);
MUST_CHECK enum err tok_read_post_processor(struct tok *t, struct json v);
MUST_CHECK enum err tok_read_decoder(struct tok *t, struct json v);

/* Merges from scores, where a GGUF file has no merges: the better a token, the earlier it is made,
 * of every two parts that are tokens. */
MUST_CHECK enum err tok_make_merges(struct tok *t, const struct tok_arrays *a);

/* The pattern of GPT-2. */
extern const char tok_gpt2_pattern[];
