/* Added tokens: strings that are found in the text before it is split, such as <|im_end|>. */
#pragma once

#include "lm/pieces.h"
#include "lm/regex.h"
#include "lm/vocab.h"

struct added_token {
    struct str content;
    int32_t id;
    bool single_word;    /* not inside of a word */
    bool lstrip, rstrip; /* takes the white space beside it along */
    bool normalized;     /* is looked for in normalized text */
    bool special;        /* can be left out of decoded text */
};

/* A tree of bytes: children are a list. Node 0 is the root. */
struct added_node {
    int32_t child, sibling;
    int32_t token; /* index of a token that ends here, -1 for none */
    unsigned char byte;
};

struct added_trie {
    struct added_node *v;
    size_t n, cap;
    int32_t first[256]; /* children of the root */
};

struct added {
    struct added_token *v;
    size_t n, cap;
    struct vocab names; /* contents and their indices */
    struct ids by_id;   /* index of the token with an id, -1 for none */
    struct added_trie raw, normalized;
    struct rx *word; /* a character of a word; only where a token asks */
};

void added_fini(struct added *a);
/* Takes over token.content, also on failure. A later token with the same content replaces an
 * earlier one. */
MUST_CHECK enum err added_add(struct added *a, struct added_token token);
/* To be called when all tokens are there, before the functions below. `forms` has for each token
 * what it looks like in normalized text. */
MUST_CHECK enum err added_build(struct added *a, const struct str *forms);

/* Cuts one piece of text at the tokens of one tree and appends what becomes of it to `out`; offsets
 * remain those of the text. Thread-safety: caller locks. */
MUST_CHECK enum err added_split(const struct added *a, const struct added_trie *trie,
                                struct piece piece, const char *text, struct pieces *out);
/* The token with this id, NULL if it is none. */
const struct added_token *added_find(const struct added *a, int32_t id);
