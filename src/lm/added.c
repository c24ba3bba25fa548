#include "lm/added.h"

#include "core/mem.h"

/* What the regular expressions of added tokens call a character of a word. */
#define WORD_CHAR "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]"

void added_fini(struct added *a)
{
    for (size_t i = 0; i < a->n; i++)
        VEC_FINI(&a->v[i].content);
    VEC_FINI(a);
    vocab_fini(&a->names);
    VEC_FINI(&a->by_id);
    VEC_FINI(&a->raw);
    VEC_FINI(&a->normalized);
    rx_destroy(&a->word);
}

enum err added_add(struct added *a, struct added_token token)
{
    int32_t known = vocab_find(&a->names, token.content.v, token.content.n);
    enum err err = ERR_OK;

    if (!token.content.n)
        goto out;
    if (token.single_word && !a->word)
        TRY(rx_create(&a->word, WORD_CHAR, strlen(WORD_CHAR), 0));
    if (known >= 0) {
        VEC_FINI(&a->v[known].content);
        a->v[known] = token;
        return ERR_OK;
    }
    TRY(VEC_RESERVE(a, 1));
    TRY(vocab_add(&a->names, token.content.v, token.content.n, (int64_t)a->n));
    a->v[a->n++] = token;
    return ERR_OK;
out:
    VEC_FINI(&token.content);
    return err;
}

const struct added_token *added_find(const struct added *a, int32_t id)
{
    if (id < 0 || (size_t)id >= a->by_id.n || a->by_id.v[id] < 0)
        return NULL;
    return &a->v[a->by_id.v[id]];
}

/* ---- the tree ---- */

static enum err new_node(struct added_trie *t, unsigned char byte, int32_t sibling)
{
    struct added_node node = { .child = -1, .sibling = sibling, .token = -1, .byte = byte };

    return VEC_PUSH(t, node);
}

static int32_t child_of(const struct added_trie *t, int32_t node, unsigned char byte)
{
    int32_t at = t->v[node].child;

    while (at >= 0 && t->v[at].byte != byte)
        at = t->v[at].sibling;
    return at;
}

static enum err trie_add(struct added_trie *t, const struct str *s, int32_t token)
{
    int32_t at = 0;
    enum err err = ERR_OK;

    for (size_t i = 0; i < s->n; i++) {
        unsigned char byte = (unsigned char)s->v[i];
        int32_t next = child_of(t, at, byte);
        if (next < 0) {
            next = (int32_t)t->n;
            TRY(new_node(t, byte, t->v[at].child));
            t->v[at].child = next;
        }
        at = next;
    }
    if (at > 0)
        t->v[at].token = token;
out:
    return err;
}

static enum err trie_begin(struct added_trie *t)
{
    t->n = 0;
    return new_node(t, 0, -1);
}

static void trie_end(struct added_trie *t)
{
    for (int byte = 0; byte < 256; byte++)
        t->first[byte] = child_of(t, 0, (unsigned char)byte);
}

static enum err index_ids(struct added *a)
{
    enum err err = ERR_OK;

    a->by_id.n = 0;
    for (size_t i = 0; i < a->n; i++) {
        while (a->by_id.n <= (size_t)a->v[i].id)
            TRY(VEC_PUSH(&a->by_id, -1));
        a->by_id.v[a->v[i].id] = (int32_t)i;
    }
out:
    return err;
}

enum err added_build(struct added *a, const struct str *forms)
{
    enum err err;

    TRY(index_ids(a));
    TRY(trie_begin(&a->raw));
    TRY(trie_begin(&a->normalized));
    for (size_t i = 0; i < a->n; i++) {
        const struct added_token *token = &a->v[i];
        if (token->normalized)
            TRY(trie_add(&a->normalized, &forms[i], (int32_t)i));
        else
            TRY(trie_add(&a->raw, &token->content, (int32_t)i));
    }
    trie_end(&a->raw);
    trie_end(&a->normalized);
out:
    return err;
}

/* The longest token that s begins with: its index and length, or -1. */
static int32_t longest(const struct added_trie *t, const char *s, size_t n, size_t *len)
{
    int32_t at = t->first[(unsigned char)s[0]], best = -1;

    for (size_t i = 1; at >= 0; i++) {
        if (t->v[at].token >= 0) {
            best = t->v[at].token;
            *len = i;
        }
        if (i == n)
            break;
        at = child_of(t, at, (unsigned char)s[i]);
    }
    return best;
}

/* ---- matching ---- */

static size_t space_before(const char *s, size_t at)
{
    while (at > 0) {
        size_t last = u8_last(s, at);
        if (!u8_is_space(u8_step(s + last, at - last).cp))
            break;
        at = last;
    }
    return at;
}

static size_t space_behind(const char *s, size_t n, size_t at)
{
    while (at < n) {
        struct u8_step step = u8_step(s + at, n - at);
        if (!u8_is_space(step.cp))
            break;
        at += step.len;
    }
    return at;
}

struct split {
    struct piece whole;
    const char *s;
    size_t done; /* what is before has been cut */
    struct pieces *out;
};

static enum err put(struct split *x, size_t start, size_t end, int32_t id)
{
    struct piece p = { x->whole.off + start, end - start, id, x->whole.first && start == 0 };

    return end > start ? VEC_PUSH(x->out, p) : ERR_OK;
}

static enum err is_word_char(const struct added *a, const char *s, size_t n, bool *yes)
{
    struct rx_iter it;

    rx_iter_init(&it, a->word, s, n);
    return rx_next(&it, yes);
}

/* Whether there is a character of a word right before `start` or at `end`. */
static enum err touches_word(const struct added *a, const struct split *x, size_t start, size_t end,
                             bool *yes)
{
    enum err err = ERR_OK;

    *yes = false;
    if (start > 0) {
        size_t last = u8_last(x->s, start);
        TRY(is_word_char(a, x->s + last, start - last, yes));
    }
    if (!*yes && end < x->whole.len)
        TRY(is_word_char(a, x->s + end, u8_length(x->s[end]), yes));
out:
    return err;
}

static enum err put_token(const struct added *a, struct split *x, const struct added_token *token,
                          size_t start, size_t end)
{
    bool in_word = false;
    enum err err = ERR_OK;

    if (token->single_word)
        TRY(touches_word(a, x, start, end, &in_word));
    if (in_word)
        return ERR_OK;
    if (token->lstrip)
        start = MAX(space_before(x->s, start), x->done);
    if (token->rstrip)
        end = space_behind(x->s, x->whole.len, end);
    if (start > x->done)
        TRY(put(x, x->done, start, -1));
    TRY(put(x, start, end, token->id));
    x->done = end;
out:
    return err;
}

enum err added_split(const struct added *a, const struct added_trie *trie, struct piece piece,
                     const char *text, struct pieces *out)
{
    struct split x = { .whole = piece, .s = text + piece.off, .out = out };
    size_t len = 0;
    enum err err = ERR_OK;

    for (size_t at = 0; trie->n > 1 && at < piece.len; at++) {
        if (trie->first[(unsigned char)x.s[at]] < 0)
            continue;
        int32_t found = longest(trie, x.s + at, piece.len - at, &len);
        if (found < 0)
            continue;
        TRY(put_token(a, &x, &a->v[found], at, at + len));
        at += len - 1;
    }
    if (x.done < piece.len)
        TRY(put(&x, x.done, piece.len, -1));
out:
    return err;
}
