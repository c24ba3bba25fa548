/* The alphabet in which byte-level vocabularies write bytes: printable characters stand for
 * themselves, the other bytes follow from U+0100 on. */
#pragma once

#include "lm/str.h"

/* Appends the bytes in that alphabet. */
MUST_CHECK enum err byte_level_add(struct str *out, const char *bytes, size_t n);
/* The byte that a character stands for, -1 if it stands for none. */
int byte_level_byte(uint32_t cp);
