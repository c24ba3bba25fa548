/* The sections of tokenizer.json that prepare text: normalizer and pre-tokenizer. */
#include "base/mem.h"
#include "lm/tokenizer/tok_json.h"

const char tok_gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* ---- normalizers ---- */

#define UNORM_READER(name, kind_)                                                                  \
    static enum err name(struct tok *t, struct json v)                                             \
    {                                                                                              \
        (void)v;                                                                                   \
        return unorm_add(&t->unorm, (struct unorm_step){ .kind = (kind_) });                       \
    }

UNORM_READER(read_nfc, UNORM_NFC)
UNORM_READER(read_nfd, UNORM_NFD)
UNORM_READER(read_nfkc, UNORM_NFKC)
UNORM_READER(read_nfkd, UNORM_NFKD)
UNORM_READER(read_lowercase, UNORM_LOWERCASE)
UNORM_READER(read_strip_accents, UNORM_STRIP_ACCENTS)
UNORM_READER(read_norm_byte_level, UNORM_BYTE_LEVEL)

static enum err read_replace(struct tok *t, struct json v)
{
    struct unorm_step step = { .kind = UNORM_REPLACE };
    enum err err;

    TRY(tok_read_pattern(&step.rx, v));
    TRY(tok_read_text(&step.text, v, "content"));
    return unorm_add(&t->unorm, step);
out:
    rx_destroy(&step.rx);
    VEC_FINI(&step.text);
    return err;
}

static enum err read_prepend(struct tok *t, struct json v)
{
    struct unorm_step step = { .kind = UNORM_PREPEND };
    enum err err = tok_read_text(&step.text, v, "prepend");

    return err == ERR_OK ? unorm_add(&t->unorm, step) : err;
}

static enum err read_strip(struct tok *t, struct json v)
{
    struct unorm_step step = { .kind = UNORM_STRIP };
    enum err err;

    TRY(json_get_bool(&step.left, v, "strip_left"));
    TRY(json_get_bool(&step.right, v, "strip_right"));
    TRY(unorm_add(&t->unorm, step));
out:
    return err;
}

static enum err read_normalizers(struct tok *t, struct json v);

static const struct tok_reader normalizers[] = {
    { "Sequence", read_normalizers },
    { "NFC", read_nfc },
    { "NFD", read_nfd },
    { "NFKC", read_nfkc },
    { "NFKD", read_nfkd },
    { "Lowercase", read_lowercase },
    { "Replace", read_replace },
    { "Prepend", read_prepend },
    { "Strip", read_strip },
    { "StripAccents", read_strip_accents },
    { "ByteLevel", read_norm_byte_level },
};

static enum err read_normalizers(struct tok *t, struct json v)
{
    struct json list;
    enum err err;

    TRY(json_get(&list, v, "normalizers", JSON_ARRAY));
    TRY(tok_read_list(t, list, normalizers, ARRAY_LEN(normalizers)));
out:
    return err;
}

enum err tok_read_normalizer(struct tok *t, struct json v)
{
    return tok_read_typed(t, v, normalizers, ARRAY_LEN(normalizers));
}

/* ---- pre-tokenizers ---- */

static enum err add_split(struct tok *t, struct json v, const char *pattern,
                          enum pretok_behavior behavior)
{
    return tok_at(v, pretok_add_split(&t->pretok, pattern, strlen(pattern), 0, behavior));
}

static enum err read_behavior(enum pretok_behavior *out, struct json v)
{
    static const struct {
        const char *name;
        enum pretok_behavior behavior;
    } rows[] = {
        { "Removed", PRETOK_REMOVED },
        { "Isolated", PRETOK_ISOLATED },
        { "Contiguous", PRETOK_CONTIGUOUS },
        { "MergedWithPrevious", PRETOK_MERGED_WITH_PREVIOUS },
        { "MergedWithNext", PRETOK_MERGED_WITH_NEXT },
    };
    const char *name = "Isolated";
    enum err err;

    TRY(json_opt_string(&name, v, "behavior"));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(name, rows[i].name) == 0) {
            *out = rows[i].behavior;
            return ERR_OK;
        }
    err = json_fail(json_find(v, "behavior"), "unknown behavior \"%.60s\"", name);
out:
    return err;
}

static enum err read_split(struct tok *t, struct json v)
{
    struct pretok_step step = { .kind = PRETOK_SPLIT };
    enum err err;

    TRY(json_opt_bool(&step.invert, v, "invert"));
    TRY(read_behavior(&step.behavior, v));
    TRY(tok_read_pattern(&step.rx, v));
    return pretok_add(&t->pretok, step);
out:
    rx_destroy(&step.rx);
    return err;
}

static enum err read_byte_level(struct tok *t, struct json v)
{
    bool prefix = true, regex = true;
    enum err err;

    TRY(json_opt_bool(&prefix, v, "add_prefix_space"));
    TRY(json_opt_bool(&regex, v, "use_regex"));
    if (prefix)
        TRY(pretok_add(&t->pretok, (struct pretok_step){ .kind = PRETOK_PREFIX_SPACE }));
    if (regex)
        TRY(add_split(t, v, tok_gpt2_pattern, PRETOK_ISOLATED));
    TRY(pretok_add(&t->pretok, (struct pretok_step){ .kind = PRETOK_BYTE_LEVEL }));
out:
    return err;
}

static enum err read_digits(struct tok *t, struct json v)
{
    bool each = false;
    enum err err;

    TRY(json_opt_bool(&each, v, "individual_digits"));
    TRY(add_split(t, v, "\\p{N}", each ? PRETOK_ISOLATED : PRETOK_CONTIGUOUS));
out:
    return err;
}

static enum err read_whitespace(struct tok *t, struct json v)
{
    /* Words as Rust's regular expressions know them, which these tokenizers are made with. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}"
    struct pretok_step step = { .kind = PRETOK_SPLIT, .behavior = PRETOK_REMOVED, .invert = true };
    const char *pattern = "[" WORD "]+|[^" WORD "\\s]+";
#undef WORD
    enum err err = tok_at(v, rx_create(&step.rx, pattern, strlen(pattern), 0));

    return err == ERR_OK ? pretok_add(&t->pretok, step) : err;
}

static enum err read_whitespace_split(struct tok *t, struct json v)
{
    return add_split(t, v, "\\s", PRETOK_REMOVED);
}

static enum err read_punctuation(struct tok *t, struct json v)
{
    enum pretok_behavior behavior;
    enum err err;

    TRY(read_behavior(&behavior, v));
    TRY(add_split(t, v, "[!-/:-@\\[-`{-~\\p{P}]", behavior));
out:
    return err;
}

static enum err read_metaspace(struct tok *t, struct json v)
{
    struct pretok_step step = { .kind = PRETOK_METASPACE };
    char rep[4];
    uint32_t cp;
    bool split = true;
    enum err err;

    TRY(tok_read_char(&cp, v, "replacement"));
    TRY(json_opt_bool(&split, v, "split"));
    TRY(tok_read_prepend(&step.prepend, v));
    TRY(str_add_char(&step.text, cp));
    TRY(pretok_add(&t->pretok, step));
    if (split)
        TRY(tok_at(v, pretok_add_split(&t->pretok, rep, u8_put(rep, cp), RX_LITERAL,
                                       PRETOK_MERGED_WITH_NEXT)));
out:
    return err;
}

static enum err read_delimiter(struct tok *t, struct json v)
{
    char text[4];
    uint32_t cp;
    enum err err;

    TRY(tok_read_char(&cp, v, "delimiter"));
    TRY(tok_at(v,
               pretok_add_split(&t->pretok, text, u8_put(text, cp), RX_LITERAL, PRETOK_REMOVED)));
out:
    return err;
}

static enum err read_pre_tokenizers(struct tok *t, struct json v);

static const struct tok_reader pre_tokenizers[] = {
    { "Sequence", read_pre_tokenizers },      { "Split", read_split },
    { "ByteLevel", read_byte_level },         { "Digits", read_digits },
    { "Whitespace", read_whitespace },        { "WhitespaceSplit", read_whitespace_split },
    { "Punctuation", read_punctuation },      { "Metaspace", read_metaspace },
    { "CharDelimiterSplit", read_delimiter },
};

static enum err read_pre_tokenizers(struct tok *t, struct json v)
{
    struct json list;
    enum err err;

    TRY(json_get(&list, v, "pretokenizers", JSON_ARRAY));
    TRY(tok_read_list(t, list, pre_tokenizers, ARRAY_LEN(pre_tokenizers)));
out:
    return err;
}

enum err tok_read_pre_tokenizer(struct tok *t, struct json v)
{
    return tok_read_typed(t, v, pre_tokenizers, ARRAY_LEN(pre_tokenizers));
}
