/* The four kinds of lists. What they do is written once, over bytes; a class says how an element is
 * taken from a caller's value, copied and released. */
#include "api/handle.h"

struct class
{
    const char *name;
    size_t stored; /* bytes per element in the list */
    size_t given;  /* bytes per element as callers pass it */
    /* Makes a stored element from a caller's value; returns ERR_ARG where that is empty. */
    enum err (*take)(void *stored, const void *given);
    /* Makes a stored element from a stored one. */
    enum err (*copy)(void *stored, const void *from);
    void (*drop)(void *stored);
};

/* ---- elements ---- */

static enum err arr_copy(void *stored, const void *from)
{
    *(struct arr **)stored = arr_ref(*(struct arr *const *)from);
    return ERR_OK;
}

static enum err arr_take(void *stored, const void *given)
{
    const struct arr_box *box = ((const mlx_array *)given)->ctx;

    return box ? arr_copy(stored, &box->arr) : ERR_ARG;
}

static void arr_drop(void *stored)
{
    arr_unref(stored);
}

static const struct class arr_class = { "array",           sizeof(struct arr *),
                                        sizeof(mlx_array), arr_take,
                                        arr_copy,          arr_drop };

static enum err int_copy(void *stored, const void *from)
{
    memcpy(stored, from, sizeof(int));
    return ERR_OK;
}

static void int_drop(void *stored)
{
    (void)stored;
}

static const struct class int_class = { "int",    sizeof(int), sizeof(int),
                                        int_copy, int_copy,    int_drop };

static enum err text_copy(void *stored, const void *from)
{
    const char *text = *(const char *const *)from;
    char *copy = text ? mem_strdup(text) : NULL;

    if (!copy)
        return text ? ERR_NO_MEMORY : ERR_ARG;
    *(char **)stored = copy;
    return ERR_OK;
}

static void text_drop(void *stored)
{
    mem_free(*(char **)stored);
}

static const struct class text_class = { "string",  sizeof(char *), sizeof(const char *),
                                         text_copy, text_copy,      text_drop };

/* ---- lists ---- */

static void *item(const struct list *list, const struct class *k, size_t i)
{
    return (unsigned char *)list->v + i * k->stored;
}

static void list_fini(struct list *list, const struct class *k)
{
    for (size_t i = 0; list && i < list->n; i++)
        k->drop(item(list, k, i));
    if (list)
        VEC_FINI(list);
}

/* Appends n elements, stored ones or those of a caller; all or nothing. */
static enum err list_append(struct list *list, const struct class *k, const void *data, size_t n,
                            bool stored)
{
    const unsigned char *from = data;
    size_t before = list->n, size = stored ? k->stored : k->given;
    enum err err = ERR_OK;

    if (n > list->cap - list->n)
        TRY(vec_grow_(&list->v, &list->cap, list->n, n, k->stored));
    for (; list->n < before + n; list->n++, from += size)
        TRY((stored ? k->copy : k->take)(item(list, k, list->n), from));
out:
    if (err)
        while (list->n > before)
            k->drop(item(list, k, --list->n));
    return err;
}

static enum err vec_copy(void *stored, const void *from)
{
    struct list *copy = stored;
    const struct list *src = from;

    memset(copy, 0, sizeof *copy);
    enum err err = list_append(copy, &arr_class, src->v, src->n, true);
    if (err)
        list_fini(copy, &arr_class);
    return err;
}

static enum err vec_take(void *stored, const void *given)
{
    const void *list = ((const mlx_vector_array *)given)->ctx;

    return list ? vec_copy(stored, list) : ERR_ARG;
}

static void vec_drop(void *stored)
{
    list_fini(stored, &arr_class);
}

static const struct class vec_class = {
    "vector", sizeof(struct list), sizeof(mlx_vector_array), vec_take, vec_copy, vec_drop
};

/* Replaces the content of *ctx; on failure it is as before. */
static enum err list_assign(void **ctx, const struct class *k, const void *data, size_t n,
                            bool stored)
{
    struct list fresh = { 0 };
    enum err err;

    TRY(list_append(&fresh, k, data, n, stored));
    TRY(box_make(ctx, sizeof(struct list)));
    struct list old = *(struct list *)*ctx;
    *(struct list *)*ctx = fresh;
    fresh = old;
out:
    list_fini(&fresh, k);
    return err;
}

/* ---- calls ---- */

/* Elements that a class refuses carry no text yet. */
static void call_took(struct call *c, enum err err, const struct class *k)
{
    c->err = err;
    if (err == ERR_ARG)
        err_set(ERR_ARG, "[%s] An element is an empty %s.", c->fn, k->name);
}

static void assign_given(struct call *c, void **ctx, const struct class *k, const void *data,
                         size_t n)
{
    if (n)
        call_ptr(c, data, "data");
    if (call_ok(c))
        call_took(c, list_assign(ctx, k, data, n, false), k);
}

static void assign_list(struct call *c, void **ctx, const struct class *k, const void *src)
{
    const struct list *from = call_box(c, src, "vector", "src");

    if (call_ok(c))
        c->err = list_assign(ctx, k, from->v, from->n, true);
}

static void append_given(struct call *c, void *ctx, const struct class *k, const void *data,
                         size_t n)
{
    struct list *list = call_box(c, ctx, "vector", "vec");

    if (n)
        call_ptr(c, data, "data");
    if (call_ok(c))
        call_took(c, list_append(list, k, data, n, false), k);
}

static size_t list_size(struct call *c, const void *ctx)
{
    const struct list *list = call_box(c, ctx, "vector", "vec");

    return list ? list->n : 0;
}

/* Borrowed element idx, or NULL after a failure. */
static const void *list_at(struct call *c, const void *ctx, const struct class *k, size_t idx)
{
    const struct list *list = call_box(c, ctx, "vector", "vec");

    if (call_ok(c) && idx >= list->n)
        c->err = err_set(ERR_RANGE, "[%s] Index %zu is out of range for a vector of size %zu.",
                         c->fn, idx, list->n);
    return call_ok(c) ? item(list, k, idx) : NULL;
}

static int list_free(void *ctx, const struct class *k)
{
    list_fini(ctx, k);
    mem_free(ctx);
    return 0;
}

/* handle: public type; value, data: element types as mlx-c spells them; k: class */
#define VECTOR(handle, value, data_t, k)                                                           \
    handle handle##_new(void)                                                                      \
    {                                                                                              \
        handle res = { NULL };                                                                     \
        struct call c = CALL_BARE;                                                                 \
        assign_given(&c, &res.ctx, &k, NULL, 0);                                                   \
        CALL_END(&c);                                                                              \
        return res;                                                                                \
    }                                                                                              \
    int handle##_set(handle *vec, const handle src)                                                \
    {                                                                                              \
        struct call c = CALL(vec);                                                                 \
        if (call_ok(&c))                                                                           \
            assign_list(&c, &vec->ctx, &k, src.ctx);                                               \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int handle##_free(handle vec)                                                                  \
    {                                                                                              \
        return list_free(vec.ctx, &k);                                                             \
    }                                                                                              \
    handle handle##_new_data(data_t *data, size_t size)                                            \
    {                                                                                              \
        handle res = { NULL };                                                                     \
        struct call c = CALL_BARE;                                                                 \
        assign_given(&c, &res.ctx, &k, data, size);                                                \
        CALL_END(&c);                                                                              \
        return res;                                                                                \
    }                                                                                              \
    handle handle##_new_value(value val)                                                           \
    {                                                                                              \
        handle res = { NULL };                                                                     \
        struct call c = CALL_BARE;                                                                 \
        assign_given(&c, &res.ctx, &k, &val, 1);                                                   \
        CALL_END(&c);                                                                              \
        return res;                                                                                \
    }                                                                                              \
    int handle##_set_data(handle *vec, data_t *data, size_t size)                                  \
    {                                                                                              \
        struct call c = CALL(vec);                                                                 \
        if (call_ok(&c))                                                                           \
            assign_given(&c, &vec->ctx, &k, data, size);                                           \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int handle##_set_value(handle *vec, value val)                                                 \
    {                                                                                              \
        struct call c = CALL(vec);                                                                 \
        if (call_ok(&c))                                                                           \
            assign_given(&c, &vec->ctx, &k, &val, 1);                                              \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int handle##_append_data(handle vec, data_t *data, size_t size)                                \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        append_given(&c, vec.ctx, &k, data, size);                                                 \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int handle##_append_value(handle vec, value val)                                               \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        append_given(&c, vec.ctx, &k, &val, 1);                                                    \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    size_t handle##_size(handle vec)                                                               \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        size_t n = list_size(&c, vec.ctx);                                                         \
        CALL_END(&c);                                                                              \
        return n;                                                                                  \
    }

VECTOR(mlx_vector_array, const mlx_array, const mlx_array, arr_class)
VECTOR(mlx_vector_vector_array, const mlx_vector_array, const mlx_vector_array, vec_class)
VECTOR(mlx_vector_int, int, int, int_class)
VECTOR(mlx_vector_string, const char *, const char *, text_class)

int mlx_vector_array_get(mlx_array *res, const mlx_vector_array vec, size_t idx)
{
    struct call c = CALL(res);
    struct arr *const *found = list_at(&c, vec.ctx, &arr_class, idx);

    if (call_ok(&c))
        c.out = arr_ref(*found);
    return CALL_END_ARR(&c, res);
}

int mlx_vector_vector_array_get(mlx_vector_array *res, const mlx_vector_vector_array vec,
                                size_t idx)
{
    struct call c = CALL(res);
    const struct list *found = list_at(&c, vec.ctx, &vec_class, idx);

    if (call_ok(&c))
        c.err = list_assign(&res->ctx, &arr_class, found->v, found->n, true);
    return CALL_END(&c);
}

int mlx_vector_int_get(int *res, const mlx_vector_int vec, size_t idx)
{
    struct call c = CALL(res);
    const int *found = list_at(&c, vec.ctx, &int_class, idx);

    if (call_ok(&c))
        *res = *found;
    return CALL_END(&c);
}

int mlx_vector_string_get(char **res, const mlx_vector_string vec, size_t idx)
{
    struct call c = CALL(res);
    char *const *found = list_at(&c, vec.ctx, &text_class, idx);

    if (call_ok(&c))
        *res = *found;
    return CALL_END(&c);
}

/* ---- for the other files ---- */

enum err box_set_vec(mlx_vector_array *res, struct arr *const *items, size_t n)
{
    enum err err = list_assign(&res->ctx, &arr_class, items, n, true);

    for (size_t i = 0; i < n; i++) {
        struct arr *a = items[i];
        arr_unref(&a);
    }
    return err;
}

enum err box_set_ints(mlx_vector_int *res, const int *v, size_t n)
{
    return list_assign(&res->ctx, &int_class, v, n, true);
}

enum err box_set_texts(mlx_vector_string *res, const char *const *texts, size_t n)
{
    return list_assign(&res->ctx, &text_class, texts, n, true);
}
