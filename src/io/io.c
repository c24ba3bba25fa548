#include "io/io.h"

#include "eval/eval.h"
#include "eval/stream.h"
#include "eval/wait.h"

enum err io_arrays_add(struct io_arrays *l, const char *name, struct arr *a)
{
    struct io_array item = { mem_strdup(name), a };

    if (item.name && VEC_PUSH(&l->list, item) == ERR_OK)
        return ERR_OK;
    mem_free(item.name);
    arr_unref(&a);
    return ERR_NO_MEMORY;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *io_find_duplicate(const char **names, size_t n)
{
    if (n)
        qsort(names, n, sizeof *names, compare_names);
    for (size_t i = 1; i < n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

enum err io_arrays_check_unique(const struct io_arrays *l, const char *file)
{
    const char **names = mem_alloc_array(l->list.n, sizeof *names), *twice;
    enum err err = ERR_OK;

    if (!names)
        return ERR_NO_MEMORY;
    for (size_t i = 0; i < l->list.n; i++)
        names[i] = l->list.v[i].name;
    if ((twice = io_find_duplicate(names, l->list.n)))
        err = err_set(ERR_RUNTIME, "%s holds tensor '%s' twice", file, twice);
    mem_free(names);
    return err;
}

void io_arrays_fini(struct io_arrays *l)
{
    for (size_t i = 0; i < l->list.n; i++) {
        mem_free(l->list.v[i].name);
        arr_unref(&l->list.v[i].arr);
    }
    VEC_FINI(&l->list);
}

enum err io_texts_add(struct io_texts *l, const char *key, const char *value)
{
    struct io_text item = { mem_strdup(key), mem_strdup(value) };

    if (item.key && item.value && VEC_PUSH(&l->list, item) == ERR_OK)
        return ERR_OK;
    mem_free(item.key);
    mem_free(item.value);
    return ERR_NO_MEMORY;
}

void io_texts_fini(struct io_texts *l)
{
    for (size_t i = 0; i < l->list.n; i++) {
        mem_free(l->list.v[i].key);
        mem_free(l->list.v[i].value);
    }
    VEC_FINI(&l->list);
}

/* ---- writing ---- */

/* The copy is made where the bytes are. The array may come from another thread's stream. */
static enum err make_dense(struct arr **out, struct arr *a, bool allow_col_major)
{
    const struct strm *made_on = a->node->strm;
    struct strm *s;
    enum err err;

    TRY(strm_default(&s, made_on ? made_on->dev : (struct dev){ DEV_CPU, 0 }));
    err = ops_contiguous(out, a, allow_col_major, s);
out:
    return err;
}

enum err io_make_dense(struct arr **out, struct arrs in, bool allow_col_major)
{
    enum err err = ERR_OK;

    for (size_t i = 0; i < in.n; i++)
        TRY(make_dense(&out[i], in.v[i], allow_col_major));
    if (in.n)
        err = eval_arrays(out, in.n, false);
out:
    for (size_t i = 0; i < in.n && err; i++)
        arr_unref(&out[i]);
    return err;
}

enum err io_write_bytes(struct sink *out, struct arr *a)
{
    bool had_mirror = a->buf && atomic_load(&a->buf->mirror);
    const void *bytes;
    enum err err;

    if (a->size == 0)
        return ERR_OK;
    TRY(arr_host(&bytes, a));
    err = sink_write(out, bytes, arr_nbytes(a));
    if (!had_mirror)
        buf_drop_mirror(a->buf);
out:
    return err;
}
