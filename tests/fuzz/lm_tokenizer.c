/* A tokenizer.json and, behind a zero byte, a text: what can be read tokenizes, and the ids decode
 * to the same text at once and one by one. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_lm.h"
#include "lm/tokenizer/tokenizer.h"

/* Patterns of bad will are slow on long texts. */
#define MAX_TEXT 512

static void tokenize(const char *json, size_t n, const char *text, size_t n_text)
{
    struct tok *t = NULL;

    if (tok_from_json(&t, json, n, "fuzz.json") == ERR_OK)
        fuzz_tokenizer(t, text, n_text);
    tok_destroy(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t n = zero ? (size_t)(zero - data) : size;
    const char *text = zero ? (const char *)zero + 1 : "";
    size_t n_text = zero ? MIN(size - n - 1, (size_t)MAX_TEXT) : 0;

    tokenize((const char *)data, n, text, n_text);
    return 0;
}
