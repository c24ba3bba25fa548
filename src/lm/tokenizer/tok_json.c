#include "lm/tokenizer/tok_json.h"

#include "base/mem.h"

/* ---- shared ---- */

enum err tok_at(struct json v, enum err err)
{
    if (err != ERR_OK && err != ERR_NO_MEMORY)
        (void)json_fail(v, "%s", err_text());
    return err;
}

enum err tok_read_typed(struct tok *t, struct json v, const struct tok_reader *readers, size_t n)
{
    const char *type;
    enum err err = ERR_OK;

    if (json_kind(v) <= JSON_NULL)
        return ERR_OK;
    if (++t->n_parts > TOK_PARTS_MAX)
        return json_fail(v, "more than %d parts", TOK_PARTS_MAX);
    TRY(json_get_string(&type, v, "type"));
    for (size_t i = 0; i < n; i++)
        if (strcmp(type, readers[i].type) == 0)
            return readers[i].read(t, v);
    (void)json_fail(v, "type \"%.60s\" is not supported", type);
    err = ERR_UNSUPPORTED;
out:
    return err;
}

enum err tok_read_list(struct tok *t, struct json list, const struct tok_reader *readers, size_t n)
{
    enum err err = ERR_OK;

    JSON_EACH(v, list)
    TRY(tok_read_typed(t, v, readers, n));
out:
    return err;
}

enum err tok_read_pattern(struct rx **out, struct json v)
{
    struct json pattern, literal;
    const char *s;
    enum err err;

    TRY(json_get(&pattern, v, "pattern", JSON_OBJECT));
    literal = json_find(pattern, "String");
    TRY(json_get_string(&s, pattern, literal.node ? "String" : "Regex"));
    TRY(tok_at(pattern, rx_create(out, s, strlen(s), literal.node ? RX_LITERAL : 0)));
out:
    return err;
}

enum err tok_read_char(uint32_t *out, struct json v, const char *key)
{
    const char *s;
    enum err err;

    TRY(json_get_string(&s, v, key));
    struct u8_step c = u8_step(s, strlen(s));
    if (!s[0] || s[c.len])
        return json_fail(json_find(v, key), "expected one character");
    *out = c.cp;
out:
    return err;
}

enum err tok_read_text(struct str *out, struct json v, const char *key)
{
    const char *s;
    enum err err;

    TRY(json_get_string(&s, v, key));
    if (strlen(s) > TOK_TEXT_MAX)
        return json_fail(json_find(v, key), "a text of more than %zu bytes", TOK_TEXT_MAX);
    TRY(str_add_text(out, s));
out:
    return err;
}

enum err tok_read_prepend(enum pretok_prepend *out, struct json v)
{
    static const char *const names[] = { "never", "first", "always" };
    const char *scheme = NULL;
    bool prefix = true;
    enum err err;

    TRY(json_opt_string(&scheme, v, "prepend_scheme"));
    TRY(json_opt_bool(&prefix, v, "add_prefix_space"));
    *out = prefix ? PRETOK_PREPEND_ALWAYS : PRETOK_PREPEND_NEVER;
    for (size_t i = 0; scheme && i < ARRAY_LEN(names); i++)
        if (strcmp(scheme, names[i]) == 0) {
            *out = (enum pretok_prepend)i;
            return ERR_OK;
        }
    if (scheme)
        err = json_fail(json_find(v, "prepend_scheme"), "unknown scheme \"%.60s\"", scheme);
out:
    return err;
}

/* ---- the model ---- */

static enum err read_vocab(struct tok *t, struct json model)
{
    struct json vocab;
    int64_t id;
    enum err err;

    TRY(json_get(&vocab, model, "vocab", JSON_OBJECT));
    JSON_EACH(v, vocab)
    {
        const char *s = json_key(v);
        TRY(json_int(&id, v));
        TRY(tok_at(vocab, vocab_add(&t->bpe.vocab, s, strlen(s), id)));
    }
out:
    return err;
}

/* "left right" or ["left", "right"] */
static enum err read_merge(struct tok *t, struct json v)
{
    const char *left, *right;
    size_t n;
    enum err err;

    if (json_kind(v) == JSON_ARRAY) {
        struct json second = json_next(json_first(v));
        if (!second.node || json_next(second).node)
            return json_fail(v, "expected two tokens");
        TRY(json_string(&left, json_first(v)));
        TRY(json_string(&right, second));
        n = strlen(left);
    } else {
        TRY(json_string(&left, v));
        if (strncmp(left, "#version", 8) == 0)
            return ERR_OK;
        right = strchr(left, ' ');
        if (!right || strchr(++right, ' '))
            return json_fail(v, "expected two tokens and a space between them");
        n = (size_t)(right - left) - 1;
    }
    TRY(tok_at(v, bpe_add_merge(&t->bpe, left, n, right, strlen(right))));
out:
    return err;
}

/* Options that change the ids and that no model of the known families uses. */
static enum err refuse_others(struct json model)
{
    static const char *const affixes[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    double dropout = 0;
    enum err err;

    TRY(json_opt_number(&dropout, model, "dropout"));
    if (dropout > 0) {
        (void)json_fail(json_find(model, "dropout"), "dropout is not supported");
        return ERR_UNSUPPORTED;
    }
    for (size_t i = 0; i < ARRAY_LEN(affixes); i++) {
        const char *s = "";
        TRY(json_opt_string(&s, model, affixes[i]));
        if (s[0]) {
            (void)json_fail(json_find(model, affixes[i]),
                            "prefixes and suffixes are not supported");
            return ERR_UNSUPPORTED;
        }
    }
out:
    return err;
}

static enum err read_model(struct tok *t, struct json root)
{
    const char *type = "BPE", *unk = NULL;
    struct json model, merges;
    enum err err;

    TRY(json_get(&model, root, "model", JSON_OBJECT));
    TRY(json_opt_string(&type, model, "type"));
    if (strcmp(type, "BPE") != 0) {
        (void)json_fail(model, "type \"%.60s\" is not supported, only BPE is", type);
        return ERR_UNSUPPORTED;
    }
    TRY(refuse_others(model));
    TRY(read_vocab(t, model));
    TRY(json_opt_string(&unk, model, "unk_token"));
    if (unk) {
        t->bpe.unk = vocab_find(&t->bpe.vocab, unk, strlen(unk));
        t->info.unk = t->bpe.unk;
        if (t->bpe.unk < 0)
            t->bpe.unk = BPE_LOST_TOKEN;
    }
    TRY(json_opt_bool(&t->bpe.fuse_unk, model, "fuse_unk"));
    TRY(json_opt_bool(&t->bpe.byte_fallback, model, "byte_fallback"));
    TRY(json_opt_bool(&t->bpe.ignore_merges, model, "ignore_merges"));
    TRY(json_get(&merges, model, "merges", JSON_ARRAY));
    JSON_EACH(v, merges)
    TRY(read_merge(t, v));
out:
    return err;
}

/* ---- added tokens ---- */

static enum err read_added(struct tok *t, struct json v)
{
    struct added_token token = { .normalized = true };
    const char *content;
    int64_t id;
    enum err err;

    TRY(json_get_string(&content, v, "content"));
    TRY(json_get_int(&id, v, "id"));
    TRY(json_opt_bool(&token.single_word, v, "single_word"));
    TRY(json_opt_bool(&token.lstrip, v, "lstrip"));
    TRY(json_opt_bool(&token.rstrip, v, "rstrip"));
    TRY(json_opt_bool(&token.normalized, v, "normalized"));
    TRY(json_opt_bool(&token.special, v, "special"));
    if (id < 0 || id >= VOCAB_MAX_ID)
        return json_fail(v, "impossible id %lld", (long long)id);
    token.id = vocab_find(&t->bpe.vocab, content, strlen(content));
    if (token.id < 0)
        token.id = (int32_t)id;
    TRY(str_add_text(&token.content, content));
    return tok_at(v, added_add(&t->added, token));
out:
    return err;
}

enum err tok_read(struct tok *t, struct json root)
{
    enum err err;

    TRY(read_model(t, root));
    JSON_EACH(v, json_find(root, "added_tokens"))
    TRY(read_added(t, v));
    TRY(tok_read_normalizer(t, json_find(root, "normalizer")));
    TRY(tok_read_pre_tokenizer(t, json_find(root, "pre_tokenizer")));
    TRY(tok_read_post_processor(t, json_find(root, "post_processor")));
    TRY(tok_read_decoder(t, json_find(root, "decoder")));
out:
    return err;
}
