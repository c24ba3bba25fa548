#include "transforms/compile_cache.h"

#include <pthread.h>

#include "base/hash.h"

#define CHAINS 1024
#define MOST_SHAPELESS 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the chains */
static struct compile_entry *chain[CHAINS];              /* a reference on each entry */
static uint64_t n_made;

/* ---- keys as numbers ---- */

struct words {
    uint64_t *v; /* NULL: they are only counted */
    size_t n;
    uint64_t small[64];
};

static void put(struct words *w, uint64_t value)
{
    if (w->v)
        w->v[w->n] = value;
    w->n++;
}

/* Numbers that differ where keys do: what says how many follow comes first. */
static void put_key(struct words *w, const struct compile_key *key)
{
    w->n = 0;
    put(w, key->id.number);
    put(w, (uint64_t)key->id.is_own | (uint64_t)key->is_shapeless << 1);
    put(w, (uintptr_t)key->strm);
    put(w, key->n_constants);
    for (size_t i = 0; i < key->n_constants; i++)
        put(w, key->constants[i]);
    for (size_t i = 0; i < key->in.n; i++) {
        const struct arr *a = key->in.v[i];
        put(w, (uint64_t)a->ndim << 8 | a->dtype);
        for (int d = 0; d < a->ndim; d++)
            put(w, (uint32_t)a->shape[d]);
    }
}

static enum err words_init(struct words *w, const struct compile_key *key)
{
    w->v = NULL;
    put_key(w, key);
    w->v = w->n <= ARRAY_LEN(w->small) ? w->small : mem_alloc_array(w->n, sizeof *w->v);
    if (!w->v)
        return ERR_NO_MEMORY;
    put_key(w, key);
    return ERR_OK;
}

static void words_fini(struct words *w)
{
    if (w->v != w->small)
        mem_free(w->v);
}

/* ---- chains ---- */

static struct compile_entry **chain_of(uint64_t hash)
{
    return &chain[hash % CHAINS];
}

/* Called with the lock held. */
static struct compile_entry *find(const struct words *w, uint64_t hash)
{
    struct compile_entry *e = *chain_of(hash);

    while (e && !(e->hash == hash && e->n_words == w->n &&
                  memcmp(e->word, w->v, w->n * sizeof *w->v) == 0))
        e = e->next;
    if (e)
        ref_inc(&e->rc);
    return e;
}

static uint64_t hash_of(const struct words *w)
{
    return hash_bytes(HASH_SEED, w->v, w->n * sizeof *w->v);
}

enum err compile_cache_get(struct compile_entry **out, const struct compile_key *key)
{
    struct words w;
    enum err err = words_init(&w, key);

    if (err)
        return err;
    pthread_mutex_lock(&lock);
    *out = find(&w, hash_of(&w));
    pthread_mutex_unlock(&lock);
    words_fini(&w);
    return ERR_OK;
}

void compile_entry_unref(struct compile_entry **pe)
{
    struct compile_entry *e = *pe;

    *pe = NULL;
    if (!e || !ref_dec(&e->rc))
        return;
    program_destroy(&e->program);
    mem_free(e);
}

/* ---- forgetting ---- */

/* Which entries: those of id, all without one; of them that with the number, all without one. */
struct which {
    const struct compile_id *id;
    uint64_t number;
};

static bool is_one(const struct compile_entry *e, const struct which *w)
{
    return (!w->id || (e->id.number == w->id->number && e->id.is_own == w->id->is_own)) &&
           (!w->number || e->number == w->number);
}

/* Takes them out of the chains. What they own may call back into the cache when it is released,
 * which must happen without the lock. */
static void unlink_entries(struct compile_entry **dead, const struct which *w)
{
    for (int i = 0; i < CHAINS; i++) {
        struct compile_entry **link = &chain[i];
        while (*link) {
            struct compile_entry *e = *link;
            if (!is_one(e, w)) {
                link = &e->next;
                continue;
            }
            *link = e->next;
            e->next = *dead;
            *dead = e;
        }
    }
}

static void release(struct compile_entry *dead)
{
    while (dead) {
        struct compile_entry *e = dead;
        dead = e->next;
        compile_entry_unref(&e);
    }
}

static void forget(const struct compile_id *id)
{
    struct compile_entry *dead = NULL;

    pthread_mutex_lock(&lock);
    unlink_entries(&dead, &(struct which){ .id = id });
    pthread_mutex_unlock(&lock);
    release(dead);
}

void compile_cache_erase(struct compile_id id)
{
    forget(&id);
}

void compile_cache_clear(void)
{
    forget(NULL);
}

/* Makes room for one more of a shapeless function. Called with the lock held. */
static void unlink_oldest(struct compile_entry **dead, const struct compile_id *id)
{
    const struct which all = { .id = id };
    uint64_t oldest = UINT64_MAX;
    int n = 0;

    for (int i = 0; i < CHAINS; i++)
        for (const struct compile_entry *e = chain[i]; e; e = e->next)
            if (e->is_shapeless && is_one(e, &all)) {
                oldest = MIN(oldest, e->number);
                n++;
            }
    if (n >= MOST_SHAPELESS)
        unlink_entries(dead, &(struct which){ id, oldest });
}

/* ---- adding ---- */

static struct compile_entry *entry_new(const struct compile_key *key, const struct words *w)
{
    struct compile_entry *e = mem_alloc(sizeof *e + w->n * sizeof *w->v);

    if (!e)
        return NULL;
    atomic_init(&e->rc, 1);
    e->hash = hash_of(w);
    e->id = key->id;
    e->is_shapeless = key->is_shapeless;
    e->n_words = w->n;
    memcpy(e->word, w->v, w->n * sizeof *w->v);
    return e;
}

/* The entry, or that of another thread that came first, with a reference for the caller. */
static struct compile_entry *insert(struct compile_entry **e, const struct words *w)
{
    struct compile_entry *dead = NULL, *found;

    pthread_mutex_lock(&lock);
    if (!(found = find(w, (*e)->hash))) {
        found = *e;
        *e = NULL;
        if (found->is_shapeless)
            unlink_oldest(&dead, &found->id);
        ref_inc(&found->rc);
        found->number = ++n_made;
        found->next = *chain_of(found->hash);
        *chain_of(found->hash) = found;
    }
    pthread_mutex_unlock(&lock);
    release(dead);
    return found;
}

enum err compile_cache_add(struct compile_entry **out, const struct compile_key *key,
                           struct program *program, uint64_t note)
{
    struct compile_entry *e = NULL;
    struct words w;
    enum err err = words_init(&w, key);

    if (!err) {
        e = entry_new(key, &w);
        err = e ? ERR_OK : ERR_NO_MEMORY;
    }
    if (e) {
        e->program = program;
        e->note = note;
        program = NULL;
        *out = insert(&e, &w);
    }
    words_fini(&w);
    compile_entry_unref(&e);
    program_destroy(&program);
    return err;
}
