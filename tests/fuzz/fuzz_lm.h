/* What the targets of tokenizers share. */
#pragma once

#include <string.h>

#include "base/mem.h"
#include "lm/tokenizer/tokenizer.h"

/* The ids decode to the same text at once and one by one. */
static inline void fuzz_decoding(struct tok *t, const struct ids *ids)
{
    struct str whole = { 0 }, parts = { 0 };
    struct tok_stream *s = NULL;
    enum err err;

    TRY(tok_decode(t, ids, false, &whole));
    TRY(tok_stream_create(&s, t, false));
    for (size_t i = 0; i < ids->n; i++)
        TRY(tok_stream_add(s, ids->v[i], &parts));
    TRY(tok_stream_end(s, &parts));
    if (whole.n != parts.n || (whole.n && memcmp(whole.v, parts.v, whole.n) != 0))
        __builtin_trap();
out:
    tok_stream_destroy(&s);
    VEC_FINI(&whole);
    VEC_FINI(&parts);
}

/* Encodes a text and decodes its ids, and others. */
static inline void fuzz_tokenizer(struct tok *t, const char *text, size_t n)
{
    struct ids ids = { 0 };
    enum err err;

    TRY(tok_encode(t, text, n, true, &ids));
    fuzz_decoding(t, &ids);
    for (size_t i = 0; i < ids.n; i++) /* ids that no text has in this order, or none at all */
        ids.v[i] = (int32_t)(((size_t)ids.v[i] * 7 + i) % (tok_size(t) + 1));
    fuzz_decoding(t, &ids);
out:
    VEC_FINI(&ids);
}

/* The input in parts that zero bytes end, each of them terminated; those that are missing are
 * empty. `in` is to be freed. NULL without memory. */
static inline char *fuzz_parts(const char **parts, size_t n, const uint8_t *data, size_t size)
{
    char *in = mem_alloc(size + 1), *at = in;

    if (in && size)
        memcpy(in, data, size);
    for (size_t i = 0; in && i < n; i++) {
        parts[i] = at;
        at += strlen(at);
        at += at < in + size;
    }
    return in;
}
