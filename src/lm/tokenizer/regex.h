/* Patterns of tokenizers: Oniguruma's syntax, which tokenizer.json files are written in, run by
 * PCRE2 with its JIT compiler. Where the two read a pattern differently it is rewritten; what
 * cannot be rewritten (intersections and negations inside of a class) is an error, and so is what
 * only PCRE2 knows and a search in parts would change (verbs, \G).
 *
 * Nothing is believed of a pattern: its length, its steps, memory and time are limited.
 *
 * Thread-safety: caller locks; a pattern holds the memory of its matching. */
#pragma once

#include "lm/str.h"

struct rx;

enum rx_flags {
    RX_LITERAL = 1, /* the pattern stands for itself */
};

/* ERR_UNSUPPORTED or ERR_ARG with the reason for a pattern that cannot be used. */
MUST_CHECK enum err rx_create(struct rx **out, const char *pattern, size_t n, unsigned flags);
void rx_destroy(struct rx **rx);

/* Matches from left to right, none within another. An empty match right behind another match does
 * not count. */
struct rx_iter {
    struct rx *rx;
    const char *s; /* n bytes of UTF-8; borrowed */
    size_t n;
    size_t at, last, window; /* for rx_next */
    uint32_t steps;
    bool matched, slow;
    size_t start, end; /* the match found */
};

void rx_iter_init(struct rx_iter *it, struct rx *rx, const char *s, size_t n);
/* Finds the next match: *found says whether there is one; then last end <= start <= end <= n. An
 * error where matching takes too much work or memory, or a match begins where none can. */
MUST_CHECK enum err rx_next(struct rx_iter *it, bool *found);

/* The pattern as PCRE2 gets it; for tests. */
MUST_CHECK enum err rx_translate(struct str *out, const char *pattern, size_t n);
