#include "lm/tokenizer/added.h"

#include "base/mem.h"
#include "lm/tokenizer/keyed.h"

#define FIRST_EDGES 64

/* What the regular expressions of added tokens call a character of a word. */
#define WORD_CHAR "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]"

static void trie_fini(struct added_trie *t)
{
    VEC_FINI(t);
    mem_free(t->edges);
    *t = (struct added_trie){ 0 };
}

void added_fini(struct added *a)
{
    for (size_t i = 0; i < a->n; i++)
        VEC_FINI(&a->v[i].content);
    VEC_FINI(a);
    vocab_fini(&a->names);
    VEC_FINI(&a->by_id);
    trie_fini(&a->raw);
    trie_fini(&a->normalized);
    rx_destroy(&a->word);
}

enum err added_add(struct added *a, struct added_token token)
{
    int32_t known = vocab_find(&a->names, token.content.v, token.content.n);
    enum err err = ERR_OK;

    if (!token.content.n)
        goto out;
    if (token.content.n > ADDED_BYTES_MAX - a->bytes)
        TRY(err_set(ERR_UNSUPPORTED, "added tokens of more than %zu bytes", ADDED_BYTES_MAX));
    a->bytes += token.content.n;
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

static struct added_edge *edge_slot(const struct added_trie *t, int32_t node, unsigned char byte)
{
    size_t at = (size_t)keyed_number((uint64_t)node << 8 | byte) & (t->n_edges - 1);

    while (t->edges[at].child && (t->edges[at].node != node || t->edges[at].byte != byte))
        at = (at + 1) & (t->n_edges - 1);
    return &t->edges[at];
}

/* 0 if there is none. */
static int32_t child_of(const struct added_trie *t, int32_t node, unsigned char byte)
{
    return node ? edge_slot(t, node, byte)->child : t->first[byte];
}

static enum err grow_edges(struct added_trie *t)
{
    struct added_edge *old = t->edges;
    size_t n_old = t->n_edges, n = n_old ? n_old * 2 : FIRST_EDGES;
    struct added_edge *edges = mem_alloc_array(n, sizeof *edges);

    if (!edges)
        return ERR_NO_MEMORY;
    t->edges = edges;
    t->n_edges = n;
    for (size_t i = 0; i < n_old; i++)
        if (old[i].child)
            *edge_slot(t, old[i].node, old[i].byte) = old[i];
    mem_free(old);
    return ERR_OK;
}

static enum err new_child(struct added_trie *t, int32_t parent, unsigned char byte, int32_t *out)
{
    int32_t child = (int32_t)t->n;
    struct added_node node = { .parent = parent, .token = -1, .byte = byte };
    enum err err = ERR_OK;

    if (t->n * 2 >= t->n_edges)
        TRY(grow_edges(t));
    node.depth = t->v[parent].depth + 1;
    TRY(VEC_PUSH(t, node));
    if (parent)
        *edge_slot(t, parent, byte) = (struct added_edge){ parent, child, byte };
    else
        t->first[byte] = child;
    *out = child;
out:
    return err;
}

static enum err trie_add(struct added_trie *t, const struct str *s, int32_t token)
{
    int32_t at = 0;
    enum err err = ERR_OK;

    for (size_t i = s->n; i-- > 0;) {
        unsigned char byte = (unsigned char)s->v[i];
        int32_t next = child_of(t, at, byte);
        if (!next)
            TRY(new_child(t, at, byte, &next));
        at = next;
    }
    if (at) {
        t->v[at].token = token;
        t->v[at].len = t->v[at].depth;
    }
out:
    return err;
}

static enum err trie_begin(struct added_trie *t)
{
    enum err err;

    trie_fini(t);
    keyed_init();
    TRY(grow_edges(t));
    TRY(VEC_PUSH(t, (struct added_node){ .token = -1 }));
out:
    return err;
}

/* Where a byte leads from a node. */
static int32_t step(const struct added_trie *t, int32_t node, unsigned char byte)
{
    int32_t next = child_of(t, node, byte);

    while (!next && node) {
        node = t->v[node].fail;
        next = child_of(t, node, byte);
    }
    return next;
}

/* Nodes by depth, so that those that a node falls back to are complete before it. */
static enum err order_nodes(const struct added_trie *t, struct ids *order)
{
    struct ids count = { 0 };
    enum err err;

    TRY(VEC_RESERVE(order, t->n));
    TRY(VEC_RESERVE(&count, t->n + 1));
    memset(count.v, 0, (t->n + 1) * sizeof *count.v);
    for (size_t i = 0; i < t->n; i++)
        count.v[t->v[i].depth + 1]++;
    for (size_t i = 0; i < t->n; i++)
        count.v[i + 1] += count.v[i];
    for (size_t i = 0; i < t->n; i++)
        order->v[count.v[t->v[i].depth]++] = (int32_t)i;
    order->n = t->n;
out:
    VEC_FINI(&count);
    return err;
}

static enum err trie_end(struct added_trie *t)
{
    struct ids order = { 0 };
    enum err err;

    TRY(order_nodes(t, &order));
    for (size_t i = 1; i < order.n; i++) {
        struct added_node *node = &t->v[order.v[i]];
        node->fail = node->parent ? step(t, t->v[node->parent].fail, node->byte) : 0;
        if (node->token < 0) {
            node->token = t->v[node->fail].token;
            node->len = t->v[node->fail].len;
        }
    }
out:
    VEC_FINI(&order);
    return err;
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
    TRY(trie_end(&a->raw));
    TRY(trie_end(&a->normalized));
out:
    return err;
}

/* A place in a text and the longest token that begins there. */
struct hit {
    size_t at;
    int32_t token, len;
};

struct hits {
    struct hit *v;
    size_t n, cap;
};

/* All of them, from the last to the first. */
static enum err find_hits(struct hits *hits, const struct added_trie *t, const char *s, size_t n)
{
    int32_t node = 0;
    enum err err = ERR_OK;

    for (size_t i = n; i-- > 0;) {
        node = node ? step(t, node, (unsigned char)s[i]) : t->first[(unsigned char)s[i]];
        if (t->v[node].token >= 0)
            TRY(VEC_PUSH(hits, (struct hit){ i, t->v[node].token, t->v[node].len }));
    }
out:
    return err;
}

/* ---- matching ---- */

/* Where the white space before `at` begins, not before `from`. */
static size_t space_before(const char *s, size_t from, size_t at)
{
    while (at > from) {
        size_t last = u8_last(s, at);
        if (!u8_is_space(u8_step(s + last, at - last).cp))
            break;
        at = last;
    }
    return at;
}

struct split {
    struct piece whole;
    const char *s;
    size_t done; /* what is before has been cut */
    struct pieces *out;
    size_t space, space_end; /* white space that was looked at */
};

/* Where the white space at `at` ends. Tokens may themselves be white space, so that the same space
 * is behind many of them: it is looked at once. */
static size_t space_behind(struct split *x, size_t at)
{
    if (at < x->space || at > x->space_end) {
        x->space = x->space_end = at;
        while (x->space_end < x->whole.len) {
            struct u8_step c = u8_step(x->s + x->space_end, x->whole.len - x->space_end);
            if (!u8_is_space(c.cp))
                break;
            x->space_end += c.len;
        }
    }
    return x->space_end;
}

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
        start = MAX(space_before(x->s, x->done, start), x->done);
    if (token->rstrip)
        end = space_behind(x, end);
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
    struct split x = { .whole = piece, .s = piece.len ? text + piece.off : "", .out = out };
    struct hits hits = { 0 };
    size_t at = 0;
    enum err err = ERR_OK;

    if (trie->n > 1)
        TRY(find_hits(&hits, trie, x.s, piece.len));
    while (hits.n) {
        struct hit hit = hits.v[--hits.n];
        if (hit.at < at) /* within the one before */
            continue;
        at = hit.at + (size_t)hit.len;
        TRY(put_token(a, &x, &a->v[hit.token], hit.at, at));
    }
    if (x.done < piece.len)
        TRY(put(&x, x.done, piece.len, -1));
out:
    VEC_FINI(&hits);
    return err;
}
