/* Normalizers: what happens to text before it is split. */
#pragma once

#include "lm/tokenizer/regex.h"

enum unorm_kind {
    UNORM_NFC,
    UNORM_NFD,
    UNORM_NFKC,
    UNORM_NFKD,
    UNORM_LOWERCASE,
    UNORM_REPLACE,       /* matches of rx become text */
    UNORM_PREPEND,       /* text, unless there is nothing to put it before */
    UNORM_STRIP,         /* white space at the ends */
    UNORM_STRIP_ACCENTS, /* combining marks */
    UNORM_BYTE_LEVEL,
};

struct unorm_step {
    enum unorm_kind kind;
    struct rx *rx;
    struct str text;
    bool left, right; /* which ends to strip */
};

struct unorm {
    struct unorm_step *v;
    size_t n, cap;
    /* for unorm_apply */
    struct str spare;
    struct {
        int32_t *v;
        size_t n, cap;
    } chars;
    struct {
        uint64_t *v;
        size_t n, cap;
    } marks;
};

void unorm_fini(struct unorm *u);
/* Takes over what the step holds, also on failure. */
MUST_CHECK enum err unorm_add(struct unorm *u, struct unorm_step step);

/* Rewrites text in place. *cut becomes true where the text no longer begins where it began, because
 * white space was stripped. ERR_UNSUPPORTED where it would become longer than `room`.
 * Thread-safety: caller locks. */
MUST_CHECK enum err unorm_apply(struct unorm *u, struct str *text, size_t room, bool *cut);
