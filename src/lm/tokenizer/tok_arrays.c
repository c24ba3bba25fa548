/* Tokenizers from the arrays of a GGUF file. */
#include <stdio.h>

#include "base/mem.h"
#include "lm/tokenizer/tok_json.h"

#define SPACE "\xe2\x96\x81" /* U+2581, how "llama" writes a space */

/* Kinds of tokens, as the file numbers them. */
enum { TYPE_UNKNOWN = 2, TYPE_CONTROL = 3, TYPE_USER_DEFINED = 4 };

enum form { FORM_NONE, FORM_NFC };

struct pre {
    const char *name, *pattern;
    enum form form;
    bool digits, ignore_merges;
};

static const struct pre pres[] = {
#define PRE(name, form, digits, pattern, ignore) { name, pattern, FORM_##form, digits, ignore },
#include "lm/tokenizer/pretok.def"
#undef PRE
};

static enum err add_tokens(struct tok *t, const struct tok_arrays *a)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < a->n_tokens; i++) {
        int32_t type = a->types ? a->types[i] : 1;
        size_t n = strlen(a->tokens[i]);
        if (!u8_valid(a->tokens[i], n)) /* all text inside of a tokenizer is */
            return err_set(ERR_ARG, "tokenizer.ggml.tokens[%zu] is not UTF-8", i);
        TRY(vocab_add(&t->bpe.vocab, a->tokens[i], n, (int64_t)i));
        if (type != TYPE_CONTROL && type != TYPE_USER_DEFINED)
            continue;
        struct added_token token = { .id = (int32_t)i, .special = type == TYPE_CONTROL };
        TRY(str_add(&token.content, a->tokens[i], n));
        TRY(added_add(&t->added, token));
    }
out:
    return err;
}

static enum err add_merges(struct tok *t, const struct tok_arrays *a)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < a->n_merges; i++) {
        const char *s = a->merges[i];
        /* A token may begin with a space. */
        const char *space = s[0] ? strchr(s + 1, ' ') : NULL;
        if (!space)
            return err_set(ERR_ARG, "tokenizer.ggml.merges[%zu]: \"%.60s\" is no pair", i, s);
        TRY(bpe_add_merge(&t->bpe, s, (size_t)(space - s), space + 1, strlen(space + 1)));
    }
out:
    return err;
}

/* ---- the two models ---- */

static enum err find_pre(const struct pre **out, const char *name)
{
    char known[256] = "";
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_LEN(pres); i++) {
        if (strcmp(name, pres[i].name) == 0) {
            *out = &pres[i];
            return ERR_OK;
        }
        n += (size_t)snprintf(known + n, sizeof known - n, " %s", pres[i].name);
        n = MIN(n, sizeof known - 1);
    }
    return err_set(ERR_UNSUPPORTED, "tokenizer.ggml.pre: \"%.60s\" is not supported; known:%s",
                   name, known);
}

static enum err make_gpt2(struct tok *t, const struct tok_arrays *a)
{
    struct pretok *p = &t->pretok;
    const struct pre *pre = NULL;
    enum err err;

    TRY(find_pre(&pre, a->pre ? a->pre : "default"));
    if (!a->n_merges)
        return err_set(ERR_ARG, "tokenizer.ggml.merges is missing");
    t->bpe.ignore_merges = pre->ignore_merges;
    if (pre->form == FORM_NFC)
        TRY(unorm_add(&t->unorm, (struct unorm_step){ .kind = UNORM_NFC }));
    if (pre->digits)
        TRY(pretok_add_split(p, "\\p{N}", 5, 0, PRETOK_ISOLATED));
    TRY(pretok_add_split(p, pre->pattern, strlen(pre->pattern), 0, PRETOK_ISOLATED));
    TRY(pretok_add(p, (struct pretok_step){ .kind = PRETOK_BYTE_LEVEL }));
    TRY(detok_add(&t->detok, (struct detok_step){ .kind = DETOK_BYTE_LEVEL }));
    TRY(add_merges(t, a));
out:
    return err;
}

static enum err add_spaces(struct tok *t, bool prefix)
{
    struct unorm_step before = { .kind = UNORM_PREPEND }, all = { .kind = UNORM_REPLACE };
    enum err err;

    if (prefix) {
        TRY(str_add(&before.text, SPACE, 3));
        TRY(unorm_add(&t->unorm, before));
    }
    TRY(rx_create(&all.rx, " ", 1, RX_LITERAL));
    err = str_add(&all.text, SPACE, 3);
    if (err == ERR_OK)
        return unorm_add(&t->unorm, all);
    rx_destroy(&all.rx);
out:
    return err;
}

static enum err make_llama(struct tok *t, const struct tok_arrays *a)
{
    struct detok_step spaces = { .kind = DETOK_METASPACE, .cp = 0x2581 };
    enum err err;

    if (!a->n_merges && !a->scores)
        return err_set(ERR_ARG, "tokenizer.ggml.scores is missing");
    t->bpe.byte_fallback = t->bpe.fuse_unk = true;
    TRY(add_spaces(t, !a->no_space_prefix));
    TRY(detok_add(&t->detok, spaces));
    TRY(detok_add(&t->detok, (struct detok_step){ .kind = DETOK_BYTE_FALLBACK }));
    TRY(detok_add(&t->detok, (struct detok_step){ .kind = DETOK_FUSE }));
    if (!a->no_space_prefix)
        TRY(detok_add(&t->detok,
                      (struct detok_step){ .kind = DETOK_STRIP, .cp = ' ', .start = 1 }));
    TRY(a->n_merges ? add_merges(t, a) : tok_make_merges(t, a));
out:
    return err;
}

static int32_t checked_id(const struct tok_arrays *a, int32_t id)
{
    return id >= 0 && (size_t)id < a->n_tokens ? id : -1;
}

static enum err set_info(struct tok *t, const struct tok_arrays *a)
{
    struct tok_info *info = &t->info;
    enum err err = ERR_OK;

    info->bos = checked_id(a, a->bos);
    info->eos = checked_id(a, a->eos);
    info->pad = checked_id(a, a->pad);
    info->unk = checked_id(a, a->unk);
    if (info->eos >= 0)
        TRY(VEC_PUSH(&info->eos_ids, info->eos));
    for (size_t i = 0; i < a->n_more_eos; i++)
        if (checked_id(a, a->more_eos[i]) >= 0 && a->more_eos[i] != info->eos)
            TRY(VEC_PUSH(&info->eos_ids, a->more_eos[i]));
    if (a->add_bos && info->bos >= 0)
        TRY(VEC_PUSH(&t->prefix, info->bos));
    if (a->add_eos && info->eos >= 0)
        TRY(VEC_PUSH(&t->suffix, info->eos));
    if (a->chat_template && !(t->chat_template = mem_strdup(a->chat_template)))
        return ERR_NO_MEMORY;
    if (a->tool_template && !(t->tool_template = mem_strdup(a->tool_template)))
        return ERR_NO_MEMORY;
    info->chat_template = t->chat_template;
    info->tool_template = t->tool_template;
out:
    return err;
}

enum err tok_from_arrays(struct tok **out, const struct tok_arrays *a)
{
    struct tok *t = NULL;
    enum err err;

    TRY(tok_new(&t));
    TRY(add_tokens(t, a));
    TRY(set_info(t, a));
    if (a->model && strcmp(a->model, "gpt2") == 0)
        TRY(make_gpt2(t, a));
    else if (a->model && strcmp(a->model, "llama") == 0)
        TRY(make_llama(t, a));
    else
        TRY(err_set(ERR_UNSUPPORTED,
                    "tokenizer.ggml.model: \"%.60s\" is not supported; known: gpt2 llama",
                    a->model ? a->model : ""));
    if (t->info.unk >= 0)
        t->bpe.unk = t->info.unk;
    TRY(tok_ready(t));
    *out = t;
    t = NULL;
out:
    tok_destroy(&t);
    return err;
}
