/* Hashes for tables whose keys come from files and texts. They depend on a key that differs in
 * every process, so that nobody can write down keys that collide. */
#pragma once

#include <string.h>

#include "base/common.h"

extern uint64_t keyed_key[2];

/* Draws the key; to be called before a table is made. Thread-safety: safe. */
void keyed_init(void);

/* Both halves of a product: every bit of the result depends on all bits of both factors. */
static inline uint64_t keyed_fold(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t keyed_number(uint64_t n)
{
    return keyed_fold(n ^ keyed_key[0], keyed_key[1]);
}

/* Of n bytes, which may be NULL if there are none. */
static inline uint64_t keyed_bytes(const char *s, size_t n)
{
    uint64_t h = keyed_key[0] ^ (uint64_t)n, word;

    for (; n >= sizeof word; n -= sizeof word, s += sizeof word) {
        memcpy(&word, s, sizeof word);
        h = keyed_fold(h ^ word, keyed_key[1]);
    }
    word = 0;
    if (n)
        memcpy(&word, s, n);
    return keyed_number(keyed_fold(h ^ word, keyed_key[1]));
}
