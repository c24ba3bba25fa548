/* The tokenizer of a GGUF file: its metadata as tok_from_arrays wants it. */
#include "eval/wait.h"
#include "lm/gguf_model.h"

/* A list of texts, borrowed; *list is to be freed. */
static enum err get_texts(const char ***list, size_t *n, const struct gguf *g, const char *key)
{
    const struct gguf_value *v = gguf_find(g, key);

    *list = NULL;
    *n = 0;
    if (!v)
        return ERR_OK;
    if (v->kind != GGUF_STRINGS)
        return err_set(ERR_ARG, "%s is not a list of texts", key);
    if (!(*list = mem_alloc_array(v->n_texts + 1, sizeof **list)))
        return ERR_NO_MEMORY;
    for (*n = 0; *n < v->n_texts; (*n)++)
        (*list)[*n] = v->texts[*n].s;
    return ERR_OK;
}

/* A list of n numbers of one type, borrowed; NULL where there is none. */
static enum err get_list(const void **out, const struct gguf *g, const char *key, enum dtype t,
                         size_t n)
{
    const struct gguf_value *v = gguf_find(g, key);

    *out = NULL;
    if (!v)
        return ERR_OK;
    if (v->kind != GGUF_ARRAY || (enum dtype)v->arr->dtype != t || (size_t)v->arr->size != n)
        return err_set(ERR_ARG, "%s is not a list of %zu numbers of type %s", key, n, dt_name(t));
    return arr_host(out, v->arr);
}

static enum err get_id(int32_t *out, const struct gguf *g, const char *key)
{
    double n = -1;
    enum err err = ERR_OK;

    if (gguf_find(g, key))
        TRY(gguf_get_number(&n, g, key));
    *out = n >= 0 && n <= INT32_MAX ? (int32_t)n : -1;
out:
    return err;
}

static enum err get_flag(bool *out, const struct gguf *g, const char *key, bool value)
{
    double n = value;
    enum err err = ERR_OK;

    if (gguf_find(g, key))
        TRY(gguf_get_number(&n, g, key));
    *out = n != 0;
out:
    return err;
}

static enum err get_text(const char **out, const struct gguf *g, const char *key)
{
    return gguf_find(g, key) ? gguf_get_string(out, g, key) : ERR_OK;
}

static enum err get_settings(struct tok_arrays *a, int32_t *more_eos, const struct gguf *g)
{
    static const char *const ends[] = { "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id" };
    bool has_prefix;
    enum err err;

    TRY(get_id(&a->bos, g, "tokenizer.ggml.bos_token_id"));
    TRY(get_id(&a->eos, g, "tokenizer.ggml.eos_token_id"));
    TRY(get_id(&a->unk, g, "tokenizer.ggml.unknown_token_id"));
    TRY(get_id(&a->pad, g, "tokenizer.ggml.padding_token_id"));
    for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
        TRY(get_id(&more_eos[a->n_more_eos], g, ends[i]));
        a->n_more_eos += more_eos[a->n_more_eos] >= 0;
    }
    a->more_eos = more_eos;
    TRY(get_flag(&a->add_bos, g, "tokenizer.ggml.add_bos_token", strcmp(a->model, "llama") == 0));
    TRY(get_flag(&a->add_eos, g, "tokenizer.ggml.add_eos_token", false));
    TRY(get_flag(&has_prefix, g, "tokenizer.ggml.add_space_prefix", true));
    a->no_space_prefix = !has_prefix;
    TRY(get_text(&a->chat_template, g, "tokenizer.chat_template"));
    err = get_text(&a->tool_template, g, "tokenizer.chat_template.tool_use");
out:
    return err;
}

enum err gguf_tokenizer(struct tok **out, const struct gguf *g)
{
    struct tok_arrays a = { 0 };
    const char **tokens = NULL, **merges = NULL;
    const void *types, *scores;
    int32_t more_eos[2];
    enum err err;

    TRY(gguf_get_string(&a.model, g, "tokenizer.ggml.model"));
    TRY(get_text(&a.pre, g, "tokenizer.ggml.pre"));
    TRY(get_texts(&tokens, &a.n_tokens, g, "tokenizer.ggml.tokens"));
    if (!a.n_tokens)
        TRY(err_set(ERR_ARG, "tokenizer.ggml.tokens is missing"));
    TRY(get_texts(&merges, &a.n_merges, g, "tokenizer.ggml.merges"));
    TRY(get_list(&types, g, "tokenizer.ggml.token_type", DT_INT32, a.n_tokens));
    TRY(get_list(&scores, g, "tokenizer.ggml.scores", DT_FLOAT32, a.n_tokens));
    TRY(get_settings(&a, more_eos, g));
    a.tokens = tokens;
    a.merges = merges;
    a.types = types;
    a.scores = scores;
    err = tok_from_arrays(out, &a);
out:
    mem_free(tokens);
    mem_free(merges);
    return err;
}
