#include "api/io_handle.h"
#include "mlx/c/ext.h"

#define WRONG_KIND 3

/* ---- readers and writers ---- */

struct user_io *user_io_ref(struct user_io *io)
{
    ref_inc(&io->rc);
    return io;
}

void user_io_unref(struct user_io **pio)
{
    struct user_io *io = *pio;

    *pio = NULL;
    if (!io || !ref_dec(&io->rc))
        return;
    if (io->fn.free)
        io->fn.free(io->desc);
    mem_free(io);
}

const char *user_io_label(const struct user_io *io)
{
    const char *label = io->fn.label ? io->fn.label(io->desc) : NULL;

    return label ? label : "a stream of the caller";
}

enum err user_io_check(const struct user_io *io, const char *what)
{
    if ((!io->fn.is_open || io->fn.is_open(io->desc)) && (!io->fn.good || io->fn.good(io->desc)))
        return ERR_OK;
    return err_set(ERR_RUNTIME, "%s %s", what, user_io_label(io));
}

static void *user_io_new(struct call *c, void *desc, const mlx_io_vtable *fn, bool has_all)
{
    struct user_io *io = NULL;

    if (!has_all)
        c->err = err_set(ERR_ARG, "[%s] The table lacks a function that is needed.", c->fn);
    else if (!(io = mem_alloc(sizeof *io)))
        c->err = ERR_NO_MEMORY;
    if (!io)
        return NULL;
    atomic_init(&io->rc, 1);
    io->desc = desc;
    io->fn = *fn;
    return io;
}

struct user_io *call_reader(struct call *c, mlx_io_reader io)
{
    return call_box(c, io.ctx, "reader", "io");
}

struct user_io *call_writer(struct call *c, mlx_io_writer io)
{
    return call_box(c, io.ctx, "writer", "io");
}

static void set_label(struct call *c, mlx_string *res, const struct user_io *io)
{
    char *copy = call_ok(c) ? mem_strdup(user_io_label(io)) : NULL;

    if (call_ok(c))
        c->err = copy ? box_set_text(res, copy) : ERR_NO_MEMORY;
}

/* has_all: whether v has what is needed */
#define USER_IO(kind, has_all)                                                                     \
    mlx_io_##kind mlx_io_##kind##_new(void *desc, mlx_io_vtable v)                                 \
    {                                                                                              \
        struct call c = CALL_BARE;                                                                 \
        mlx_io_##kind res = { user_io_new(&c, desc, &v, has_all) };                                \
        CALL_END(&c);                                                                              \
        return res;                                                                                \
    }                                                                                              \
    int mlx_io_##kind##_descriptor(void **desc_, mlx_io_##kind io)                                 \
    {                                                                                              \
        struct call c = CALL(desc_);                                                               \
        const struct user_io *user = call_##kind(&c, io);                                          \
        if (user)                                                                                  \
            *desc_ = user->desc;                                                                   \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int mlx_io_##kind##_tostring(mlx_string *str_, mlx_io_##kind io)                               \
    {                                                                                              \
        struct call c = CALL(str_);                                                                \
        set_label(&c, str_, call_##kind(&c, io));                                                  \
        return CALL_END(&c);                                                                       \
    }                                                                                              \
    int mlx_io_##kind##_free(mlx_io_##kind io)                                                     \
    {                                                                                              \
        struct user_io *user = io.ctx;                                                             \
        user_io_unref(&user);                                                                      \
        return 0;                                                                                  \
    }

USER_IO(reader, v.seek &&v.tell && (v.read || v.read_at_offset))
USER_IO(writer, v.write)

/* ---- GGUF ---- */

struct gguf *call_gguf(struct call *c, mlx_io_gguf io)
{
    return call_box(c, io.ctx, "gguf", "io");
}

enum err box_set_gguf(mlx_io_gguf *res, struct gguf *g)
{
    enum err err = box_make(&res->ctx, sizeof *g);

    if (err)
        return err;
    struct gguf old = *(struct gguf *)res->ctx;
    *(struct gguf *)res->ctx = *g;
    *g = (struct gguf){ 0 };
    gguf_fini(&old);
    return ERR_OK;
}

mlx_io_gguf mlx_io_gguf_new(void)
{
    mlx_io_gguf res = { NULL };
    struct call c = CALL_BARE;

    c.err = box_set_gguf(&res, &(struct gguf){ 0 });
    CALL_END(&c);
    return res;
}

int mlx_io_gguf_free(mlx_io_gguf io)
{
    if (io.ctx)
        gguf_fini(io.ctx);
    mem_free(io.ctx);
    return 0;
}

int mlx_io_gguf_get_keys(mlx_vector_string *keys, mlx_io_gguf io)
{
    struct call c = CALL(keys);
    const struct gguf *g = call_gguf(&c, io);
    size_t n = g ? g->arrays.list.n : 0;
    const char **names = g ? mem_alloc_array(n, sizeof *names) : NULL;

    for (size_t i = 0; names && i < n; i++)
        names[i] = g->arrays.list.v[i].name;
    if (call_ok(&c))
        c.err = names ? box_set_texts(keys, names, n) : ERR_NO_MEMORY;
    mem_free(names);
    return CALL_END(&c);
}

int mlx_io_gguf_get_metadata_keys(mlx_vector_string *keys, mlx_io_gguf io)
{
    struct call c = CALL(keys);
    const struct gguf *g = call_gguf(&c, io);
    size_t n = g ? g->metadata.n : 0;
    const char **names = g ? mem_alloc_array(n, sizeof *names) : NULL;

    for (size_t i = 0; names && i < n; i++)
        names[i] = g->metadata.v[i].key;
    if (call_ok(&c))
        c.err = names ? box_set_texts(keys, names, n) : ERR_NO_MEMORY;
    mem_free(names);
    return CALL_END(&c);
}

static struct io_array *find_array(const struct gguf *g, const char *key)
{
    for (size_t i = 0; i < g->arrays.list.n; i++)
        if (strcmp(g->arrays.list.v[i].name, key) == 0)
            return &g->arrays.list.v[i];
    return NULL;
}

int mlx_io_gguf_get_array(mlx_array *arr, mlx_io_gguf io, const char *key)
{
    struct call c = CALL(arr);
    const struct gguf *g = call_gguf(&c, io);

    call_ptr(&c, key, "key");
    if (call_ok(&c)) {
        const struct io_array *found = find_array(g, key);
        if (!found)
            return ABSENT;
        c.out = arr_ref(found->arr);
    }
    return CALL_END_ARR(&c, arr);
}

int mlx_io_gguf_set_array(mlx_io_gguf io, const char *key, const mlx_array arr)
{
    struct call c = CALL_BARE;
    struct gguf *g = call_gguf(&c, io);
    struct arr *a = call_arr(&c, arr, "arr");

    call_ptr(&c, key, "key");
    if (!call_ok(&c))
        return CALL_END(&c);
    struct io_array *found = find_array(g, key);
    if (found) {
        arr_unref(&found->arr);
        found->arr = arr_ref(a);
    } else {
        c.err = io_arrays_add(&g->arrays, key, arr_ref(a));
    }
    return CALL_END(&c);
}

/* ---- metadata ---- */

/* The entry under key; NULL after a failure, or with *status ABSENT or WRONG_KIND. */
static const struct gguf_value *call_value(struct call *c, mlx_io_gguf io, const char *key,
                                           enum gguf_kind kind, int *status)
{
    const struct gguf *g = call_gguf(c, io);
    const struct gguf_value *v = NULL;

    *status = 0;
    call_ptr(c, key, "key");
    if (call_ok(c) && !(v = gguf_find(g, key)))
        *status = ABSENT;
    else if (call_ok(c) && v->kind != kind)
        *status = WRONG_KIND;
    return *status ? NULL : v;
}

int mlx_io_gguf_get_metadata_array(mlx_array *arr, mlx_io_gguf io, const char *key)
{
    struct call c = CALL(arr);
    int status;
    const struct gguf_value *v = call_value(&c, io, key, GGUF_ARRAY, &status);

    if (status)
        return status;
    if (v)
        c.out = arr_ref(v->arr);
    return CALL_END_ARR(&c, arr);
}

int mlx_io_gguf_get_metadata_string(mlx_string *str, mlx_io_gguf io, const char *key)
{
    struct call c = CALL(str);
    int status;
    const struct gguf_value *v = call_value(&c, io, key, GGUF_STRING, &status);
    char *copy = v ? mem_strdup(v->texts[0].s) : NULL;

    if (status)
        return status;
    if (v)
        c.err = copy ? box_set_text(str, copy) : ERR_NO_MEMORY;
    return CALL_END(&c);
}

int mlx_io_gguf_get_metadata_vector_string(mlx_vector_string *vstr, mlx_io_gguf io, const char *key)
{
    struct call c = CALL(vstr);
    int status;
    const struct gguf_value *v = call_value(&c, io, key, GGUF_STRINGS, &status);
    const char **texts = v ? mem_alloc_array(v->n_texts, sizeof *texts) : NULL;

    if (status)
        return status;
    for (size_t i = 0; texts && i < v->n_texts; i++)
        texts[i] = v->texts[i].s;
    if (v)
        c.err = texts ? box_set_texts(vstr, texts, v->n_texts) : ERR_NO_MEMORY;
    mem_free(texts);
    return CALL_END(&c);
}

static int has_kind(struct call *c, bool *flag, mlx_io_gguf io, const char *key,
                    enum gguf_kind kind)
{
    int status;
    const struct gguf_value *v = call_value(c, io, key, kind, &status);

    if (call_ok(c))
        *flag = v != NULL;
    return status == ABSENT ? ABSENT : CALL_END(c);
}

#define HAS_METADATA(suffix, kind)                                                                 \
    int mlx_io_gguf_has_metadata_##suffix(bool *flag, mlx_io_gguf io, const char *key)             \
    {                                                                                              \
        struct call c = CALL(flag);                                                                \
        return has_kind(&c, flag, io, key, kind);                                                  \
    }

HAS_METADATA(array, GGUF_ARRAY)
HAS_METADATA(string, GGUF_STRING)
HAS_METADATA(vector_string, GGUF_STRINGS)

/* Puts v, which has no key yet, under key; takes v's content. */
static int set_value(struct call *c, mlx_io_gguf io, const char *key, struct gguf_value *v)
{
    struct gguf *g = call_gguf(c, io);

    call_ptr(c, key, "key");
    if (call_ok(c) && !(v->key = mem_strdup(key)))
        c->err = ERR_NO_MEMORY;
    if (call_ok(c))
        c->err = gguf_set(g, v);
    gguf_value_fini(v);
    return CALL_END(c);
}

int mlx_io_gguf_set_metadata_array(mlx_io_gguf io, const char *key, const mlx_array marr)
{
    struct call c = CALL_BARE;
    struct arr *a = call_arr(&c, marr, "marr");
    struct gguf_value v = { .kind = GGUF_ARRAY, .arr = a ? arr_ref(a) : NULL };

    return set_value(&c, io, key, &v);
}

int mlx_io_gguf_set_metadata_string(mlx_io_gguf io, const char *key, const char *mstr)
{
    struct call c = CALL_BARE;
    struct gguf_value v = { .kind = GGUF_STRING };

    call_ptr(&c, mstr, "mstr");
    if (call_ok(&c))
        c.err = gguf_value_add_text(&v, mstr, strlen(mstr));
    return set_value(&c, io, key, &v);
}

int mlx_io_gguf_set_metadata_vector_string(mlx_io_gguf io, const char *key,
                                           const mlx_vector_string mvstr)
{
    struct call c = CALL_BARE;
    const struct list *l = call_box(&c, mvstr.ctx, "vector", "mvstr");
    char *const *texts = l ? l->v : NULL;
    struct gguf_value v = { .kind = GGUF_STRINGS };

    for (size_t i = 0; l && call_ok(&c) && i < l->n; i++)
        c.err = gguf_value_add_text(&v, texts[i], strlen(texts[i]));
    return set_value(&c, io, key, &v);
}
