#include "base/ptr_map.h"

#include "base/hash.h"
#include "base/mem.h"

#define FIRST_CAP 64

/* Where key is or belongs. A table always has free entries. */
static struct ptr_entry *entry(const struct ptr_map *m, const void *key)
{
    size_t at = hash_mix(HASH_SEED, (uintptr_t)key) & (m->cap - 1);

    while (m->v[at].key && m->v[at].key != key)
        at = (at + 1) & (m->cap - 1);
    return &m->v[at];
}

size_t ptr_map_get(const struct ptr_map *m, const void *key)
{
    const struct ptr_entry *e = m->cap ? entry(m, key) : NULL;

    return e && e->key ? e->value : PTR_NONE;
}

static enum err grow(struct ptr_map *m)
{
    struct ptr_map larger = { .n = m->n, .cap = m->cap ? 2 * m->cap : FIRST_CAP };

    if (!(larger.v = mem_alloc_array(larger.cap, sizeof *larger.v)))
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < m->cap; i++)
        if (m->v[i].key)
            *entry(&larger, m->v[i].key) = m->v[i];
    mem_free(m->v);
    *m = larger;
    return ERR_OK;
}

enum err ptr_map_put(struct ptr_map *m, const void *key, size_t value)
{
    enum err err = ERR_OK;

    if (2 * (m->n + 1) > m->cap)
        TRY(grow(m));
    struct ptr_entry *e = entry(m, key);
    m->n += !e->key;
    *e = (struct ptr_entry){ key, value };
out:
    return err;
}

void ptr_map_fini(struct ptr_map *m)
{
    mem_free(m->v);
    *m = (struct ptr_map){ 0 };
}
