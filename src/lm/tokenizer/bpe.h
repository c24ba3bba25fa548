/* The model of the tokenizer: from a word to ids, by merging neighbours in order of their rank.
 *
 * Thread-safety: caller locks; encoding uses the scratch memory and the cache of the model. */
#pragma once

#include "lm/tokenizer/vocab.h"

#define BPE_NO_TOKEN (-1)
#define BPE_LOST_TOKEN (-2) /* named, but not in the vocabulary */

struct bpe_sym {
    int32_t id; /* BPE_NO_TOKEN: merged into the one before */
    int32_t prev, next;
};

struct bpe_rank {
    int32_t rank, pos, id;
};

/* Words seen before. Emptied when it is full: text repeats its words, and a cache that follows it
 * is as good as one that keeps the best. */
struct bpe_cache {
    struct bpe_cached {
        uint32_t hash, key, len; /* len 0: free */
        uint32_t ids, n;
    } * slots;
    size_t used;
    struct str keys;
    struct ids ids;
};

struct bpe {
    struct vocab vocab;
    struct merges merges;
    int32_t next_rank;
    int32_t unk;        /* stands for what is not in the vocabulary; or one of the above */
    bool fuse_unk;      /* neighbours that are unknown become one token */
    bool byte_fallback; /* a character that is unknown becomes the tokens of its bytes */
    bool ignore_merges; /* a word that is a token is not taken apart */
    bool byte_level; /* words are bytes, the vocabulary has them in the alphabet of byte_level.h */

    int32_t char_ids[512]; /* of the first characters, which are the most frequent */
    int32_t byte_ids[256]; /* of <0xNN>; all there or none used */
    struct bpe_cache cache;
    struct {
        struct bpe_sym *v;
        size_t n, cap;
    } syms;
    struct {
        struct bpe_rank *v;
        size_t n, cap;
    } heap;
    struct str mapped;
};

void bpe_fini(struct bpe *b);
/* To be called when vocabulary, merges and options are complete. */
MUST_CHECK enum err bpe_ready(struct bpe *b);
/* Appends the ids of a word. */
MUST_CHECK enum err bpe_encode(struct bpe *b, const char *word, size_t n, struct ids *out);

/* The rule "left right" in terms of strings; ERR_ARG names a string that is no token. */
MUST_CHECK enum err bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right,
                                  size_t n_right);
/* The same in terms of ids. */
MUST_CHECK enum err bpe_add_rule(struct bpe *b, int32_t left, int32_t right, int32_t id);
