#include "lm/tokenizer/vocab.h"

#include "base/mem.h"
#include "lm/tokenizer/keyed.h"

#define FIRST_SLOTS 1024

/* ---- strings ---- */

void vocab_fini(struct vocab *v)
{
    VEC_FINI(&v->bytes);
    VEC_FINI(&v->entries);
    VEC_FINI(&v->by_id);
    mem_free(v->slots);
    *v = (struct vocab){ 0 };
}

/* The slot that holds the string, or the free one where it belongs. */
static uint32_t *slot_of(const struct vocab *v, const char *s, size_t n)
{
    size_t at = (size_t)keyed_bytes(s, n) & (v->n_slots - 1);

    for (; v->slots[at]; at = (at + 1) & (v->n_slots - 1)) {
        const struct vocab_entry *e = &v->entries.v[v->slots[at] - 1];
        if (e->len == n && (!n || memcmp(v->bytes.v + e->off, s, n) == 0))
            break;
    }
    return &v->slots[at];
}

static enum err rehash(struct vocab *v)
{
    uint32_t *old = v->slots;
    size_t n_slots = v->n_slots ? v->n_slots * 2 : FIRST_SLOTS;
    uint32_t *slots = mem_alloc_array(n_slots, sizeof *slots);

    if (!slots)
        return ERR_NO_MEMORY;
    keyed_init();
    v->slots = slots;
    v->n_slots = n_slots;
    for (size_t i = 0; i < v->entries.n; i++) {
        const struct vocab_entry *e = &v->entries.v[i];
        *slot_of(v, v->bytes.v + e->off, e->len) = (uint32_t)i + 1;
    }
    mem_free(old);
    return ERR_OK;
}

static enum err point_id(struct vocab *v, int32_t id, size_t entry)
{
    enum err err;

    while (v->by_id.n <= (size_t)id)
        TRY(VEC_PUSH(&v->by_id, -1));
    v->by_id.v[id] = (int32_t)entry;
    err = ERR_OK;
out:
    return err;
}

enum err vocab_add(struct vocab *v, const char *s, size_t n, int64_t id)
{
    size_t bytes = v->bytes.n;
    uint32_t *slot;
    enum err err;

    if (id < 0 || id >= VOCAB_MAX_ID || n > INT32_MAX - bytes || v->entries.n >= VOCAB_MAX_ID)
        return err_set(ERR_RANGE, "token \"%.*s\" has the impossible id %lld",
                       (int)MIN(n, (size_t)60), s, (long long)id);
    if (v->entries.n * 2 >= v->n_slots)
        TRY(rehash(v));
    slot = slot_of(v, s, n);
    if (*slot) {
        v->entries.v[*slot - 1].id = (int32_t)id;
        return point_id(v, (int32_t)id, *slot - 1);
    }
    TRY(str_add(&v->bytes, s, n));
    TRY(str_add(&v->bytes, "", 1));
    TRY(VEC_PUSH(&v->entries, (struct vocab_entry){ (uint32_t)bytes, (uint32_t)n, (int32_t)id }));
    *slot = (uint32_t)v->entries.n;
    TRY(point_id(v, (int32_t)id, v->entries.n - 1));
out:
    return err;
}

int32_t vocab_find(const struct vocab *v, const char *s, size_t n)
{
    uint32_t found = v->n_slots ? *slot_of(v, s, n) : 0;

    return found ? v->entries.v[found - 1].id : -1;
}

const char *vocab_string(const struct vocab *v, int32_t id, size_t *n)
{
    if (id < 0 || (size_t)id >= v->by_id.n || v->by_id.v[id] < 0)
        return NULL;
    const struct vocab_entry *e = &v->entries.v[v->by_id.v[id]];
    *n = e->len;
    return v->bytes.v + e->off;
}

/* ---- merges ---- */

void merges_fini(struct merges *m)
{
    mem_free(m->slots);
    *m = (struct merges){ 0 };
}

static struct merge *merge_slot(const struct merges *m, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    size_t at = (size_t)keyed_number(key) & (m->n_slots - 1);

    while (m->slots[at].rank >= 0 && (m->slots[at].left != left || m->slots[at].right != right))
        at = (at + 1) & (m->n_slots - 1);
    return &m->slots[at];
}

static enum err merges_rehash(struct merges *m)
{
    struct merges grown = { .n_slots = m->n_slots ? m->n_slots * 2 : FIRST_SLOTS, .n = m->n };

    grown.slots = mem_alloc_array(grown.n_slots, sizeof *grown.slots);
    if (!grown.slots)
        return ERR_NO_MEMORY;
    keyed_init();
    for (size_t i = 0; i < grown.n_slots; i++)
        grown.slots[i].rank = -1;
    for (size_t i = 0; i < m->n_slots; i++)
        if (m->slots[i].rank >= 0)
            *merge_slot(&grown, m->slots[i].left, m->slots[i].right) = m->slots[i];
    mem_free(m->slots);
    *m = grown;
    return ERR_OK;
}

enum err merges_add(struct merges *m, struct merge rule)
{
    enum err err = ERR_OK;

    if (m->n * 2 >= m->n_slots)
        TRY(merges_rehash(m));
    struct merge *slot = merge_slot(m, rule.left, rule.right);
    m->n += slot->rank < 0;
    *slot = rule;
out:
    return err;
}

const struct merge *merges_find(const struct merges *m, int32_t left, int32_t right)
{
    const struct merge *slot = m->n_slots ? merge_slot(m, left, right) : NULL;

    return slot && slot->rank >= 0 ? slot : NULL;
}
