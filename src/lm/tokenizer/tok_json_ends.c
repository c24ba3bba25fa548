/* The sections of tokenizer.json that work on ids: post-processor and decoder. */
#include "base/mem.h"
#include "lm/tokenizer/tok_json.h"

/* ---- post-processors: what is put before and behind the ids of a text ---- */

static enum err add_id(struct ids *list, struct json v)
{
    int64_t id;
    enum err err;

    TRY(json_int(&id, v));
    if (id < 0 || id >= VOCAB_MAX_ID)
        return json_fail(v, "impossible id %lld", (long long)id);
    if (list->n == TOK_ENDS_MAX)
        return json_fail(v, "more than %d ids", TOK_ENDS_MAX);
    TRY(VEC_PUSH(list, (int32_t)id));
out:
    return err;
}

/* Later processors wrap what earlier ones made: before goes in front of the prefix. */
static enum err wrap(struct tok *t, struct json v, struct ids *before, const struct ids *behind)
{
    enum err err = ERR_OK;

    if (before->n + t->prefix.n > TOK_ENDS_MAX || behind->n + t->suffix.n > TOK_ENDS_MAX)
        return json_fail(v, "more than %d ids", TOK_ENDS_MAX);
    for (size_t i = 0; i < t->prefix.n; i++)
        TRY(VEC_PUSH(before, t->prefix.v[i]));
    for (size_t i = 0; i < behind->n; i++)
        TRY(VEC_PUSH(&t->suffix, behind->v[i]));
    VEC_FINI(&t->prefix);
    t->prefix = *before;
    *before = (struct ids){ 0 };
out:
    return err;
}

/* {"SpecialToken": {"id": "<s>"}}: the ids are in the table of the template. */
static enum err add_special(struct ids *list, struct json piece, struct json table)
{
    struct json special, ids;
    const char *name;
    enum err err;

    TRY(json_get(&special, piece, "SpecialToken", JSON_OBJECT));
    TRY(json_get_string(&name, special, "id"));
    TRY(json_get(&special, table, name, JSON_OBJECT));
    TRY(json_get(&ids, special, "ids", JSON_ARRAY));
    JSON_EACH(v, ids)
    TRY(add_id(list, v));
out:
    return err;
}

static enum err read_template(struct tok *t, struct json v)
{
    struct json single, table;
    struct ids side[2] = { { 0 }, { 0 } };
    int seen = 0, n = 0;
    enum err err;

    TRY(json_get(&single, v, "single", JSON_ARRAY));
    TRY(json_get(&table, v, "special_tokens", JSON_OBJECT));
    JSON_EACH(piece, single)
    {
        if (++n > TOK_ENDS_MAX)
            TRY(json_fail(piece, "more than %d pieces", TOK_ENDS_MAX));
        if (!json_find(piece, "Sequence").node) {
            TRY(add_special(&side[seen], piece, table));
        } else if (seen) {
            err = json_fail(piece, "more than one sequence");
            goto out;
        } else {
            seen = 1;
        }
    }
    if (!seen)
        TRY(json_fail(single, "no sequence"));
    TRY(wrap(t, v, &side[0], &side[1]));
out:
    VEC_FINI(&side[0]);
    VEC_FINI(&side[1]);
    return err;
}

/* "cls": ["<s>", 0] before the text, "sep": ["</s>", 2] behind it. */
static enum err read_cls_sep(struct tok *t, struct json v)
{
    static const char *const keys[] = { "cls", "sep" };
    struct ids side[2] = { { 0 }, { 0 } };
    struct json pair;
    enum err err;

    for (int i = 0; i < 2; i++) {
        TRY(json_get(&pair, v, keys[i], JSON_ARRAY));
        struct json id = json_next(json_first(pair));
        if (!id.node)
            TRY(json_fail(pair, "expected a token and its id"));
        TRY(add_id(&side[i], id));
    }
    TRY(wrap(t, v, &side[0], &side[1]));
out:
    VEC_FINI(&side[0]);
    VEC_FINI(&side[1]);
    return err;
}

/* Trims offsets, which nobody here asks for. */
static enum err read_offsets_only(struct tok *t, struct json v)
{
    (void)t;
    (void)v;
    return ERR_OK;
}

static enum err read_processors(struct tok *t, struct json v);

static const struct tok_reader post_processors[] = {
    { "Sequence", read_processors },    { "TemplateProcessing", read_template },
    { "ByteLevel", read_offsets_only }, { "RobertaProcessing", read_cls_sep },
    { "BertProcessing", read_cls_sep },
};

static enum err read_processors(struct tok *t, struct json v)
{
    struct json list;
    enum err err;

    TRY(json_get(&list, v, "processors", JSON_ARRAY));
    TRY(tok_read_list(t, list, post_processors, ARRAY_LEN(post_processors)));
out:
    return err;
}

enum err tok_read_post_processor(struct tok *t, struct json v)
{
    return tok_read_typed(t, v, post_processors, ARRAY_LEN(post_processors));
}

/* ---- decoders ---- */

static enum err add_step(struct tok *t, struct json v, struct detok_step step)
{
    return tok_at(v, detok_add(&t->detok, step));
}

static enum err read_byte_level(struct tok *t, struct json v)
{
    return add_step(t, v, (struct detok_step){ .kind = DETOK_BYTE_LEVEL });
}

static enum err read_byte_fallback(struct tok *t, struct json v)
{
    return add_step(t, v, (struct detok_step){ .kind = DETOK_BYTE_FALLBACK });
}

static enum err read_fuse(struct tok *t, struct json v)
{
    return add_step(t, v, (struct detok_step){ .kind = DETOK_FUSE });
}

static enum err read_replace(struct tok *t, struct json v)
{
    struct detok_step step = { .kind = DETOK_REPLACE };
    enum err err;

    TRY(tok_read_pattern(&step.rx, v));
    TRY(tok_read_text(&step.text, v, "content"));
    return add_step(t, v, step);
out:
    rx_destroy(&step.rx);
    VEC_FINI(&step.text);
    return err;
}

static enum err read_count(size_t *out, struct json v, const char *key)
{
    int64_t n;
    enum err err;

    TRY(json_get_int(&n, v, key));
    if (n < 0)
        return json_fail(json_find(v, key), "expected a count, found %lld", (long long)n);
    *out = (size_t)n;
out:
    return err;
}

static enum err read_strip(struct tok *t, struct json v)
{
    struct detok_step step = { .kind = DETOK_STRIP };
    enum err err;

    TRY(tok_read_char(&step.cp, v, "content"));
    TRY(read_count(&step.start, v, "start"));
    TRY(read_count(&step.stop, v, "stop"));
    TRY(add_step(t, v, step));
out:
    return err;
}

static enum err read_metaspace(struct tok *t, struct json v)
{
    struct detok_step step = { .kind = DETOK_METASPACE };
    enum pretok_prepend prepend;
    enum err err;

    TRY(tok_read_char(&step.cp, v, "replacement"));
    TRY(tok_read_prepend(&prepend, v));
    step.drop_first = prepend != PRETOK_PREPEND_NEVER;
    TRY(add_step(t, v, step));
out:
    return err;
}

static enum err read_decoders(struct tok *t, struct json v);

static const struct tok_reader decoders[] = {
    { "Sequence", read_decoders },
    { "ByteLevel", read_byte_level },
    { "ByteFallback", read_byte_fallback },
    { "Fuse", read_fuse },
    { "Replace", read_replace },
    { "Strip", read_strip },
    { "Metaspace", read_metaspace },
};

static enum err read_decoders(struct tok *t, struct json v)
{
    struct json list;
    enum err err;

    TRY(json_get(&list, v, "decoders", JSON_ARRAY));
    TRY(tok_read_list(t, list, decoders, ARRAY_LEN(decoders)));
out:
    return err;
}

enum err tok_read_decoder(struct tok *t, struct json v)
{
    enum err err = tok_read_typed(t, v, decoders, ARRAY_LEN(decoders));

    /* A list without decoders still puts no spaces between tokens. */
    if (err == ERR_OK && json_kind(v) > JSON_NULL && !t->detok.n)
        err = read_fuse(t, v);
    return err;
}
