/* Tables from strings to arrays or strings: sorted by key, found by bisection. What they do is
 * written once; a class says how values are copied and released. */
#include "api/handle.h"

struct entry {
    char *key;
    void *value; /* a reference to an array, or a text */
};

struct map {
    VEC(struct entry) items;
};

struct class
{
    void *(*copy)(const void *value); /* NULL when memory is exhausted */
    void (*drop)(void *value);
};

static void *arr_copy(const void *value)
{
    return arr_ref((struct arr *)value);
}

static void arr_drop(void *value)
{
    struct arr *a = value;

    arr_unref(&a);
}

static const struct class arr_class = { arr_copy, arr_drop };

static void *text_copy(const void *value)
{
    return mem_strdup(value);
}

static const struct class text_class = { text_copy, mem_free };

/* ---- tables ---- */

static void map_fini(struct map *m, const struct class *k)
{
    for (size_t i = 0; i < m->items.n; i++) {
        mem_free(m->items.v[i].key);
        k->drop(m->items.v[i].value);
    }
    VEC_FINI(&m->items);
}

/* Where key is or belongs. */
static size_t map_find(const struct map *m, const char *key, bool *found)
{
    size_t low = 0, high = m->items.n;

    *found = false;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(m->items.v[mid].key, key);
        if (order == 0)
            *found = true;
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static enum err map_insert(struct map *m, const struct class *k, const char *key, const void *value)
{
    struct entry e = { NULL, NULL };
    bool found;
    size_t at = map_find(m, key, &found);

    if (!(e.value = k->copy(value)))
        return ERR_NO_MEMORY;
    if (found) {
        k->drop(m->items.v[at].value);
        m->items.v[at].value = e.value;
        return ERR_OK;
    }
    if (VEC_RESERVE(&m->items, 1) || !(e.key = mem_strdup(key))) {
        k->drop(e.value);
        return ERR_NO_MEMORY;
    }
    memmove(&m->items.v[at + 1], &m->items.v[at], (m->items.n - at) * sizeof e);
    m->items.v[at] = e;
    m->items.n++;
    return ERR_OK;
}

/* Replaces the content of *ctx by a copy of src, or by nothing; on failure it is as before. */
static enum err map_assign(void **ctx, const struct class *k, const struct map *src)
{
    struct map fresh = { 0 };
    enum err err = ERR_OK;

    for (size_t i = 0; src && i < src->items.n; i++)
        TRY(map_insert(&fresh, k, src->items.v[i].key, src->items.v[i].value));
    TRY(box_make(ctx, sizeof(struct map)));
    struct map old = *(struct map *)*ctx;
    *(struct map *)*ctx = fresh;
    fresh = old;
out:
    map_fini(&fresh, k);
    return err;
}

/* ---- calls ---- */

static void assign_copy(struct call *c, void **ctx, const struct class *k, const void *src)
{
    const struct map *from = call_box(c, src, "map", "src");

    if (call_ok(c))
        c->err = map_assign(ctx, k, from);
}

static int map_free(struct map *m, const struct class *k)
{
    if (m)
        map_fini(m, k);
    mem_free(m);
    return 0;
}

static void insert(struct call *c, void *ctx, const struct class *k, const char *key,
                   const void *value)
{
    struct map *m = call_box(c, ctx, "map", "map");

    call_ptr(c, key, "key");
    if (call_ok(c))
        c->err = map_insert(m, k, key, value);
}

/* The value of key; NULL if there is none, or after a failure. */
static void *lookup(struct call *c, const void *ctx, const char *key)
{
    const struct map *m = call_box(c, ctx, "map", "map");
    bool found = false;

    call_ptr(c, key, "key");
    size_t at = call_ok(c) ? map_find(m, key, &found) : 0;
    return found ? m->items.v[at].value : NULL;
}

/* ---- files ---- */

static enum err fill_tables(struct map *arrays, struct map *texts, const struct io_arrays *a,
                            const struct io_texts *t)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < a->list.n; i++)
        TRY(map_insert(arrays, &arr_class, a->list.v[i].name, a->list.v[i].arr));
    for (size_t i = 0; t && i < t->list.n; i++)
        TRY(map_insert(texts, &text_class, t->list.v[i].key, t->list.v[i].value));
out:
    return err;
}

/* Puts fresh into the box of *ctx, made by box_make, and the old content into fresh. */
static void map_swap(void **ctx, void *box, struct map *fresh)
{
    struct map old = *(struct map *)box;

    *(struct map *)box = *fresh;
    *fresh = old;
    *ctx = box;
}

enum err box_set_tables(mlx_map_string_to_array *arrays, mlx_map_string_to_string *texts,
                        const struct io_arrays *a, const struct io_texts *t)
{
    struct map fresh_arrays = { 0 }, fresh_texts = { 0 };
    void *arrays_box = arrays->ctx, *texts_box = texts ? texts->ctx : NULL;
    enum err err;

    TRY(fill_tables(&fresh_arrays, &fresh_texts, a, texts ? t : NULL));
    TRY(box_make(&arrays_box, sizeof(struct map)));
    if (texts && (err = box_make(&texts_box, sizeof(struct map))) != ERR_OK) {
        if (!arrays->ctx)
            mem_free(arrays_box);
        goto out;
    }
    map_swap(&arrays->ctx, arrays_box, &fresh_arrays);
    if (texts)
        map_swap(&texts->ctx, texts_box, &fresh_texts);
out:
    map_fini(&fresh_arrays, &arr_class);
    map_fini(&fresh_texts, &text_class);
    return err;
}

void call_arrays(struct call *c, mlx_map_string_to_array map, struct io_arrays *out)
{
    const struct map *m = call_box(c, map.ctx, "map", "param");

    for (size_t i = 0; call_ok(c) && i < m->items.n; i++)
        c->err = io_arrays_add(out, m->items.v[i].key, arr_ref(m->items.v[i].value));
}

void call_texts(struct call *c, mlx_map_string_to_string map, struct io_texts *out)
{
    const struct map *m = call_box(c, map.ctx, "map", "metadata");

    for (size_t i = 0; call_ok(c) && i < m->items.n; i++)
        c->err = io_texts_add(out, m->items.v[i].key, m->items.v[i].value);
}

/* ---- positions ---- */

struct position {
    size_t next;
};

static void *position_new(struct call *c, const void *map_ctx)
{
    void *p = NULL;

    call_box(c, map_ctx, "map", "map");
    if (call_ok(c))
        c->err = box_make(&p, sizeof(struct position));
    return p;
}

/* The next entry; NULL at the end, or after a failure. */
static const struct entry *position_step(struct call *c, void *ctx, const void *map_ctx)
{
    struct position *p = call_box(c, ctx, "iterator", "it");
    const struct map *m = call_box(c, map_ctx, "map", "it");

    return call_ok(c) && p->next < m->items.n ? &m->items.v[p->next++] : NULL;
}

#define MAP(handle, k)                                                                             \
    handle handle##_new(void)                                                                      \
    {                                                                                              \
        handle res = { NULL };                                                                     \
        struct call c = CALL_BARE;                                                                 \
        c.err = map_assign(&res.ctx, &k, NULL);                                                    \
        CALL_END(&c);                                                                              \
        return res;                                                                                \
    }                                                                                              \
    int handle##_set(handle *map, const handle src)                                                \
    {                                                                                              \
        struct call c = CALL(map);                                                                 \
        if (call_ok(&c))                                                                           \
            assign_copy(&c, &map->ctx, &k, src.ctx);                                               \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int handle##_free(handle map)                                                                  \
    {                                                                                              \
        return map_free(map.ctx, &k);                                                              \
    }                                                                                              \
    handle##_iterator handle##_iterator_new(handle map)                                            \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        handle##_iterator it = { position_new(&c, map.ctx), NULL };                                \
        if (call_ok(&c))                                                                           \
            it.map_ctx = map.ctx;                                                                  \
        CALL_END(&c);                                                                              \
        return it;                                                                                 \
    }                                                                                              \
    int handle##_iterator_free(handle##_iterator it)                                               \
    {                                                                                              \
        mem_free(it.ctx);                                                                          \
        return 0;                                                                                  \
    }

MAP(mlx_map_string_to_array, arr_class)
MAP(mlx_map_string_to_string, text_class)

int mlx_map_string_to_array_insert(mlx_map_string_to_array map, const char *key,
                                   const mlx_array value)
{
    struct call c = CALL_BARE;
    struct arr *a = call_arr(&c, value, "value");

    insert(&c, map.ctx, &arr_class, key, a);
    return CALL_END(&c);
}

int mlx_map_string_to_array_get(mlx_array *value, const mlx_map_string_to_array map,
                                const char *key)
{
    struct call c = CALL(value);
    struct arr *a = lookup(&c, map.ctx, key);

    if (call_ok(&c) && !a)
        return ABSENT;
    if (a)
        c.out = arr_ref(a);
    return CALL_END_ARR(&c, value);
}

int mlx_map_string_to_array_iterator_next(const char **key, mlx_array *value,
                                          mlx_map_string_to_array_iterator it)
{
    struct call c = CALL(key);
    call_ptr(&c, value, "value");
    const struct entry *e = position_step(&c, it.ctx, it.map_ctx);

    if (call_ok(&c) && !e)
        return ABSENT;
    if (e) {
        *key = e->key;
        c.out = arr_ref(e->value);
    }
    return CALL_END_ARR(&c, value);
}

int mlx_map_string_to_string_insert(mlx_map_string_to_string map, const char *key,
                                    const char *value)
{
    struct call c = CALL_BARE;

    call_ptr(&c, value, "value");
    insert(&c, map.ctx, &text_class, key, value);
    return CALL_END(&c);
}

int mlx_map_string_to_string_get(const char **value, const mlx_map_string_to_string map,
                                 const char *key)
{
    struct call c = CALL(value);
    const char *text = lookup(&c, map.ctx, key);

    if (call_ok(&c) && !text)
        return ABSENT;
    if (text)
        *value = text;
    return CALL_END(&c);
}

int mlx_map_string_to_string_iterator_next(const char **key, const char **value,
                                           mlx_map_string_to_string_iterator it)
{
    struct call c = CALL(key);
    call_ptr(&c, value, "value");
    const struct entry *e = position_step(&c, it.ctx, it.map_ctx);

    if (call_ok(&c) && !e)
        return ABSENT;
    if (e) {
        *key = e->key;
        *value = e->value;
    }
    return CALL_END(&c);
}
