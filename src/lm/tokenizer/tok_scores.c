/* Merges from the scores of a GGUF file.
 *
 * All cuts of a token are looked at, so its parts are found by hashes that follow from those of the
 * next cut: h(s) is the sum of s[i] * base^i, modulo a prime. */
#include "base/mem.h"
#include "lm/tokenizer/keyed.h"
#include "lm/tokenizer/tok_json.h"

#define PRIME ((1ull << 61) - 1)
/* Vocabularies of 256,000 tokens have about 600,000. */
#define MAX_PARTS ((size_t)1 << 23)

struct part {
    float score;
    int32_t token;
    int32_t left, right, id; /* ids of the parts and of the whole */
};

struct known {
    uint64_t hash;
    size_t len;
    int32_t id; /* -1: free */
};

struct scores {
    const struct tok_arrays *a;
    const struct vocab *vocab;
    uint64_t base;
    struct known *slots; /* open addressing: the tokens */
    size_t n_slots;      /* power of two */
    struct {
        uint64_t *v; /* of what follows each place of the token */
        size_t n, cap;
    } behind;
    struct {
        struct part *v;
        size_t n, cap;
    } parts;
};

static uint64_t times(uint64_t a, uint64_t b)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);

    return sum >= PRIME ? sum - PRIME : sum;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a + b >= PRIME ? a + b - PRIME : a + b;
}

/* One more than the byte, so that zeros count. */
static uint64_t digit(char c)
{
    return (uint64_t)(unsigned char)c + 1;
}

/* The slot of such a string, or the free one where it belongs. */
static struct known *slot_of(const struct scores *x, uint64_t hash, size_t len)
{
    size_t at = (size_t)keyed_number(hash) & (x->n_slots - 1);

    while (x->slots[at].id >= 0 && (x->slots[at].hash != hash || x->slots[at].len != len))
        at = (at + 1) & (x->n_slots - 1);
    return &x->slots[at];
}

/* Fills x->behind for a token; its first element is the hash of all of it. */
static enum err hash_token(struct scores *x, const char *s, size_t n)
{
    enum err err;

    x->behind.n = 0;
    TRY(VEC_RESERVE(&x->behind, n + 1));
    x->behind.v[n] = 0;
    for (size_t i = n; i-- > 0;)
        x->behind.v[i] = plus(times(x->behind.v[i + 1], x->base), digit(s[i]));
out:
    return err;
}

static enum err note_tokens(struct scores *x)
{
    enum err err = ERR_OK;

    for (x->n_slots = 64; x->n_slots < x->a->n_tokens * 2;)
        x->n_slots *= 2;
    if (!(x->slots = mem_alloc_array(x->n_slots, sizeof *x->slots)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < x->n_slots; i++)
        x->slots[i].id = -1;
    for (size_t i = 0; i < x->a->n_tokens; i++) {
        const char *s = x->a->tokens[i];
        size_t n = strlen(s);
        TRY(hash_token(x, s, n));
        struct known *slot = slot_of(x, x->behind.v[0], n);
        *slot = (struct known){ x->behind.v[0], n, vocab_find(x->vocab, s, n) };
    }
out:
    return err;
}

/* Hashes may lie. */
static bool is_token(const struct scores *x, int32_t id, const char *s, size_t n)
{
    size_t len = 0;
    const char *token = vocab_string(x->vocab, id, &len);

    return token && len == n && memcmp(token, s, n) == 0;
}

static enum err cut_token(struct scores *x, size_t index)
{
    const char *s = x->a->tokens[index];
    size_t n = strlen(s), at = 0;
    uint64_t before = 0, power = 1;
    enum err err;

    if (x->a->scores[index] != x->a->scores[index]) /* has no place in an order */
        return err_set(ERR_ARG, "tokenizer.ggml.scores[%zu] is not a number", index);
    TRY(hash_token(x, s, n));
    int32_t id = slot_of(x, x->behind.v[0], n)->id;
    for (size_t cut = n ? u8_length(s[0]) : 1; cut < n; cut += u8_length(s[cut])) {
        for (; at < cut; at++) {
            before = plus(before, times(digit(s[at]), power));
            power = times(power, x->base);
        }
        int32_t left = slot_of(x, before, cut)->id;
        int32_t right = left < 0 ? -1 : slot_of(x, x->behind.v[cut], n - cut)->id;
        if (right < 0 || !is_token(x, left, s, cut) || !is_token(x, right, s + cut, n - cut))
            continue;
        if (x->parts.n == MAX_PARTS)
            return err_set(ERR_UNSUPPORTED, "tokenizer.ggml.tokens: more than %zu merges",
                           MAX_PARTS);
        struct part part = { x->a->scores[index], (int32_t)index, left, right, id };
        TRY(VEC_PUSH(&x->parts, part));
    }
out:
    return err;
}

static int by_score(const void *pa, const void *pb)
{
    const struct part *a = pa, *b = pb;

    if (a->score != b->score)
        return a->score > b->score ? -1 : 1;
    if (a->token != b->token)
        return a->token < b->token ? -1 : 1;
    if (a->left != b->left)
        return a->left < b->left ? -1 : 1;
    return a->right < b->right ? -1 : a->right > b->right;
}

enum err tok_make_merges(struct tok *t, const struct tok_arrays *a)
{
    struct scores x = { .a = a, .vocab = &t->bpe.vocab };
    enum err err;

    keyed_init();
    x.base = keyed_key[1] % (PRIME - 512) + 512;
    TRY(note_tokens(&x));
    for (size_t i = 0; i < a->n_tokens; i++)
        TRY(cut_token(&x, i));
    if (x.parts.n)
        qsort(x.parts.v, x.parts.n, sizeof *x.parts.v, by_score);
    for (size_t i = 0; i < x.parts.n; i++) {
        const struct part *p = &x.parts.v[i];
        TRY(bpe_add_rule(&t->bpe, p->left, p->right, p->id));
    }
out:
    mem_free(x.slots);
    VEC_FINI(&x.behind);
    VEC_FINI(&x.parts);
    return err;
}
