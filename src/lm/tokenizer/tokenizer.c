#include "lm/tokenizer/tokenizer.h"

#include "base/mem.h"
#include "lm/tokenizer/tok.h"

/* Normalizers and pre-tokenizers that multiply a text, one after the other, would fill any memory.
 * The worst of Unicode's normal forms makes 11 bytes of one, and the alphabet of bytes 2. */
#define MAX_GROWTH 64
#define GROWTH_FREE 1024

/* ---- life ---- */

enum err tok_new(struct tok **out)
{
    struct tok *t = mem_alloc(sizeof *t);

    if (!t)
        return ERR_NO_MEMORY;
    t->bpe.unk = BPE_NO_TOKEN;
    t->info.bos = t->info.eos = t->info.pad = t->info.unk = -1;
    *out = t;
    return ERR_OK;
}

void tok_destroy(struct tok **pt)
{
    struct tok *t = *pt;

    *pt = NULL;
    if (!t)
        return;
    for (size_t i = 0; i < t->forms.n; i++)
        VEC_FINI(&t->forms.v[i]);
    VEC_FINI(&t->forms);
    added_fini(&t->added);
    unorm_fini(&t->unorm);
    pretok_fini(&t->pretok);
    bpe_fini(&t->bpe);
    detok_fini(&t->detok);
    VEC_FINI(&t->prefix);
    VEC_FINI(&t->suffix);
    VEC_FINI(&t->info.eos_ids);
    VEC_FINI(&t->raw);
    VEC_FINI(&t->normal);
    pieces_fini(&t->pieces);
    pieces_fini(&t->spare);
    mem_free(t->chat_template);
    mem_free(t->tool_template);
    mem_free(t->model_type);
    mem_free(t);
}

static enum err make_forms(struct tok *t)
{
    size_t room = ADDED_BYTES_MAX;
    bool cut = false;
    enum err err = ERR_OK;

    for (size_t i = 0; i < t->forms.n; i++)
        VEC_FINI(&t->forms.v[i]);
    t->forms.n = 0;
    for (size_t i = 0; i < t->added.n; i++) {
        const struct added_token *token = &t->added.v[i];
        TRY(VEC_PUSH(&t->forms, (struct str){ 0 }));
        TRY(str_add(&t->forms.v[i], token->content.v, token->content.n));
        if (token->normalized)
            TRY(unorm_apply(&t->unorm, &t->forms.v[i], room, &cut));
        room -= MIN(room, t->forms.v[i].n);
    }
out:
    return err;
}

enum err tok_ready(struct tok *t)
{
    enum err err;

    /* The last step works on single words, so the cache of words can come before it. */
    if (t->pretok.n && t->pretok.v[t->pretok.n - 1].kind == PRETOK_BYTE_LEVEL) {
        t->pretok.n--;
        t->bpe.byte_level = true;
    }
    if (!t->detok.n)
        TRY(detok_add(&t->detok, (struct detok_step){ .kind = DETOK_JOIN }));
    TRY(make_forms(t));
    TRY(added_build(&t->added, t->forms.v));
    TRY(bpe_ready(&t->bpe));
out:
    return err;
}

enum err tok_add_special(struct tok *t, const char *content)
{
    struct added_token token = { .special = true, .id = tok_id(t, content) };
    enum err err;

    if (token.id < 0 || vocab_find(&t->added.names, content, strlen(content)) >= 0)
        return ERR_OK;
    TRY(str_add_text(&token.content, content));
    return added_add(&t->added, token);
out:
    return err;
}

/* ---- encoding ---- */

/* The pieces of t->raw between added tokens, normalized one by one, in t->pieces. */
static enum err normalize(struct tok *t, size_t room)
{
    struct piece whole = { .len = t->raw.n, .id = -1, .first = true };
    enum err err;

    pieces_clear(&t->spare);
    TRY(added_split(&t->added, &t->added.raw, whole, t->raw.v, &t->spare));
    for (size_t i = 0; i < t->spare.n; i++) {
        struct piece p = t->spare.v[i];
        bool cut = false;
        if (p.id >= 0) {
            TRY(VEC_PUSH(&t->pieces, p));
            continue;
        }
        t->normal.n = 0;
        TRY(str_add(&t->normal, t->raw.v + p.off, p.len));
        TRY(unorm_apply(&t->unorm, &t->normal, room - MIN(room, t->pieces.text.n), &cut));
        p = (struct piece){ t->pieces.text.n, t->normal.n, -1, p.first && !cut };
        TRY(str_add(&t->pieces.text, t->normal.v, t->normal.n));
        TRY(added_split(&t->added, &t->added.normalized, p, t->pieces.text.v, &t->pieces));
    }
out:
    return err;
}

static enum err add_ids(struct ids *out, const struct ids *more)
{
    enum err err = VEC_RESERVE(out, more->n);

    for (size_t i = 0; err == ERR_OK && i < more->n; i++)
        out->v[out->n++] = more->v[i];
    return err;
}

enum err tok_encode(struct tok *t, const char *text, size_t n, bool add_special, struct ids *out)
{
    size_t was = out->n, room = SIZE_MAX;
    enum err err;

    t->raw.n = 0;
    pieces_clear(&t->pieces);
    TRY(str_add_lossy(&t->raw, text, n));
    if (t->raw.n < SIZE_MAX / MAX_GROWTH - GROWTH_FREE)
        room = (t->raw.n + GROWTH_FREE) * MAX_GROWTH;
    if (t->raw.n)
        TRY(normalize(t, room));
    TRY(pretok_apply(&t->pretok, &t->pieces, room));
    if (add_special)
        TRY(add_ids(out, &t->prefix));
    for (size_t i = 0; i < t->pieces.n; i++) {
        const struct piece *p = &t->pieces.v[i];
        if (p->id >= 0)
            TRY(VEC_PUSH(out, p->id));
        else
            TRY(bpe_encode(&t->bpe, t->pieces.text.v + p->off, p->len, out));
    }
    if (add_special)
        TRY(add_ids(out, &t->suffix));
    return ERR_OK;
out:
    out->n = was;
    return err;
}

/* ---- decoding ---- */

struct tok_stream {
    struct tok *t;
    struct detok_state state;
    bool skip_special;
};

static enum err add_token(struct tok_stream *s, int32_t id, struct str *out)
{
    const struct added_token *added = added_find(&s->t->added, id);
    const char *token;
    size_t n;

    if (added && added->special && s->skip_special)
        return ERR_OK;
    if (added) {
        const struct str *form = &s->t->forms.v[added - s->t->added.v];
        token = form->v;
        n = form->n;
    } else {
        token = vocab_string(&s->t->bpe.vocab, id, &n);
    }
    return token ? detok_push(&s->t->detok, &s->state, token, n, out) : ERR_OK;
}

enum err tok_decode(struct tok *t, const struct ids *ids, bool skip_special, struct str *out)
{
    struct tok_stream s = { .t = t, .skip_special = skip_special };
    size_t was = out->n;
    enum err err = ERR_OK;

    for (size_t i = 0; i < ids->n; i++)
        TRY(add_token(&s, ids->v[i], out));
    TRY(detok_end(&t->detok, &s.state, out));
    return ERR_OK;
out:
    detok_state_fini(&s.state);
    out->n = was;
    return err;
}

enum err tok_stream_create(struct tok_stream **out, struct tok *t, bool skip_special)
{
    struct tok_stream *s = mem_alloc(sizeof *s);

    if (!s)
        return ERR_NO_MEMORY;
    s->t = t;
    s->skip_special = skip_special;
    *out = s;
    return ERR_OK;
}

void tok_stream_destroy(struct tok_stream **ps)
{
    if (*ps)
        detok_state_fini(&(*ps)->state);
    mem_free(*ps);
    *ps = NULL;
}

enum err tok_stream_add(struct tok_stream *s, int32_t id, struct str *out)
{
    return add_token(s, id, out);
}

enum err tok_stream_end(struct tok_stream *s, struct str *out)
{
    return detok_end(&s->t->detok, &s->state, out);
}

/* ---- what is known ---- */

size_t tok_size(const struct tok *t)
{
    return MAX(vocab_size(&t->bpe.vocab), t->added.by_id.n);
}

int32_t tok_id(const struct tok *t, const char *token)
{
    int32_t added = vocab_find(&t->added.names, token, strlen(token));

    return added >= 0 ? t->added.v[added].id : vocab_find(&t->bpe.vocab, token, strlen(token));
}

const char *tok_token(const struct tok *t, int32_t id)
{
    const struct added_token *added = added_find(&t->added, id);
    size_t n;

    /* vocab_string ends strings with a terminator, and names has those of added tokens. */
    if (added)
        return vocab_string(&t->added.names, (int32_t)(added - t->added.v), &n);
    return vocab_string(&t->bpe.vocab, id, &n);
}

bool tok_is_special(const struct tok *t, int32_t id)
{
    const struct added_token *added = added_find(&t->added, id);

    return added && added->special;
}

const struct tok_info *tok_info(const struct tok *t)
{
    return &t->info;
}

enum err tok_from_json(struct tok **out, const char *text, size_t n, const char *name)
{
    struct json_doc *doc = NULL;
    struct tok *t = NULL;
    enum err err;

    TRY(json_parse(&doc, text, n, name));
    TRY(tok_new(&t));
    TRY(tok_read(t, json_root(doc)));
    TRY(tok_ready(t));
    *out = t;
    t = NULL;
out:
    json_destroy(&doc);
    tok_destroy(&t);
    return err;
}
