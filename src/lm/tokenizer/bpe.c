#include "lm/tokenizer/bpe.h"

#include <stdio.h>

#include "base/mem.h"
#include "lm/tokenizer/byte_level.h"
#include "lm/tokenizer/keyed.h"

#define CACHE_SLOTS ((size_t)1 << 16)
#define CACHE_USED_MAX (CACHE_SLOTS / 4 * 3)
#define CACHE_KEY_MAX 128 /* longer words hardly come back */
#define BYTE_TOKEN_LEN 6  /* of <0xNN> */

void bpe_fini(struct bpe *b)
{
    vocab_fini(&b->vocab);
    merges_fini(&b->merges);
    mem_free(b->cache.slots);
    VEC_FINI(&b->cache.keys);
    VEC_FINI(&b->cache.ids);
    VEC_FINI(&b->syms);
    VEC_FINI(&b->heap);
    VEC_FINI(&b->mapped);
    *b = (struct bpe){ 0 };
}

enum err bpe_ready(struct bpe *b)
{
    char s[8];

    keyed_init();
    for (uint32_t cp = 0; cp < ARRAY_LEN(b->char_ids); cp++)
        b->char_ids[cp] = vocab_find(&b->vocab, s, u8_put(s, cp));
    for (unsigned byte = 0; byte < 256; byte++) {
        snprintf(s, sizeof s, "<0x%02X>", byte);
        b->byte_ids[byte] = vocab_find(&b->vocab, s, BYTE_TOKEN_LEN);
    }
    b->cache.slots = mem_alloc_array(CACHE_SLOTS, sizeof *b->cache.slots);
    return b->cache.slots ? ERR_OK : ERR_NO_MEMORY;
}

static enum err find_token(int32_t *id, const struct bpe *b, const char *s, size_t n)
{
    *id = vocab_find(&b->vocab, s, n);
    return *id >= 0 ? ERR_OK
                    : err_set(ERR_ARG, "merge of \"%.*s\", which is not in the vocabulary",
                              (int)MIN(n, (size_t)100), s);
}

enum err bpe_add_rule(struct bpe *b, int32_t left, int32_t right, int32_t id)
{
    struct merge rule = { .left = left, .right = right, .rank = b->next_rank, .id = id };
    enum err err = merges_add(&b->merges, rule);

    b->next_rank += err == ERR_OK;
    return err;
}

enum err bpe_add_merge(struct bpe *b, const char *left, size_t n_left, const char *right,
                       size_t n_right)
{
    struct merge rule;
    enum err err;

    b->mapped.n = 0;
    TRY(find_token(&rule.left, b, left, n_left));
    TRY(find_token(&rule.right, b, right, n_right));
    TRY(str_add(&b->mapped, left, n_left));
    TRY(str_add(&b->mapped, right, n_right));
    TRY(find_token(&rule.id, b, b->mapped.v, b->mapped.n));
    TRY(bpe_add_rule(b, rule.left, rule.right, rule.id));
out:
    return err;
}

/* ---- from characters to symbols ---- */

static enum err add_sym(struct bpe *b, int32_t id)
{
    int32_t at = (int32_t)b->syms.n;
    struct bpe_sym sym = { id, at - 1, at + 1 };

    return VEC_PUSH(&b->syms, sym);
}

/* The tokens of the bytes of a character; *done is false if some are not in the vocabulary. */
static enum err add_bytes(struct bpe *b, const char *s, size_t n, bool *done)
{
    enum err err = ERR_OK;

    *done = true;
    for (size_t i = 0; i < n; i++)
        *done = *done && b->byte_ids[(unsigned char)s[i]] >= 0;
    for (size_t i = 0; *done && i < n; i++)
        TRY(add_sym(b, b->byte_ids[(unsigned char)s[i]]));
out:
    return err;
}

/* *pending is the unknown token that was met but not added yet, or BPE_NO_TOKEN. */
static enum err add_unknown(struct bpe *b, const char *s, size_t n, int32_t *pending)
{
    bool done = false;
    enum err err = ERR_OK;

    if (b->byte_fallback)
        TRY(add_bytes(b, s, n, &done));
    if (done || b->unk == BPE_NO_TOKEN)
        return ERR_OK;
    if (b->unk == BPE_LOST_TOKEN)
        return err_set(ERR_ARG, "the vocabulary has neither \"%.*s\" nor an unknown token", (int)n,
                       s);
    if (*pending >= 0 && !b->fuse_unk)
        TRY(add_sym(b, *pending));
    *pending = b->unk;
out:
    return err;
}

static int32_t char_id(const struct bpe *b, const char *s, size_t n)
{
    if (n > 2)
        return vocab_find(&b->vocab, s, n);
    uint32_t cp = n == 1 ? (unsigned char)s[0] : ((unsigned char)s[0] & 0x1fu) << 6 | (s[1] & 0x3f);
    return cp < ARRAY_LEN(b->char_ids) ? b->char_ids[cp] : vocab_find(&b->vocab, s, n);
}

static enum err add_chars(struct bpe *b, const char *s, size_t n)
{
    int32_t pending = BPE_NO_TOKEN;
    enum err err;

    for (size_t at = 0, len; at < n; at += len) {
        len = u8_length(s[at]);
        int32_t id = char_id(b, s + at, len);
        if (id < 0) {
            TRY(add_unknown(b, s + at, len, &pending));
            continue;
        }
        if (pending >= 0)
            TRY(add_sym(b, pending));
        pending = BPE_NO_TOKEN;
        TRY(add_sym(b, id));
    }
    err = pending >= 0 ? add_sym(b, pending) : ERR_OK;
out:
    return err;
}

/* ---- merging: a heap of the pairs that can merge, the symbols in a list ---- */

static bool before(struct bpe_rank a, struct bpe_rank b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.pos < b.pos;
}

static enum err heap_push(struct bpe *b, struct bpe_rank r)
{
    enum err err = VEC_PUSH(&b->heap, r);
    size_t at = b->heap.n - 1;

    if (err != ERR_OK)
        return err;
    for (size_t up; at > 0 && before(r, b->heap.v[up = (at - 1) / 2]); at = up)
        b->heap.v[at] = b->heap.v[up];
    b->heap.v[at] = r;
    return ERR_OK;
}

static struct bpe_rank heap_pop(struct bpe *b)
{
    struct bpe_rank top = b->heap.v[0], last = b->heap.v[--b->heap.n];
    size_t at = 0, n = b->heap.n;

    for (size_t down = 1; down < n; down = 2 * at + 1) {
        if (down + 1 < n && before(b->heap.v[down + 1], b->heap.v[down]))
            down++;
        if (!before(b->heap.v[down], last))
            break;
        b->heap.v[at] = b->heap.v[down];
        at = down;
    }
    if (n)
        b->heap.v[at] = last;
    return top;
}

/* The rule for the symbol at pos and its right neighbour, NULL if there is none. */
static const struct merge *rule_at(const struct bpe *b, int32_t pos)
{
    int32_t next = b->syms.v[pos].next;

    if ((size_t)next >= b->syms.n)
        return NULL;
    return merges_find(&b->merges, b->syms.v[pos].id, b->syms.v[next].id);
}

static enum err offer(struct bpe *b, int32_t pos)
{
    const struct merge *rule = pos >= 0 ? rule_at(b, pos) : NULL;

    return rule ? heap_push(b, (struct bpe_rank){ rule->rank, pos, rule->id }) : ERR_OK;
}

static enum err merge_all(struct bpe *b)
{
    struct bpe_sym *syms = b->syms.v;
    enum err err = ERR_OK;

    b->heap.n = 0;
    for (size_t i = 0; i + 1 < b->syms.n; i++)
        TRY(offer(b, (int32_t)i));
    while (b->heap.n) {
        struct bpe_rank top = heap_pop(b);
        struct bpe_sym *left = &syms[top.pos];
        /* The neighbours may have changed since; then what counts is that they merge to the same.
         */
        const struct merge *rule = left->id >= 0 ? rule_at(b, top.pos) : NULL;
        if (!rule || rule->id != top.id)
            continue;
        struct bpe_sym *right = &syms[left->next];
        left->id = top.id;
        left->next = right->next;
        right->id = BPE_NO_TOKEN;
        if ((size_t)left->next < b->syms.n)
            syms[left->next].prev = top.pos;
        TRY(offer(b, left->prev));
        TRY(offer(b, top.pos));
    }
out:
    return err;
}

static enum err encode_word(struct bpe *b, const char *s, size_t n, struct ids *out)
{
    enum err err;

    if (b->byte_level) {
        b->mapped.n = 0;
        TRY(byte_level_add(&b->mapped, s, n));
        s = b->mapped.v;
        n = b->mapped.n;
    }
    int32_t whole = b->ignore_merges ? vocab_find(&b->vocab, s, n) : BPE_NO_TOKEN;
    if (whole >= 0)
        return VEC_PUSH(out, whole);
    b->syms.n = 0;
    TRY(add_chars(b, s, n));
    TRY(merge_all(b));
    TRY(VEC_RESERVE(out, b->syms.n));
    for (size_t i = 0; i < b->syms.n; i++)
        if (b->syms.v[i].id >= 0)
            out->v[out->n++] = b->syms.v[i].id;
out:
    return err;
}

/* ---- the cache ---- */

/* The slot that holds the word, or the free one where it belongs. */
static struct bpe_cached *cache_slot(struct bpe_cache *c, uint32_t hash, const char *s, size_t n)
{
    size_t at = hash & (CACHE_SLOTS - 1);

    for (; c->slots[at].len; at = (at + 1) & (CACHE_SLOTS - 1)) {
        const struct bpe_cached *e = &c->slots[at];
        if (e->hash == hash && e->len == n && memcmp(c->keys.v + e->key, s, n) == 0)
            break;
    }
    return &c->slots[at];
}

/* The ids of the entry are the last ones of the list. */
static enum err cache_add(struct bpe_cache *c, struct bpe_cached entry, const char *s,
                          const struct ids *ids)
{
    enum err err;

    if (c->used >= CACHE_USED_MAX) {
        memset(c->slots, 0, CACHE_SLOTS * sizeof *c->slots);
        c->used = c->keys.n = c->ids.n = 0;
    }
    entry.key = (uint32_t)c->keys.n;
    entry.ids = (uint32_t)c->ids.n;
    TRY(VEC_RESERVE(&c->ids, entry.n));
    TRY(str_add(&c->keys, s, entry.len));
    for (size_t i = ids->n - entry.n; i < ids->n; i++)
        c->ids.v[c->ids.n++] = ids->v[i];
    *cache_slot(c, entry.hash, s, entry.len) = entry;
    c->used++;
out:
    return err;
}

enum err bpe_encode(struct bpe *b, const char *word, size_t n, struct ids *out)
{
    uint32_t hash = (uint32_t)keyed_bytes(word, n);
    size_t before_n = out->n;
    enum err err;

    if (n == 0)
        return ERR_OK;
    if (n > INT32_MAX / 4)
        return err_set(ERR_OVERFLOW, "a word of %zu bytes is too long to tokenize", n);
    if (n > CACHE_KEY_MAX)
        return encode_word(b, word, n, out);

    const struct bpe_cached *hit = cache_slot(&b->cache, hash, word, n);
    if (hit->len) {
        TRY(VEC_RESERVE(out, hit->n));
        for (size_t i = 0; i < hit->n; i++)
            out->v[out->n++] = b->cache.ids.v[hit->ids + i];
        return ERR_OK;
    }
    TRY(encode_word(b, word, n, out));
    struct bpe_cached entry = { hash, .len = (uint32_t)n, .n = (uint32_t)(out->n - before_n) };
    TRY(cache_add(&b->cache, entry, word, out));
out:
    return err;
}
