/* Growable bytes, lists of token ids, and UTF-8.
 *
 * Text inside the tokenizer is always valid UTF-8: what comes from outside passes str_add_lossy.
 */
#pragma once

#include "base/common.h"
#include "base/err.h"

/* Both work with the VEC macros of base/mem.h; zero is empty. */
struct str {
    char *v; /* not terminated */
    size_t n, cap;
};

struct ids {
    int32_t *v;
    size_t n, cap;
};

MUST_CHECK enum err str_add(struct str *t, const void *bytes, size_t n);
/* The text without its zero. */
MUST_CHECK enum err str_add_text(struct str *t, const char *text);
MUST_CHECK enum err str_add_char(struct str *t, uint32_t cp);
/* Appends with U+FFFD in place of what is not UTF-8: one for every maximal part of a sequence. */
MUST_CHECK enum err str_add_lossy(struct str *t, const char *bytes, size_t n);

enum u8_kind {
    U8_CHAR, /* a character */
    U8_PART, /* the bytes end within a character that is right so far */
    U8_BAD,  /* len bytes that begin no character */
};

struct u8_step {
    uint32_t cp; /* of U8_CHAR */
    enum u8_kind kind;
    size_t len; /* 1 to 4 */
};

/* Whether all n bytes are UTF-8. */
bool u8_valid(const char *s, size_t n);

/* Looks at the first of n > 0 bytes. Overlong forms and surrogates are bad. */
struct u8_step u8_step(const char *s, size_t n);

/* Length of the character that begins with this byte of valid UTF-8. */
static inline size_t u8_length(char first)
{
    unsigned char c = (unsigned char)first;

    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

/* Where the last character of n > 0 bytes of valid UTF-8 begins. */
size_t u8_last(const char *s, size_t n);

/* Writes up to 4 bytes, returns how many. */
size_t u8_put(char *out, uint32_t cp);

/* Unicode's property White_Space. */
bool u8_is_space(uint32_t cp);
