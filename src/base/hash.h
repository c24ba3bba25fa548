/* A fast 64-bit mixing hash for structure keys; not for hostile input. */
#pragma once

#include <string.h>

#include "base/common.h"

#define HASH_SEED 0x9e3779b97f4a7c15ull

static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
    h ^= v + HASH_SEED + (h << 6) + (h >> 2);
    h *= 0xff51afd7ed558ccdull;
    return h ^ (h >> 32);
}

/* Long data goes through four hashes side by side: each step of one waits for the step before. */
static inline uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;
    uint64_t word, lane[4];

    if (n >= 256) {
        for (uint64_t i = 0; i < 4; i++)
            lane[i] = hash_mix(h, i);
        for (; n >= sizeof lane; n -= sizeof lane, p += sizeof lane) {
            uint64_t words[4];
            memcpy(words, p, sizeof words);
            for (int i = 0; i < 4; i++)
                lane[i] = hash_mix(lane[i], words[i]);
        }
        for (int i = 0; i < 4; i++)
            h = hash_mix(h, lane[i]);
    }
    for (; n >= sizeof word; n -= sizeof word, p += sizeof word) {
        memcpy(&word, p, sizeof word);
        h = hash_mix(h, word);
    }
    word = n;
    if (n) /* data may be NULL then */
        memcpy(&word, p, n);
    return hash_mix(h, word ^ (uint64_t)n << 56);
}
