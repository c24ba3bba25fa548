/* Decoders: from tokens to text, one token at a time.
 *
 * The text that comes out is valid UTF-8 after every step, and the same whether the tokens come one
 * by one or all at once. A step that must see more than one token holds its text back. */
#pragma once

#include "lm/tokenizer/regex.h"

#define DETOK_STEPS_MAX 16

enum detok_kind {
    DETOK_JOIN,          /* the tokens with spaces between them; where there is no decoder */
    DETOK_BYTE_LEVEL,    /* from the alphabet of byte_level.h to bytes */
    DETOK_BYTE_FALLBACK, /* <0xNN> to bytes */
    DETOK_FUSE,          /* what follows sees one token */
    DETOK_REPLACE,       /* matches of rx become text */
    DETOK_STRIP,         /* up to so many times a character at the ends of a token */
    DETOK_METASPACE,     /* the character becomes a space, or nothing in the first token */
};

struct detok_step {
    enum detok_kind kind;
    struct rx *rx;
    struct str text;
    uint32_t cp;        /* of DETOK_STRIP and DETOK_METASPACE */
    size_t start, stop; /* of DETOK_STRIP */
    bool drop_first;    /* of DETOK_METASPACE */
    bool whole;         /* sees one token, because an earlier step makes one of them; set by add */
};

struct detok {
    struct detok_step step[DETOK_STEPS_MAX];
    size_t n;
};

void detok_fini(struct detok *d);
/* Takes over what the step holds, also on failure. */
MUST_CHECK enum err detok_add(struct detok *d, struct detok_step step);

/* What the steps remember between tokens. Zero is the beginning. */
struct detok_state {
    struct detok_memory {
        struct str held;
        bool begun;    /* saw a token */
        size_t cut;    /* characters stripped at the start */
        size_t tail;   /* characters that are stripped if nothing follows them */
        bool past_cut; /* met another character */
    } step[DETOK_STEPS_MAX];
};

void detok_state_fini(struct detok_state *s);
/* Adds a token; appends the text that is complete. ERR_UNSUPPORTED where replacing makes far too
 * much of it. Thread-safety: caller locks d. */
MUST_CHECK enum err detok_push(const struct detok *d, struct detok_state *s, const char *token,
                               size_t n, struct str *out);
/* There are no more tokens: appends what was held back and returns the state to the beginning. */
MUST_CHECK enum err detok_end(const struct detok *d, struct detok_state *s, struct str *out);
