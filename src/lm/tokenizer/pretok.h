/* Pre-tokenizers: how text is cut into the words that the model works on. */
#pragma once

#include "lm/tokenizer/pieces.h"
#include "lm/tokenizer/regex.h"

enum pretok_kind {
    PRETOK_SPLIT,        /* at the matches of a pattern */
    PRETOK_PREFIX_SPACE, /* a space before what does not begin with one */
    PRETOK_METASPACE,    /* spaces become another character, which may be put before */
    PRETOK_BYTE_LEVEL,   /* from bytes to the alphabet of byte_level.h */
};

/* What becomes of the matches of a pattern; "the-final--countdown" split at "-" as an example. */
enum pretok_behavior {
    PRETOK_REMOVED,              /* the final countdown */
    PRETOK_ISOLATED,             /* the - final - - countdown */
    PRETOK_CONTIGUOUS,           /* the - final -- countdown */
    PRETOK_MERGED_WITH_PREVIOUS, /* the- final- - countdown */
    PRETOK_MERGED_WITH_NEXT,     /* the -final - -countdown */
};

enum pretok_prepend {
    PRETOK_PREPEND_NEVER,
    PRETOK_PREPEND_FIRST, /* at the beginning of the input */
    PRETOK_PREPEND_ALWAYS,
};

struct pretok_step {
    enum pretok_kind kind;
    struct rx *rx;
    enum pretok_behavior behavior;
    bool invert; /* what does not match is the delimiter */
    enum pretok_prepend prepend;
    struct str text; /* the replacement of a space */
};

struct pretok {
    struct pretok_step *v;
    size_t n, cap;
    /* for pretok_apply */
    struct pieces spare;
    struct {
        struct pretok_span {
            size_t start, end;
            bool match;
        } * v;
        size_t n, cap;
    } spans;
};

void pretok_fini(struct pretok *p);
/* Takes over what the step holds, also on failure. */
MUST_CHECK enum err pretok_add(struct pretok *p, struct pretok_step step);
/* Adds a split. */
MUST_CHECK enum err pretok_add_split(struct pretok *p, const char *pattern, size_t n,
                                     unsigned rx_flags, enum pretok_behavior behavior);
/* Cuts the text pieces of the list. ERR_UNSUPPORTED where their text would become longer than
 * `room`. Thread-safety: caller locks. */
MUST_CHECK enum err pretok_apply(struct pretok *p, struct pieces *pieces, size_t room);
