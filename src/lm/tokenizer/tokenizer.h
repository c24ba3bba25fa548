/* Tokenizers of language models: byte pair encoding as tokenizer.json describes it.
 *
 * Encoding: added tokens are cut out, the rest is normalized, split into words and merged to ids;
 * then the tokens that begin and end a text are added. Decoding is the way back.
 *
 * Thread-safety: caller locks; encoding keeps its scratch memory and a cache of words. */
#pragma once

#include "lm/str.h"

struct tok;
struct json_doc;

/* Reads tokenizer.json and what there is of tokenizer_config.json, special_tokens_map.json,
 * generation_config.json, config.json, chat_template.jinja and the template for tools in a folder.
 * An error names file and key: ERR_UNSUPPORTED where the file asks for something that is not there.
 */
MUST_CHECK enum err tok_load(struct tok **out, const char *folder);
/* The same from the text of a tokenizer.json alone; name is what errors call it. */
MUST_CHECK enum err tok_from_json(struct tok **out, const char *text, size_t n, const char *name);
void tok_destroy(struct tok **t);

/* What a GGUF file says of its tokenizer, in its own terms. Everything is borrowed. */
struct tok_arrays {
    const char *model; /* "gpt2" or "llama" */
    const char *pre;   /* how "gpt2" splits: see pretok.def; NULL: "default" */
    const char *const *tokens;
    size_t n_tokens;
    const int32_t
        *types; /* 1 normal, 2 unknown, 3 control, 4 user defined, 6 byte; NULL: all normal */
    const float *scores;       /* of "llama" without merges */
    const char *const *merges; /* "left right" */
    size_t n_merges;
    int32_t bos, eos, unk, pad; /* -1: none */
    const int32_t *more_eos;    /* that end a generated text, too */
    size_t n_more_eos;
    bool add_bos, add_eos;
    bool no_space_prefix;                      /* "llama" does not put a space before the text */
    const char *chat_template, *tool_template; /* NULL: none */
};

MUST_CHECK enum err tok_from_arrays(struct tok **out, const struct tok_arrays *a);

/* ---- text to ids and back ---- */

/* Appends the ids of the text; what is not UTF-8 counts as U+FFFD. add_special: with the tokens
 * that begin and end a text. */
MUST_CHECK enum err tok_encode(struct tok *t, const char *text, size_t n, bool add_special,
                               struct ids *out);
/* Appends the text of the ids; ids that are no tokens have none. */
MUST_CHECK enum err tok_decode(struct tok *t, const struct ids *ids, bool skip_special,
                               struct str *out);

/* Decodes one id at a time. The pieces are valid UTF-8 and together the same text as that of
 * tok_decode. */
struct tok_stream;

MUST_CHECK enum err tok_stream_create(struct tok_stream **out, struct tok *t, bool skip_special);
void tok_stream_destroy(struct tok_stream **s);
/* Appends the text that has become complete, which may be none. */
MUST_CHECK enum err tok_stream_add(struct tok_stream *s, int32_t id, struct str *out);
/* Appends what was held back; the stream can then be used for another text. */
MUST_CHECK enum err tok_stream_end(struct tok_stream *s, struct str *out);

/* ---- what is known of the tokens ---- */

/* One more than the highest id. */
size_t tok_size(const struct tok *t);
/* The id of a token, added ones first; -1 if there is none. */
int32_t tok_id(const struct tok *t, const char *token);
/* The token of an id as the file has it, NULL if there is none. Borrowed. */
const char *tok_token(const struct tok *t, int32_t id);
bool tok_is_special(const struct tok *t, int32_t id);

/* Settings that go with a tokenizer. Strings and lists belong to it; NULL and -1: not known. */
struct tok_info {
    int32_t bos, eos, pad, unk;
    struct ids eos_ids;        /* all that end a generated text */
    const char *chat_template; /* the default one */
    const char *tool_template; /* the one for messages with tools; NULL: the same */
    bool templates_need_name;  /* there are some, and none of them is the default */
    const char *model_type;    /* of config.json */
};

const struct tok_info *tok_info(const struct tok *t);
