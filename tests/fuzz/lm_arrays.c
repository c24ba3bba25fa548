/* The tokenizer of a GGUF file: a byte of options, then the tokens, each a byte of its type, one of
 * its score and a text that a zero byte ends; behind an empty one the merges, and behind another
 * empty one a text to encode. */
#include "fuzz/fuzz.h"

#include "fuzz/fuzz_lm.h"

#define MAX_TEXT 512

struct list {
    VEC(const char *) texts;
    VEC(int32_t) types;
    VEC(float) scores;
};

/* Takes texts from *at until one is empty; with `heads` each has its type and score before it. */
static enum err take(struct list *list, const char **at, const char *end, bool heads)
{
    enum err err = ERR_OK;

    while (*at < end && **at) {
        if (heads && end - *at >= 2) {
            TRY(VEC_PUSH(&list->types, **at & 7));
            TRY(VEC_PUSH(&list->scores, (float)-(*at)[1]));
            *at += 2;
        } else if (heads) {
            break;
        }
        TRY(VEC_PUSH(&list->texts, *at));
        *at += strlen(*at) + 1;
    }
    *at += *at < end;
out:
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const pres[] = { "qwen2", "llama-bpe", "smollm", "tekken" };
    unsigned options = size ? data[0] : 0;
    char *in = mem_alloc(size + 1);
    const char *at = in + 1, *end = in + size;
    struct list tokens = { 0 }, merges = { 0 };
    struct tok *t = NULL;
    enum err err;

    if (!in || !size)
        goto out;
    memcpy(in, data, size);
    TRY(take(&tokens, &at, end, true));
    TRY(take(&merges, &at, end, false));
    struct tok_arrays a = { .model = options & 1 ? "llama" : "gpt2",
                            .pre = pres[options >> 1 & 3],
                            .tokens = tokens.texts.v,
                            .n_tokens = tokens.texts.n,
                            .types = tokens.types.v,
                            .scores = tokens.scores.v,
                            .merges = merges.texts.v,
                            .n_merges = merges.texts.n,
                            .bos = 0,
                            .eos = 1,
                            .unk = options & 8 ? 2 : -1,
                            .pad = -1,
                            .add_bos = options & 16,
                            .add_eos = options & 32,
                            .no_space_prefix = options & 64 };
    TRY(tok_from_arrays(&t, &a));
    fuzz_tokenizer(t, at, at < end ? MIN((size_t)(end - at), (size_t)MAX_TEXT) : 0);
out:
    tok_destroy(&t);
    VEC_FINI(&tokens.texts);
    VEC_FINI(&tokens.types);
    VEC_FINI(&tokens.scores);
    VEC_FINI(&merges.texts);
    mem_free(in);
    return 0;
}
