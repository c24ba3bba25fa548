/* Added tokens: strings that are found in the text before it is split, such as <|im_end|>. */
#pragma once

#include "lm/tokenizer/pieces.h"
#include "lm/tokenizer/regex.h"
#include "lm/tokenizer/vocab.h"

struct added_token {
    struct str content;
    int32_t id;
    bool single_word;    /* not inside of a word */
    bool lstrip, rstrip; /* takes the white space beside it along */
    bool normalized;     /* is looked for in normalized text */
    bool special;        /* can be left out of decoded text */
};

/* All of the tokens' bytes together. */
#define ADDED_BYTES_MAX ((size_t)16 << 20)

/* The tokens as a tree of bytes, from their last byte to their first, and an automaton over it
 * (Aho and Corasick's): one walk from the end of a text to its beginning says for every place which
 * token is the longest that begins there. Node 0 is the root. */
struct added_node {
    int32_t parent, depth;
    int32_t fail;       /* the longest other node that what led here ends with */
    int32_t token, len; /* the longest token that what led here ends with, -1 for none */
    unsigned char byte;
};

struct added_edge {
    int32_t node, child; /* child 0: free */
    unsigned char byte;
};

struct added_trie {
    struct added_node *v;
    size_t n, cap;
    struct added_edge *edges; /* open addressing */
    size_t n_edges;           /* power of two, or 0 */
    int32_t first[256];       /* children of the root, 0 for none */
};

struct added {
    struct added_token *v;
    size_t n, cap;
    size_t bytes;       /* of all contents that were added */
    struct vocab names; /* contents and their indices */
    struct ids by_id;   /* index of the token with an id, -1 for none */
    struct added_trie raw, normalized;
    struct rx *word; /* a character of a word; only where a token asks */
};

void added_fini(struct added *a);
/* Takes over token.content, also on failure. A later token with the same content replaces an
 * earlier one. ERR_UNSUPPORTED where they become more than ADDED_BYTES_MAX. */
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
