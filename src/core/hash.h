/* A fast 64-bit mixing hash for structure keys; not for hostile input. */
#pragma once

#include <string.h>

#include "core/common.h"

#define HASH_SEED 0x9e3779b97f4a7c15ull

static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + HASH_SEED + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdull;
    return h ^ (h >> 32);
}

static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t word;

    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = hash_mix(h, word);
    }
    word = n;
    if (n) /* data may be NULL then */
        memcpy(&word, p, n);
    return hash_mix(h, word ^ (uint64_t)n << 56);
}
