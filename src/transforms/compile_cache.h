/* Programs of compiled functions, by what they were traced for. Thread-safety: safe; threads that
 * have default streams of their own share no programs. */
#pragma once

#include "eval/program.h"
#include "ops/ops.h"

struct compile_id {
    uint64_t number;
    bool is_own; /* given by the library; else by a caller */
};

struct compile_key {
    struct compile_id id;
    bool is_shapeless;
    const uint64_t *constants;
    size_t n_constants;
    struct arrs in;    /* arrays of the shapes and dtypes */
    struct strm *strm; /* where nodes go that name no stream */
};

struct compile_entry {
    refcount rc;
    struct program *program;
    uint64_t note;              /* of compile_set_note */
    struct compile_entry *next; /* the rest is the cache's */
    uint64_t hash;
    struct compile_id id;
    bool is_shapeless;
    uint64_t number; /* of its making */
    size_t n_words;
    uint64_t word[]; /* the key as numbers */
};

/* A new reference, NULL if there is none. */
MUST_CHECK enum err compile_cache_get(struct compile_entry **out, const struct compile_key *key);
/* Takes the program over, also on failure. note: what is kept with it. Where another thread came
 * first its entry is the result. Of a shapeless function, which may come with ever new sizes, only
 * the last few are kept. */
MUST_CHECK enum err compile_cache_add(struct compile_entry **out, const struct compile_key *key,
                                      struct program *program, uint64_t note);
void compile_entry_unref(struct compile_entry **e);

/* Calls that are under way keep what they use. */
void compile_cache_erase(struct compile_id id);
void compile_cache_clear(void);
