/* Token strings and their ids, and the merges between ids. Internal to the tokenizer. */
#pragma once

#include "lm/str.h"

/* Ids are indices of arrays; no vocabulary comes near this. */
#define VOCAB_MAX_ID (1 << 22)

struct vocab_entry {
    uint32_t off, len; /* in bytes; len counts no terminator */
    int32_t id;
};

struct vocab {
    struct str bytes; /* the strings, each with a terminator */
    struct {
        struct vocab_entry *v;
        size_t n, cap;
    } entries;
    uint32_t *slots;  /* open addressing: index of an entry plus one */
    size_t n_slots;   /* power of two, or 0 */
    struct ids by_id; /* index of an entry, -1 where no token has this id */
};

void vocab_fini(struct vocab *v);
/* Adds a token; one that exists gets the new id. ERR_RANGE for an id that cannot be one. */
MUST_CHECK enum err vocab_add(struct vocab *v, const char *s, size_t n, int64_t id);
/* The id of a string, -1 if it is none. */
int32_t vocab_find(const struct vocab *v, const char *s, size_t n);
/* The string of an id, NULL if it has none. Borrowed, terminated. */
const char *vocab_string(const struct vocab *v, int32_t id, size_t *n);
/* One more than the highest id. */
static inline size_t vocab_size(const struct vocab *v)
{
    return v->by_id.n;
}

/* What a pair of neighbours becomes; the lowest rank merges first. */
struct merge {
    int32_t left, right;
    int32_t rank, id;
};

struct merges {
    struct merge *slots; /* open addressing; rank -1 is free */
    size_t n_slots, n;
};

void merges_fini(struct merges *m);
/* Of rules for the same pair the last one counts. */
MUST_CHECK enum err merges_add(struct merges *m, struct merge rule);
/* NULL if the pair does not merge. */
const struct merge *merges_find(const struct merges *m, int32_t left, int32_t right);
